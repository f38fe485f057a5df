<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support;

use Altair\Eval\EvalRequest;
use Altair\Eval\EvalResult;
use Altair\Eval\Evaluator;
use PHPUnit\Framework\TestCase;

/**
 * Evaluates snippets in real children. After each test it checks that the host is as it was: no process, zombie,
 * descriptor or temporary file is left, and nothing was written into the application; after the last, that it still
 * evaluates.
 */
abstract class EvaluationTestCase extends TestCase
{
    /** Milliseconds until the deadline of a run that is to meet it: PHP starts in less, on a busy machine too. */
    protected const SHORT_MS = 700;

    /** Milliseconds until the deadline of a run that is not to meet it. */
    protected const LONG_MS = 60000;

    private const MARK = 'ALTAIR_TEST_MARK';

    /** @var array<string, string|false> variables that a test has changed, as they were */
    private array $variables = [];

    /** @var array<int, string> */
    private array $descriptors = [];

    private ?TemporaryApplication $application = null;

    private ?TemporaryApplication $elsewhere = null;

    /** Seconds in which what was let go of has ended. */
    private const ENDING = 5.0;

    private string $mark = '';

    /** @var list<string> the children that earlier tests have left */
    private array $childrenBefore = [];

    protected function setUp(): void
    {
        $this->childrenBefore = Processes::children();
        $this->elsewhere = new TemporaryApplication();
        mkdir($this->elsewhere->path('tmp'));
        chmod($this->elsewhere->path('tmp'), 01777);
        $this->mark = bin2hex(random_bytes(12));
        $this->setVariable(self::MARK, $this->mark);
        $this->setVariable('TMPDIR', $this->elsewhere->path('tmp'));
        $this->descriptors = Processes::descriptors();
    }

    protected function assertPostConditions(): void
    {
        // An answer does not wait for the kernel to free a fork's memory, nor a host for the end of its templates and
        // for what has watched their files.
        $until = microtime(true) + self::ENDING;
        do {
            $left = $this->processes();
            $open = Processes::descriptors();
        } while (($left !== [] || $open !== $this->descriptors) && microtime(true) < $until && usleep(1000) === null);
        self::assertSame([], $left, 'No process of a run is left.');
        self::assertSame($this->descriptors, $open, 'No descriptor is left.');
        self::assertSame([], $this->temporaryFiles(), 'No temporary file is left.');
        foreach (array_diff(array_keys($this->variables), [self::MARK, 'TMPDIR']) as $name) {
            $this->resetVariable($name);
        }
    }

    /**
     * After the last test; between two, the runs of the next one show it.
     *
     * @afterClass
     */
    public static function assertHostStillEvaluates(): void
    {
        $elsewhere = new TemporaryApplication();
        $next = (new Evaluator())->evaluate(new EvalRequest('return 6 * 7;', $elsewhere->root));
        self::assertSame(['type' => 'int', 'value' => 42], $next->result);
    }

    protected function tearDown(): void
    {
        foreach (array_keys($this->variables) as $name) {
            $this->resetVariable($name);
        }
        $this->application = null;
        $this->elsewhere = null;
    }

    /**
     * @param array<string, string> $files
     */
    protected function application(array $files = []): TemporaryApplication
    {
        return $this->application = $files === [] && $this->application !== null
            ? $this->application
            : new TemporaryApplication($files);
    }

    /** Evaluates in the test's application; options are those of EvalRequest. */
    protected function evaluate(string $snippet, mixed ...$options): EvalResult
    {
        return $this->evaluateWatching(null, $snippet, ...$options);
    }

    protected function evaluateWatching(?callable $onOutput, string $snippet, mixed ...$options): EvalResult
    {
        $options += ['projectRoot' => $this->application()->root, 'timeoutMs' => self::LONG_MS];
        $before = $this->application()->tree();
        $result = $this->evaluated($snippet, $onOutput, $options);
        if (!($options['unsafe'] ?? false)) {
            // Made before a run whose writes are real, so that it cannot make it.
            $made = $options['allowWrites'] ?? false ? ['.altair'] : [];
            $after = array_values(array_diff($this->application()->tree(), array_diff($made, $before)));
            self::assertSame($before, $after, 'Nothing was written into the application.');
        }

        return $result;
    }

    /**
     * In a fork of a template, as most runs of a host are: the first call alone would start cold.
     *
     * @param array<string, mixed> $options
     */
    private function evaluated(string $snippet, ?callable $onOutput, array $options): EvalResult
    {
        $evaluator = new Evaluator();
        $request = new EvalRequest($snippet, ...$options);
        if ($onOutput === null) {
            // A batch boots its template at once.
            return iterator_to_array($evaluator->evaluateMany((static fn () => yield $request)(), 1))[0];
        }
        Asked::before($evaluator, $options);

        return $evaluator->evaluate($request, $onOutput);
    }

    /** Calls `$look` with the process id of a run that has done what `$before` says and waits for that to return. */
    protected function lookWhileItRuns(callable $look, string $before = '', mixed ...$options): EvalResult
    {
        $looked = $this->elsewhere->path('tmp/looked');
        $pid = null;
        $onOutput = static function (string $type, string $chunk) use (&$pid, $look, $looked): void {
            $pid = (int) $chunk;
            $look($pid);
            touch($looked);
        };
        // The run sees what is made in it later, too.
        $options['readablePaths'] = [...$options['readablePaths'] ?? [], dirname($looked)];
        $snippet = "$before echo getmypid(); while (!file_exists('$looked')) { usleep(1000); } return 1;";
        $result = $this->evaluateWatching($onOutput, $snippet, ...$options);
        self::assertOutcome('returned', $result, 0, value: true);
        self::assertSame((string) $pid, $result->stdout);
        unlink($looked);

        return $result;
    }

    /** The plain value of a run that returned null, a scalar or arrays of them. */
    protected function value(string $snippet, mixed ...$options): mixed
    {
        $result = $this->evaluate($snippet, ...$options);
        $all = var_export($result->toArray(verbose: true), true);
        self::assertSame('returned', $result->diagnostics['outcome'], $all);

        return self::plain($result->result);
    }

    protected static function plain(array $encoded): mixed
    {
        if ($encoded['type'] !== 'array') {
            return $encoded['value'] ?? null;
        }

        return array_map(self::plain(...), (array) $encoded['value']);
    }

    /**
     * @return list<string> the processes of this test's runs that there are now
     */
    protected function processes(): array
    {
        // Where the child is not ours to look into, it is still ours by descent. First, as this waits for keepers that
        // are about to end.
        $children = Processes::childrenSince($this->childrenBefore);

        return array_values(array_unique([...Processes::startedWith(self::MARK . '=' . $this->mark), ...$children]));
    }

    /**
     * @return list<string> what runs have left in their temporary directory
     */
    protected function temporaryFiles(): array
    {
        return array_values(array_diff(scandir($this->elsewhere->path('tmp')), ['.', '..']));
    }

    protected function setVariable(string $name, ?string $value): void
    {
        $this->variables += [$name => getenv($name)];
        putenv($value === null ? $name : "$name=$value");
    }

    private function resetVariable(string $name): void
    {
        $value = $this->variables[$name];
        putenv($value === false ? $name : "$name=$value");
    }

    /** Asserts every field in which the outcomes of the table differ. */
    protected static function assertOutcome(
        string $outcome,
        EvalResult $result,
        int $exitCode,
        bool $value = false,
        bool $exception = false,
        bool $timedOut = false,
    ): void {
        $seen = var_export($result->toArray(verbose: true), true);
        self::assertSame($outcome, $result->diagnostics['outcome'], $seen);
        self::assertSame($exitCode, $result->exitCode, $seen);
        self::assertSame($timedOut, $result->timedOut, $seen);
        self::assertSame($value, $result->result !== null, $seen);
        self::assertSame($exception, $result->exception !== null, $seen);
        self::assertSame(!$timedOut && !$exception && $exitCode === 0, $result->ok(), $seen);
    }
}
