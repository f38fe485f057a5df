<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Warm;

use Altair\Eval\EvalRequest;
use Altair\Eval\EvalResult;
use Altair\Eval\Evaluator;
use Altair\Eval\Tests\Support\Asked;
use Altair\Eval\Tests\Support\EvaluationTestCase;
use Altair\Eval\Tests\Support\Processes;
use Altair\Eval\Tests\Support\TemporaryApplication;
use Closure;

/**
 * Evaluates with templates, which end with the test: none may be left after it.
 */
abstract class WarmTestCase extends EvaluationTestCase
{
    /** Seconds in which what has to come, or to be gone, is so on the slowest of machines. */
    protected const PATIENCE = 20;

    /**
     * Calls after which a template must be there: what is changed less than 20 ms before it is read makes one template
     * more, and by the third call it was changed earlier than that.
     */
    private const CALLS_UNTIL_WARM = 5;

    protected ?Evaluator $evaluator = null;

    /** Whether a first call, which starts cold, precedes those of the test. */
    protected bool $hasAskedBefore = true;

    protected function setUp(): void
    {
        parent::setUp();
        $this->evaluator = new Evaluator(warm: true);
    }

    protected function assertPostConditions(): void
    {
        $this->evaluator = null;
        parent::assertPostConditions();
    }

    protected function tearDown(): void
    {
        $this->evaluator = null;
        parent::tearDown();
    }

    /** An application whose boot does `$boot`; `$root` is its root there. */
    protected function booting(string $boot, array $files = []): TemporaryApplication
    {
        return $this->application(['vendor/autoload.php' => "<?php\n\$root = dirname(__DIR__);\n$boot\n"] + $files);
    }

    protected function ask(string $snippet, mixed ...$options): EvalResult
    {
        return $this->askOf($this->evaluator, $snippet, null, ...$options);
    }

    /** What it says without a template. */
    protected function cold(string $snippet, mixed ...$options): EvalResult
    {
        $result = $this->askOf(new Evaluator(warm: false), $snippet, null, ...$options);
        self::assertStart('cold', $result);

        return $result;
    }

    protected function askOf(
        Evaluator $evaluator,
        string $snippet,
        ?callable $onOutput = null,
        mixed ...$options,
    ): EvalResult {
        $options += ['projectRoot' => $this->application()->root, 'timeoutMs' => self::LONG_MS];
        if ($this->hasAskedBefore) {
            Asked::before($evaluator, $options);
        }

        return $evaluator->evaluate(new EvalRequest($snippet, ...$options), $onOutput);
    }

    /** Asks until a template is used again. */
    protected function warmed(string $snippet = 'return 1;', mixed ...$options): EvalResult
    {
        $starts = [];
        for ($call = 0; $call < self::CALLS_UNTIL_WARM; $call++) {
            $result = $this->ask($snippet, ...$options);
            $starts[] = $result->diagnostics['start'];
            if ($result->diagnostics['start'] === 'warm') {
                break;
            }
        }
        self::assertSame('warm', end($starts), var_export([$starts, $result->toArray()], true));

        return $result;
    }

    /**
     * The answer after a change is that of a cold run, and not the one from before; each boot says `$seen`.
     */
    protected function assertChangesTheAnswer(Closure $change, TemporaryApplication $application, mixed ...$on): void
    {
        $snippet = 'return $GLOBALS["seen"];';
        $before = self::returned($this->cold($snippet, ...$on));
        self::assertSame($before, self::returned($this->warmed($snippet, ...$on)));

        $change($application);
        $next = $this->ask($snippet, ...$on);
        $after = self::returned($this->cold($snippet, ...$on));

        self::assertNotSame($before, $after, 'It is a change that shows.');
        self::assertSame($after, self::returned($next));
        // What is in the place of another project or interpreter is another kind of request, whose first call is cold.
        self::assertContains($next->diagnostics['start'], ['first', 'cold'], var_export($next->toArray(), true));
        self::assertSame($after, self::returned($this->warmed($snippet, ...$on)));
    }

    protected static function assertStart(string $start, EvalResult $result): void
    {
        self::assertSame($start, $result->diagnostics['start'], var_export($result->toArray(), true));
    }

    /** The plain value that a run returned. */
    protected static function returned(EvalResult $result): mixed
    {
        self::assertSame('returned', $result->diagnostics['outcome'], var_export($result->toArray(), true));

        return self::plain($result->result);
    }

    /** The template of a host in which nothing runs: what its only keeper has started. */
    protected static function template(): int
    {
        $templates = self::templates();
        self::assertCount(1, $templates);

        return $templates[0];
    }

    /**
     * @return list<int> the templates: the first child of each of the host's keepers. The others are their forks.
     */
    protected static function templates(): array
    {
        $templates = [];
        foreach (array_map(intval(...), Processes::children()) as $keeper) {
            $began = [];
            foreach (self::childrenOf($keeper) as $child) {
                // What has ended may be gone by now, or about to be. A fork may outlive its template for a moment.
                $stat = Processes::stat($child);
                if (isset($stat[19]) && !self::hasEnded($child) && !self::isGuarded($child)) {
                    $began[$child] = (int) $stat[19];
                }
            }
            ksort($began);
            asort($began);
            $templates = [...$templates, ...array_slice(array_keys($began), 0, 1)];
        }

        return $templates;
    }

    /** How many forks there are: runs, and those that wait for one, of which there is one for each processor at most. */
    protected static function forks(): int
    {
        // Not one that the kernel is freeing, for which nobody waits.
        $runs = static fn (int $pid): bool => str_contains((string) @file_get_contents("/proc/$pid/status"), 'VmSize:');
        $forks = static fn (int $keeper): int => max(0, count(array_filter(self::childrenOf($keeper), $runs)) - 1);

        return array_sum(array_map(static fn (string $child): int => $forks((int) $child), Processes::children()));
    }

    /** How many forks sleep: while nothing runs, these wait for a task behind their guards. */
    protected static function sleepingForks(): int
    {
        $sleeping = 0;
        foreach (array_map(intval(...), Processes::children()) as $keeper) {
            foreach (self::childrenOf($keeper) as $child) {
                $sleeping += (int) (self::isGuarded($child) && (Processes::stat($child)[0] ?? '') === 'S');
            }
        }

        return $sleeping;
    }

    /** Whether a process is a fork that has its own guards: the first filter is the template's. */
    private static function isGuarded(int $pid): bool
    {
        $status = (string) @file_get_contents("/proc/$pid/status");

        return preg_match('/^Seccomp_filters:\s+(\d+)$/m', $status, $count) === 1
            && (int) $count[1] > self::filtersOfTemplate();
    }

    /** How many filters a template has: one more than this process. */
    private static function filtersOfTemplate(): int
    {
        return 1 + (int) (Processes::status(getmypid())['Seccomp_filters'] ?? 0);
    }

    protected static function processors(): int
    {
        return (int) shell_exec('nproc');
    }

    /**
     * @return list<int>
     */
    protected static function childrenOf(int $keeper): array
    {
        $isOne = static fn (string $pid): bool => (int) (Processes::stat($pid)[1] ?? 0) === $keeper;

        return array_values(array_map(intval(...), array_filter(Processes::all(), $isOne)));
    }

    /** Waits until a template has ended by itself, and returns the id of its keeper, which nobody has asked after yet. */
    protected static function endedByItself(): int
    {
        $zombies = static fn (): array => preg_grep('/altair-keeper\) Z/', Processes::children());
        self::waitUntil(static fn (): bool => $zombies() !== [], 'It has ended by itself.');

        return (int) current($zombies());
    }

    protected static function waitUntil(callable $isSo, string $what): void
    {
        $deadline = microtime(true) + self::PATIENCE;
        while (!($is = $isSo()) && microtime(true) < $deadline) {
            usleep(1000);
        }
        self::assertTrue($is, $what);
    }

    /** Whether it has ended; one that its parent has not asked after yet has, too. */
    protected static function hasEnded(int $pid): bool
    {
        return in_array(Processes::stat($pid)[0] ?? 'gone', ['gone', 'Z', 'X'], true);
    }
}
