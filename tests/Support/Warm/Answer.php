<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Warm;

use Altair\Eval\EvalResult;
use Altair\Eval\Support\Json;

/**
 * What a result says that is not a measure of time or memory, nor tells how the run was started.
 */
final class Answer
{
    private const OTHERWISE = ['timings_ms', 'start', 'start_reason'];

    /**
     * @return array<string, mixed>
     */
    public static function of(EvalResult $result): array
    {
        // As it is printed: two objects without properties are no difference.
        $answer = json_decode(Json::encode($result->toArray(verbose: true)), true, flags: JSON_THROW_ON_ERROR);
        unset($answer['duration_ms'], $answer['memory_peak_bytes']);
        $answer['diagnostics'] = array_diff_key($answer['diagnostics'], array_flip(self::OTHERWISE));
        if (isset($answer['diagnostics']['file_changes'])) {
            $answer['diagnostics']['file_changes'] = self::withDeletions($answer['diagnostics']['file_changes']);
        }

        return $answer;
    }

    /**
     * Where a run that booted by itself deletes something, what its boot deleted counts as its own, too: overlayfs has
     * one inode for the marks of all deletions, whose time is that of the last.
     *
     * @param array<string, mixed> $changes
     * @return array<string, mixed> with the deletions of both in one list
     */
    private static function withDeletions(array $changes): array
    {
        $ofBoot = $changes['boot_changes']['deleted'] ?? [];
        $changes['deleted'] = [...$changes['deleted'], ...$ofBoot];
        sort($changes['deleted']);
        unset($changes['boot_changes']['deleted']);
        $changes['boot'] = ($changes['boot'] ?? 0) - count($ofBoot);

        return $changes;
    }
}
