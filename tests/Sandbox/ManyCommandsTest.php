<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Sandbox;

use Altair\Eval\Tests\Support\Footprint;
use Altair\Eval\Tests\Support\SandboxTestCase;

/**
 * Commands cost a process that runs many of them nothing that lasts.
 */
final class ManyCommandsTest extends SandboxTestCase
{
    /** Growth of memory after which something is not given back: what an allocator keeps varies by less. */
    private const GROWTH = 3 << 20;

    /**
     * @return iterable<string, array{string, int}>
     */
    public static function runs(): iterable
    {
        yield 'host' => ['host', 1200];
        yield 'native' => ['native', 800];
        yield 'bubblewrap' => ['bubblewrap', 20];
        yield 'firejail' => ['firejail', 5];
    }

    /**
     * @dataProvider runs
     */
    public function testManyCommandsLeaveNothing(string $driver, int $times): void
    {
        $run = function (int $i) use ($driver): void {
            [$argv, $code] = match ($i % 4) {
                0 => [['true'], 0],
                1 => [['sh', '-c', 'cat; echo x > f; exit 3'], 3],
                2 => [['sh', '-c', 'echo x; kill -9 $$'], 137],
                3 => [['sh', '-c', 'echo x >&2; (sleep 1000 &)'], 0],
            };
            $stdin = $i % 4 === 1 ? str_repeat('x', 100000) : null;
            $onOutput = $i % 8 === 1 ? static function (): void {
            } : null;
            $result = $this->sandbox($driver)->execute($argv, $stdin, $onOutput);
            self::assertSame($code, $result->exitCode(), $result->stderr());
            self::assertSame($i % 4 === 1 ? 100000 : ($i % 4 === 2 ? 2 : 0), strlen($result->stdout()));
        };
        for ($i = 0; $i < 40 && $i < $times; $i++) {
            $run($i);
        }
        $before = Footprint::take($this->base->root);

        for ($i = 0; $i < $times; $i++) {
            $run($i);
        }

        $after = Footprint::take($this->base->root);
        self::assertSame([], $after->beyond($before));
        self::assertLessThan(self::GROWTH, $after->residentBytes - $before->residentBytes);
    }

    public function testLayersThatNobodyAppliesLeaveNothing(): void
    {
        $run = function (): void {
            $policy = $this->policy()->withLayer($this->base->root);
            $result = $this->sh('native', "echo x > {$this->base->root}/f", $policy);
            self::assertSame('f', $result->fileChanges()['created'][0]['path']);
        };
        $run();
        $before = Footprint::take($this->base->root);

        for ($i = 0; $i < 50; $i++) {
            $run();
        }

        self::assertSame([], Footprint::take($this->base->root)->beyond($before));
    }
}
