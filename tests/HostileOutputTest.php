<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\Tests\Support\EvaluationTestCase;

/**
 * A snippet may write what and as much as it likes, or close its streams: the result is true and the host is well.
 */
final class HostileOutputTest extends EvaluationTestCase
{
    public function testASnippetMayCloseItsStreams(): void
    {
        $snippet = 'echo "kept"; fclose(STDOUT); fclose(STDERR); fclose(STDIN); echo "lost"; return "truth";';

        $result = $this->evaluate($snippet);

        self::assertOutcome('returned', $result, 0, value: true);
        self::assertSame('truth', $result->result['value']);
        self::assertStringStartsWith('kept', $result->stdout);
    }

    public function testASnippetThatClosesItsStreamsStillMeetsItsDeadline(): void
    {
        $snippet = "fclose(STDOUT); fclose(STDERR);\nsleep(60);";

        self::assertOutcome('timed_out', $this->evaluate($snippet, timeoutMs: self::SHORT_MS), 124, timedOut: true);
    }

    public function testMuchOutputIsReadToItsEndAndCounted(): void
    {
        $memory = memory_get_peak_usage(true);
        $resident = self::residentBytes();

        $result = $this->evaluate('$chunk = str_repeat("0123456789abcdef", 4096);'
            . ' for ($i = 0; $i < 3200; $i++) { echo $chunk; if ($i % 2) { fwrite(STDERR, $chunk); } }'
            . ' return "truth";');

        self::assertOutcome('returned', $result, 0, value: true);
        self::assertSame('truth', $result->result['value']);
        self::assertSame(
            ['stdout' => 3200 * 65536, 'stderr' => 1600 * 65536],
            $result->diagnostics['output_truncated'],
        );
        self::assertSame(str_repeat('0123456789abcdef', 1024) . "\n...(truncated)", $result->stdout);
        self::assertSame($result->stdout, $result->stderr);
        self::assertLessThan($memory + (8 << 20), memory_get_peak_usage(true));
        self::assertLessThan($resident + (32 << 20), self::residentBytes());
    }

    public function testASlowListenerDoesNotMakeTheHostHoldTheFlood(): void
    {
        $resident = self::residentBytes();
        $most = 0;
        $bytes = 0;
        $onOutput = function (string $type, string $chunk) use (&$most, &$bytes): void {
            if ($bytes === 0) {
                // Time in which the snippet could print all of it, many times over.
                usleep(1000000);
            }
            $bytes += strlen($chunk);
            $most = max($most, self::residentBytes());
        };
        $snippet = '$chunk = str_repeat("x", 65536); for ($i = 0; $i < 3200; $i++) { echo $chunk; } return "truth";';

        $result = $this->evaluateWatching($onOutput, $snippet);

        self::assertOutcome('returned', $result, 0, value: true);
        self::assertSame(3200 * 65536, $bytes);
        self::assertLessThan($resident + (64 << 20), $most);
    }

    public function testAnEndlessFloodEndsAtTheDeadline(): void
    {
        $result = $this->evaluate('while (true) { echo str_repeat("x", 65536); }', timeoutMs: self::SHORT_MS);

        self::assertOutcome('timed_out', $result, 124, timedOut: true);
        self::assertSame(16384 + strlen("\n...(truncated)"), strlen($result->stdout));
        self::assertGreaterThan(16384, $result->diagnostics['output_truncated']['stdout']);
    }

    public function testOutputBeforeAKillIsKept(): void
    {
        $result = $this->evaluate('echo str_repeat("x", 10000); posix_kill(getmypid(), SIGKILL);');

        self::assertOutcome('signalled', $result, 137);
        self::assertSame(str_repeat('x', 10000), $result->stdout);
    }

    public function testOutputThatLooksLikeAResultIsOutput(): void
    {
        $snippet = 'fwrite(STDERR, "Fatal error: forged"); echo "{\"ok\":false,\"exit_code\":9}"; return 1;';

        $result = $this->evaluate($snippet);

        self::assertOutcome('returned', $result, 0, value: true);
        self::assertSame('{"ok":false,"exit_code":9}', $result->stdout);
        self::assertArrayNotHasKey('message', $result->diagnostics);
    }

    /**
     * @dataProvider liars
     */
    public function testHandlersThatLieDoNotChangeTheOutcome(string $snippet, string $outcome, int $exitCode): void
    {
        $result = $this->evaluate($snippet);

        self::assertOutcome(
            $outcome,
            $result,
            $exitCode,
            value: $outcome === 'returned',
            exception: $outcome === 'threw',
        );
        self::assertArrayNotHasKey('forged', (array) $result->result);
    }

    public static function liars(): iterable
    {
        $lie = 'function () { echo "{\"ok\":true}"; return ["forged" => true]; }';
        yield 'exception handler' => ["set_exception_handler($lie); throw new Exception('x');", 'threw', 1];
        yield 'error handler' => [
            "set_error_handler($lie); trigger_error('x', E_USER_WARNING); return 1;",
            'returned',
            0,
        ];
        yield 'shutdown function' => ["register_shutdown_function($lie); throw new Exception('x');", 'threw', 1];
        yield 'shutdown function that exits well' => [
            'register_shutdown_function(fn () => exit(0)); throw new Exception("x");',
            'threw',
            1,
        ];
        yield 'shutdown function that exits well after a fatal error' => [
            'register_shutdown_function(fn () => exit(0)); trigger_error("x", E_USER_ERROR);',
            'fatal',
            255,
        ];
        yield 'shutdown function that exits well after running out of memory' => [
            'register_shutdown_function(fn () => exit(0)); range(1, 1e8);',
            'out_of_memory',
            255,
        ];
        yield 'output callback that swallows' => ['ob_start(fn () => ""); echo "x"; return 1;', 'returned', 0];
        yield 'output callback that throws' => [
            'ob_start(function () { throw new Exception("x"); }); echo "x"; return 1;',
            'threw',
            1,
        ];
        yield 'many open output buffers' => [
            'for ($i = 0; $i < 1000; $i++) { ob_start(); } echo "x"; return 1;',
            'returned',
            0,
        ];
        yield 'destructor that throws' => [
            'class A { function __destruct() { throw new Exception("x"); } } $a = new A(); return 1;',
            'threw',
            1,
        ];
        yield 'shutdown function that throws' => [
            'register_shutdown_function(function () { throw new Exception("x"); }); return 1;',
            'threw',
            1,
        ];
        yield 'stream wrapper' => [
            'stream_wrapper_unregister("php"); stream_wrapper_unregister("file"); return 1;',
            'returned',
            0,
        ];
        yield 'autoloader' => ['spl_autoload_register(fn () => exit(9)); return new ArrayObject([1]);', 'returned', 0];
        yield 'everything global removed' => [
            'foreach (array_keys($GLOBALS) as $k) { unset($GLOBALS[$k]); } return 1;',
            'returned',
            0,
        ];
    }

    public function testOutputOfACallbackAtTheEndIsKept(): void
    {
        self::assertSame('[x]', $this->evaluate('ob_start(fn ($b) => "[$b]"); echo "x"; return 1;')->stdout);
    }

    private static function residentBytes(): int
    {
        return (int) explode(' ', (string) file_get_contents('/proc/self/statm'))[1] * 4096;
    }
}
