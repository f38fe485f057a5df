<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\EvalRequest;
use Altair\Eval\EvalResult;
use Altair\Eval\Evaluator;
use Altair\Eval\Exception\LaunchException;
use Altair\Eval\Runner\SubprocessRunner;
use Altair\Eval\Tests\Support\Refusals;
use Altair\Eval\Tests\Support\WrapperBuilder;
use Error;
use Exception;
use PHPUnit\Framework\TestCase;
use ReflectionClass;
use ReflectionException;
use TypeError;

/**
 * How an Evaluator is made and called.
 */
final class EvaluatorTest extends TestCase
{
    use Refusals;

    public function testItNeedsNothing(): void
    {
        self::assertSame(2, $this->evaluated(new Evaluator()));
    }

    public function testARunnerAndABuilderAreAcceptedAndNotUsed(): void
    {
        $builder = new WrapperBuilder();

        self::assertSame(2, $this->evaluated(new Evaluator(new SubprocessRunner(), $builder)));
        self::assertSame(2, $this->evaluated(new Evaluator($builder, $builder, 'php', false)));
        self::assertSame(2, $this->evaluated(new Evaluator(builder: $builder, runner: null, warm: true)));
        self::assertSame(0, $builder->calls);
    }

    public function testARunnerThatIsNoObjectIsRefused(): void
    {
        $this->assertRefused(
            TypeError::class,
            'Altair\Eval\Evaluator::__construct(): Argument #1 ($runner) must be of type ?object, string given',
            static fn () => new Evaluator('runner'), // @phpstan-ignore-line
        );
    }

    public function testTheBinaryIsThePhpOfTheChild(): void
    {
        self::assertSame(2, $this->evaluated(new Evaluator(phpBinary: PHP_BINARY)));
        $this->assertRefused(
            LaunchException::class,
            '/nowhere/php',
            fn () => $this->evaluated(new Evaluator(phpBinary: '/nowhere/php')),
        );
    }

    public function testABinaryWithANulByteIsALaunchException(): void
    {
        $this->assertRefused(
            LaunchException::class,
            'NUL',
            fn () => $this->evaluated(new Evaluator(phpBinary: PHP_BINARY . "\0")),
        );
    }

    public function testInsideASnippetItSaysThatItCannot(): void
    {
        $result = (new Evaluator())->evaluate($this->request('new Altair\Eval\Evaluator()'));

        self::assertSame(LaunchException::class, $result->exception['class'] ?? null);
        self::assertSame(
            'A snippet cannot evaluate: it already runs inside an evaluation.',
            $result->exception['message'],
        );
    }

    public function testInsideASnippetNoOtherWayLeadsToAnEvaluation(): void
    {
        $result = (new Evaluator())->evaluate($this->request(<<<'PHP'
            $evaluator = (new ReflectionClass(Altair\Eval\Evaluator::class))->newInstanceWithoutConstructor();
            $evaluator->evaluate(new Altair\Eval\EvalRequest('1', getcwd()));
            PHP));

        self::assertSame(ReflectionException::class, $result->exception['class'] ?? null);
    }

    public function testOneEvaluatorServesManyCallsWithoutStateBetweenThem(): void
    {
        $evaluator = new Evaluator();
        $count = '$GLOBALS["n"] = ($GLOBALS["n"] ?? 0) + 1;';
        for ($i = 0; $i < 3; $i++) {
            self::assertSame(1, $this->evaluated($evaluator, "$count return \$GLOBALS['n'];"));
        }
    }

    public function testArgumentsOfAnotherTypeAreRefused(): void
    {
        $evaluator = new Evaluator();

        $this->assertRefused(
            TypeError::class,
            'Altair\Eval\Evaluator::evaluate(): Argument #1 ($request) must be of type Altair\Eval\EvalRequest, '
                . 'string given',
            static fn () => $evaluator->evaluate('return 1;'), // @phpstan-ignore-line
        );
        $this->assertRefused(
            TypeError::class,
            'Altair\Eval\Evaluator::evaluate(): Argument #2 ($onOutput) must be a valid callback or null',
            fn () => $evaluator->evaluate($this->request('1'), 'no_such_function'), // @phpstan-ignore-line
        );
    }

    public function testItIsReadonlyAndCannotBeSerialized(): void
    {
        $evaluator = new Evaluator(phpBinary: '/usr/bin/php', warm: false);

        self::assertSame(['/usr/bin/php', false], [$evaluator->phpBinary, $evaluator->warm]);
        $this->assertRefused(
            Error::class,
            'Cannot modify readonly property Altair\Eval\Evaluator::$warm',
            static fn () => $evaluator->warm = true, // @phpstan-ignore-line
        );
        $this->assertRefused(Error::class, 'Cannot modify readonly', static fn () => $evaluator->__construct());
        $this->assertRefused(Exception::class, 'not allowed', static fn () => serialize($evaluator));
        self::assertEquals($evaluator, clone $evaluator);
    }

    public function testThereIsNoneThatWasNeverConstructed(): void
    {
        $this->assertRefused(
            ReflectionException::class,
            'without invoking its constructor',
            static fn () => (new ReflectionClass(Evaluator::class))->newInstanceWithoutConstructor(),
        );
    }

    public function testWhetherItIsWarmIsAnIniSetting(): void
    {
        $before = ini_get('altair_eval.warm');
        self::assertTrue((new Evaluator())->warm);
        ini_set('altair_eval.warm', '0');
        try {
            self::assertFalse((new Evaluator())->warm);
            self::assertTrue((new Evaluator(warm: true))->warm);
        } finally {
            ini_set('altair_eval.warm', (string) $before);
        }
    }

    private function evaluated(Evaluator $evaluator, string $snippet = 'return 1 + 1;'): mixed
    {
        $result = $evaluator->evaluate($this->request($snippet));
        self::assertInstanceOf(EvalResult::class, $result);

        return $result->result['value'] ?? $result->toArray();
    }

    private function request(string $snippet): EvalRequest
    {
        return new EvalRequest($snippet, dirname(__DIR__) . '/examples/shop', 60000);
    }
}
