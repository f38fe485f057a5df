<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Sandbox\Escape;

use Altair\Eval\Tests\Support\Processes;
use Altair\Eval\Tests\Support\Sandbox\Caller;
use Altair\Eval\Tests\Support\Sandbox\CommandEscapeTestCase;
use Altair\Eval\Tests\Support\Sandbox\Ground;

/**
 * Processes, threads and memory.
 */
final class ResourceTest extends CommandEscapeTestCase
{
    /** Processes and threads that a command may have. */
    private const MOST = 512;

    /**
     * @return iterable<string, array{Caller, string, int}>
     */
    public static function bombs(): iterable
    {
        foreach (Caller::everyone() as $name => [$caller]) {
            yield "$name: processes" => [$caller, 'multiply', 700];
            yield "$name: threads" => [$caller, 'threads', 700];
            yield "$name: processes whose parents end" => [$caller, 'shuffle', 1000];
        }
    }

    /**
     * @dataProvider bombs
     */
    public function testProcessesAndThreadsAreLimited(Caller $caller, string $attack, int $wanted): void
    {
        self::assertHeldWhileItRuns(
            $caller,
            static fn (Ground $ground): array => [$attack, $ground->mark, (string) $wanted],
            static function (Ground $ground) use ($caller): array {
                // Its user's other processes go on.
                exec(implode(' ', $caller->setting()->command(['true'])), $lines, $status);
                self::assertSame(0, $status);
                $tasks = $ground->tasks();
                self::assertGreaterThan(self::MOST / 2, $tasks);

                return $tasks > self::MOST ? ["$tasks processes and threads"] : [];
            },
        );
    }

    /**
     * @dataProvider everyone
     */
    public function testTheMemoryOfAProcessIsLimited(Caller $caller): void
    {
        self::assertHeldWhileItRuns(
            $caller,
            static fn (Ground $ground): array => ['take-memory', '256', $ground->mark],
            static function (Ground $ground): array {
                [$pid] = $ground->processes();
                $held = (int) Processes::status($pid)['VmRSS'];

                return $held > 80 << 10 ? ["$held KiB"] : [];
            },
            ['--memory=64M'],
        );
    }
}
