<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\Encoder\ValueEncoder;
use Altair\Eval\Tests\Support\Values\CountsWrong;
use Altair\Eval\Tests\Support\Values\Introduces;
use Altair\Eval\Tests\Support\Values\Secretive;
use Altair\Eval\Tests\Support\Values\Watchful;
use ArrayIterator;
use Generator;
use LogicException;
use PHPUnit\Framework\TestCase;
use ReflectionClass;
use RuntimeException;

/**
 * Which code of the application runs when its values are described, and what becomes of its exceptions.
 */
final class ValueEncoderUserCodeTest extends TestCase
{
    public function testDebugInfoStandsForTheProperties(): void
    {
        $encoded = ValueEncoder::encode(new Introduces(static fn (): array => ['a' => 1, 5 => 'b']));

        self::assertSame(
            ['a' => ['type' => 'int', 'value' => 1], 5 => ['type' => 'string', 'value' => 'b']],
            $encoded['properties'],
        );
    }

    public function testDebugInfoMaySayWhoSeesAProperty(): void
    {
        $encoded = ValueEncoder::encode(new Introduces(static fn (): array => (array) new Secretive() + ["\0" => 1]));

        self::assertSame(['inherited', 'shown', 'fixed', "\0"], array_keys($encoded['properties']));
        self::assertSame(['protected'], array_keys($encoded['protected']));
        self::assertSame(['hidden', 'secret'], array_keys($encoded['private']));
    }

    public function testDebugInfoWithoutAnythingIsAnEmptyJsonObject(): void
    {
        foreach ([[], null] as $nothing) {
            $encoded = ValueEncoder::encode(new Introduces(static fn (): ?array => $nothing));

            self::assertSame([], $encoded['properties']);
        }
    }

    public function testDebugInfoThatThrowsIsAnErrorAtItsPlace(): void
    {
        $broken = new Introduces(static fn () => throw new LogicException('no introduction'));

        $encoded = ValueEncoder::encode(['before' => 1, 'broken' => $broken, 'after' => 2]);

        self::assertSame(['type' => 'int', 'value' => 1], $encoded['value']['before']);
        self::assertSame(['type' => 'int', 'value' => 2], $encoded['value']['after']);
        self::assertSame(
            [
                'type' => 'object',
                'class' => Introduces::class,
                'id' => spl_object_id($broken),
                'error' => ['class' => LogicException::class, 'message' => 'no introduction'],
            ],
            $encoded['value']['broken'],
        );
    }

    public function testAnIteratorThatThrowsKeepsWhatItGaveBefore(): void
    {
        $encoded = ValueEncoder::encode((static function (): Generator {
            yield 'a' => 1;
            throw new RuntimeException('half way');
        })());

        self::assertSame(
            [
                'type' => 'iterable',
                'class' => 'Generator',
                'preview' => [
                    ['key' => ['type' => 'string', 'value' => 'a'], 'value' => ['type' => 'int', 'value' => 1]],
                ],
                'exhausted' => false,
                'error' => ['class' => RuntimeException::class, 'message' => 'half way'],
            ],
            $encoded,
        );
    }

    public function testAnIteratorThatThrowsAtOnceIsAnError(): void
    {
        $encoded = ValueEncoder::encode(new CountsWrong(0, static fn () => throw new LogicException('not today')));

        self::assertSame([], $encoded['preview']);
        self::assertSame(['class' => LogicException::class, 'message' => 'not today'], $encoded['error']);
    }

    public function testACountThatThrowsDoesNotHideTheItems(): void
    {
        $broken = new CountsWrong(
            static fn () => throw new LogicException('cannot count'),
            static fn (): ArrayIterator => new ArrayIterator([7]),
        );

        $encoded = ValueEncoder::encode($broken);

        self::assertSame(7, $encoded['preview'][0]['value']['value']);
        self::assertArrayNotHasKey('size_hint', $encoded);
        self::assertSame(['class' => LogicException::class, 'message' => 'cannot count'], $encoded['error']);
    }

    public function testACountThatLiesIsOnlyAHint(): void
    {
        $encoded = ValueEncoder::encode(new CountsWrong(-5, static fn (): ArrayIterator => new ArrayIterator([7, 8])));

        self::assertSame(-5, $encoded['size_hint']);
        self::assertCount(2, $encoded['preview']);
        self::assertTrue($encoded['exhausted']);
    }

    public function testAnExceptionOfUserCodeDoesNotStayBehind(): void
    {
        ValueEncoder::encode(new Introduces(static fn () => throw new LogicException('no')));

        self::assertSame(3, array_sum([1, 2]));
    }

    public function testMagicMethodsAreNotCalled(): void
    {
        $watchful = new Watchful();

        $encoded = ValueEncoder::encode($watchful);

        self::assertSame([], $watchful->calls());
        self::assertSame([], $encoded['properties'], 'A property that was unset is not there.');
    }

    public function testDebugInfoMayEncodeItself(): void
    {
        $object = new Introduces(static fn (): array => ['inner' => ValueEncoder::encode([1])]);

        self::assertSame(
            'array',
            ValueEncoder::encode($object)['properties']['inner']['value']['type']['value'],
        );
    }

    public function testDebugInfoThatMakesItselfAnewEndsAtTheDepth(): void
    {
        $make = static function () use (&$make): array {
            return ['next' => new Introduces($make)];
        };

        $json = (string) json_encode(ValueEncoder::encode(new Introduces($make)));

        self::assertSame(4, substr_count($json, 'Introduces'));
    }

    public function testADebugInfoThatChangesTheArrayAroundItDoesNotDisturb(): void
    {
        $list = [];
        $list[] = new Introduces(static function () use (&$list): array {
            $list = ['gone'];
            return [];
        });
        $list[] = 2;

        $encoded = ValueEncoder::encode($list);

        self::assertSame(2, $encoded['count']);
        self::assertSame(['type' => 'int', 'value' => 2], $encoded['value'][1]);
        self::assertSame(['gone'], $list);
    }

    /**
     * @requires PHP 8.4
     */
    public function testALazyObjectIsNotInitialised(): void
    {
        $class = new ReflectionClass(Watchful::class);
        $wake = static fn () => throw new LogicException('woken');

        foreach ([$class->newLazyGhost($wake), $class->newLazyProxy($wake)] as $lazy) {
            $encoded = ValueEncoder::encode($lazy);
            self::assertSame([true, []], [$encoded['lazy'], $encoded['properties']]);
            self::assertTrue($class->isUninitializedLazyObject($lazy));
        }
    }
}
