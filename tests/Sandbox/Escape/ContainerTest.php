<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Sandbox\Escape;

use Altair\Eval\Tests\Support\DockerEngine;
use Altair\Eval\Tests\Support\Processes;
use Altair\Eval\Tests\Support\Sandbox\Attempt;
use Altair\Eval\Tests\Support\Sandbox\Caller;
use Altair\Eval\Tests\Support\Sandbox\CommandEscapeTestCase;
use Altair\Eval\Tests\Support\Sandbox\Container;
use Altair\Eval\Tests\Support\Sandbox\Ground;
use Altair\Eval\Tests\Support\Sandbox\Tools;
use Altair\Eval\Tests\Support\Skip;

/**
 * In a container with the default profile there are no namespaces: Landlock and the filter of system calls remain.
 */
final class ContainerTest extends CommandEscapeTestCase
{
    protected function setUp(): void
    {
        parent::setUp();
        if (posix_geteuid() !== 0) {
            Skip::NeedsRoot->because('Only root can start an engine.');
        }
        $missing = DockerEngine::whyMissing();
        if ($missing !== null) {
            Skip::NotInstalled->because($missing);
        }
    }

    /**
     * As root of the container, and as a user of it.
     */
    public static function everyone(): iterable
    {
        return [
            'root' => [Caller::Root],
            'a user' => [Caller::User],
        ];
    }

    protected static function elsewhere(Ground $ground): array
    {
        return Container::of($ground->caller->uid())->command($ground->place);
    }

    /**
     * @dataProvider everyone
     */
    public function testItSaysWhatIsMissing(Caller $caller): void
    {
        $ground = new Ground($caller);
        $result = json_decode($this->altair($ground, ['--format=json', '--', 'sh', '-c', 'exit 3'])[0], true);
        self::assertSame(3, $result['exit_code']);
        self::assertSame(['filesystem'], array_keys($result['guards']));
        self::assertStringStartsWith('missing: no private root and no namespaces:', $result['guards']['filesystem']);

        [$output, $errors, $code] = $this->altair($ground, ['--layer=.', '--', 'sh', '-c', 'echo run']);
        self::assertSame(['', 125], [$output, $code]);
        self::assertStringStartsWith('altair: No layer can be made here (', $errors);
        self::assertStringContainsString('`altair doctor` says how to get a private root.', $errors);
    }

    /**
     * @dataProvider everyone
     */
    public function testFilesOutsideAreNotRead(Caller $caller): void
    {
        self::assertHeld($caller, static fn (Ground $ground): array => ['steal', $ground->secretFile], ['--write=.']);
    }

    public function testACommandOfRootsReadsNoneOfRootsSecrets(): void
    {
        foreach ([[], ['--read=/']] as $options) {
            self::assertHeld(
                Caller::Root,
                static fn (): array => ['steal', '/etc/shadow'],
                $options,
                static fn (Ground $ground, string $output): array =>
                    str_contains($output, 'secret-of-the-container') ? ['it came out'] : [],
            );
        }
    }

    /**
     * @dataProvider everyone
     */
    public function testFilesOutsideStayAsTheyAre(Caller $caller): void
    {
        self::assertHeld(
            $caller,
            static fn (Ground $ground): array => ['harm', $ground->secretFile],
            ['--write=.', '--read=../outside'],
        );
    }

    /**
     * @dataProvider everyone
     */
    public function testNoProgramGetsItsOwnersRights(Caller $caller): void
    {
        self::assertHeld(
            $caller,
            static fn (Ground $ground): array => ['set-id', $ground->place],
            ['--write=.'],
            static function (Ground $ground): array {
                clearstatcache();

                return array_values(array_filter(
                    glob("$ground->place/*"),
                    static fn (string $path): bool => (fileperms($path) & 06000) !== 0
                        || !in_array(filetype($path), ['file', 'dir'], true),
                ));
            },
        );
    }

    /**
     * @dataProvider everyone
     */
    public function testNoUnixSocketIsReached(Caller $caller): void
    {
        foreach ([[], ['--network']] as $options) {
            $attack = static fn (Ground $ground): array => ['unix', $ground->listeners()->path('unix')];
            self::assertHeld($caller, $attack, ['--read=..', ...$options]);
        }
    }

    /**
     * @dataProvider everyone
     */
    public function testOthersAreNeitherReadNorSignalled(Caller $caller): void
    {
        foreach ([['signals', '9'], ['owner', '9'], ['rummage', '']] as [$name, $number]) {
            foreach ([null, [], ['--read=/']] as $held) {
                $other = new Ground($caller);
                $secret = ['OTHERS_SECRET' => $other->secret];
                $elsewhere = Container::of($caller->uid())->command($other->place, $secret);
                $bystander = new Attempt($other, ['stay', $other->mark], null, elsewhere: $elsewhere);
                $bystander->awaitReady();
                [$pid] = $other->processes();
                $inside = strrchr(Processes::status($pid)['NSpid'], "\t");

                $ground = new Ground($caller);
                $words = [$name, trim((string) $inside), $number];
                $attempt = new Attempt($ground, $words, $held, elsewhere: self::elsewhere($ground));
                $output = $attempt->end();
                $isHarmed = $other->processes() === [] || str_contains($output, $other->secret);
                self::assertSame($held === null, $isHarmed, $attempt->story());
                $bystander->end();
            }
        }
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
        $ground = new Ground($caller);
        $words = ['run-away', $ground->mark, '8', '0'];
        $attempt = new Attempt($ground, $words, ['--write=.'], elsewhere: self::elsewhere($ground));
        $attempt->end();
        self::assertTrue(flock(fopen("$ground->place/lock", 'r+'), LOCK_EX | LOCK_NB), $attempt->story());
    }

    /**
     * @dataProvider everyone
     */
    public function testEverythingEndsWithAHostThatIsKilled(Caller $caller): void
    {
        $ground = new Ground($caller);
        $attempt = new Attempt($ground, ['hide', $ground->mark], null, elsewhere: self::elsewhere($ground));
        $attempt->end();
        self::assertCount(2, $ground->processes());
        $ground->endAttack();

        $attempt = new Attempt($ground, ['multiply', $ground->mark, '20'], elsewhere: self::elsewhere($ground));
        $attempt->awaitReady();
        $command = min($ground->processes());
        $host = self::parent(self::parent($command));
        self::assertStringStartsWith('altair', (string) file_get_contents("/proc/$host/comm"));
        posix_kill($host, SIGKILL);
        self::await(static fn (): bool => $ground->processes() === [], 'The command outlives its host.');
    }

    private static function parent(int $pid): int
    {
        return (int) Processes::stat($pid)[1];
    }

    /**
     * @dataProvider everyone
     */
    public function testProcessesAreLimited(Caller $caller): void
    {
        self::assertHeldWhileItRuns(
            $caller,
            static fn (Ground $ground): array => ['multiply', $ground->mark, '600'],
            static fn (Ground $ground): array => $ground->tasks() > 512 ? ["{$ground->tasks()} processes"] : [],
        );
    }

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

                return [
                    ...array_values($held),
                    ...($status['NoNewPrivs'] === '1' ? [] : ['set-id programs']),
                    ...(hexdec($status['CapPrm']) === 0 ? [] : ['capabilities']),
                ];
            },
        );
    }

    /**
     * @param list<string> $arguments of `altair run`
     * @return array{string, string, int} its output, its errors and its exit code
     */
    private function altair(Ground $ground, array $arguments): array
    {
        $errors = tmpfile();
        $command = [...self::elsewhere($ground), Tools::shared()->altair(), 'run', ...$arguments];
        $process = proc_open($command, [['file', '/dev/null', 'r'], ['pipe', 'w'], $errors], $pipes);
        $output = (string) stream_get_contents($pipes[1]);
        $code = proc_close($process);
        rewind($errors);

        return [$output, (string) stream_get_contents($errors), $code];
    }
}
