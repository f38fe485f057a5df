<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Sandbox\Escape;

use Altair\Eval\Tests\Support\Processes;
use Altair\Eval\Tests\Support\Sandbox\Attempt;
use Altair\Eval\Tests\Support\Sandbox\Caller;
use Altair\Eval\Tests\Support\Sandbox\CommandEscapeTestCase;
use Altair\Eval\Tests\Support\Sandbox\Ground;
use Altair\Eval\Tests\Support\Skip;

/**
 * What a command holds of the kernel, as the kernel tells it to others.
 */
final class KernelTest extends CommandEscapeTestCase
{
    /**
     * @dataProvider everyone
     */
    public function testTheKernelGivesItNothingMore(Caller $caller): void
    {
        self::assertHeldWhileItRuns(
            $caller,
            static fn (Ground $ground): array => ['kernel', $ground->mark],
            static function (Ground $ground): array {
                [$pid] = $ground->processes();
                $status = Processes::status($pid);
                $held = array_filter(
                    Processes::descriptors((string) $pid),
                    static fn (string $target): bool => preg_match('/^(pipe:|\/dev\/null$)/', $target) !== 1,
                );
                $expected = [
                    ...array_fill_keys(['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb'], str_repeat('0', 16)),
                    'NoNewPrivs' => '1',
                    'Seccomp' => '2',
                    'Uid' => implode("\t", array_fill(0, 4, $ground->caller->uid())),
                ];
                $differs = array_diff_assoc($expected, array_intersect_key($status, $expected));

                return [...array_values($held), ...array_keys($differs)];
            },
        );
    }

    /**
     * @dataProvider everyone
     */
    public function testItsNamespacesAreItsOwn(Caller $caller): void
    {
        $ground = new Ground($caller);
        $attempt = new Attempt($ground, ['kernel', $ground->mark]);
        $attempt->awaitReady();
        [$pid] = $ground->processes();
        $shared = [];
        foreach (['ipc', 'mnt', 'net', 'pid', 'user', 'uts'] as $kind) {
            if (readlink("/proc/$pid/ns/$kind") === readlink("/proc/self/ns/$kind")) {
                $shared[] = $kind;
            }
        }
        $attempt->end();
        self::assertSame($caller === Caller::Root ? ['user'] : [], $shared);
    }

    /**
     * @dataProvider everyone
     */
    public function testItMountsNothing(Caller $caller): void
    {
        self::assertHeldWhileItRuns(
            $caller,
            static fn (Ground $ground): array => ['mounts', $ground->mark],
            static function (Ground $ground): array {
                [$pid] = $ground->processes();

                return array_values(preg_grep('/ - tmpfs none /', (array) file("/proc/$pid/mountinfo")));
            },
            ['--write=.'],
        );
    }

    /**
     * @dataProvider everyone
     */
    public function testItsMountsGiveNoRights(Caller $caller): void
    {
        $ground = new Ground($caller);
        $attempt = new Attempt($ground, ['stay', $ground->mark], ['--read=/', '--write=.']);
        $attempt->awaitReady();
        [$pid] = $ground->processes();
        $lines = array_map(static fn (string $line): array => explode(' ', $line), file("/proc/$pid/mountinfo"));
        $attempt->end();
        $writable = [];
        foreach ($lines as [, , , , $at, $attributes]) {
            $attributes = explode(',', $attributes);
            self::assertContains('nosuid', $attributes, $at);
            if (!str_starts_with($at, '/dev/')) {
                self::assertContains('nodev', $attributes, $at);
            }
            // The sources of mounts lie below an empty directory that is mounted over them.
            if (!in_array('ro', $attributes, true) && !str_starts_with($at, '/.altair-backstage/')) {
                $writable[] = $at;
            }
        }
        sort($writable);
        self::assertSame(['/tmp', $ground->place], $writable);
    }

    /**
     * @dataProvider everyone
     */
    public function testTheEntryFor32BitsIsClosed(Caller $caller): void
    {
        $open = new Ground($caller);
        (new Attempt($open, ['old-entry', 'entered'], null))->end();
        if (!file_exists("$open->place/entered")) {
            Skip::LacksKernel->because('The kernel has no such entry.');
        }
        $held = new Ground($caller);
        (new Attempt($held, ['old-entry', 'entered'], ['--write=.']))->end();
        self::assertFileDoesNotExist("$held->place/entered");
    }
}
