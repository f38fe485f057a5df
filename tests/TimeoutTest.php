<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\EvalResult;
use Altair\Eval\Tests\Support\EvaluationTestCase;

/**
 * The deadline holds wherever the snippet is, and says where that was.
 */
final class TimeoutTest extends EvaluationTestCase
{
    /** Milliseconds after the deadline by which a run is over, on a busy machine too. None of the code below is. */
    private const OVERDUE_MS = 4000;

    private const PATIENT_CONTAINER = <<<'PHP'
        <?php
        ini_set('pcre.backtrack_limit', '4294967295');
        return new class {
            public function has(string $id): bool
            {
                return false;
            }
            public function get(string $id): mixed
            {
                return null;
            }
        };
        PHP;

    /**
     * @dataProvider places
     * @param list<string> $trace
     */
    public function testItSaysWhereTheSnippetWas(string $snippet, int $line, array $trace): void
    {
        $this->application(['config/container.php' => self::PATIENT_CONTAINER]);

        $result = $this->evaluatePlaced("echo 'kept';\n" . $snippet, memoryLimitMb: 512);

        self::assertTimedOutInTime($result);
        self::assertSame('snippet', $result->diagnostics['phase']);
        self::assertSame('snippet', $result->diagnostics['location']['file']);
        self::assertSame($line, $result->diagnostics['location']['line']);
        self::assertSame($trace, $result->diagnostics['location']['stack_trace']);
        self::assertSame('kept', $result->stdout);
    }

    public static function places(): iterable
    {
        $read = "\$pair = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);\nfread(\$pair[0], 1);";
        yield 'usleep' => ['usleep(60000000);', 2, ['usleep (snippet:2)']];
        yield 'blocking read' => [$read, 3, ['fread (snippet:3)']];
        yield 'select' => [
            str_replace('fread($pair[0], 1)', '$r = $pair; $w = $x = []; stream_select($r, $w, $x, 60)', $read),
            3,
            ['stream_select (snippet:3)'],
        ];
        yield 'long native call' => [
            "return\nhash_pbkdf2('sha512', 'a', 'b', 2000000000);",
            3,
            ['hash_pbkdf2 (snippet:3)'],
        ];
        yield 'sort' => [
            "\$a = str_repeat('x', 1 << 20);\n\$b = \$a . 'y';\n\$all = [];\n"
                . "for (\$i = 0; \$i < 100000; \$i++) {\n\$all[] = \$i % 2 ? \$a : \$b;\n}\nsort(\$all, SORT_NATURAL);",
            8,
            ['sort (snippet:8)'],
        ];
        yield 'regular expression' => [
            "preg_match('/(?:x+x+)+[yz]/', str_repeat('x', 60));",
            2,
            ['preg_match (snippet:2)'],
        ];
        yield 'SQLite' => [
            "\$db = new PDO('sqlite::memory:');\n\$db->query('WITH RECURSIVE c(n) AS "
                . "(SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT max(n) FROM c')->fetch();",
            3,
            ['PDO->query (snippet:3)'],
        ];
        yield 'nested functions' => [
            "function a() {\n    return b();\n}\nfunction b() {\n    sleep(60);\n}\na();",
            6,
            ['sleep (snippet:6)', 'b (snippet:3)', 'a (snippet:8)'],
        ];
        yield 'methods' => [
            "class A {\n    function one() {\n        self::two();\n    }\n    static function two() {\n"
                . "        sleep(60);\n    }\n}\n(new A())->one();",
            7,
            ['sleep (snippet:7)', 'A::two (snippet:4)', 'A->one (snippet:10)'],
        ];
        yield 'closure in a native call' => [
            "array_map(function () {\n    sleep(60);\n}, [1]);",
            3,
            ['sleep (snippet:3)', '{closure} (<internal>)', 'array_map (snippet:2)'],
        ];
        yield 'generator' => [
            "function g() {\n    sleep(60);\n    yield 1;\n}\nforeach (g() as \$x) {\n}",
            3,
            ['sleep (snippet:3)', 'g (snippet:6)'],
        ];
    }

    /**
     * @dataProvider loops
     */
    public function testItSaysWhichLineOfALoopTheSnippetWasIn(string $snippet, int $first, int $last): void
    {
        $result = $this->evaluatePlaced($snippet);

        self::assertTimedOutInTime($result);
        self::assertSame('snippet', $result->diagnostics['location']['file']);
        self::assertGreaterThanOrEqual($first, $result->diagnostics['location']['line']);
        self::assertLessThanOrEqual($last, $result->diagnostics['location']['line']);
    }

    public static function loops(): iterable
    {
        yield 'empty loop' => ["\$x = 1;\nwhile (true) {\n}\nreturn \$x;", 2, 3];
        yield 'busy loop' => ["\$x = 1;\nfor (;;) {\n    \$x = \$x * 3 % 7;\n}", 2, 4];
        yield 'in a function' => ["function f() {\n    while (true) {\n        strlen('x');\n    }\n}\nf();", 2, 4];
        yield 'in a fiber' => ["\$f = new Fiber(function () {\n    while (true) {\n    }\n});\n\$f->start();", 2, 3];
        yield 'catching everything' => [
            "while (true) {\n    try {\n        usleep(1);\n    } catch (Throwable) {\n    } finally {\n    }\n}",
            1,
            7,
        ];
    }

    /**
     * @dataProvider lateCode
     */
    public function testItHoldsForCodeThatRunsAfterTheSnippet(string $snippet, string $phase, int $line): void
    {
        $result = $this->evaluatePlaced($snippet);

        self::assertTimedOutInTime($result);
        self::assertSame($phase, $result->diagnostics['phase']);
        self::assertSame($line, $result->diagnostics['location']['line']);
        self::assertSame('sleep', strtok($result->diagnostics['location']['stack_trace'][0], ' '));
    }

    public static function lateCode(): iterable
    {
        yield 'shutdown function' => ["register_shutdown_function(function () {\n    sleep(60);\n});", 'snippet', 2];
        yield 'shutdown function that is native' => ["register_shutdown_function('sleep', 60);", 'snippet', 0];
        yield 'destructor' => [
            "class A {\n    function __destruct() {\n        sleep(60);\n    }\n}\n\$a = new A();\nreturn 1;",
            'snippet',
            3,
        ];
        yield 'output callback' => [
            "ob_start(function () {\n    sleep(60);\n    return '';\n});\necho 1;",
            'snippet',
            2,
        ];
        yield '__debugInfo' => [
            "return new class {\n    function __debugInfo() {\n        sleep(60);\n    }\n};",
            'encode',
            3,
        ];
        yield 'iterator' => ["return (function () {\n    yield 1;\n    sleep(60);\n})();", 'encode', 3];
        yield 'count' => [
            "return new class([]) extends ArrayObject {\n    function count(): int {\n        sleep(60);\n    }\n};",
            'encode',
            3,
        ];
        yield 'shutdown function after an exit' => [
            "register_shutdown_function(function () {\n    sleep(60);\n});\nexit(0);",
            'snippet',
            2,
        ];
    }

    public function testItHoldsForBoot(): void
    {
        $this->application(['config/container.php' => "<?php\n\nsleep(60);"]);

        $result = $this->evaluatePlaced('return 1;');

        self::assertTimedOutInTime($result);
        self::assertSame('boot', $result->diagnostics['phase']);
        self::assertSame($this->application()->path('config/container.php'), $result->diagnostics['location']['file']);
        self::assertSame(3, $result->diagnostics['location']['line']);
    }

    public function testItNamesTheApplicationsCodeThatTheSnippetWaitedFor(): void
    {
        $class = "<?php\nnamespace App;\nclass Slow\n{\n    public function work(): void\n    {\n"
            . "        sleep(60);\n    }\n}";
        $this->application(['src/Slow.php' => $class]);

        $result = $this->evaluatePlaced("\n(new App\\Slow())->work();");

        $file = $this->application()->path('src/Slow.php');
        self::assertSame(['file' => $file, 'line' => 7, 'stack_trace' => [
            "sleep ($file:7)",
            'App\Slow->work (snippet:2)',
        ]], $result->diagnostics['location']);
    }

    /**
     * @dataProvider deafSnippets
     */
    public function testItEndsASnippetThatDoesNotListen(string $snippet): void
    {
        $result = $this->evaluate($snippet . ' while (true) { sleep(60); }', timeoutMs: self::SHORT_MS);

        self::assertTimedOutInTime($result);
    }

    public static function deafSnippets(): iterable
    {
        yield 'signals ignored' => [
            'foreach (array_diff(range(1, 64), [9, 19, 32, 33]) as $s) { pcntl_signal($s, SIG_IGN); }',
        ];
        yield 'signals handled' => ['pcntl_async_signals(true); for ($s = 1; $s < 65; $s++) {'
            . ' in_array($s, [9, 19, 32, 33]) || pcntl_signal($s, function () { echo "no"; }); }'];
        yield 'signals blocked' => ['pcntl_sigprocmask(SIG_BLOCK, array_diff(range(1, 64), [9, 19, 32, 33]));'];
        yield 'stopped' => ['posix_kill(getmypid(), SIGSTOP);'];
        yield 'no time limit of its own' => ['set_time_limit(0); ignore_user_abort(true);'];
    }

    public function testItCallsARunTimedOutThatReturnsAfterAll(): void
    {
        // Handled by PHP, the host's signal only ends the sleep.
        $snippet = 'for ($s = 34; $s < 65; $s++) { pcntl_signal($s, fn () => 0); } sleep(60); return 1;';

        self::assertTimedOutInTime($this->evaluate($snippet, timeoutMs: self::SHORT_MS));
    }

    public function testItHoldsForAnUnsafeRun(): void
    {
        $result = $this->evaluatePlaced("\nshell_exec('sleep 60');", unsafe: true);

        self::assertTimedOutInTime($result);
        self::assertSame(['shell_exec (snippet:2)'], $result->diagnostics['location']['stack_trace']);
    }

    /**
     * A child has 100 ms to say where it was. A machine that gives it no processor for so long gets another try.
     */
    private function evaluatePlaced(string $snippet, mixed ...$options): EvalResult
    {
        $result = $this->evaluate($snippet, ...$options, timeoutMs: self::SHORT_MS);
        for ($try = 0; $try < 3 && $result->timedOut && !isset($result->diagnostics['location']); $try++) {
            $result = $this->evaluate($snippet, ...$options, timeoutMs: self::SHORT_MS);
        }
        self::assertArrayHasKey('location', $result->diagnostics, var_export($result->toArray(), true));

        return $result;
    }

    private static function assertTimedOutInTime(EvalResult $result): void
    {
        self::assertOutcome('timed_out', $result, 124, timedOut: true);
        self::assertNotSame('', $result->diagnostics['message']);
        self::assertGreaterThanOrEqual(self::SHORT_MS, $result->durationMs);
        self::assertLessThan(self::SHORT_MS + self::OVERDUE_MS, $result->diagnostics['timings_ms']['total']);
    }
}
