<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support;

use Altair\Eval\Tests\Support\Escape\Snapshot;

/**
 * A fork that is ready before it is asked for. There may be none, one or more of them at any time.
 */
final class Spare
{
    /** What a host holds of one: a channel, two streams and a pidfd. */
    private const DESCRIPTORS = ['socket:' => 1, 'pipe:' => 2, 'anon_inode:[pidfd]' => 1];

    /** Seconds within which one is made. */
    private const PATIENCE = 10;

    /** Whether a process is a fork that waits for its task: for one of two descriptors, for good. */
    public static function is(int $pid): bool
    {
        $seen = explode(' ', (string) @file_get_contents("/proc/$pid/syscall"));
        // poll(2) on x86_64, ppoll(2) on aarch64: descriptors, how many, how long.
        $isPoll = in_array($seen[0], ['7', '73'], true);

        return $isPoll && ($seen[2] ?? '') === '0x2';
    }

    /**
     * @return list<int> the ids of such forks that a host has now
     */
    public static function of(int $host): array
    {
        return array_values(array_filter(array_keys(Snapshot::descendants($host)), self::is(...)));
    }

    /**
     * What a host has besides such forks, once none is being made and no run is being freed. A run that stands still
     * is not waited for.
     *
     * @return array<int, array{parent: int, state: string, name: string}>
     */
    public static function besides(int $host): array
    {
        $until = microtime(true) + self::PATIENCE;
        do {
            usleep(1000);
            $all = Snapshot::descendants($host);
            $besides = self::without($all);
            $forks = [];
            foreach ($besides as ['parent' => $parent, 'state' => $state]) {
                // One of them is its template. One that has stopped itself is a run.
                if ($state !== 'T' && ($all[$parent]['name'] ?? '') === 'altair-keeper') {
                    $forks[$parent] = ($forks[$parent] ?? 0) + 1;
                }
            }
            $isSettled = max([1, ...$forks]) === 1 && !self::isBeingMade($host);
        } while (!$isSettled && microtime(true) < $until);

        return $besides;
    }

    /**
     * @template T
     * @param array<int, T> $processes by id
     * @return array<int, T>
     */
    public static function without(array $processes): array
    {
        return array_filter($processes, static fn (int $pid): bool => !self::is($pid), ARRAY_FILTER_USE_KEY);
    }

    /**
     * How many descriptors of each kind a host has, but those of such forks.
     *
     * @return array<string, int>
     */
    public static function withoutDescriptors(int $host): array
    {
        self::besides($host);
        $kinds = array_count_values(preg_replace('/\[\d+\]/', '', Processes::descriptors((string) $host)));
        $spares = count(self::of($host));
        foreach (self::DESCRIPTORS as $kind => $each) {
            $kinds[$kind] = ($kinds[$kind] ?? 0) - $each * $spares;
        }
        ksort($kinds);

        return $kinds;
    }

    /** Whether the thread that makes them does something else than to wait. */
    private static function isBeingMade(int $host): bool
    {
        foreach (glob("/proc/$host/task/*") as $thread) {
            // futex(2) on x86_64 and on aarch64.
            if (
                trim((string) @file_get_contents("$thread/comm")) === 'altair-spares'
                && !in_array(strtok((string) @file_get_contents("$thread/syscall"), ' '), ['202', '98'], true)
            ) {
                return true;
            }
        }

        return false;
    }

    /** Whether a directory is the empty one that such a fork has for its temporary files, where there are no mounts. */
    public static function isDirectory(string $path): bool
    {
        return preg_match('~/run-(\d+)\z~', $path, $fork) === 1
            && self::is((int) $fork[1])
            && @scandir($path) === ['.', '..'];
    }
}
