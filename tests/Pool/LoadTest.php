<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Pool;

use Altair\Eval\Tests\Support\PoolLoad;
use Altair\Eval\Tests\Support\PoolTestCase;

/**
 * Many callers at once; `make pool-load` makes many more calls.
 */
final class LoadTest extends PoolTestCase
{
    public function testCallersAtOnceGetTheirOwnAnswersAndThePoolDoesNotGrow(): void
    {
        $pid = $this->pool->start();
        $load = new PoolLoad($this->pool, $this->shop);
        $this->pool->evaluate($this->shop, 'return 1;');

        self::assertSame(['warm' => 80], $load->call(80));
        $before = $load->held();
        self::assertSame(['warm' => 320], $load->call(320));
        $after = $load->held();

        foreach (['descriptors', 'threads', 'processes'] as $what) {
            self::assertLessThanOrEqual($before[$what], $after[$what], $what);
        }
        self::assertSame($pid, $this->pool->pid());
    }
}
