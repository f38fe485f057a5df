<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Escape;

use Altair\Eval\Tests\Support\Processes;

/**
 * What the kernel says of a run that has been stopped.
 *
 * Descriptors, namespaces, mounts and the root are told to root only, once the run has made itself undumpable: where
 * the tests run as an ordinary user they are empty, and the looks at them see nothing.
 */
final class Snapshot
{
    /**
     * @param array<int, string> $processes id => name, of all that descends from the host
     * @param array<int, string> $descriptors of the run
     * @param array<string, string> $namespaces
     * @param list<string> $mounts
     * @param array<string, string> $status `/proc/<pid>/status`
     * @param list<string> $mapped files that are mapped
     */
    private function __construct(
        public readonly int $pid,
        public readonly array $processes,
        public readonly array $descriptors,
        public readonly array $namespaces,
        public readonly array $mounts,
        public readonly array $status,
        public readonly array $mapped,
        public readonly string $personality,
        public readonly string $root,
    ) {
    }

    /** Looks at the stopped process below `$host`; null where none of them is stopped. */
    public static function take(int $host): ?self
    {
        $family = self::descendants($host);
        $stopped = array_keys(array_filter($family, static fn (array $process): bool => $process['state'] === 'T'));
        if ($stopped === []) {
            return null;
        }
        $pid = end($stopped);
        $namespaces = [];
        foreach (['cgroup', 'ipc', 'mnt', 'net', 'pid', 'time', 'user', 'uts'] as $name) {
            $namespaces[$name] = (string) @readlink("/proc/$pid/ns/$name");
        }

        return new self(
            $pid,
            array_map(static fn (array $process): string => $process['name'], $family),
            is_readable("/proc/$pid/fd") ? Processes::descriptors((string) $pid) : [],
            $namespaces,
            @file("/proc/$pid/mountinfo", FILE_IGNORE_NEW_LINES) ?: [],
            Processes::status($pid),
            self::mapped($pid),
            trim((string) @file_get_contents("/proc/$pid/personality")),
            (string) @readlink("/proc/$pid/root"),
        );
    }

    /**
     * @return array<int, array{parent: int, state: string, name: string}> what descends from a process
     */
    public static function descendants(int $of): array
    {
        $family = [];
        $parents = [$of];
        while (($parent = array_shift($parents)) !== null) {
            foreach (self::children($parent) as $pid) {
                $stat = (string) @file_get_contents("/proc/$pid/stat");
                if (preg_match('/\((.*)\) (\S) (\d+)/s', $stat, $fields) === 1) {
                    $family[$pid] = ['parent' => (int) $fields[3], 'state' => $fields[2], 'name' => $fields[1]];
                    $parents[] = $pid;
                }
            }
        }

        return $family;
    }

    /**
     * @return list<int> the children of a process, of all of its threads
     */
    private static function children(int $of): array
    {
        $children = '';
        foreach (glob("/proc/$of/task/*/children") as $file) {
            $children .= @file_get_contents($file);
        }

        return array_map(intval(...), preg_split('/ /', $children, flags: PREG_SPLIT_NO_EMPTY));
    }

    /** Lets what was stopped go on. */
    public function release(): void
    {
        posix_kill($this->pid, SIGCONT);
    }

    /**
     * @return list<string> what of the process itself is another than before
     */
    public function changesSince(self $before): array
    {
        $changes = [];
        foreach (['Uid', 'Gid', 'Groups', 'CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'NoNewPrivs', 'Seccomp'] as $field) {
            if (($this->status[$field] ?? '') !== ($before->status[$field] ?? '')) {
                $changes[] = "$field is {$this->status[$field]}";
            }
        }
        foreach (array_diff_assoc($this->namespaces, $before->namespaces) as $name => $link) {
            $changes[] = "namespace $name is $link";
        }
        foreach (array_diff($this->mounts, $before->mounts) as $mount) {
            $changes[] = "mounted: $mount";
        }
        foreach (array_diff($before->mounts, $this->mounts) as $mount) {
            $changes[] = "unmounted: $mount";
        }
        if ($this->root !== $before->root) {
            $changes[] = "root is $this->root";
        }

        return $changes;
    }

    /**
     * @return list<string>
     */
    private static function mapped(int $pid): array
    {
        preg_match_all('~ (/\S.*)$~m', (string) @file_get_contents("/proc/$pid/maps"), $files);

        return array_values(array_unique($files[1]));
    }
}
