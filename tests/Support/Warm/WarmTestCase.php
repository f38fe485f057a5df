<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Warm;

use Altair\Eval\EvalRequest;
use Altair\Eval\EvalResult;
use Altair\Eval\Evaluator;
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
        self::assertStart('first', $next);
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
     * @return list<int> children of the host's keepers; while nothing runs, these are the templates
     */
    protected static function templates(): array
    {
        $keepers = array_map(intval(...), Processes::children());
        $isOfOne = static fn (string $pid): bool => in_array((int) (Processes::stat($pid)[1] ?? 0), $keepers, true);

        return array_values(array_map(intval(...), array_filter(Processes::all(), $isOfOne)));
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
