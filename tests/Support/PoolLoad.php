<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support;

use RuntimeException;

/**
 * Eight processes that ask one pool at once: four hosts of PHP and four shells with the native command. Each call has
 * an answer of its own, so one that was another caller's is seen.
 */
final class PoolLoad
{
    public const CALLERS = 8;

    /** Milliseconds in which what ends after an answer has ended: threads, keepers, descriptors. */
    private const SETTLES_MS = 1500;

    /** Prints a line for each call. */
    private const HOST = <<<'PHP'
        [, $root, $caller, $from, $to] = $argv;
        $evaluator = new Altair\Eval\Evaluator();
        for ($call = $from; $call < $to; $call++) {
            $request = new Altair\Eval\EvalRequest("echo '$caller'; return '$caller-$call';", $root, 60000);
            $answer = $evaluator->evaluate($request);
            $told = $answer->diagnostics;
            $told = [$answer->result['value'] ?? null, $answer->stdout, $told['start'], $told['pool'] ?? false];
            echo json_encode($told), "\n";
        }
        PHP;

    /** The same, in other words. */
    private const SHELL = <<<'SH'
        call=$3
        while [ $call -lt $4 ]; do
            "$0" eval --root="$1" --format=compact --verbose -- "echo '$2'; return '$2-$call';" || echo wrong
            call=$((call + 1))
        done
        SH;

    private int $calls = 0;

    private readonly TemporaryApplication $outputs;

    public function __construct(private readonly PoolProcess $pool, private readonly TemporaryApplication $in)
    {
        $this->outputs = new TemporaryApplication();
    }

    /**
     * Makes calls, and waits for all of them.
     *
     * @return array<string, int> how many calls started how: `warm`, `cold, by itself`, …
     * @throws RuntimeException if an answer is not that of its caller
     */
    public function call(int $times): array
    {
        $each = intdiv($times, self::CALLERS);
        [$from, $to] = [$this->calls, $this->calls += $each];
        for ($caller = 0; $caller < self::CALLERS; $caller++) {
            $arguments = [$this->in->root, "c$caller", (string) $from, (string) $to];
            $processes[$caller] = proc_open(
                $caller % 2 === 0
                    ? [PHP_BINARY, '-d', 'extension=' . Without::extension(), '-r', self::HOST, '--', ...$arguments]
                    : ['sh', '-c', self::SHELL, Command::native(), ...$arguments],
                [['file', '/dev/null', 'r'], ['file', $this->outputs->path("c$caller"), 'w']],
                $pipes,
                '/',
                $this->pool->environment + array_diff_key(getenv(), ['CI' => '']),
            );
        }
        array_map(proc_close(...), $processes);
        $starts = [];
        for ($caller = 0; $caller < self::CALLERS; $caller++) {
            $lines = file($this->outputs->path("c$caller"), FILE_IGNORE_NEW_LINES);
            foreach (range($from, $to - 1) as $nth => $call) {
                [$value, $output, $start, $pool] = self::told($lines[$nth] ?? '');
                if ([$value, $output] !== ["c$caller-$call", "c$caller"]) {
                    $answer = $lines[$nth] ?? 'nothing';
                    throw new RuntimeException("Caller $caller, call $call, is answered: $answer");
                }
                $how = $pool ? $start : "$start, by itself";
                $starts[$how] = ($starts[$how] ?? 0) + 1;
            }
        }

        return $starts;
    }

    /**
     * What the pool holds when nothing runs.
     *
     * @return array{descriptors: int, threads: int, processes: int, kilobytes: int} the least of each in a while, as
     *     something may be about to end
     */
    public function held(): array
    {
        $pid = $this->pool->await(function (): ?int {
            $state = $this->pool->told();

            return $state['running'] === 0 ? $state['pid'] : null;
        });
        $until = hrtime(true) + self::SETTLES_MS * 1_000_000;
        $least = [];
        do {
            $status = Processes::status($pid);
            $now = [
                'descriptors' => count(Processes::descriptors((string) $pid)),
                'threads' => (int) $status['Threads'],
                'processes' => count(self::descendants($pid)),
                'kilobytes' => (int) $status['VmRSS'],
            ];
            $least = $least === [] ? $now : array_map(min(...), $now, $least);
            $least = array_combine(array_keys($now), $least);
            usleep(20_000);
        } while (hrtime(true) < $until);

        return $least;
    }

    /**
     * @return array{mixed, string, string, bool} value, output, start, and whether the pool has answered
     */
    private static function told(string $line): array
    {
        $told = json_decode($line, true);
        if (isset($told['diagnostics'])) {
            $start = $told['diagnostics'];
            $told = [$told['result'] ?? null, $told['stdout'] ?? '', $start['start'], $start['pool'] ?? false];
        }

        return is_array($told) && count($told) === 4 ? $told : [null, '', '', false];
    }

    /** @return list<int> */
    private static function descendants(int $pid): array
    {
        $all = [];
        foreach (glob("/proc/$pid/task/*/children") ?: [] as $file) {
            foreach (preg_split('~ ~', (string) @file_get_contents($file), flags: PREG_SPLIT_NO_EMPTY) as $child) {
                $all = [...$all, (int) $child, ...self::descendants((int) $child)];
            }
        }

        return $all;
    }
}
