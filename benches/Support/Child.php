<?php

declare(strict_types=1);

namespace Altair\Eval\Benches\Support;

use Altair\Eval\EvalRequest;
use Altair\Eval\Evaluator;
use RuntimeException;

/**
 * A fork of a template in the middle of its run, seen from outside.
 */
final class Child
{
    /**
     * The memory that it shares with no other process, in bytes (proc_pid_smaps(5)); null where the kernel does not
     * let this user look.
     *
     * @param string $directory where a file may be made for a moment; absolute
     */
    public static function ownBytes(Evaluator $evaluator, string $root, string $directory): ?int
    {
        $looked = "$directory/looked";
        $seen = null;
        $result = $evaluator->evaluate(
            new EvalRequest(
                "echo getmypid(); while (!file_exists('$looked')) { usleep(1000); } return 1 + 1;",
                $root,
                EvalRequest::MAX_TIMEOUT_MS,
                readablePaths: [$directory],
            ),
            static function (string $type, string $pid) use (&$seen, $looked): void {
                $seen = @file_get_contents("/proc/$pid/smaps_rollup");
                touch($looked);
            },
        );
        @unlink($looked);
        if (!$result->ok() || !in_array($result->diagnostics['start'] ?? null, ['first', 'warm'], true)) {
            throw new RuntimeException('Not what is to be measured: ' . json_encode($result->toArray()));
        }
        preg_match_all('/^Private_(?:Clean|Dirty): +(\d+) kB$/m', (string) $seen, $private);

        return count($private[1]) === 2 ? array_sum($private[1]) * 1024 : null;
    }
}
