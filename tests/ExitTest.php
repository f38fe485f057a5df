<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\Tests\Support\EvaluationTestCase;

/**
 * `exit` ends a run from wherever it is called, with its own status.
 */
final class ExitTest extends EvaluationTestCase
{
    /**
     * @dataProvider exits
     */
    public function testItReportsTheStatus(string $snippet, int $exitCode, string $stdout = ''): void
    {
        $result = $this->evaluate($snippet);

        self::assertOutcome('exited', $result, $exitCode);
        self::assertSame($stdout, $result->stdout);
        self::assertSame('', $result->stderr);
    }

    public static function exits(): iterable
    {
        yield 'without a status' => ['exit;', 0];
        yield 'die' => ['die();', 0];
        yield 'zero' => ['exit(0); return 5;', 0];
        yield 'as an expression without semicolon' => ['exit(4)', 4];
        yield 'a text' => ['exit("text");', 0, 'text'];
        yield 'beyond a byte' => ['exit(256 + 3);', 3];
        yield 'that of a fatal error' => ['exit(255);', 255];
        yield 'below zero' => ['exit(-1);', 255];
        yield 'that of a timeout' => ['exit(124);', 124];
        yield 'nested function' => ['function a() { b(); } function b() { exit(3); } a(); return 1;', 3];
        yield 'native call' => ['array_map(fn () => exit(3), [1]); return 1;', 3];
        yield 'generator' => ['foreach ((function () { yield 1; exit(3); })() as $x); return 1;', 3];
        yield 'fiber' => ['(new Fiber(fn () => exit(3)))->start(); return 1;', 3];
        yield 'in try and finally' => ['try { exit(3); } catch (Throwable) { exit(4); } finally { exit(5); }', 3];
        yield 'destructor' => ['class A { function __destruct() { exit(3); } } new A(); return 1;', 3];
        yield 'destructor of a variable' => [
            'class A { function __destruct() { exit(3); } } $a = new A(); return 1;',
            3,
        ];
        yield 'destructor of a static' => [
            'class A { static $a; function __destruct() { exit(3); } } A::$a = new A(); return 1;',
            3,
        ];
        yield 'destructor of the value' => ['return new class { function __destruct() { exit(3); } };', 3];
        yield 'shutdown function' => ['register_shutdown_function(fn () => exit(3)); return 1;', 3];
        yield 'shutdown function of a shutdown function' => [
            'register_shutdown_function(fn () => register_shutdown_function(fn () => exit(3))); return 1;',
            3,
        ];
        yield 'output callback' => ['ob_start(function () { exit(3); }); return 1;', 3];
        yield '__debugInfo' => ['return new class { function __debugInfo() { exit(3); } };', 3];
        yield 'iterator' => ['return (function () { yield 1; exit(3); })();', 3];
        yield 'count' => ['return new class([]) extends ArrayObject { function count(): int { exit(3); } };', 3];
        yield 'exception handler' => ['set_exception_handler(fn () => exit(3)); exit(3);', 3];
        yield 'error handler' => ['set_error_handler(fn () => exit(3)); echo $nothing; return 1;', 3];
    }

    public function testItRunsShutdownFunctionsAndDestructorsAndFlushesOutputAfterAnExit(): void
    {
        $snippet = 'class A { function __destruct() { echo "d"; } } $a = new A();'
            . ' register_shutdown_function(function () { echo "s"; }); ob_start(); echo "o"; exit(2);';

        $result = $this->evaluate($snippet);

        self::assertOutcome('exited', $result, 2);
        self::assertSame('o', $result->stdout[0]);
        self::assertEqualsCanonicalizing(['d', 'o', 's'], str_split($result->stdout));
    }

    public function testItRunsShutdownFunctionsAndDestructorsOfASnippetThatReturns(): void
    {
        $snippet = 'class A { function __destruct() { echo "d"; } } $GLOBALS["a"] = new A(); $a = new A();'
            . ' register_shutdown_function(function ($x) { echo $x; }, "s"); return 1;';

        $result = $this->evaluate($snippet);

        self::assertOutcome('returned', $result, 0, value: true);
        self::assertEqualsCanonicalizing(['d', 'd', 's'], str_split($result->stdout));
    }

    public function testWhatBootRegisteredOrMadeDoesNotShutDownInARun(): void
    {
        $this->application(['config/container.php' => <<<'PHP'
            <?php
            register_shutdown_function(function () { echo 'shutdown of boot'; });
            class Made { public function __destruct() { echo 'destructor of boot'; } }
            $GLOBALS['made'] = new Made();
            return new class extends Made {
                public function has($id) { return true; }
                public function get($id) { return $GLOBALS['made']; }
            };
            PHP]);

        $result = $this->evaluate('register_shutdown_function(function () { echo "mine"; }); return 1;');

        self::assertOutcome('returned', $result, 0, value: true);
        self::assertSame('mine', $result->stdout);
    }
}
