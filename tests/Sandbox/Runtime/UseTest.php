<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Sandbox\Runtime;

use Altair\Eval\Tests\Support\Processes;
use Altair\Eval\Tests\Support\RuntimeTestCase;
use Altair\Sandbox\Exception;
use Altair\Sandbox\Runtime;
use Error;
use ReflectionClass;
use ReflectionException;
use stdClass;
use Throwable;

/**
 * The object: how it is entered, closed and freed, and what cannot be done with it.
 */
final class UseTest extends RuntimeTestCase
{
    /**
     * @dataProvider wrongArguments
     */
    public function testAnythingButAClosureAndAListIsRefused(mixed ...$arguments): void
    {
        $runtime = $this->runtime();
        $other = new \sandbox\Runtime();
        $message = 'Closure, or Closure and args expected';

        self::assertSame($message, self::failure(static fn (): mixed => $runtime->enter(...$arguments)));
        $thrown = self::thrown(static fn (): mixed => $other->enter(...$arguments));
        $other->close();
        self::assertInstanceOf(\sandbox\Exception::class, $thrown);
        self::assertSame($message, $thrown->getMessage());
        self::assertSame(1, $runtime->enter(static fn (): int => 1));
    }

    public static function wrongArguments(): iterable
    {
        $closure = static fn (): int => 1;
        yield 'nothing' => [];
        yield 'null' => [null];
        yield 'the name of a function' => ['strlen'];
        yield 'a callable' => [[new stdClass(), 'method']];
        yield 'an object' => [new stdClass()];
        yield 'arguments that are no array' => [$closure, 'x'];
        yield 'null as arguments' => [$closure, null];
        yield 'an object as arguments' => [$closure, new stdClass()];
        yield 'more than there is' => [$closure, [], null, null, 1];
    }

    public function testKeysOfTheArgumentsAreIgnored(): void
    {
        $runtime = $this->runtime();
        $list = static fn (int $a, int $b): array => [$a, $b];

        self::assertSame([1, 2], $runtime->enter($list, ['b' => 1, 'a' => 2]));
        self::assertSame([1, 2], $runtime->enter($list, [7 => 1, -3 => 2]));
    }

    public function testArgumentsAreThoseOfACallInPhp(): void
    {
        $runtime = $this->runtime();

        self::assertStringContainsString('ArgumentCountError: Too few arguments', self::failure(
            static fn (): mixed => $runtime->enter(static fn (int $a): int => $a),
        ));
        self::assertStringContainsString('TypeError: ', self::failure(
            static fn (): mixed => $runtime->enter(static fn (int $a): int => $a, ['x']),
        ));
        self::assertSame([5, [1, 2]], $runtime->enter(static fn (int $a = 5): array => [$a, [1, 2]]));
        self::assertSame(3, $runtime->enter(static fn (): int => func_num_args(), [1, 2, 3]));
    }

    public function testAClosedRuntimeSaysSoHoweverItIsUsed(): void
    {
        $runtime = $this->runtime();
        $runtime->close();

        $uses = [
            'enter' => static fn (): mixed => $runtime->enter(static fn (): int => 1),
            'close' => $runtime->close(...),
            'fileChanges' => $runtime->fileChanges(...),
            'blocked' => $runtime->blocked(...),
        ];
        foreach ([...$uses, ...$uses] as $name => $use) {
            self::assertSame('sandbox unusable: it was closed', self::failure($use), $name);
        }
        self::assertSame([], $this->processes());
    }

    public function testARuntimeThatGoesOutOfScopeIsClosed(): void
    {
        (static function (): void {
            $runtime = new Runtime();
            $runtime->enter(static fn (): int => 1);
        })();
        self::assertSame([], $this->processes());
        self::assertSame([], $this->temporaryFiles());

        $cycle = new stdClass();
        $cycle->runtime = new Runtime();
        $cycle->cycle = $cycle;
        unset($cycle);
        gc_collect_cycles();
        self::assertSame([], $this->processes());
    }

    public function testItHasTheResourcesOfOneProcess(): void
    {
        $before = count(Processes::descriptors());
        $runtime = $this->runtime();
        $runtime->enter(static fn (): int => 1);
        $first = count(Processes::descriptors());
        for ($i = 0; $i < 200; $i++) {
            $runtime->enter(static fn (int $i): int => $i, [$i]);
        }

        self::assertSame($first, count(Processes::descriptors()));
        self::assertLessThan($before + 20, $first);
    }

    public function testItIsNotConstructedTwice(): void
    {
        $runtime = $this->runtime();
        $runtime->enter(static function (): void {
            define('KEPT', 1);
        });

        self::assertSame('sandbox unusable: it was made before', self::failure(
            static fn (): mixed => $runtime->__construct(['precision' => 3]),
        ));
        self::assertSame(1, $runtime->enter(static fn (): int => KEPT));
        $runtime->close();
        self::assertSame('sandbox unusable: it was made before', self::failure($runtime->__construct(...)));
    }

    /**
     * @dataProvider copies
     */
    public function testItIsNeitherCopiedNorMadeWithoutItsConstructor(callable $copy, string $message): void
    {
        $runtime = $this->runtime();

        $thrown = self::thrown(static fn (): mixed => $copy($runtime));
        self::assertNotInstanceOf(Exception::class, $thrown);
        self::assertStringMatchesFormat($message, $thrown->getMessage());
        self::assertSame(1, $runtime->enter(static fn (): int => 1));
    }

    public static function copies(): iterable
    {
        $name = Runtime::class;
        yield 'clone' => [
            static fn (Runtime $runtime): Runtime => clone $runtime,
            "Trying to clone an uncloneable object of class $name",
        ];
        yield 'serialize' => [serialize(...), "Serialization of '$name' is not allowed"];
        yield 'var_export is no copy either' => [
            static fn (Runtime $runtime): mixed => eval('return ' . var_export($runtime, true) . ';'),
            'Call to undefined method %A::__set_state()',
        ];
        yield 'unserialize' => [
            static fn (): mixed => unserialize('O:22:"Altair\Sandbox\Runtime":0:{}'),
            "Unserialization of '$name' is not allowed",
        ];
        yield 'reflection' => [
            static fn (): object => (new ReflectionClass(Runtime::class))->newInstanceWithoutConstructor(),
            '%Amarked as final that cannot be instantiated without invoking its constructor',
        ];
        yield 'a class of its own' => [
            static fn (): mixed => (new ReflectionClass(Runtime::class))->isFinal()
                ? throw new ReflectionException('It is final.')
                : null,
            'It is final.',
        ];
        yield 'a property' => [
            static fn (Runtime $runtime): mixed => $runtime->property = 1,
            'Cannot create dynamic property %A',
        ];
    }

    public function testARuntimeIsNoArgumentOfAnother(): void
    {
        [$one, $other] = [$this->runtime(), $this->runtime()];
        $thrown = self::thrown(static fn (): mixed => $one->enter(static fn (mixed $a): int => 1, [[$other]]));

        self::assertSame(Error::class, $thrown::class);
        self::assertSame('illegal variable (object) passed to sandbox at argument 1', $thrown->getMessage());
    }

    public function testRuntimesOfBothNamesAreOfDifferentClasses(): void
    {
        self::assertNotInstanceOf(Runtime::class, $other = new \sandbox\Runtime());
        self::assertSame(1, $other->enter(static fn (): int => 1));
        $other->close();
        $thrown = self::thrown($other->close(...));
        self::assertSame(\sandbox\Exception::class, $thrown::class);
        self::assertInstanceOf(Throwable::class, $thrown);
    }
}
