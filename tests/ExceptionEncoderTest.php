<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\Encoder\ExceptionEncoder;
use Altair\Eval\Tests\Support\Values\Thrower;
use Error;
use Exception;
use LogicException;
use PHPUnit\Framework\TestCase;
use RuntimeException;
use Throwable;

/**
 * The shape of an exception: where it came from, and nothing of what the calls were given.
 */
final class ExceptionEncoderTest extends TestCase
{
    public function testItNamesItsBounds(): void
    {
        self::assertSame(10, ExceptionEncoder::MAX_PREVIOUS_CHAIN);
        self::assertSame(30, ExceptionEncoder::MAX_TRACE_FRAMES);
    }

    public function testItTellsWhatWasThrownAndWhere(): void
    {
        $exception = new RuntimeException('boom', 7);

        $encoded = ExceptionEncoder::encode($exception);

        self::assertSame(['class', 'message', 'file', 'line', 'code', 'stack_trace'], array_keys($encoded));
        self::assertSame(RuntimeException::class, $encoded['class']);
        self::assertSame('boom', $encoded['message']);
        self::assertSame([__FILE__, __LINE__ - 7], [$encoded['file'], $encoded['line']]);
        self::assertSame(7, $encoded['code']);
        self::assertTrue(array_is_list($encoded['stack_trace']));
    }

    public function testAnErrorIsAThrowableLikeAnother(): void
    {
        self::assertSame(Error::class, ExceptionEncoder::encode(new Error('broken'))['class']);
    }

    public function testAFrameNamesTheCallAndItsPlace(): void
    {
        $trace = ExceptionEncoder::encode($this->thrownBy(static fn () => Thrower::begin('x')))['stack_trace'];
        $file = (string) (new \ReflectionClass(Thrower::class))->getFileName();

        self::assertSame(Thrower::class . "->throwIt ($file:" . Thrower::LINE_OF_THROW_IT . ')', $trace[0]);
        self::assertSame(Thrower::class . '::begin (' . __FILE__ . ':' . (__LINE__ - 4) . ')', $trace[1]);
    }

    public function testAFrameThatPhpItselfCalledIsInternal(): void
    {
        $exception = $this->thrownBy(static fn () => array_map([Thrower::class, 'begin'], ['x']));

        [, $begin, $map] = ExceptionEncoder::encode($exception)['stack_trace'];

        self::assertSame(Thrower::class . '::begin (<internal>)', $begin);
        self::assertSame('array_map (' . __FILE__ . ':' . (__LINE__ - 5) . ')', $map);
    }

    public function testNoArgumentValueAppears(): void
    {
        $before = ini_set('zend.exception_ignore_args', '0');
        $exception = $this->thrownBy(static fn () => Thrower::begin('hunter2'));
        ini_set('zend.exception_ignore_args', (string) $before);

        // Not the whole trace as a text: the arguments of PHPUnit's own frames hold every test there is.
        $kept = array_merge(...array_column($exception->getTrace(), 'args'));
        self::assertTrue(in_array('hunter2', $kept, true), 'PHP has kept it.');
        self::assertStringNotContainsString('hunter2', (string) json_encode(ExceptionEncoder::encode($exception)));
    }

    public function testATraceOfThirtyFramesIsWholeAndALongerOneIsCut(): void
    {
        $own = count((new Exception())->getTrace()) + 2;
        foreach ([30 => false, 31 => true, 100 => true] as $frames => $isCut) {
            $exception = $this->thrownBy(static fn () => Thrower::recurse($frames - $own));
            self::assertCount($frames, $exception->getTrace(), 'As made.');

            $trace = ExceptionEncoder::encode($exception)['stack_trace'];

            self::assertCount($isCut ? 31 : $frames, $trace);
            self::assertSame($isCut, ($trace[30] ?? null) === '...(truncated)');
            self::assertStringStartsWith(Thrower::class . '::recurse (', $trace[0]);
        }
    }

    public function testPreviousExceptionsFollowNearestFirst(): void
    {
        $exception = new LogicException('outer', 1, new RuntimeException('middle', 2, new Error('inner')));

        $previous = ExceptionEncoder::encode($exception)['previous'];

        self::assertSame(
            [
                ['class' => RuntimeException::class, 'message' => 'middle', 'file' => __FILE__, 'line' => __LINE__ - 6],
                ['class' => Error::class, 'message' => 'inner', 'file' => __FILE__, 'line' => __LINE__ - 7],
            ],
            $previous,
        );
    }

    public function testWithoutAPreviousExceptionThereIsNoSuchKey(): void
    {
        self::assertArrayNotHasKey('previous', ExceptionEncoder::encode(new Exception()));
    }

    public function testAtMostTenPreviousExceptionsAreTold(): void
    {
        $chain = static function (int $length): Exception {
            $exception = new Exception('last');
            for ($i = 0; $i < $length; $i++) {
                $exception = new Exception("e$i", 0, $exception);
            }

            return $exception;
        };

        self::assertCount(9, ExceptionEncoder::encode($chain(9))['previous']);
        self::assertCount(10, ExceptionEncoder::encode($chain(10))['previous']);
        $encoded = ExceptionEncoder::encode($chain(50));
        self::assertCount(10, $encoded['previous']);
        self::assertSame('e48', $encoded['previous'][0]['message']);
    }

    public function testALongMessageIsCut(): void
    {
        $encoded = ExceptionEncoder::encode(new Exception(str_repeat('x', 1 << 20)));

        self::assertStringEndsWith('x...(truncated)', $encoded['message']);
        self::assertLessThan(20000, strlen((string) json_encode($encoded)));
    }

    public function testAMessageThatIsNotUtf8CanBePrinted(): void
    {
        self::assertSame("caf\u{FFFD}", ExceptionEncoder::encode(new Exception("caf\xe9"))['message']);
    }

    public function testACodeThatIsNoIntegerIsKept(): void
    {
        $exception = new class ('gone') extends Exception {
            protected $code = 'HY000'; // as PDOException does
        };

        self::assertSame('HY000', ExceptionEncoder::encode($exception)['code']);
    }

    public function testNoMethodOfTheExceptionIsCalled(): void
    {
        $exception = new class ('plain') extends Exception {
            public function __toString(): string
            {
                throw new LogicException('not to be called');
            }

            public function __get(string $name): mixed
            {
                throw new LogicException('not to be called');
            }
        };

        self::assertSame('plain', ExceptionEncoder::encode($exception)['message']);
    }

    public function testAnExceptionThatWasNeverConstructedIsEmpty(): void
    {
        $exception = (new \ReflectionClass(Exception::class))->newInstanceWithoutConstructor();

        $encoded = ExceptionEncoder::encode($exception);

        self::assertSame(['', 0], [$encoded['message'], $encoded['code']]);
    }

    private function thrownBy(callable $call): Throwable
    {
        try {
            $call();
        } catch (Throwable $throwable) {
            return $throwable;
        }
        self::fail('Nothing was thrown.');
    }
}
