<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\Tests\Support\EvaluationTestCase;

/**
 * A run that uses up its memory says so, and where.
 */
final class OutOfMemoryTest extends EvaluationTestCase
{
    /**
     * @dataProvider hungrySnippets
     */
    public function testItSaysWhereMemoryRanOut(string $snippet, int $first, int $last): void
    {
        $result = $this->evaluate("echo 'kept';\n" . $snippet, memoryLimitMb: 32);

        self::assertOutcome('out_of_memory', $result, 255);
        self::assertSame('snippet', $result->diagnostics['phase']);
        self::assertStringContainsString('Allowed memory size of 33554432 bytes', $result->diagnostics['message']);
        self::assertSame('snippet', $result->diagnostics['location']['file']);
        self::assertGreaterThanOrEqual($first, $result->diagnostics['location']['line']);
        self::assertLessThanOrEqual($last, $result->diagnostics['location']['line']);
        // PHP itself takes up to two chunks of its heap more, to say so.
        self::assertLessThanOrEqual(36 << 20, $result->memoryPeakBytes);
        self::assertSame('kept', $result->stdout);
    }

    public static function hungrySnippets(): iterable
    {
        $eat = "{\n    for (\$all = [];;) {\n        \$all[] = random_bytes(1000);\n    }\n}";
        yield 'array' => ["for (\$all = [];;) {\n    \$all[] = [1, 2, \$all];\n}", 2, 4];
        yield 'string' => ["\$s = 'x';\nwhile (true) {\n    \$s .= \$s;\n}", 2, 5];
        yield 'one string' => ["\nstr_repeat('x', 100 << 20);", 3, 3];
        yield 'one array' => ["\nrange(1, 10000000);", 3, 3];
        yield 'recursion' => ["function f(\$n) {\n    return f(\$n + 1) + 1;\n}\nf(0);", 2, 4];
        yield 'objects that hold each other' => [
            "while (true) {\n    \$o = (object) ['before' => \$o ?? null];\n}",
            2,
            4,
        ];
        yield 'generator' => ["foreach ((function () {\n    yield str_repeat('x', 100 << 20);\n})() as \$x);", 3, 3];
        yield 'fiber' => ["(new Fiber(function () $eat))->start();", 2, 6];
        yield 'shutdown function' => ["register_shutdown_function(function () $eat);\nreturn 1;", 2, 6];
        yield 'destructor' => ["class A { function __destruct() $eat }\n\$a = new A();\nreturn 1;", 2, 6];
        yield 'output callback' => ["ob_start(function () $eat);\nreturn 1;", 2, 6];
        yield 'error handler' => ["set_error_handler(function () $eat);\necho \$nothing;", 2, 6];
        yield 'caught' => ["try {\n    range(1, 10000000);\n} catch (Throwable) {\n} finally {\n    echo 1;\n}", 3, 3];
    }

    public function testItSaysSoOfTheEncodersMemoryToo(): void
    {
        $snippet = 'return new class { function __debugInfo() { return [str_repeat("x", 1 << 30)]; } };';

        $result = $this->evaluate($snippet);

        self::assertOutcome('out_of_memory', $result, 255);
        self::assertSame('encode', $result->diagnostics['phase']);
        self::assertSame(1, $result->diagnostics['location']['line']);
    }

    public function testNativeMemoryBeyondTheHardCapIsReported(): void
    {
        // SQLite's memory is not PHP's: only the cap on the process, 512 + 128 MiB, sees it.
        $snippet = '$db = new PDO("sqlite::memory:"); $db->exec("CREATE TABLE t (b BLOB)");'
            . ' for ($i = 0; $i < 60; $i++) { $db->exec("INSERT INTO t VALUES (zeroblob(1048576))"); }'
            . "\n" . 'for ($all = [], $i = 0; $i < 480; $i++) { $all[] = str_repeat("x", 1000000); }';

        $result = $this->evaluate($snippet, memoryLimitMb: 512);
        self::assertSame('returned', $result->diagnostics['outcome'], 'Both fit.');

        $result = $this->evaluate(str_replace('60', '200', $snippet), memoryLimitMb: 512);
        self::assertOutcome('out_of_memory', $result, 255);
        self::assertMatchesRegularExpression('~Out of memory|hard cap~', $result->diagnostics['message']);
        self::assertSame(['snippet', 2], [
            $result->diagnostics['location']['file'],
            $result->diagnostics['location']['line'],
        ]);
    }

    public function testBootIsNotLimitedButItsUseIsWhatTheRequestMustAllow(): void
    {
        $this->application(['config/container.php' => '<?php return new class {'
            . ' private $kept; function __construct() { $this->kept = str_repeat("x", 40 << 20); }'
            . ' function has($id) { return true; } function get($id) { return strlen($this->kept); } };']);

        $result = $this->evaluate('return container("x");', memoryLimitMb: 32);

        self::assertOutcome('boot_failed', $result, 2);
        self::assertMatchesRegularExpression('/ask for at least (\d+) MiB/', $result->diagnostics['message']);
        preg_match('/at least (\d+) MiB/', $result->diagnostics['message'], $figure);
        self::assertSame(40 << 20, $this->value('return container("x");', memoryLimitMb: (int) $figure[1]));
    }

    public function testAnUnsafeRunHasNoLimit(): void
    {
        $snippet = 'strlen(str_repeat("x", 200 << 20))';

        self::assertSame(200 << 20, $this->value($snippet, memoryLimitMb: 16, unsafe: true));
    }
}
