<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Warm;

use Altair\Eval\Tests\Support\TemporaryApplication;
use Altair\Eval\Tests\Support\Warm\WarmTestCase;

/**
 * A template that nobody asks ends by itself, and is the first to go where memory runs out.
 */
final class NoLongerNeededTest extends WarmTestCase
{
    public function testItEndsAfterATimeWithoutARequest(): void
    {
        $before = ini_set('altair_eval.idle', '1');
        try {
            $this->booting('');
            $this->ask('return 1;');
            self::waitUntil(fn (): bool => self::templates() === [], 'It has ended by itself.');

            self::assertStart('first', $this->ask('return 1;'));
        } finally {
            ini_set('altair_eval.idle', (string) $before);
        }
    }

    public function testItIsCollectedWhenAnotherIsAsked(): void
    {
        $before = ini_set('altair_eval.idle', '1');
        try {
            $this->booting('');
            $this->ask('return 1;');
            $zombie = self::endedByItself();
            $other = new TemporaryApplication();
            $this->ask('return 1;', projectRoot: $other->root);

            self::assertFileDoesNotExist("/proc/$zombie", 'No zombie is left of it.');
        } finally {
            ini_set('altair_eval.idle', (string) $before);
        }
    }

    public function testBeforeThatItStays(): void
    {
        self::assertSame('300', ini_get('altair_eval.idle'));
        $this->booting('');
        $this->warmed();
        $template = self::template();

        self::assertStart('warm', $this->ask('return 1;'));
        self::assertSame($template, self::template());
    }

    public function testItAndItsForksAreTheFirstToGoWhereMemoryRunsOut(): void
    {
        $this->booting('');
        $this->warmed();

        $template = self::template();
        self::assertSame("500\n", file_get_contents("/proc/$template/oom_score_adj"));
        self::assertNotSame("500\n", file_get_contents('/proc/self/oom_score_adj'));
    }
}
