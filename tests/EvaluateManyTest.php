<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\EvalRequest;
use Altair\Eval\EvalResult;
use Altair\Eval\Evaluator;
use Altair\Eval\Tests\Support\EvaluationTestCase;
use Altair\Eval\Tests\Support\ManyEvaluations;
use Altair\Eval\Tests\Support\Processes;
use Altair\Eval\Tests\Support\Refusals;
use Exception;
use Generator;
use Iterator;
use stdClass;
use TypeError;
use ValueError;

/**
 * `evaluateMany()`: which results come, under which keys, and when. How it ends early is in EvaluateManyEndTest.
 */
final class EvaluateManyTest extends EvaluationTestCase
{
    use ManyEvaluations;
    use Refusals;

    public function testEachResultComesUnderItsRequestsKey(): void
    {
        $requests = ['a' => $this->request('1'), 7 => $this->request('2'), 'b c' => $this->request('3')];

        $results = iterator_to_array($this->many($requests));

        self::assertContainsOnlyInstancesOf(EvalResult::class, $results);
        $values = array_map(static fn (EvalResult $result): int => $result->result['value'], $results);
        self::assertEquals(['a' => 1, 7 => 2, 'b c' => 3], $values);
    }

    public function testNoRequestsGiveNoResults(): void
    {
        self::assertSame([], iterator_to_array($this->many([])));
        self::assertSame([], iterator_to_array($this->many((static fn (): Generator => yield from [])())));
    }

    public function testAGeneratorMayHaveKeysOfAnyTypeAndTwiceTheSame(): void
    {
        $object = new stdClass();
        $keys = [null, 1.5, $object, [1], 'same', 'same', true, "\xff"];
        $requests = function () use ($keys): Generator {
            foreach ($keys as $key) {
                yield $key => $this->request('1');
            }
        };
        $seen = [];

        foreach ($this->many($requests(), 1) as $key => $result) {
            $seen[] = $key;
            self::assertTrue($result->ok());
        }

        self::assertSame($keys, $seen);
    }

    public function testResultsComeInOrderOfCompletion(): void
    {
        $wait = 'while (!file_exists("%s")) { usleep(1000); clearstatcache(); } return 1;';
        $requests = [
            'third' => $this->request(sprintf($wait, 'b'), unsafe: true),
            'second' => $this->request(sprintf($wait, 'a'), unsafe: true),
            'first' => $this->request('return 1;'),
        ];
        $seen = [];

        foreach ($this->many($requests, 3) as $key => $result) {
            self::assertTrue($result->ok());
            $seen[] = $key;
            touch($this->application()->path(count($seen) === 1 ? 'a' : 'b'));
        }

        self::assertSame(['first', 'second', 'third'], $seen);
    }

    public function testOneThatEndsBadlyDoesNotDisturbTheOthers(): void
    {
        $requests = [
            'throws' => $this->request('throw new Exception("x");'),
            'exits' => $this->request('exit(3);'),
            'times out' => $this->request('while (true);', self::SHORT_MS),
            'returns' => $this->request('return 1;'),
        ];

        $codes = array_map(
            static fn (EvalResult $result): int => $result->exitCode,
            iterator_to_array($this->many($requests)),
        );

        self::assertEquals(['throws' => 1, 'exits' => 3, 'times out' => 124, 'returns' => 0], $codes);
    }

    public function testNothingStartsBeforeItIsAskedFor(): void
    {
        $asked = 0;
        $results = $this->many($this->counted($asked, 5), 2);

        self::assertSame([0, []], [$asked, Processes::children()]);
        $results->rewind();
        self::assertGreaterThan(0, $asked);
        unset($results);
    }

    public function testRequestsAreAskedForAsThereIsRoom(): void
    {
        $asked = 0;
        $answered = 0;

        foreach ($this->many($this->counted($asked, 9), 2) as $result) {
            $answered++;
            // Two at their snippet, two that get ready or end; and this one's place is not taken yet.
            self::assertLessThanOrEqual($answered + 3, $asked);
        }

        self::assertSame([9, 9], [$asked, $answered]);
    }

    /**
     * @dataProvider concurrencies
     */
    public function testNoMoreRunAtATimeThanItSays(int $concurrency, int $most): void
    {
        $directory = $this->application()->path('running');
        mkdir($directory);
        // Each counts who runs beside it, until one of them has seen as many as may be, and then a while longer:
        // one more than that would be seen too.
        $snippet = 'touch($own = "running/" . getmypid()); $seen = 0;
            for ($until = hrtime(true) + 2e10; !file_exists("enough") && hrtime(true) < $until; usleep(1000)) {
                $seen = max($seen, count(glob("running/*")));
                if ($seen >= MOST) { touch("enough"); }
                clearstatcache();
            }
            usleep(100000); $seen = max($seen, count(glob("running/*"))); unlink($own); return $seen;';
        $request = $this->request(str_replace('MOST', (string) $most, $snippet), unsafe: true);

        $seen = [];
        foreach ($this->many(array_fill(0, 2 * $most + 1, $request), $concurrency) as $result) {
            $seen[] = $result->result['value'] ?? $result->toArray();
        }

        self::assertSame($most, max($seen));
    }

    /**
     * @return iterable<array{int, int}>
     */
    public static function concurrencies(): iterable
    {
        yield 'one after the other' => [1, 1];
        yield 'three side by side' => [3, 3];
        $cores = preg_match_all('/^processor\s*:/m', (string) file_get_contents('/proc/cpuinfo'));
        $allowed = (int) shell_exec('nproc');
        yield 'one per core' => [0, min($cores, $allowed)];
    }

    public function testANegativeConcurrencyIsRefused(): void
    {
        $this->assertRefused(
            ValueError::class,
            'Altair\Eval\Evaluator::evaluateMany(): Argument #2 ($concurrency) must be at least 0',
            fn () => $this->many([], -1),
        );
    }

    public function testAHugeConcurrencyRunsWhatThereIs(): void
    {
        self::assertCount(3, iterator_to_array($this->many(array_fill(0, 3, $this->request('1')), PHP_INT_MAX)));
    }

    public function testTheResultsAreGoneThroughOnce(): void
    {
        $results = $this->many([$this->request('1')]);
        self::assertInstanceOf(Iterator::class, $results);

        self::assertCount(1, iterator_to_array($results));
        self::assertFalse($results->valid());
        self::assertNull($results->current());
        self::assertNull($results->key());
        $this->assertRefused(Exception::class, 'only once', static fn () => iterator_to_array($results));
    }

    public function testItWorksStepByStep(): void
    {
        $results = $this->many(['a' => $this->request('1'), 'b' => $this->request('2')], 1);

        $results->rewind();
        self::assertSame(['a', 1], [$results->key(), $results->current()->result['value']]);
        $results->rewind();
        self::assertSame('a', $results->key(), 'An iteration that has just begun is not begun again.');
        $results->next();
        self::assertSame(['b', 2], [$results->key(), $results->current()->result['value']]);
        $results->next();
        self::assertFalse($results->valid());
        $results->next();
        self::assertFalse($results->valid());
    }

    public function testWhatIsNotIterableIsRefused(): void
    {
        $this->assertRefused(
            TypeError::class,
            'Argument #1 ($requests) must be of type',
            static fn () => (new Evaluator())->evaluateMany('x'), // @phpstan-ignore-line
        );
    }

    /**
     * @return Generator<int, EvalRequest>
     */
    private function counted(int &$asked, int $times): Generator
    {
        for ($i = 0; $i < $times; $i++) {
            $asked++;
            yield $i => $this->request('1');
        }
    }
}
