<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\Tests\Support\Script;
use Altair\Eval\Tests\Support\TemporaryApplication;
use PHPUnit\Framework\TestCase;

/**
 * What reaches a host while a call of it blocks: signals, time limits, and other children's ends.
 */
final class InterruptTest extends TestCase
{
    /** Waits in the child until it is ended; the output says that it has begun. */
    private const BLOCKING = 'request(\'echo "begun"; while (true) { sleep(1); }\')';

    private const SAY_BEGUN = 'function () { say("begun"); }';

    /** @var array<string, string> ways to block, each says `begun` once the child runs */
    private const CALLS = [
        'with a callback' => '(new Evaluator())->evaluate(' . self::BLOCKING . ', ' . self::SAY_BEGUN . ');',
        'without one' => '
            say("begun");
            (new Evaluator())->evaluate(request("while (true) { sleep(1); }"));',
        'for many' => '
            say("begun");
            foreach ((new Evaluator())->evaluateMany([request("while (true) { sleep(1); }")]) as $result);',
        'for a command' => '
            say("begun");
            (new SubprocessRunner())->run(["sleep", "50"], null, getenv(), 60000);',
    ];

    /**
     * @dataProvider calls
     */
    public function testCtrlCEndsTheHostAndTheChild(string $call): void
    {
        foreach ([SIGINT, SIGTERM] as $signal) {
            $script = new Script($call);
            self::assertSame('begun', $script->line());
            $this->waitForAChild($script);

            $script->signal($signal);

            self::assertSame(128 + $signal, $script->end()[0]);
            $this->waitForItsEnd($script);
        }
    }

    /**
     * @dataProvider calls
     */
    public function testAHandlerThatThrowsEndsTheCallAndTheChild(string $call): void
    {
        $script = new Script('
            pcntl_async_signals(true);
            pcntl_signal(SIGTERM, function () { throw new DomainException("stop"); });
            try {' . $call . '} catch (DomainException $e) { say("caught " . $e->getMessage()); }
            say((new Evaluator())->evaluate(request("return 7;"))->result["value"]);
            say("left: " . count(glob("/proc/self/task/*/children")) . implode("", array_map(
                "file_get_contents", glob("/proc/self/task/*/children"))));
        ');
        self::assertSame('begun', $script->line());
        $this->waitForAChild($script);

        $script->signal(SIGTERM);

        self::assertSame('caught stop', $script->line());
        self::assertSame('7', $script->line(), 'It evaluates again.');
        self::assertMatchesRegularExpression('/^left: \d$/', $script->line(), 'No child is left.');
        self::assertSame([0, '', ''], $script->end());
        $this->assertNothingIsLeftOf($script);
    }

    /**
     * @dataProvider calls
     */
    public function testAHandlerThatExitsEndsTheHostAndTheChild(string $call): void
    {
        $script = new Script('
            pcntl_async_signals(true);
            pcntl_signal(SIGUSR1, function () { exit(9); });
            ' . $call);
        self::assertSame('begun', $script->line());
        $this->waitForAChild($script);

        $script->signal(SIGUSR1);

        self::assertSame([9, '', ''], $script->end());
        $this->assertNothingIsLeftOf($script);
    }

    public function testAHandlerThatReturnsRunsWhileTheCallGoesOn(): void
    {
        $place = new TemporaryApplication();
        $go = $place->path('go');
        $snippet = "while (!file_exists('$go')) { usleep(1000); clearstatcache(); } return 'went on';";
        $script = new Script('
            pcntl_async_signals(true);
            pcntl_signal(SIGUSR1, function () { say("handled"); });
            say("begun");
            $request = new EvalRequest(' . var_export($snippet, true) . ', $root, 60000,
                readablePaths: [' . var_export($place->root, true) . ']);
            say((new Evaluator())->evaluate($request)->result["value"] ?? "failed");
        ');
        self::assertSame('begun', $script->line());
        $this->waitForAChild($script);

        try {
            for ($i = 0; $i < 3; $i++) {
                $script->signal(SIGUSR1);
                self::assertSame('handled', $script->line(), 'While the call blocks.');
            }
        } finally {
            touch($go);
        }

        self::assertSame('went on', $script->line());
        self::assertSame([0, '', ''], $script->end());
    }

    public function testAnAlarmOfTheHostRingsWhileTheCallBlocks(): void
    {
        $script = new Script('
            pcntl_async_signals(true);
            pcntl_signal(SIGALRM, function () { throw new DomainException("alarm"); });
            pcntl_alarm(1);
            try { (new Evaluator())->evaluate(' . self::BLOCKING . '); } catch (DomainException $e) { say("rang"); }
        ');

        self::assertSame([0, "rang\n", ''], $script->end());
        $this->assertNothingIsLeftOf($script);
    }

    /**
     * @dataProvider calls
     */
    public function testMaxExecutionTimeEndsTheHostAndTheChild(string $call): void
    {
        // The limit is a timer of the process, and SIGPROF is how it strikes: it is sent here, for a host that
        // waits spends no processor time, and how exactly the kernel counts it differs.
        $script = new Script('
            register_shutdown_function(fn () => say("shutdown"));
            set_time_limit(30);
            ' . $call);
        self::assertSame('begun', $script->line());
        $this->waitForAChild($script);

        $script->signal(SIGPROF);
        [$exitCode, $output, $errors] = $script->end();

        self::assertStringContainsString('Maximum execution time of 30 seconds exceeded', $errors);
        self::assertSame([255, "shutdown\n"], [$exitCode, $output]);
        $this->assertNothingIsLeftOf($script);
    }

    public function testKillingTheHostEndsTheChild(): void
    {
        foreach (self::CALLS as $call) {
            $script = new Script($call);
            self::assertSame('begun', $script->line());
            $this->waitForAChild($script);

            $script->signal(SIGKILL);
            $script->end();

            $this->waitForItsEnd($script);
        }
    }

    public function testAnIgnoredSigchldDoesNotDisturb(): void
    {
        $script = new Script('
            pcntl_signal(SIGCHLD, SIG_IGN);
            foreach (["return 5;", "exit(3);"] as $snippet) {
                foreach ([null, fn () => null] as $onOutput) {
                    say((new Evaluator())->evaluate(request($snippet), $onOutput)->exitCode);
                }
            }
            say((new SubprocessRunner())->run(["sh", "-c", "exit 4"], null, getenv(), 60000)->exitCode);
        ');

        self::assertSame([0, "0\n0\n3\n3\n4\n", ''], $script->end());
    }

    public function testTheApplicationsWaitDoesNotSeeTheChild(): void
    {
        $script = new Script('
            pcntl_async_signals(true);
            $waits = [];
            $look = function () use (&$waits) { $waits[] = pcntl_waitpid(-1, $status, WNOHANG); };
            pcntl_signal(SIGCHLD, fn () => $waits[] = "SIGCHLD");
            say((new Evaluator())->evaluate(request("echo 1; usleep(50000); exit(3);"), $look)->exitCode);
            $look();
            say($waits);
        ');

        self::assertSame([0, "3\n[-1,-1]\n", ''], $script->end());
    }

    public function testTheApplicationsOwnChildIsLeftToIt(): void
    {
        $script = new Script('
            $own = pcntl_fork();
            if ($own === 0) { posix_kill(getmypid(), SIGKILL); }
            say((new Evaluator())->evaluate(request("return 5;"))->result["value"]);
            say((new Evaluator())->evaluate(request("return 6;"), fn () => null)->result["value"]);
            say((new SubprocessRunner())->run(["true"], null, getenv(), 60000)->exitCode);
            say(pcntl_waitpid(-1, $status) === $own && pcntl_wtermsig($status) === SIGKILL);
        ');

        self::assertSame([0, "5\n6\n0\ntrue\n", ''], $script->end());
    }

    /**
     * @return iterable<string, array{string}>
     */
    public static function calls(): iterable
    {
        foreach (self::CALLS as $name => $call) {
            yield $name => [$call];
        }
    }

    private function waitForAChild(Script $script): void
    {
        $deadline = microtime(true) + 30;
        while ($script->processes() === [] && microtime(true) < $deadline) {
            usleep(1000); // seen from outside, where no event tells
        }
        self::assertNotSame([], $script->processes());
    }

    /** A host that is killed cannot wait for its child: the child ends by itself, soon. */
    private function waitForItsEnd(Script $script): void
    {
        $deadline = microtime(true) + 30;
        while ($script->processes() !== [] && microtime(true) < $deadline) {
            usleep(1000);
        }
        $this->assertNothingIsLeftOf($script);
    }

    private function assertNothingIsLeftOf(Script $script): void
    {
        self::assertSame([], $script->left());
    }
}
