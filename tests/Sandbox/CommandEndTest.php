<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Sandbox;

use Altair\Eval\Tests\Support\DockerEngine;
use Altair\Eval\Tests\Support\SandboxTestCase;
use Altair\Eval\Tests\Support\Script;
use Altair\Sandbox\Data\ExitCodes;
use Altair\Sandbox\Enums\TimeoutReason;
use DomainException;
use RuntimeException;

/**
 * How a command is ended: by its deadlines, by its caller, by what happens to its caller. Nothing of it is left.
 */
final class CommandEndTest extends SandboxTestCase
{
    /** What ignores every signal that can be ignored. */
    private const DEAF = 'trap "" HUP INT QUIT TERM USR1 USR2; ';

    /** A shell script of processes that get away from each other in every usual way; it never ends. */
    private const TREE = <<<'SH'
        trap "" HUP INT QUIT TERM
        deaf='trap "" HUP INT QUIT TERM; echo x; while :; do sleep 1000; done'
        sh -c "$deaf" "$0" &
        setsid sh -c "$deaf" "$0" &
        (setsid sh -c "(sh -c '$deaf' $0 &) ; exit" "$0" &)
        (setsid setsid sh -c "sh -c '$deaf' $0 & exit" "$0" > /dev/null 2>&1 < /dev/null &)
        while :; do sleep 1000; done
        SH;

    /**
     * @return iterable<string, array{string}>
     */
    public static function hostAndNative(): iterable
    {
        yield 'host' => ['host'];
        yield 'native' => ['native'];
    }

    /**
     * @dataProvider localDrivers
     */
    public function testTheDeadlineEndsACommand(string $driver): void
    {
        $result = $this->sh($driver, 'echo before; exec sleep 1000', $this->policy()->withTimeout(1));

        self::assertTrue($result->timedOut());
        self::assertSame(TimeoutReason::WALL, $result->timeoutReason());
        self::assertSame(ExitCodes::TIMEOUT, $result->exitCode());
        self::assertFalse($result->success());
        self::assertSame("before\n", $result->stdout());
        self::assertGreaterThanOrEqual(1.0, $result->duration());
        self::assertSame([], $this->commandProcesses());
    }

    /**
     * @dataProvider hostAndNative
     */
    public function testSilenceEndsACommandAndOutputOfEitherStreamDoesNot(string $driver): void
    {
        // It says something five times within each second, for longer than it may be silent.
        $script = 'for i in 1 2 3 4; do sleep 0.2; echo x; sleep 0.2; echo y >&2; done; exec sleep 1000';
        $result = $this->sh($driver, $script, $this->policy()->withIdleTimeout(1));

        self::assertSame(TimeoutReason::IDLE, $result->timeoutReason());
        self::assertTrue($result->timedOut());
        self::assertSame(ExitCodes::TIMEOUT, $result->exitCode());
        self::assertSame("x\nx\nx\nx\n", $result->stdout());
        self::assertSame("y\ny\ny\ny\n", $result->stderr());
        self::assertSame([], $this->commandProcesses());
    }

    public function testTheEarlierOfBothDeadlinesCounts(): void
    {
        $both = $this->policy()->withTimeout(1)->withIdleTimeout(30);
        self::assertSame(TimeoutReason::WALL, $this->sh('host', 'exec sleep 1000', $both)->timeoutReason());

        $busy = $this->policy()->withTimeout(1)->withIdleTimeout(1);
        $result = $this->sh('host', 'while :; do echo x; sleep 0.1; done', $busy);
        self::assertSame(TimeoutReason::WALL, $result->timeoutReason());
    }

    /**
     * @dataProvider localDrivers
     */
    public function testAtTheDeadlineACommandMaySaySomething(string $driver): void
    {
        $script = 'trap "echo asked; exit 7" TERM; echo ready; while :; do sleep 1000 & wait; done';
        $result = $this->sh($driver, $script, $this->policy()->withTimeout(1));

        // bubblewrap itself ends at once, and all of its command with it.
        self::assertSame($driver === 'bubblewrap' ? "ready\n" : "ready\nasked\n", $result->stdout());
        self::assertSame(ExitCodes::TIMEOUT, $result->exitCode());
        self::assertTrue($result->timedOut());
        self::assertSame([], $this->commandProcesses());
    }

    /**
     * All of it ignores the request to end.
     *
     * @dataProvider drivers
     */
    public function testTheWholeTreeEndsAtTheDeadline(string $driver): void
    {
        $seen = [];
        $lines = 0;
        $onOutput = function (string $type, string $chunk) use (&$seen, &$lines): void {
            $lines += substr_count($chunk, "x\n");
            // All four are there, and can be found by their mark; the last call may come after their end.
            $now = $this->commandProcesses();
            $seen = count($now) > count($seen) ? $now : $seen;
        };

        $result = $this->sh($driver, self::TREE, $this->policy()->withTimeout(2), null, $onOutput);

        self::assertSame(ExitCodes::TIMEOUT, $result->exitCode(), $result->stderr());
        self::assertGreaterThanOrEqual(3, $lines);
        self::assertGreaterThanOrEqual(4, count($seen));
        self::assertSame([], $this->commandProcesses());
    }

    /**
     * @dataProvider drivers
     */
    public function testWhatACommandLeftRunningEndsWithIt(string $driver): void
    {
        $result = $this->sh($driver, preg_replace('/\n\s*while :; do sleep 1000; done\n?$/', "\nexit 6", self::TREE));

        self::assertSame(6, $result->exitCode(), $result->stderr());
        self::assertFalse($result->timedOut());
        self::assertSame([], $this->commandProcesses());
    }

    public function testAForkBombEndsAtTheDeadline(): void
    {
        // Of a driver that counts processes.
        $result = $this->sh('native', 'f() { f | f & }; f; sleep 1000', $this->policy()->withTimeout(1));

        self::assertSame(ExitCodes::TIMEOUT, $result->exitCode());
        self::assertSame([], $this->commandProcesses());
    }

    public function testAContainerIsRemovedAtTheDeadline(): void
    {
        $running = [];
        $onOutput = static function () use (&$running): void {
            $running = DockerEngine::shared()->containers();
        };

        $script = self::DEAF . 'echo ready; while :; do sleep 1000; done';
        $this->sh('docker', $script, $this->policy()->withTimeout(1), null, $onOutput);

        self::assertCount(1, $running);
        self::assertStringStartsWith('altair-sandbox-', $running[0]);
        self::assertSame([], DockerEngine::shared()->containers());
    }

    /**
     * @dataProvider localDrivers
     */
    public function testTheDurationIsTheCommands(string $driver): void
    {
        $result = $this->sh($driver, 'sleep 0.3');

        self::assertGreaterThanOrEqual(0.3, $result->duration());
        self::assertLessThan(10.0, $result->duration());
    }

    /**
     * @return iterable<string, array{string, string}>
     */
    public static function waysToWait(): iterable
    {
        foreach (['host', 'native'] as $driver) {
            yield "$driver, alone" => [$driver, ''];
            yield "$driver, with a callback" => [$driver, ', null, static function (): void {}'];
            yield "$driver, with a stream" => [$driver, ', $stdin'];
        }
    }

    /**
     * @dataProvider waysToWait
     */
    public function testASignalsHandlerInterruptsACommand(string $driver, string $arguments): void
    {
        $script = $this->script($driver, $arguments, <<<'PHP'
            pcntl_async_signals(true);
            pcntl_signal(SIGUSR1, static fn () => say('noted'));
            pcntl_signal(SIGINT, static fn () => throw new DomainException('interrupted'));
            try { $run(); } catch (DomainException $e) { say($e->getMessage()); }
            PHP);

        $this->awaitProcesses();
        // One that returns lets the command run on.
        $script->signal(SIGUSR1);
        self::assertSame('noted', $script->line());
        self::assertNotSame([], $this->commandProcesses());
        $script->signal(SIGINT);
        self::assertSame('interrupted', $script->line());
        self::assertSame([0, '', ''], $script->end());
        self::assertSame([], $this->commandProcesses());
    }

    /**
     * @dataProvider waysToWait
     */
    public function testTheHostsTimeLimitInterruptsACommand(string $driver, string $arguments): void
    {
        // PHP counts its own processor time, and tells itself with this signal when it is used up.
        $code = 'register_shutdown_function(static fn () => say("shut down"));'
            . 'set_time_limit(1000); $run(); say("on");';
        $script = $this->script($driver, $arguments, $code);
        $this->awaitProcesses();

        $script->signal(SIGPROF);

        [$status, $output, $errors] = $script->end();
        self::assertSame([255, "shut down\n"], [$status, $output]);
        self::assertStringContainsString('Maximum execution time of 1000 seconds exceeded', $errors);
        self::assertSame([], $this->commandProcesses());
        self::assertSame([], self::workDirectories($this->base->root));
    }

    /**
     * @dataProvider waysToWait
     */
    public function testAHostThatIsKilledTakesItsCommandsWithIt(string $driver, string $arguments): void
    {
        $script = $this->script($driver, $arguments, '$run();');
        $this->awaitProcesses();

        $script->signal(SIGKILL);

        self::assertSame(128 + SIGKILL, $script->end()[0]);
        $this->awaitNoProcesses();
        // Nobody was left who could remove its directory.
        foreach (self::workDirectories($this->base->root) as $directory) {
            rmdir($this->base->path($directory));
        }
    }

    /**
     * @dataProvider hostAndNative
     */
    public function testExitInACallbackEndsTheCommand(string $driver): void
    {
        $script = $this->script($driver, ', null, static function (): never { exit(9); }', '$run();', 'echo x; ');

        self::assertSame([9, '', ''], $script->end());
        self::assertSame([], $this->commandProcesses());
        self::assertSame([], self::workDirectories($this->base->root));
    }

    /**
     * @dataProvider hostAndNative
     */
    public function testAForkOfTheHostDuringACommandLeavesItToTheHost(string $driver): void
    {
        $script = new Script($this->setUpOf($driver, $this->shell('echo ready; read code; echo $code')) . <<<'PHP'
            $told = false;
            $fork = static function () use ($own, &$told): void {
                if ($told) {
                    return;
                }
                $told = true;
                if (pcntl_fork() === 0) {
                    return; // into execute(), which this process cannot go on with
                }
                pcntl_wait($status);
                fwrite($own, pcntl_wexitstatus($status) . "\n");
            };
            try {
                $result = $sandbox->execute($argv, $stdin, $fork);
                say($result->stdout());
            } catch (RuntimeException $e) {
                say($e->getMessage());
                exit(3);
            }
            PHP);

        self::assertMatchesRegularExpression('/forked after the command was started/', $script->line());
        self::assertSame('ready', $script->line());
        self::assertSame('3', $script->line());
        self::assertSame([0, "\n", ''], $script->end());
        self::assertSame([], self::workDirectories($this->base->root));
    }

    /**
     * @dataProvider hostAndNative
     */
    public function testForksOfTheHostRunCommandsThemselves(string $driver): void
    {
        $script = new Script($this->setUpOf($driver, $this->shell('exit 4')) . <<<'PHP'
            $sandbox->execute($argv, null, static function (): void {});
            for ($i = 0; $i < 3; $i++) {
                if (pcntl_fork() === 0) {
                    exit($sandbox->execute($argv, null, static function (): void {})->exitCode());
                }
            }
            while (pcntl_wait($status) > 0) {
                say(pcntl_wexitstatus($status));
            }
            PHP);

        self::assertSame([0, "4\n4\n4\n", ''], $script->end());
    }

    public function testASandboxInsideAnEvaluationIsRefused(): void
    {
        foreach (['host', 'native', 'bubblewrap', 'firejail', 'docker'] as $driver) {
            $made = $this->base->path("made-by-$driver");
            $snippet = sprintf(
                'return Altair\Sandbox\Sandbox::fromPolicy(Altair\Sandbox\Config\ExecutionPolicy::in(%s))->using(%s)'
                    . '->execute(["sh", "-c", %s])->toArray();',
                var_export($this->base->root, true),
                var_export($driver, true),
                var_export("touch $made; id", true),
            );
            $result = $this->evaluate($snippet, readablePaths: [$this->base->root]);
            self::assertFileDoesNotExist($made);
            self::assertStringNotContainsString('uid=', json_encode($result->toArray(verbose: true)));
            self::assertNotNull($result->exception, json_encode($result->toArray(verbose: true)));
        }
    }

    /**
     * A PHP that has `$run`, which runs a command that does not end.
     */
    private function script(
        string $driver,
        string $arguments,
        string $code,
        string $before = '',
    ): Script {
        $setUp = $this->setUpOf($driver, $this->shell($before . 'while :; do sleep 1000; done'));

        return new Script($setUp . '$run = static fn () => $sandbox->execute($argv' . $arguments . ');' . $code);
    }

    /**
     * Code that makes `$sandbox`, `$argv`, and `$stdin`, which has what is written to `$own`.
     *
     * @param non-empty-list<string> $argv
     */
    private function setUpOf(string $driver, array $argv): string
    {
        return sprintf(
            '$sandbox = Altair\Sandbox\Sandbox::fromPolicy(Altair\Sandbox\Config\ExecutionPolicy::in(%s)'
                . '->withTimeout(%d))->using(%s); $argv = %s;'
                . '[$own, $stdin] = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);',
            var_export($this->base->root, true),
            self::PATIENCE,
            var_export($driver, true),
            var_export($argv, true),
        );
    }

    private function awaitProcesses(): void
    {
        $this->await(fn (): bool => $this->shellRuns());
    }

    private function awaitNoProcesses(): void
    {
        $this->await(fn (): bool => $this->commandProcesses() === []);
    }

    private function shellRuns(): bool
    {
        foreach (glob('/proc/[0-9]*/cmdline') ?: [] as $file) {
            // Not the PHP that has it in its code.
            if (preg_match("/^sh\0-c\0.*$this->commandMark/s", (string) @file_get_contents($file)) === 1) {
                return true;
            }
        }

        return false;
    }

    private function await(callable $holds): void
    {
        $until = hrtime(true) + self::PATIENCE * 1e9;
        while (!$holds()) {
            if (hrtime(true) > $until) {
                throw new RuntimeException('It does not come.');
            }
            usleep(2000);
        }
    }
}
