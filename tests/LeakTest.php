<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\Tests\Support\Script;
use Altair\Eval\Tests\Support\TemporaryApplication;
use PHPUnit\Framework\TestCase;

/**
 * A host that evaluates for long. `make bench` does the same ten times as often.
 */
final class LeakTest extends TestCase
{
    /** Evaluations until a host has what it keeps: memory of its own, the allocator's pools. */
    private const WARM_UP = 60;

    /** Far below a kilobyte an evaluation; a host that leaks nothing grows by nothing. */
    private const GROWTH_BYTES = 256 << 10;

    /** Threads that read output have pools of their own, which settle later. */
    private const GROWTH_WITH_THREADS_BYTES = 1 << 20;

    private const LOOP = <<<'PHP'
        require TESTS . '/Support/Processes.php';
        require TESTS . '/Support/Footprint.php';
        use Altair\Eval\Tests\Support\Footprint;
        $evaluator = new Evaluator();
        $watch = static function (string $type, string $chunk): void {};
        $outcomes = [];
        $repeat = static function (int $times) use ($root, $evaluator, $watch, &$outcomes): void {
            for ($i = 0; $i < $times; ++$i) {
                [$snippet, $timeoutMs] = CASES[$i % count(CASES)];
                $request = new EvalRequest($snippet, APPLICATION, $timeoutMs);
                // By turns alone, which is this thread's work, and watched, which takes another one.
                $watched = intdiv($i, count(CASES)) % 2 === 1;
                $result = $evaluator->evaluate($request, $watched ? $watch : null);
                $outcome = $result->diagnostics['outcome'];
                $outcomes[$outcome] = ($outcomes[$outcome] ?? 0) + 1;
            }
        };
        $repeat(WARM_UP);
        $before = Footprint::take(APPLICATION);
        $outcomes = [];
        $repeat(TIMES);
        $after = Footprint::take(APPLICATION);
        say([
            'outcomes' => $outcomes,
            'growth' => $after->residentBytes - $before->residentBytes,
            'left' => $after->beyond($before),
        ]);
        PHP;

    public function testAHostDoesNotGrowWithEvaluations(): void
    {
        $seen = $this->measure(240, [['return 1 + 1;', 60000]]);

        self::assertSame(['returned' => 240], $seen['outcomes']);
        self::assertSame([], $seen['left'], 'No descriptor, process, thread or file is left.');
        self::assertLessThan(self::GROWTH_BYTES, $seen['growth']);
    }

    public function testAHostDoesNotGrowWithRunsThatTimeOutCrashOrFlood(): void
    {
        $seen = $this->measure(120, [
            ['for (;;);', 100],
            ['posix_kill(posix_getpid(), SIGSEGV);', 60000],
            ['for ($i = 0; $i < 48; ++$i) { echo str_repeat("x", 1 << 16); fwrite(STDERR, str_repeat("y", 1 << 12)); }', 60000],
        ]);

        self::assertSame(['timed_out' => 40, 'signalled' => 40, 'returned' => 40], $seen['outcomes']);
        self::assertSame([], $seen['left'], 'No descriptor, process, thread or file is left.');
        self::assertLessThan(self::GROWTH_WITH_THREADS_BYTES, $seen['growth']);
    }

    /**
     * Evaluates in a host of its own, in whose temporary directory the application lies.
     *
     * @param list<array{string, int}> $cases snippet and timeout in milliseconds, taken in turns
     * @return array{outcomes: array<string, int>, growth: int, left: list<string>}
     */
    private function measure(int $times, array $cases): array
    {
        $application = new TemporaryApplication();
        $application->write('tmp/.keep', '');
        chmod($application->path('tmp'), 01777);
        $constants = [
            'TESTS' => __DIR__,
            'APPLICATION' => $application->root,
            'WARM_UP' => self::WARM_UP,
            'TIMES' => $times,
            'CASES' => $cases,
        ];
        $code = 'putenv(' . var_export('TMPDIR=' . $application->path('tmp'), true) . ');';
        foreach ($constants as $name => $value) {
            $code .= "const $name = " . var_export($value, true) . ';';
        }
        [$exitCode, $output, $errors] = (new Script($code . self::LOOP))->end();
        self::assertSame(0, $exitCode, $output . $errors);

        return json_decode($output, true, flags: JSON_THROW_ON_ERROR);
    }
}
