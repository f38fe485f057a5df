<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\Tests\Support\EvaluationTestCase;

/**
 * Each row of the table of outcomes, with every field. The rows with many ways to them have tests of their own.
 */
final class OutcomeTest extends EvaluationTestCase
{
    public function testItReturnsAValue(): void
    {
        $result = $this->evaluate("echo 'out'; fwrite(STDERR, 'err'); return 1 + 1;");

        self::assertOutcome('returned', $result, 0, value: true);
        self::assertSame(['type' => 'int', 'value' => 2], $result->result);
        self::assertSame(['out', 'err'], [$result->stdout, $result->stderr]);
        self::assertArrayNotHasKey('message', $result->diagnostics);
        self::assertArrayNotHasKey('location', $result->diagnostics);
        self::assertArrayNotHasKey('signal', $result->diagnostics);
    }

    public function testItEncodesAnExceptionThatLeavesTheSnippet(): void
    {
        $result = $this->evaluate("echo 'kept';\nthrow new LogicException('boom', 5, new Exception('why'));");

        self::assertOutcome('threw', $result, 1, exception: true);
        self::assertSame('snippet', $result->diagnostics['phase']);
        self::assertSame('kept', $result->stdout);
        self::assertSame('LogicException', $result->exception['class']);
        self::assertSame('boom', $result->exception['message']);
        self::assertSame(['snippet', 2], [$result->exception['file'], $result->exception['line']]);
        self::assertSame(5, $result->exception['code']);
        self::assertSame('why', $result->exception['previous'][0]['message']);
    }

    public function testItEncodesAParseErrorWithTheCallersLine(): void
    {
        $result = $this->evaluate("echo 'not run';\n\nreturn 1 +;");

        self::assertOutcome('threw', $result, 1, exception: true);
        self::assertSame('', $result->stdout);
        self::assertSame('ParseError', $result->exception['class']);
        self::assertSame(['snippet', 3], [$result->exception['file'], $result->exception['line']]);
        self::assertSame([], $result->exception['stack_trace']);
    }

    public function testItReportsAnExit(): void
    {
        $result = $this->evaluate("echo 'kept'; exit(3);");

        self::assertOutcome('exited', $result, 3);
        self::assertSame('kept', $result->stdout);
    }

    public function testItReportsAFatalErrorWithItsPlace(): void
    {
        $result = $this->evaluate("echo 'kept';\ntrigger_error('gone wrong', E_USER_ERROR);");

        self::assertOutcome('fatal', $result, 255);
        self::assertSame('snippet', $result->diagnostics['phase']);
        self::assertSame('gone wrong', $result->diagnostics['message']);
        self::assertSame('snippet', $result->diagnostics['location']['file']);
        self::assertSame(2, $result->diagnostics['location']['line']);
        self::assertSame(['trigger_error (snippet:2)'], $result->diagnostics['location']['stack_trace']);
        self::assertSame('kept', $result->stdout);
        self::assertStringContainsString('Fatal error: gone wrong in snippet on line 2', $result->stderr);
    }

    public function testItReportsThatMemoryRanOutWithItsPlace(): void
    {
        $result = $this->evaluate("echo 'kept';\nreturn str_repeat('x', 1 << 30);", memoryLimitMb: 16);

        self::assertOutcome('out_of_memory', $result, 255);
        self::assertSame('snippet', $result->diagnostics['phase']);
        self::assertStringContainsString('16777216 bytes', $result->diagnostics['message']);
        self::assertSame(2, $result->diagnostics['location']['line']);
        self::assertSame('kept', $result->stdout);
    }

    public function testItReportsWhereTheDeadlineMetTheSnippet(): void
    {
        $result = $this->evaluate("echo 'kept';\nsleep(60);", timeoutMs: self::SHORT_MS);

        self::assertOutcome('timed_out', $result, 124, timedOut: true);
        self::assertSame('snippet', $result->diagnostics['phase']);
        self::assertSame(['file', 'line', 'stack_trace'], array_keys($result->diagnostics['location']));
        self::assertSame('snippet', $result->diagnostics['location']['file']);
        self::assertSame(2, $result->diagnostics['location']['line']);
        self::assertSame(['sleep (snippet:2)'], $result->diagnostics['location']['stack_trace']);
        self::assertSame('kept', $result->stdout);
        self::assertGreaterThanOrEqual(self::SHORT_MS, $result->durationMs);
    }

    /**
     * @dataProvider signals
     */
    public function testItReportsTheSignalThatEndedTheChild(int $signal): void
    {
        $result = $this->evaluate("echo 'kept'; posix_kill(getmypid(), $signal); sleep(60); return 1;");

        self::assertOutcome('signalled', $result, 128 + $signal);
        self::assertSame($signal, $result->diagnostics['signal']);
        self::assertSame('snippet', $result->diagnostics['phase']);
        self::assertNotSame('', $result->diagnostics['message']);
        self::assertSame('kept', $result->stdout);
    }

    public static function signals(): iterable
    {
        foreach (['HUP', 'INT', 'ABRT', 'KILL', 'SEGV', 'TERM', 'XCPU'] as $name) {
            yield "SIG$name" => [constant("SIG$name")];
        }
    }

    /**
     * @testWith [0, 1]
     *           [7, 7]
     */
    public function testItDoesNotTakeTheStatusOfANativeExitForAReport(int $status, int $exitCode): void
    {
        $snippet = "echo 'kept'; FFI::cdef('void _exit(int);')->_exit($status);";

        $result = $this->evaluate($snippet, unsafe: true);

        self::assertOutcome('no_report', $result, $exitCode);
        self::assertSame('snippet', $result->diagnostics['phase']);
        self::assertNotSame('', $result->diagnostics['message']);
        self::assertSame('kept', $result->stdout);
    }

    public function testItReportsTheKeysOfDiagnosticsThatApply(): void
    {
        $diagnostics = $this->evaluate('return 1;')->diagnostics;

        self::assertSame('first', $diagnostics['start']);
        self::assertSame(['start', 'boot', 'snippet', 'encode', 'total'], array_keys($diagnostics['timings_ms']));
        self::assertContainsOnly('float', $diagnostics['timings_ms']);
        self::assertContainsOnly('string', $diagnostics['guards']);
        foreach (['process', 'environment', 'ini', 'limits', 'privileges', 'deadline'] as $guard) {
            self::assertSame('in force', $diagnostics['guards'][$guard], $guard);
        }
    }

    public function testItSaysWhichGuardsAnUnsafeRunLifts(): void
    {
        $guards = $this->evaluate('return 1;', unsafe: true)->diagnostics['guards'];

        foreach (['environment', 'ini', 'limits', 'privileges'] as $guard) {
            self::assertStringContainsString('unsafe', $guards[$guard]);
        }
        self::assertSame(['in force', 'in force'], [$guards['process'], $guards['deadline']]);
    }

    public function testItMeasuresTheSnippetItselfInsideTheWholeCall(): void
    {
        $began = hrtime(true);
        $result = $this->evaluate('usleep(200000); return 1;');
        $elapsed = (hrtime(true) - $began) / 1e6;

        $timings = $result->diagnostics['timings_ms'];
        self::assertGreaterThanOrEqual(200, $result->durationMs);
        self::assertEqualsWithDelta($timings['snippet'], $result->durationMs, 1);
        self::assertGreaterThan($timings['snippet'], $timings['total']);
        self::assertLessThanOrEqual($timings['total'], array_sum($timings) - $timings['total']);
        self::assertLessThanOrEqual($elapsed, $timings['total']);
    }

    public function testItGivesTheRealPeakOfMemory(): void
    {
        $small = $this->evaluate('return 1;')->memoryPeakBytes;
        $large = $this->evaluate("strlen(str_repeat('x', 40 << 20));")->memoryPeakBytes;

        self::assertGreaterThan(0, $small);
        self::assertGreaterThanOrEqual($small + (40 << 20), $large);
        self::assertLessThan(128 << 20, $large);
    }

    public function testItMarksOutputThatWasCutAndCountsAllOfIt(): void
    {
        $result = $this->evaluate("echo str_repeat('o', 16384), 'X'; fwrite(STDERR, str_repeat('e', 16384)); 1;");

        self::assertSame(str_repeat('o', 16384) . "\n...(truncated)", $result->stdout);
        self::assertSame(str_repeat('e', 16384), $result->stderr);
        self::assertSame(['stdout' => 16385, 'stderr' => 16384], $result->diagnostics['output_truncated']);
    }

    public function testItReplacesInvalidUtf8InOutput(): void
    {
        $result = $this->evaluate('echo "a\xFFb\xC3"; fwrite(STDERR, "\x80z"); return null;');

        self::assertSame("a\u{FFFD}b\u{FFFD}", $result->stdout);
        self::assertSame("\u{FFFD}z", $result->stderr);
    }
}
