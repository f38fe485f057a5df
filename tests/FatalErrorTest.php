<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\Tests\Support\EvaluationTestCase;

/**
 * Fatal errors are reported with message, file, line and trace, wherever they happen.
 */
final class FatalErrorTest extends EvaluationTestCase
{
    /**
     * @dataProvider fatalErrors
     * @param list<string> $trace
     */
    public function testItReportsTheErrorWithItsPlace(string $snippet, string $message, int $line, array $trace): void
    {
        $result = $this->evaluate($snippet);

        self::assertOutcome('fatal', $result, 255);
        self::assertStringContainsString($message, $result->diagnostics['message']);
        self::assertSame('snippet', $result->diagnostics['location']['file']);
        self::assertSame($line, $result->diagnostics['location']['line']);
        self::assertSame($trace, $result->diagnostics['location']['stack_trace']);
        self::assertStringContainsString('Fatal error: ' . $message, $result->stderr);
    }

    public static function fatalErrors(): iterable
    {
        $error = "\n    trigger_error('gone', E_USER_ERROR);\n";
        yield 'compile error' => ["\nfunction f(\$a, \$a) {\n}", 'Redefinition of parameter $a', 2, []];
        yield 'compile error in an expression' => ['$this = 1', 'Cannot re-assign $this', 1, []];
        yield 'class that lacks a method' => [
            "\nclass A implements Countable {\n}",
            'Class A contains 1 abstract method',
            2,
            [],
        ];
        yield 'redeclared function' => ["function f() {\n}\nfunction f() {\n}", 'Cannot redeclare f()', 3, []];
        yield 'nested functions' => [
            "function a() {{$error}}\nfunction b() {\n    a();\n}\nb();",
            'gone',
            2,
            ['trigger_error (snippet:2)', 'a (snippet:5)', 'b (snippet:7)'],
        ];
        yield 'method' => [
            "class A {\nstatic function a() {{$error}}}\nA::a();",
            'gone',
            3,
            ['trigger_error (snippet:3)', 'A::a (snippet:5)'],
        ];
        yield 'generator' => [
            "function g() {{$error}yield 1;}\nforeach (g() as \$x);",
            'gone',
            2,
            ['trigger_error (snippet:2)', 'g (snippet:4)'],
        ];
        yield 'closure in a native call' => [
            "array_map(function () {{$error}}, [1]);",
            'gone',
            2,
            ['trigger_error (snippet:2)', '{closure} (<internal>)', 'array_map (snippet:1)'],
        ];
    }

    /**
     * @dataProvider lateErrors
     */
    public function testItReportsAnErrorOfCodeThatRunsAfterTheSnippet(string $snippet, int $line): void
    {
        $result = $this->evaluate("echo 'kept';\n$snippet");

        self::assertOutcome('fatal', $result, 255);
        self::assertSame('gone', $result->diagnostics['message']);
        self::assertSame('snippet', $result->diagnostics['location']['file']);
        self::assertSame($line, $result->diagnostics['location']['line']);
        self::assertStringContainsString('kept', $result->stdout);
    }

    public static function lateErrors(): iterable
    {
        $body = "{\n    trigger_error('gone', E_USER_ERROR);\n}";
        yield 'shutdown function' => ["register_shutdown_function(function () $body); return 1;", 3];
        yield 'destructor' => ["class A { function __destruct() $body }\n\$a = new A(); return 1;", 3];
        yield 'destructor of a static' => [
            "class A { static \$a; function __destruct() $body }\nA::\$a = new A(); return 1;",
            3,
        ];
        yield 'destructor of the value' => ["return new class { function __destruct() $body };", 3];
        yield 'output callback' => ["ob_start(function () $body); return 1;", 3];
        yield '__debugInfo' => ["return new class { function __debugInfo() $body };", 3];
        yield 'iterator' => ["return (function () { yield 1; (function () $body)(); })();", 3];
        yield 'fiber' => ["(new Fiber(function () $body))->start();", 3];
        yield 'error handler' => ["set_error_handler(function () $body);\necho \$nothing;", 3];
    }

    public function testAnErrorThatTheSnippetsHandlerTookIsNoFatalError(): void
    {
        $snippet = 'set_error_handler(fn () => true); trigger_error("gone", E_USER_ERROR); return 1;';

        self::assertSame(1, $this->value($snippet));
    }

    public function testWhatPhpThrowsIsNoFatalError(): void
    {
        foreach (['new DateTimeZone', 'nothing()', 'abstract class A {} new A();', 'new Nothing()'] as $snippet) {
            self::assertOutcome('threw', $this->evaluate($snippet), 1, exception: true);
        }
    }

    public function testAFatalErrorOutlivesWhatTheShutdownFunctionsDo(): void
    {
        $snippet = 'register_shutdown_function(function () { echo "late"; exit(0); });'
            . ' trigger_error("gone", E_USER_ERROR);';

        $result = $this->evaluate($snippet);

        self::assertOutcome('fatal', $result, 255);
        self::assertSame('gone', $result->diagnostics['message']);
        self::assertStringContainsString('late', $result->stdout);
    }

    public function testItNamesTheApplicationsFileAndKeepsArgumentsOutOfTheTrace(): void
    {
        $class = "<?php\nnamespace App;\nfinal class Risky\n{\n    public static function run(string \$secret): void\n"
            . "    {\n        trigger_error('gone', E_USER_ERROR);\n    }\n}";
        $this->application(['src/Risky.php' => $class]);

        $result = $this->evaluate("\nApp\\Risky::run('hunter2');");

        $file = $this->application()->path('src/Risky.php');
        self::assertSame([
            'file' => $file,
            'line' => 7,
            'stack_trace' => ["trigger_error ($file:7)", 'App\Risky::run (snippet:2)'],
        ], $result->diagnostics['location']);
        $all = json_encode($result->toArray(verbose: true), JSON_THROW_ON_ERROR);
        self::assertStringNotContainsString('hunter2', $all);
    }
}
