<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\EvalResult;
use Altair\Eval\Tests\Support\EvaluationTestCase;
use Altair\Eval\Tests\Support\Processes;
use Altair\Eval\Tests\Support\Script;
use Fiber;
use LogicException;

/**
 * `$onOutput`: what it is given, when, and what happens to the run where it misbehaves.
 */
final class OnOutputTest extends EvaluationTestCase
{
    public function testItIsGivenEachStreamInOrder(): void
    {
        $got = ['out' => '', 'err' => ''];
        $types = [];

        $result = $this->evaluateWatching(
            static function (...$arguments) use (&$got, &$types): void {
                [$type, $chunk] = $arguments;
                $types[] = array_map(get_debug_type(...), $arguments);
                $got[$type] .= $chunk;
            },
            'echo "a"; fwrite(STDERR, "x"); echo "b"; fwrite(STDERR, "y"); echo str_repeat("c", 100000); return 1;',
        );

        self::assertSame(['out' => 'ab' . str_repeat('c', 100000), 'err' => 'xy'], $got);
        self::assertSame([['string', 'string']], array_values(array_unique($types, SORT_REGULAR)));
        self::assertTrue($result->ok());
        self::assertStringStartsWith('abc', $result->stdout);
        self::assertSame('xy', $result->stderr);
    }

    public function testItIsCalledWhileTheSnippetRuns(): void
    {
        $flag = $this->application()->path('go-on');
        $seen = [];

        // The snippet ends only once the callback has answered its first word.
        $result = $this->evaluateWatching(
            static function (string $type, string $chunk) use ($flag, &$seen): void {
                $seen[] = $chunk;
                touch($flag);
            },
            'echo "first"; while (!file_exists("go-on")) { usleep(1000); clearstatcache(); } unlink("go-on");'
                . ' echo "second"; return "seen";',
            unsafe: true,
        );

        self::assertSame(['type' => 'string', 'value' => 'seen'], $result->result);
        self::assertSame(['first', 'second'], $seen);
    }

    public function testItIsNotCalledWithoutOutput(): void
    {
        $calls = 0;

        $this->evaluateWatching(static function () use (&$calls): void {
            $calls++;
        }, 'return 1;');

        self::assertSame(0, $calls);
    }

    public function testBytesAreGivenAsTheyAre(): void
    {
        $got = '';

        $result = $this->evaluateWatching(static function (string $type, string $chunk) use (&$got): void {
            $got .= $chunk;
        }, 'echo "\xff\0\r\n\x1b[31m";');

        self::assertSame("\xff\0\r\n\x1b[31m", $got);
        self::assertSame("\u{FFFD}\0\r\n\x1b[31m", $result->stdout);
    }

    public function testOutputBeyondWhatIsKeptIsGivenTo(): void
    {
        $bytes = 0;

        $result = $this->evaluateWatching(static function (string $type, string $chunk) use (&$bytes): void {
            $bytes += strlen($chunk);
        }, 'for ($i = 0; $i < 300; $i++) { echo str_repeat("x", 10000); }');

        self::assertSame(3000000, $bytes);
        self::assertSame(str_repeat('x', 16384) . "\n...(truncated)", $result->stdout);
    }

    public function testAnExceptionOfItEndsTheChildAndGoesOnToTheCaller(): void
    {
        $exception = new LogicException('enough');
        $calls = 0;
        $caught = null;
        $begun = microtime(true);

        try {
            $this->evaluateWatching(static function () use ($exception, &$calls): never {
                $calls++;
                throw $exception;
            }, 'echo "one"; sleep(50); echo "two";');
        } catch (LogicException $caught) {
        }

        self::assertSame($exception, $caught);
        self::assertSame(1, $calls);
        self::assertLessThan(40, microtime(true) - $begun);
        self::assertSame([], Processes::children(), 'The child is gone when the caller has the exception.');
    }

    public function testASlowCallbackDoesNotTurnAFinishedRunIntoATimeout(): void
    {
        $result = $this->evaluateWatching(static function (): void {
            usleep(1_500_000);
        }, 'echo "x"; return "done";', timeoutMs: self::SHORT_MS);

        self::assertSame(['type' => 'string', 'value' => 'done'], $result->result);
        self::assertFalse($result->timedOut);
    }

    public function testASlowCallbackDoesNotKeepTheSnippetPastItsDeadline(): void
    {
        $result = $this->evaluateWatching(static function (): void {
            usleep(1_500_000);
        }, 'echo "x"; while (true);', timeoutMs: self::SHORT_MS);

        self::assertOutcome('timed_out', $result, 124, timedOut: true);
        self::assertSame('x', $result->stdout);
    }

    public function testItMayEvaluateToo(): void
    {
        $inner = null;

        $outer = $this->evaluateWatching(function () use (&$inner): void {
            $inner ??= $this->evaluate('return "inner";');
        }, 'echo "x"; return "outer";');

        self::assertInstanceOf(EvalResult::class, $inner);
        self::assertSame(['inner', 'outer'], [$inner->result['value'], $outer->result['value'] ?? null]);
    }

    public function testAFiberMaySuspendInIt(): void
    {
        $fiber = new Fiber(fn (): EvalResult => $this->evaluateWatching(
            static fn (string $type, string $chunk): mixed => Fiber::suspend($chunk),
            'echo "x"; return 5;',
        ));

        self::assertSame('x', $fiber->start());
        $fiber->resume();
        self::assertSame(5, $fiber->getReturn()->result['value']);
    }

    public function testAFiberThatIsNeverResumedEndsTheChild(): void
    {
        $fiber = new Fiber(fn (): EvalResult => $this->evaluateWatching(
            static fn (string $type, string $chunk): mixed => Fiber::suspend($chunk),
            'echo "x"; sleep(50);',
        ));
        $fiber->start();
        self::assertNotSame([], Processes::children());

        unset($fiber);

        self::assertSame([], Processes::childrenLeft());
    }

    public function testExitInItEndsTheHostAndTheChild(): void
    {
        $script = new Script(<<<'PHP'
            register_shutdown_function(fn () => say('shutdown'));
            (new Evaluator())->evaluate(request('echo "x"; sleep(50);'), function () { exit(7); });
            PHP);

        [$exitCode, $output, $errors] = $script->end();

        self::assertSame([7, "shutdown\n", ''], [$exitCode, $output, $errors]);
        self::assertSame([], $script->left());
    }

    public function testAFatalErrorInItEndsTheHostAndTheChild(): void
    {
        $script = new Script(<<<'PHP'
            register_shutdown_function(fn () => say('shutdown'));
            $fatal = fn () => eval('abstract class A { abstract function f(); } class B extends A {}');
            (new Evaluator())->evaluate(request('echo "x"; sleep(50);'), $fatal);
            PHP);

        [$exitCode, $output] = $script->end();

        self::assertSame([255, "shutdown\n"], [$exitCode, $output]);
        self::assertSame([], $script->left());
    }
}
