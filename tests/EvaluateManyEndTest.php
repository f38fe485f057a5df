<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\EvalRequest;
use Altair\Eval\Exception\InvalidRequestException;
use Altair\Eval\Tests\Support\EvaluationTestCase;
use Altair\Eval\Tests\Support\ManyEvaluations;
use Altair\Eval\Tests\Support\Processes;
use Altair\Eval\Tests\Support\Refusals;
use Error;
use Generator;
use LogicException;
use ReflectionClass;
use stdClass;
use TypeError;

/**
 * `evaluateMany()` that ends early: what still runs ends with it, and the caller is told why.
 */
final class EvaluateManyEndTest extends EvaluationTestCase
{
    use ManyEvaluations;
    use Refusals;

    private const FOREVER = 'while (true) { sleep(1); }';

    public function testLeavingTheLoopEndsWhatRuns(): void
    {
        $requests = [$this->request('1'), $this->request(self::FOREVER), $this->request(self::FOREVER)];

        foreach ($this->many($requests, 3) as $key => $result) {
            self::assertSame(0, $key);
            break;
        }

        self::assertSame([], Processes::childrenLeft());
    }

    public function testTheResultsThatAreKeptHoldTheirRunsUntilTheyAreLetGo(): void
    {
        $results = $this->many([$this->request('1'), $this->request(self::FOREVER)], 2);
        $results->rewind();
        self::assertNotSame([], Processes::children());

        unset($results);

        self::assertSame([], Processes::childrenLeft());
    }

    public function testAnExceptionInTheLoopEndsWhatRuns(): void
    {
        $this->assertRefused(LogicException::class, 'enough', function (): void {
            foreach ($this->many([$this->request('1'), $this->request(self::FOREVER)], 2) as $result) {
                throw new LogicException('enough');
            }
        });

        self::assertSame([], Processes::childrenLeft());
    }

    public function testAnExceptionOfTheGeneratorGoesOnToTheCallerAndEndsWhatRuns(): void
    {
        $requests = function (): Generator {
            yield $this->request(self::FOREVER);
            throw new LogicException('no more');
        };

        $results = $this->many($requests(), 2);
        $this->assertRefused(LogicException::class, 'no more', static fn () => $results->rewind());

        self::assertFalse($results->valid());
        unset($results);
        self::assertSame([], Processes::childrenLeft());
    }

    /**
     * @dataProvider noRequests
     */
    public function testAnItemThatIsNoRequestIsRefusedAndEndsWhatRuns(mixed $item): void
    {
        $this->assertRefused(
            TypeError::class,
            'Altair\Eval\Evaluator::evaluateMany(): each request must be of type Altair\Eval\EvalRequest',
            fn () => iterator_to_array($this->many([$this->request(self::FOREVER), $item], 2)),
        );

        self::assertSame([], Processes::childrenLeft());
    }

    /**
     * @return iterable<array{mixed}>
     */
    public static function noRequests(): iterable
    {
        yield ['return 1;'];
        yield [null];
        yield [new stdClass()];
        yield [[]];
    }

    public function testARequestThatWasNeverConstructedIsRefused(): void
    {
        $hollow = (new ReflectionClass(EvalRequest::class))->newInstanceWithoutConstructor();

        $this->assertRefused(
            Error::class,
            'The EvalRequest was never constructed',
            fn () => iterator_to_array($this->many([$hollow])),
        );
    }

    public function testARequestThatCanNeverRunIsAnExceptionAfterWhatRanBeforeIt(): void
    {
        $seen = [];

        $this->assertRefused(InvalidRequestException::class, '/nowhere', function () use (&$seen): void {
            $requests = ['good' => $this->request('1'), 'bad' => new EvalRequest('1', '/nowhere')];
            foreach ($this->many($requests, 2) as $key => $result) {
                $seen[] = $key;
            }
        });

        self::assertSame(['good'], $seen);
    }
}
