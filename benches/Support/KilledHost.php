<?php

declare(strict_types=1);

namespace Altair\Eval\Benches\Support;

use Altair\Eval\Tests\Support\Processes;
use RuntimeException;

/**
 * A host that is killed in the middle of a run.
 */
final class KilledHost
{
    private const PROGRAM = <<<'PHP'
        $request = new Altair\Eval\EvalRequest('echo getmypid(), "\n"; for (;;);', $argv[1], 60000);
        (new Altair\Eval\Evaluator(warm: false))->evaluate($request, function (string $type, string $chunk): void {
            fwrite(STDOUT, $chunk);
        });
        PHP;

    /** Milliseconds from the signal until neither the child nor what stands between it and its host is alive. */
    public static function untilAllIsGone(string $root): float
    {
        $command = [PHP_BINARY, '-d', 'extension=' . getenv('EXTENSION'), '-r', self::PROGRAM, '--', $root];
        $process = proc_open($command, [['file', '/dev/null', 'r'], ['pipe', 'w']], $pipes)
            ?: throw new RuntimeException('No process.');
        $child = (int) fgets($pipes[1]);
        $keeper = (int) (Processes::stat($child)[1] ?? 0);
        if ($child === 0 || $keeper <= 1) {
            throw new RuntimeException('Not what is to be measured: no run.');
        }
        $began = hrtime(true);
        proc_terminate($process, SIGKILL);
        while (self::isAlive($child) || self::isAlive($keeper)) {
            usleep(100);
        }
        $took = (hrtime(true) - $began) / 1e6;
        fclose($pipes[1]);
        proc_close($process);

        return $took;
    }

    /** One that waits to be collected by the system's init is not. */
    private static function isAlive(int $pid): bool
    {
        return !in_array(Processes::stat($pid)[0] ?? 'gone', ['gone', 'Z', 'X'], true);
    }
}
