<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\Tests\Support\EvaluationTestCase;
use Altair\Eval\Tests\Support\Processes;

/**
 * Nothing that a run starts outlives it, and a run that attacks its own process harms nobody else.
 */
final class HostileProcessTest extends EvaluationTestCase
{
    public function testAConfinedRunStartsNoProcess(): void
    {
        $calls = ['pcntl_fork()', 'shell_exec("id")', 'popen("id", "r")', 'proc_open(["id"], [], $pipes)', '`id`'];
        foreach ($calls as $call) {
            $result = $this->evaluate("echo 'kept'; return $call;");

            self::assertOutcome('threw', $result, 1, exception: true);
            self::assertStringContainsString('is refused in a confined run', $result->exception['message']);
            self::assertSame('kept', $result->stdout);
        }
    }

    /**
     * @dataProvider daemons
     */
    public function testWhatAnUnsafeRunLeavesRunningIsGoneWhenItReturns(string $start): void
    {
        $seen = [];
        $look = function () use (&$seen): void {
            // One that is becoming another program just now has no environment to know it by.
            $until = hrtime(true) + 20e9;
            while (count($seen) < 2 && hrtime(true) < $until) {
                $seen = $this->processes();
            }
        };

        $this->lookWhileItRuns($look, $start, unsafe: true);

        self::assertGreaterThanOrEqual(2, count($seen), implode(', ', $seen));
        self::assertSame([], $this->processes());
    }

    public static function daemons(): iterable
    {
        yield 'background shell' => ['shell_exec("sleep 1000 >/dev/null 2>&1 &");'];
        yield 'background shell that keeps the output open' => ['proc_open("sleep 1000 &", [], $pipes);'];
        yield 'own session' => ['exec("setsid sleep 1000 >/dev/null 2>&1 &");'];
        yield 'ignoring signals' => [
            'exec("(trap \'\' TERM HUP INT; while :; do sleep 1000; done) >/dev/null 2>&1 &");',
        ];
        yield 'a process that it does not wait for' => ['$p = proc_open(["sleep", "1000"], [], $pipes);'];
        yield 'fork' => ['if (pcntl_fork() === 0) { while (true) { sleep(1000); } }'];
        yield 'double fork in a session of its own' => [
            'if (($p = pcntl_fork()) === 0) { posix_setsid(); if (pcntl_fork() === 0) {'
                . ' pcntl_sigprocmask(SIG_BLOCK, array_diff(range(1, 64), [9, 19, 32, 33]));'
                . ' while (true) { sleep(1000); } } posix_kill(getmypid(), SIGKILL); } pcntl_waitpid($p, $status);',
        ];
        yield 'many' => ['for ($i = 0; $i < 50; $i++) { exec("setsid sleep 1000 >/dev/null 2>&1 &"); }'];
    }

    /**
     * @dataProvider endings
     */
    public function testWhatItLeavesRunningIsGoneHoweverItEnds(string $ending, string $outcome): void
    {
        $result = $this->evaluate(
            'exec("setsid sleep 1000 >/dev/null 2>&1 &"); exec("sleep 1000 >/dev/null 2>&1 &"); ' . $ending,
            timeoutMs: self::SHORT_MS * 3,
            unsafe: true,
        );

        self::assertSame($outcome, $result->diagnostics['outcome']);
        self::assertSame([], $this->processes());
    }

    public static function endings(): iterable
    {
        yield 'exception' => ['throw new Exception();', 'threw'];
        yield 'exit' => ['exit(1);', 'exited'];
        yield 'kill' => ['posix_kill(getmypid(), SIGKILL);', 'signalled'];
        yield 'native exit' => ['FFI::cdef("void _exit(int);")->_exit(0);', 'no_report'];
        yield 'timeout' => ['sleep(1000);', 'timed_out'];
    }

    public function testAForkedCopyOfAnUnsafeRunDoesNotReport(): void
    {
        $result = $this->evaluate(
            'if (pcntl_fork() === 0) { return "the copy"; } pcntl_wait($status); usleep(1000); return "the run";',
            unsafe: true,
        );

        self::assertOutcome('returned', $result, 0, value: true);
        self::assertSame('the run', $result->result['value']);
    }

    public function testAForkedCopyThatThrowsOrDiesDoesNotReportEither(): void
    {
        $ends = ['throw new Exception("x");', 'trigger_error("x", E_USER_ERROR);', 'range(1, 1e9);', 'exit(9);'];
        foreach ($ends as $end) {
            $result = $this->evaluate(
                "ini_set('memory_limit', '32M'); if (pcntl_fork() === 0) { $end } pcntl_wait(\$status);"
                    . ' return "the run";',
                unsafe: true,
            );

            self::assertOutcome('returned', $result, 0, value: true);
            self::assertSame('the run', $result->result['value']);
        }
    }

    public function testARunThatKillsItsParentHarmsNobody(): void
    {
        $snippet = 'echo "kept"; $sent = posix_kill(posix_getppid(), SIGKILL); %s return $sent;';
        $confined = $this->evaluate(sprintf($snippet, ''));
        self::assertOutcome('returned', $confined, 0, value: true);
        self::assertFalse($confined->result['value']);
        self::assertSame(['seccomp'], array_column($confined->diagnostics['blocked'], 'guard'));

        $result = $this->evaluate(sprintf($snippet, 'sleep(60);'), unsafe: true);
        self::assertFalse($result->ok());
        self::assertFalse($result->timedOut);
        self::assertNull($result->result);
        self::assertNotSame(0, $result->exitCode);
        self::assertSame('kept', $result->stdout);
        $this->waitUntilNoProcessIsLeft();
    }

    public function testARunThatStopsItsParentEndsAtItsDeadline(): void
    {
        $snippet = 'echo (int) posix_kill(posix_getppid(), SIGSTOP); sleep(60);';
        $result = $this->evaluate($snippet, timeoutMs: self::SHORT_MS, unsafe: true);

        self::assertSame('1', $result->stdout);
        self::assertTrue($result->timedOut);
        self::assertLessThan(20000, $result->diagnostics['timings_ms']['total']);
    }

    public function testARunDiesWithItsHost(): void
    {
        $script = $this->application()->write('host.php', <<<'PHP'
            <?php
            $request = new Altair\Eval\EvalRequest('echo getmypid(); while (true) { sleep(1000); }', $argv[1], 60000);
            (new Altair\Eval\Evaluator())->evaluate($request, function (string $type, string $pid) {
                echo $pid, "\n";
                fgets(STDIN);
                posix_kill(getmypid(), SIGKILL);
            });
            PHP);
        $host = proc_open(
            [dirname(__DIR__) . '/scripts/php.sh', $script, $this->application()->root],
            [['pipe', 'r'], ['pipe', 'w'], STDERR],
            $pipes,
            null,
            getenv() + ['EXTENSION' => dirname(__DIR__) . '/target/release/libaltair_eval.so'],
        );
        $pid = (int) fgets($pipes[1]);
        self::assertFileExists("/proc/$pid/stat");
        fwrite($pipes[0], "now\n");
        array_map(fclose(...), $pipes);
        proc_close($host);

        $this->waitUntilNoProcessIsLeft();
        self::assertContains(Processes::stat($pid)[0] ?? 'gone', ['gone', 'Z'], 'A zombie is for init to collect.');
    }

    public function testInsideASnippetThereIsNoEvaluator(): void
    {
        $result = $this->evaluate('return new Altair\Eval\Evaluator();');

        self::assertOutcome('threw', $result, 1, exception: true);
        self::assertStringContainsString('snippet', $result->exception['message']);
    }

    private function waitUntilNoProcessIsLeft(): void
    {
        $until = hrtime(true) + 20e9;
        while ($this->processes() !== [] && hrtime(true) < $until) {
            usleep(1000);
        }
        self::assertSame([], $this->processes());
    }
}
