<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\Tests\Support\Processes;
use Altair\Eval\Tests\Support\Script;
use Altair\Eval\Tests\Support\TemporaryApplication;
use PHPUnit\Framework\TestCase;

/**
 * A host that is killed in the middle of a run: nothing of the run is left, neither process nor file, mount or
 * namespace.
 */
final class HostKilledTest extends TestCase
{
    /** Seconds in which everything has to be gone, on the slowest of machines; `make bench` has the real figure. */
    private const PATIENCE = 10;

    /**
     * @return iterable<string, array{string, string}>
     */
    public static function runs(): iterable
    {
        yield 'that computes' => ['for (;;);', ''];
        yield 'that sleeps' => ['sleep(60);', ''];
        yield 'that writes' => [
            'for (;;) { file_put_contents("x", str_repeat("x", 1 << 20)); touch(tempnam("/tmp", "x")); }',
            '',
        ];
        yield 'that makes refused calls' => [
            'for (;;) { try { @posix_kill(1, 0); @stream_socket_pair(1, 2, 0); } catch (Error) {} }',
            '',
        ];
        yield 'that has forked, unsafely' => [
            'if (pcntl_fork() === 0) { posix_setsid(); if (pcntl_fork() === 0) { fclose(STDOUT); fclose(STDERR); } }'
                . ' for (;;) { sleep(1); }',
            ', unsafe: true',
        ];
    }

    /**
     * @dataProvider runs
     */
    public function testNothingOfItIsLeft(string $snippet, string $options): void
    {
        $place = new TemporaryApplication();
        mkdir($place->path('tmp'));
        chmod($place->path('tmp'), 01777);
        $application = new TemporaryApplication();
        $before = getenv('TMPDIR');
        putenv('TMPDIR=' . $place->path('tmp'));
        $request = static fn (string $snippet): string => 'new EvalRequest(' . var_export($snippet, true) . ', '
            . var_export($application->root, true) . ", 60000$options)";
        // The first call is cold.
        $script = new Script("\$evaluator = new Evaluator(); \$evaluator->evaluate({$request('return 1;')});"
            . " \$r = {$request('echo "begun"; ' . $snippet)};"
            . ' $evaluator->evaluate($r, function (string $type, string $chunk) { say($chunk); });');
        putenv($before === false ? 'TMPDIR' : "TMPDIR=$before");
        self::assertSame('begun', $script->line());
        $processes = $script->processes();
        self::assertGreaterThanOrEqual(2, count($processes), 'The keeper and the child.');
        $own = readlink('/proc/self/ns/mnt');
        $namespaces = array_diff(array_filter(array_map(self::namespace(...), $processes)), [$own]);
        // A confined run has one of its own, and so have the template that it is a fork of and a fork that waits.
        self::assertContains(count($namespaces), $options === '' ? [2, 3] : [0]);
        [$holder, $streams] = self::holder(array_intersect_key($processes, array_unique($namespaces)));
        $mounts = self::mounts($place, $application);

        try {
            $script->signal(SIGKILL);
            $deadline = microtime(true) + self::PATIENCE;
            while ($script->processes() !== [] && microtime(true) < $deadline) {
                usleep(1000);
            }

            self::assertSame([], $script->left());
            $there = static fn (): array => array_intersect(
                $namespaces,
                array_map(self::namespace(...), Processes::all()),
            );
            while ($there() !== [] && microtime(true) < $deadline) {
                usleep(1000);
            }
            self::assertSame([], $there());
        } finally {
            // PHP collects the process here, and not where the resource is let go of.
            proc_close($holder);
        }
        self::assertSame($mounts, self::mounts($place, $application));
        self::assertSame(['.', '..'], scandir($place->path('tmp')));
        $expected = ['vendor', 'vendor/autoload.php', '.altair', '.altair/events.jsonl'];
        self::assertSame([], array_diff($application->tree(), $expected));
    }

    /**
     * @return list<string> what is mounted there, or as a run's own; other tests mount other things
     */
    private static function mounts(TemporaryApplication ...$places): array
    {
        $marks = [' altair', ...array_map(static fn (TemporaryApplication $place): string => $place->root, $places)];
        $isOurs = static fn (string $mount): bool => str_replace($marks, '', $mount) !== $mount;

        return array_values(array_filter(file('/proc/self/mountinfo') ?: [], $isOurs));
    }

    /**
     * A process that has the mount namespaces of these open. Until it is closed, the kernel gives their numbers to no
     * others, such as those of another test's runs.
     *
     * @param array<int> $pids
     * @return array{resource, array<int, resource>} it, its standard input and output
     */
    private static function holder(array $pids): array
    {
        $opens = 'n=3; for pid; do eval "exec $n</proc/$pid/ns/mnt"; n=$((n + 1)); done; echo open; read end';
        $holder = proc_open(['sh', '-ec', $opens, 'sh', ...$pids], [['pipe', 'r'], ['pipe', 'w']], $streams);
        self::assertSame("open\n", fgets($streams[1]));

        return [$holder, $streams];
    }

    private static function namespace(int|string $pid): string|false
    {
        return @readlink("/proc/$pid/ns/mnt");
    }
}
