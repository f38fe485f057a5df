<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Warm;

use Altair\Eval\Tests\Support\Command;
use Altair\Eval\Tests\Support\Processes;
use Altair\Eval\Tests\Support\Skip;
use Altair\Eval\Tests\Support\Warm\LockedRuns;
use Altair\Eval\Tests\Support\Warm\WarmTestCase;

/**
 * What the dynamic linker has protected stays so, in a template and in its forks: what may be done with a page of a
 * program or a library is what may be done with it in a PHP that was just started.
 */
final class ProtectedMemoryTest extends WarmTestCase
{
    use LockedRuns;

    private const PAGE = 4096;

    public function testATemplateAndItsRunsHaveTheProtectionsOfAFreshPhp(): void
    {
        if (posix_geteuid() !== 0) {
            Skip::NeedsRoot->because('Nobody else may look into a template.');
        }
        $lock = $this->locks(['a'])['a'];
        $read = "echo 'here'; {$this->wait('a')}";
        $maps = [];
        $onOutput = function () use ($lock, &$maps): void {
            $this->untilWaitingFor($lock, 1);
            foreach (array_map(intval(...), Processes::children()) as $keeper) {
                foreach (self::childrenOf($keeper) as $process) {
                    $maps[$process] = (string) file_get_contents("/proc/$process/maps");
                }
            }
            flock($lock, LOCK_UN);
        };

        $result = $this->askOf($this->evaluator, $read, $onOutput, readablePaths: [$this->outside->root]);

        self::assertStart('warm', $result);
        self::assertArrayHasKey(self::template(), $maps);
        // One of them is the run.
        self::assertGreaterThan(1, count($maps));
        $fresh = Command::of([
            PHP_BINARY,
            '-d',
            'extension=' . getenv('EXTENSION'),
            '-r',
            'echo file_get_contents("/proc/self/maps");',
        ])->output;
        $expected = self::protections($fresh);
        self::assertGreaterThan(1000, count($expected));
        foreach ($maps as $process => $of) {
            $seen = array_intersect_key(self::protections($of), $expected);
            self::assertGreaterThan(1000, count($seen));
            self::assertSame([], array_diff_assoc($seen, $expected), "process $process");
            self::assertSame([], self::writableAndExecutable($of), "process $process");
        }
    }

    /**
     * @return array<string, string> what may be done with each page of a file: page => protections, of each place at
     *     which it is
     */
    private static function protections(string $maps): array
    {
        $pages = [];
        preg_match_all('~^(\w+)-(\w+) (\S{3})\S (\w+) \S+ \d+ +(/\S+)$~m', $maps, $mappings, PREG_SET_ORDER);
        foreach ($mappings as [, $from, $to, $protection, $offset, $file]) {
            $offset = hexdec($offset);
            for ($at = 0; $at < hexdec($to) - hexdec($from); $at += self::PAGE) {
                $pages["$file " . ($offset + $at)][$protection] = true;
            }
        }

        return array_map(static function (array $protections): string {
            ksort($protections);

            return implode(' ', array_keys($protections));
        }, $pages);
    }

    /**
     * @return list<string>
     */
    private static function writableAndExecutable(string $maps): array
    {
        return array_values(preg_grep('/^\S+ .wx/', explode("\n", $maps)) ?: []);
    }
}
