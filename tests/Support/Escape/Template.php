<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Escape;

use Altair\Eval\Tests\Support\Processes;
use Altair\Eval\Tests\Support\Spare;

/**
 * A template of a host, and what is known of it from outside.
 */
final class Template
{
    private function __construct(public readonly int $pid, public readonly int $keeper)
    {
    }

    /**
     * @return list<self> the templates of a host; runs, which have the same parent, are not made at the moment
     */
    public static function of(int $host): array
    {
        $family = Spare::besides($host);
        $templates = [];
        foreach ($family as $pid => $process) {
            if (($family[$process['parent']]['name'] ?? '') === 'altair-keeper') {
                $templates[] = new self($pid, $process['parent']);
            }
        }

        return $templates;
    }

    /** Where its environment lies in its memory. */
    public function environment(): int
    {
        // env_start, field 50 of proc_pid_stat(5): the 48th behind the name.
        return (int) (Processes::stat($this->pid)[47] ?? 0);
    }

    /**
     * @return list<array{int, int}> from where to where it has memory that may be written: each fork has the same.
     *     Told to root only
     */
    public function writableMemory(): array
    {
        $maps = (string) @file_get_contents("/proc/$this->pid/maps");
        preg_match_all('/^([0-9a-f]+)-([0-9a-f]+) rw/m', $maps, $ranges, PREG_SET_ORDER);

        return array_map(static fn (array $range): array => [hexdec($range[1]), hexdec($range[2])], $ranges);
    }
}
