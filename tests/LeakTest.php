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
    private const WARM_UP = 100;

    /** A host that leaks nothing grows by nothing; one that leaks a buffer of output grows by megabytes. */
    private const GROWTH_BYTES = 256 << 10;

    /** Threads that read output have pools of their own, which settle later. */
    private const GROWTH_WITH_THREADS_BYTES = 1 << 20;

    private const LOOP = <<<'PHP'
        require TESTS . '/Support/Processes.php';
        require TESTS . '/Support/Escape/Snapshot.php';
        require TESTS . '/Support/Spare.php';
        require TESTS . '/Support/Footprint.php';
        use Altair\Eval\Tests\Support\Footprint;
        $evaluator = new Evaluator();
        $watch = static function (string $type, string $chunk): void {};
        $outcomes = [];
        $repeat = static function (int $times) use ($root, $evaluator, $watch, &$outcomes): void {
            for ($i = 0; $i < $times; ++$i) {
                [$snippet, $timeoutMs] = CASES[$i % count(CASES)];
                $request = new EvalRequest($snippet, APPLICATION, $timeoutMs);
                // To be watched takes another thread.
                $watched = WATCHED && intdiv($i, count(CASES)) % 2 === 1;
                $result = $evaluator->evaluate($request, $watched ? $watch : null);
                $outcome = $result->diagnostics['outcome'];
                $outcomes[$outcome] = ($outcomes[$outcome] ?? 0) + 1;
                say('one more');
            }
        };
        $repeat(WARM_UP);
        // Twice: the first one pays for the code that takes it.
        Footprint::take(APPLICATION);
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
        $seen = $this->measure(200, [['return 1 + 1;', 60000]], watched: false);

        self::assertSame(['returned' => 200], $seen['outcomes']);
        self::assertSame([], $seen['left'], 'No descriptor, process, thread or file is left.');
        self::assertLessThan(self::GROWTH_BYTES, $seen['growth']);
    }

    public function testAHostDoesNotGrowWithRunsThatTimeOutCrashOrFlood(): void
    {
        $cases = [
            ['for (;;);', 100],
            ['posix_kill(posix_getpid(), SIGSEGV);', 60000],
            ['for ($i = 0; $i < 48; ++$i) { fwrite($i % 2 ? STDOUT : STDERR, str_repeat("x", 1 << 16)); }', 60000],
        ];
        $seen = $this->measure(100, $cases, watched: true);

        self::assertEqualsCanonicalizing(['timed_out', 'signalled', 'returned'], array_keys($seen['outcomes']));
        self::assertGreaterThanOrEqual(33, min($seen['outcomes']));
        self::assertSame([], $seen['left'], 'No descriptor, process, thread or file is left.');
        self::assertLessThan(self::GROWTH_WITH_THREADS_BYTES, $seen['growth']);
    }

    /**
     * Evaluates in a host of its own, in whose temporary directory the application lies.
     *
     * @param list<array{string, int}> $cases snippet and timeout in milliseconds, taken in turns
     * @return array{outcomes: array<string, int>, growth: int, left: list<string>}
     */
    private function measure(int $times, array $cases, bool $watched): array
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
            'WATCHED' => $watched,
        ];
        $code = 'putenv(' . var_export('TMPDIR=' . $application->path('tmp'), true) . ');';
        foreach ($constants as $name => $value) {
            $code .= "const $name = " . var_export($value, true) . ';';
        }
        [$exitCode, $output, $errors] = (new Script($code . self::LOOP))->end();
        self::assertSame(0, $exitCode, $output . $errors);

        $lines = explode("\n", trim($output));

        return json_decode(end($lines), true, flags: JSON_THROW_ON_ERROR);
    }
}
