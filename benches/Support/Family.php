<?php

declare(strict_types=1);

namespace Altair\Eval\Benches\Support;

use Altair\Eval\Tests\Support\Processes;
use RuntimeException;

/**
 * A host and every process below it, as the kernel tells of them at one moment.
 */
final class Family
{
    /** What stands between a host and its children (`/proc/<pid>/comm`). */
    private const KEEPER = 'altair-keeper';

    /** How often it is looked whether somebody comes or goes, and microseconds between two looks. */
    private const LOOKS = 100;
    private const BETWEEN_LOOKS_US = 20_000;

    /**
     * @param array<int, array{name: string, state: string, parent: int, resident: int, descriptors: int}> $members by
     *     process id; sizes in bytes
     */
    private function __construct(private readonly array $members)
    {
    }

    /** As soon as nobody comes or goes: who has answered may still be about to end. */
    public static function of(int $host): self
    {
        $family = self::look($host);
        for ($looks = 0; $looks < self::LOOKS; ++$looks) {
            usleep(self::BETWEEN_LOOKS_US);
            [$before, $family] = [$family, self::look($host)];
            if (array_keys($before->members) === array_keys($family->members)) {
                return $family;
            }
        }
        throw new RuntimeException('A family that does not come to rest: ' . json_encode($family->members));
    }

    /** The process id of the one template of a host that evaluates nothing at the moment. */
    public function template(): int
    {
        $templates = array_filter(
            $this->members,
            fn (array $member): bool => ($this->members[$member['parent']]['name'] ?? '') === self::KEEPER,
        );
        if (count($templates) !== 1) {
            throw new RuntimeException('Not one template: ' . json_encode($this->members));
        }

        return array_key_first($templates);
    }

    public function residentBytes(int $pid): int
    {
        return $this->members[$pid]['resident'];
    }

    /**
     * @return list<string> in words: processes and descriptors that were not there before, zombies that are there now
     */
    public function beyond(self $before): array
    {
        $left = [];
        foreach ($this->members as $pid => $member) {
            $more = $member['descriptors'] - ($before->members[$pid]['descriptors'] ?? 0);
            if ($member['state'] === 'Z' || !isset($before->members[$pid])) {
                $left[] = "$pid ({$member['name']}) {$member['state']}";
            } elseif ($more > 0) {
                $left[] = "$more descriptors of $pid ({$member['name']})";
            }
        }

        return $left;
    }

    private static function look(int $host): self
    {
        $members = [];
        $parents = [];
        foreach (Processes::all() as $pid) {
            $parents[(int) $pid] = (int) (Processes::stat($pid)[1] ?? 0);
        }
        // Until everybody's children are among them: a process id does not say who came first.
        for ($more = [$host => 0]; $more !== [];) {
            foreach (array_keys($more) as $pid) {
                $members[$pid] = self::describe($pid);
            }
            $more = array_diff_key(array_intersect($parents, array_keys($members)), $members);
        }
        ksort($members);

        return new self(array_filter($members));
    }

    /** @return array{name: string, state: string, parent: int, resident: int, descriptors: int}|null null: it is gone */
    private static function describe(int $pid): ?array
    {
        $status = is_dir("/proc/$pid") ? @Processes::status($pid) : [];
        if ($status === []) {
            return null;
        }
        // Of a confined process only root may count them; what it has room for, everybody.
        $descriptors = @scandir("/proc/$pid/fd");

        return [
            'name' => $status['Name'],
            'state' => $status['State'][0],
            'parent' => (int) $status['PPid'],
            'resident' => (int) ($status['VmRSS'] ?? 0) * 1024,
            'descriptors' => $descriptors === false ? (int) $status['FDSize'] : count($descriptors),
        ];
    }
}
