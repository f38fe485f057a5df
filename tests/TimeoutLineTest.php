<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\EvalResult;
use Altair\Eval\Tests\Support\EvaluationTestCase;

/**
 * A timeout names the line that was running, also in a loop that calls nothing: there the engine has the line only
 * in a register.
 */
final class TimeoutLineTest extends EvaluationTestCase
{
    /** A statement that takes minutes, and assigns and calls nothing: the engine writes nowhere that it is there. */
    private const LONG = 'while (++$i > 0);';

    /**
     * @dataProvider loops
     * @param list<string> $trace
     */
    public function testItNamesTheLineOfALoopThatCallsNothing(string $snippet, int $line, array $trace): void
    {
        $result = $this->timedOut($snippet);

        self::assertSame('snippet', $result->diagnostics['location']['file']);
        self::assertSame($line, $result->diagnostics['location']['line']);
        self::assertSame($trace, $result->diagnostics['location']['stack_trace']);
    }

    public static function loops(): iterable
    {
        $long = self::LONG;
        yield 'one line of several' => ["\$x = strlen('x');\n\$i = 2;\n\n$long\n\$z = 3;", 4, []];
        yield 'nested' => [
            "while (true) {\n    \$a = strtoupper('a');\n    foreach ([1, 2] as \$b) {\n"
                . "        \$i = \$b;\n        $long\n    }\n}",
            5,
            [],
        ];
        yield 'in a function' => [
            "function f(int \$i) {\n    \$x = strlen('x');\n    \$i++;\n    $long\n}\n\nf(1);",
            4,
            ['f (snippet:7)'],
        ];
        yield 'in a function that was called again' => [
            "function f(int \$i) {\n    if (\$i > 0) {\n        return f(\$i - 1);\n    }\n    $long\n}\nf(2);",
            5,
            ['f (snippet:3)', 'f (snippet:3)', 'f (snippet:7)'],
        ];
        yield 'in a generator' => [
            "function g() {\n    yield 1;\n    \$i = 1;\n    $long\n    yield 2;\n}\n"
                . "foreach (g() as \$x) {\n    \$y = 1;\n}",
            4,
            ['g (snippet:7)'],
        ];
        yield 'in a callback of a native function' => [
            "usleep(1);\narray_map(function (\$x) {\n    \$i = \$x;\n    $long\n}, [1]);",
            4,
            ['{closure} (<internal>)', 'array_map (snippet:2)'],
        ];
        yield 'in a fiber' => [
            "\$f = new Fiber(function () {\n    \$i = strlen('x');\n    $long\n});\n\$f->start();",
            3,
            ['{closure} (<internal>)', 'Fiber->start (snippet:5)'],
        ];
        yield 'after an exception' => [
            "try {\n    throw new Exception(\$i = 1);\n} catch (Exception) {\n    $long\n}",
            4,
            [],
        ];
    }

    public function testItNamesTheCallAndNotWhatTheNativeCodeHasInTheRegister(): void
    {
        $result = $this->timedOut("\$x = 1;\n\$y = 2;\nhash_pbkdf2('sha512', 'a', 'b', 2000000000);\n\$z = 3;");

        self::assertSame(3, $result->diagnostics['location']['line']);
        self::assertSame(['hash_pbkdf2 (snippet:3)'], $result->diagnostics['location']['stack_trace']);
    }

    /** A child has 100 ms to say where it was. A machine that gives it no processor for so long gets another try. */
    private function timedOut(string $snippet): EvalResult
    {
        for ($try = 0; $try < 4; $try++) {
            $result = $this->evaluate($snippet, timeoutMs: self::SHORT_MS);
            self::assertOutcome('timed_out', $result, 124, timedOut: true);
            if (isset($result->diagnostics['location'])) {
                break;
            }
        }
        self::assertArrayHasKey('location', $result->diagnostics, var_export($result->toArray(), true));

        return $result;
    }
}
