<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Sandbox\Escape;

use Altair\Eval\Tests\Support\Sandbox\Attempt;
use Altair\Eval\Tests\Support\Sandbox\Caller;
use Altair\Eval\Tests\Support\Sandbox\CommandEscapeTestCase;
use Altair\Eval\Tests\Support\Sandbox\Ground;
use Altair\Eval\Tests\Support\Skip;

/**
 * Other processes: what they hold, what they are, and whether the command's own end with it.
 */
final class ProcessTest extends CommandEscapeTestCase
{
    /**
     * @dataProvider everyone
     */
    public function testProcTellsNothingOfOthers(Caller $caller): void
    {
        self::assertHeld($caller, static function (Ground $ground): array {
            $ground->bystander();

            return ['rummage', $ground->mark];
        }, harm: static fn (Ground $ground, string $output): array => [
            // The host's arguments, and a mount that no command has.
            ...(str_contains($output, 'altair run') || str_contains($output, "altair\0run") ? ['arguments'] : []),
            ...(str_contains($output, ' - devpts ') ? ['mounts'] : []),
        ]);
    }

    /** To members of user 0's group, /proc shows every process, also if it hides others (proc(5), hidepid). */
    public function testTheKeeperIsHiddenFromRootsGroupToo(): void
    {
        if (posix_geteuid() !== 0) {
            Skip::NeedsRoot->because('Only root can put somebody into that group.');
        }
        $ground = new Ground(Caller::User);
        $member = ['setpriv', "--reuid={$ground->caller->uid()}", '--regid=0', '--clear-groups', '--'];
        $output = (new Attempt($ground, ['rummage', $ground->mark], elsewhere: $member))->end();
        self::assertStringContainsString('/proc/1/cmdline: -1', $output);
        self::assertStringNotContainsString("\0run\0", $output);
        self::assertStringNotContainsString(' - devpts ', $output);
    }

    /**
     * @dataProvider everyone
     */
    public function testTheMemoryOfOthersIsNotRead(Caller $caller): void
    {
        self::assertHeld($caller, static function (Ground $ground): array {
            $bystander = $ground->bystander();

            return ['memory', (string) $bystander->pid, (string) $bystander->environment];
        });
    }

    /**
     * @dataProvider everyone
     */
    public function testLimitsAndPrioritiesOfOthersStay(Caller $caller): void
    {
        self::assertHeld(
            $caller,
            static fn (Ground $ground): array => ['change', (string) $ground->bystander()->pid],
        );
    }

    /**
     * @dataProvider everyone
     */
    public function testDescriptorsOfOthersAreNotTaken(Caller $caller): void
    {
        $held = static fn (Ground $ground): array => [
            'take-descriptor', (string) $ground->holder(), (string) Ground::HELD,
        ];
        self::assertHeld($caller, $held);
    }

    /**
     * @dataProvider everyone
     */
    public function testNothingOutlivesTheCommand(Caller $caller): void
    {
        self::assertHeld(
            $caller,
            static fn (Ground $ground): array => ['hide', $ground->mark],
            harm: static fn (Ground $ground): array => array_map(strval(...), $ground->processes()),
        );
    }

    /**
     * @dataProvider everyone
     */
    public function testNothingRunsAwayFromTheEnd(Caller $caller): void
    {
        // They are too quick to be looked at. Where nothing holds them, they are few and slow, for the machine's sake.
        foreach ([[['1', '20000'], null], [['8', '0'], ['--write=.']]] as [$how, $held]) {
            $ground = new Ground($caller);
            $attempt = new Attempt($ground, ['run-away', $ground->mark, ...$how], $held);
            $attempt->end();
            $isLeft = !flock(fopen("$ground->place/lock", 'r+'), LOCK_EX | LOCK_NB);
            self::assertSame($held === null, $isLeft, $attempt->story());
        }
    }

    /**
     * @dataProvider everyone
     */
    public function testWhatIgnoresEverySignalEndsAtTheDeadline(Caller $caller): void
    {
        $ground = new Ground($caller);
        $began = microtime(true);
        $attempt = new Attempt($ground, ['spin', $ground->mark], ['--timeout=1']);
        $attempt->awaitReady();
        self::assertNotSame([], $ground->processes());
        $attempt->end();
        self::assertSame([], $ground->processes());
        self::assertLessThan(4, microtime(true) - $began);
    }

    /**
     * @dataProvider everyone
     */
    public function testEverythingEndsWithAHostThatIsKilled(Caller $caller): void
    {
        $ground = new Ground($caller);
        $attempt = new Attempt($ground, ['multiply', $ground->mark, '20']);
        $attempt->awaitReady();
        self::assertCount(21, $ground->processes());
        posix_kill($attempt->pid, SIGKILL);
        self::await(static fn (): bool => $ground->processes() === [], 'The command outlives its host.');
    }

    /**
     * A filter of the command's own could get a listener once the host's is gone, and permit what that would refuse.
     *
     * @dataProvider everyone
     */
    public function testNobodyPermitsWhatTheHostNoLongerRefuses(Caller $caller): void
    {
        $ground = new Ground($caller);
        $socket = $ground->listeners()->path('unix');
        $attempt = new Attempt($ground, ['permit-oneself', $socket, $ground->mark]);
        $attempt->awaitReady();
        foreach (self::children($attempt->pid) as $keeper) {
            // It ends everything as soon as the host is gone.
            posix_kill($keeper, SIGSTOP);
        }
        posix_kill($attempt->pid, SIGKILL);
        self::await(static fn (): bool => $ground->processes() === [], 'The command outlives its host.');
        self::assertSame([], $ground->harm(''));
    }

    /**
     * @return list<int>
     */
    private static function children(int $pid): array
    {
        $children = trim((string) file_get_contents("/proc/$pid/task/$pid/children"));

        return array_map(intval(...), array_filter(explode(' ', $children)));
    }
}
