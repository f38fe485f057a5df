<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support;

/**
 * What the kernel says of processes, from outside of them.
 */
final class Processes
{
    /**
     * @return list<string> `pid (name) state` of every process that was started with this text in its environment
     */
    public static function startedWith(string $text): array
    {
        $found = [];
        foreach (self::all() as $pid) {
            if (str_contains((string) @file_get_contents("/proc/$pid/environ"), $text)) {
                $found[] = self::describe($pid);
            }
        }

        return self::there($found);
    }

    /**
     * Waits a moment until nothing is left: a host does not wait for the end of its templates.
     *
     * @return list<string> the processes with this text in their environment that do not end
     */
    public static function leftOf(string $text): array
    {
        $until = microtime(true) + self::ENDING;
        while (($left = self::startedWith($text)) !== [] && microtime(true) < $until) {
            usleep(1000);
        }

        return $left;
    }

    /**
     * @param list<string> $processes
     * @return list<string> those that have not ended while they were looked at
     */
    private static function there(array $processes): array
    {
        return array_values(array_filter($processes, static fn (string $one): bool => !str_ends_with($one, ' gone')));
    }

    /** Of the flags in `/proc/<pid>/stat`: it is being taken apart (`include/linux/sched.h`). */
    private const PF_EXITING = 0x4;

    /** Seconds that the keeper of a command may take to end; it is collected in the background. */
    private const ENDING = 2.0;

    /** @var array<int, true> keepers that stayed longer: who made them fails, and later tests do not wait for them */
    private static array $stayed = [];

    /** Whether a thread has been collecting a keeper for longer. */
    private static bool $collectsForever = false;

    /**
     * @return list<string> `pid (name) state` of every child of this process, zombies included
     */
    public static function children(): array
    {
        $until = microtime(true) + self::ENDING;
        $isEnding = static fn (string $child): bool => str_contains($child, '(altair-keeper)')
            && !isset(self::$stayed[(int) $child]);
        do {
            $children = self::childrenNow();
            $ending = array_filter($children, $isEnding);
        } while (($ending !== [] || !self::$collectsForever && self::collects()) && microtime(true) < $until);
        self::$collectsForever = self::$collectsForever || microtime(true) >= $until && self::collects();
        self::$stayed += array_fill_keys(array_map(intval(...), $ending), true);

        return self::there($children);
    }

    /**
     * @return list<string> what is left of the children of this process that are about to end: a host does not wait for
     *     the end of its templates
     */
    public static function childrenLeft(): array
    {
        $until = microtime(true) + self::ENDING;
        while (($left = self::there(self::childrenNow())) !== [] && microtime(true) < $until) {
            usleep(1000);
        }

        return $left;
    }

    /**
     * @param list<string> $known what {@see children()} said earlier
     * @return list<string> the children that were made since, whatever state the others are in by now
     */
    public static function childrenSince(array $known): array
    {
        $ids = array_map(intval(...), $known);
        $isNew = static fn (string $child): bool => !in_array((int) $child, $ids, true);

        return array_values(array_filter(self::children(), $isNew));
    }

    /** Whether a thread of this process collects a keeper. */
    private static function collects(): bool
    {
        $names = array_map(static fn (string $file) => @file_get_contents($file), glob('/proc/self/task/*/comm') ?: []);

        return in_array("altair-collect\n", $names, true);
    }

    /**
     * @return list<string>
     */
    private static function childrenNow(): array
    {
        $own = (string) getmypid();
        $found = [];
        foreach (self::all() as $pid) {
            if ((self::stat($pid)[1] ?? null) === $own) {
                $found[] = self::describe($pid);
            }
        }

        return $found;
    }

    /**
     * @return array<int, string> descriptor => what it is
     */
    public static function descriptors(string $pid = 'self'): array
    {
        $descriptors = [];
        foreach (array_diff(scandir("/proc/$pid/fd"), ['.', '..']) as $number) {
            // The one that reads the directory is gone by now.
            $target = @readlink("/proc/$pid/fd/$number");
            if ($target !== false) {
                $descriptors[(int) $number] = $target;
            }
        }
        ksort($descriptors);

        return $descriptors;
    }

    /**
     * @return array<string, string> `/proc/<pid>/status` by field
     */
    public static function status(int $pid): array
    {
        preg_match_all('/^(\w+):[ \t]*(.*)$/m', (string) @file_get_contents("/proc/$pid/status"), $fields);

        return array_combine($fields[1], $fields[2]);
    }

    /**
     * @return list<string> `/proc/<pid>/stat` from the state on: state, parent, group, session, terminal, …
     */
    public static function stat(int|string $pid): array
    {
        // The name before it may hold anything, closing brackets too.
        $stat = strrchr((string) @file_get_contents("/proc/$pid/stat"), ')');

        return $stat === false ? [] : explode(' ', trim(substr($stat, 2)));
    }

    /** Whether a process ends, has ended and is not collected yet, or is gone. */
    public static function isEnding(int $pid): bool
    {
        $stat = self::stat($pid);

        return $stat === [] || in_array($stat[0], ['Z', 'X'], true) || ((int) $stat[6] & self::PF_EXITING) !== 0;
    }

    private static function describe(string $pid): string
    {
        return sprintf(
            '%s (%s) %s',
            $pid,
            trim((string) @file_get_contents("/proc/$pid/comm")),
            self::stat($pid)[0] ?? 'gone',
        );
    }

    /**
     * @return list<string>
     */
    public static function all(): array
    {
        return array_values(array_filter(scandir('/proc'), ctype_digit(...)));
    }
}
