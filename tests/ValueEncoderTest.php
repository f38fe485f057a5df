<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\Encoder\ValueEncoder;
use Altair\Eval\Support\Json;
use Altair\Eval\Tests\Support\Values\Ancestor;
use Altair\Eval\Tests\Support\Values\Colour;
use Altair\Eval\Tests\Support\Values\Level;
use Altair\Eval\Tests\Support\Values\Secretive;
use Altair\Eval\Tests\Support\Values\Side;
use ArrayObject;
use Closure;
use DateInterval;
use DateTime;
use DateTimeImmutable;
use PHPUnit\Framework\TestCase;
use stdClass;

/**
 * The shape of every kind of value. The bounds are in ValueEncoderBoundsTest, the application's code that runs
 * meanwhile in ValueEncoderUserCodeTest.
 */
final class ValueEncoderTest extends TestCase
{
    public function testItNamesItsBounds(): void
    {
        self::assertSame(3, ValueEncoder::MAX_DEPTH);
        self::assertSame(50, ValueEncoder::ITERABLE_PREVIEW);
        self::assertSame(10000, ValueEncoder::STRING_MAX);
    }

    /**
     * @dataProvider scalars
     */
    public function testAScalarIsItself(string $type, mixed $value): void
    {
        self::assertSame(['type' => $type, 'value' => $value], ValueEncoder::encode($value));
    }

    /**
     * @return iterable<array{string, mixed}>
     */
    public static function scalars(): iterable
    {
        yield ['null', null];
        yield ['bool', true];
        yield ['bool', false];
        yield ['int', 0];
        yield ['int', PHP_INT_MIN];
        yield ['int', PHP_INT_MAX];
        yield ['float', 2.0];
        yield ['float', 0.1 + 0.2];
        yield ['float', 1e300];
        yield ['float', PHP_FLOAT_MIN];
        yield ['string', ''];
        yield ['string', "a\0b"];
        yield ['string', '1'];
        yield ['string', "日本 \u{1F600}"];
    }

    public function testAFloatThatJsonLacksIsAString(): void
    {
        self::assertSame(['type' => 'float', 'value' => 'NaN'], ValueEncoder::encode(NAN));
        self::assertSame(['type' => 'float', 'value' => 'Infinity'], ValueEncoder::encode(INF));
        self::assertSame(['type' => 'float', 'value' => '-Infinity'], ValueEncoder::encode(-INF));
        self::assertSame('-0.0', json_encode(ValueEncoder::encode(-0.0)['value'], JSON_PRESERVE_ZERO_FRACTION));
    }

    public function testAStringThatIsNotUtf8IsBase64(): void
    {
        $binary = "\xff\xfe\0";

        self::assertSame(
            ['type' => 'string', 'encoding' => 'base64', 'value' => base64_encode($binary), 'length' => 3],
            ValueEncoder::encode($binary),
        );
    }

    public function testAStringThatStopsBeingUtf8BehindWhatIsShownIsStillBinary(): void
    {
        $late = str_repeat('a', 20000) . "\xff";

        $encoded = ValueEncoder::encode($late);

        self::assertSame(['type', 'encoding', 'value', 'truncated', 'length', 'hint'], array_keys($encoded));
        self::assertSame(substr($late, 0, 10000), base64_decode($encoded['value'], true));
        self::assertSame([true, 20001], [$encoded['truncated'], $encoded['length']]);
    }

    public function testAnArraySaysWhetherItIsAList(): void
    {
        $one = ['type' => 'int', 'value' => 1];

        self::assertSame(
            ['type' => 'array', 'is_list' => true, 'count' => 1, 'value' => [$one]],
            ValueEncoder::encode([1]),
        );
        self::assertSame(
            ['type' => 'array', 'is_list' => false, 'count' => 2, 'value' => ['a' => $one, 7 => $one]],
            ValueEncoder::encode(['a' => 1, 7 => 1]),
        );
    }

    public function testWhatIsAMapIsAnArrayInPhpAndAnObjectInJson(): void
    {
        $json = static fn (mixed $value): mixed => json_decode(Json::encode(ValueEncoder::encode($value)));
        $null = (object) ['type' => 'null', 'value' => null];

        self::assertSame([], $json([])->value);
        self::assertEquals((object) ['1' => $null], $json([1 => null])->value);
        self::assertEquals((object) ['1' => $null, '0' => $null], $json([1 => null, 0 => null])->value);
        self::assertEquals((object) [], $json(new stdClass())->properties);
        self::assertEquals((object) ['0' => $null], $json((object) [null])->properties);
        self::assertEquals((object) [], $json([[new stdClass()]])->value[0]->value[0]->properties);
        self::assertSame([], ValueEncoder::encode(new stdClass())['properties']);
        self::assertSame([['type' => 'null', 'value' => null]], ValueEncoder::encode((object) [null])['properties']);
    }

    public function testOnlyTheMapsOfEncodedValuesBecomeJsonObjects(): void
    {
        $given = ['properties' => [], 'type' => 'array', 'value' => [], 'list' => [1]];
        $before = $given;

        self::assertEquals($before, json_decode(Json::encode($given), true));
        self::assertStringContainsString('"properties": []', Json::encode($given));
        self::assertSame($before, $given);
        $shown = ['type' => 'object', 'properties' => []];
        $holds = ['a' => &$shown];
        self::assertStringContainsString('"properties": []', Json::encode($holds), 'No reference is written through.');
        self::assertSame([], $shown['properties']);
    }

    public function testKeysOfAnyBytesArePrintable(): void
    {
        $encoded = ValueEncoder::encode(["\xff" => 1, '' => 2, "a\0b" => 3]);

        self::assertSame(["\u{FFFD}", '', "a\0b"], array_keys($encoded['value']));
        self::assertSame(["\u{FFFD}" => base64_encode("\xff")], $encoded['key_bytes']);
        self::assertIsString(json_encode($encoded));
    }

    public function testAnObjectShowsItsPropertiesByWhoSeesThem(): void
    {
        $object = new Secretive();

        self::assertEquals(
            [
                'type' => 'object',
                'class' => Secretive::class,
                'id' => spl_object_id($object),
                'properties' => [
                    'shown' => ['type' => 'int', 'value' => 1],
                    'uninitialised' => ['type' => 'uninitialized'],
                    'inherited' => ['type' => 'string', 'value' => 'parent'],
                    'fixed' => ['type' => 'bool', 'value' => true],
                ],
                'protected' => ['protected' => ['type' => 'int', 'value' => 2]],
                'private' => [
                    'hidden' => ['type' => 'string', 'value' => 'of the parent'],
                    'secret' => ['type' => 'string', 'value' => '[hidden]', 'hidden' => true],
                ],
            ],
            ValueEncoder::encode($object),
        );
    }

    public function testAPrivatePropertyThatAClassBelowHidesNamesItsClass(): void
    {
        $object = new class extends Ancestor {
            public int $own = 3;
        };

        $encoded = ValueEncoder::encode($object);

        self::assertSame('Altair\Eval\Tests\Support\Values\Ancestor@anonymous', $encoded['class']);
        self::assertSame(['own' => ['type' => 'int', 'value' => 3]], $encoded['properties']);
        self::assertSame([Ancestor::class . '::own'], array_keys($encoded['private']));
        self::assertSame(1, $encoded['private'][Ancestor::class . '::own']['value']);
        self::assertArrayNotHasKey('protected', $encoded);
    }

    public function testAnAnonymousClassIsNamedWithoutItsFile(): void
    {
        self::assertSame('class@anonymous', ValueEncoder::encode(new class {
        })['class']);
    }

    public function testAPropertyThatWasUnsetIsNotThere(): void
    {
        $object = new Secretive();
        unset($object->shown, $object->inherited);

        self::assertSame(['uninitialised', 'fixed'], array_keys(ValueEncoder::encode($object)['properties']));
    }

    public function testAPropertyOfBinaryNameIsShownWithItsBytes(): void
    {
        $object = new stdClass();
        $object->{"\xff"} = 1;
        $object->{"\xfe"} = 2;

        $encoded = ValueEncoder::encode($object);

        self::assertSame(["\u{FFFD}", "\u{FFFD}~2"], array_keys($encoded['properties']));
        self::assertSame(["\u{FFFD}" => '/w==', "\u{FFFD}~2" => '/g=='], $encoded['key_bytes']);
    }

    public function testAClassOfThousandsOfPropertiesIsCut(): void
    {
        $names = implode(' ', array_map(static fn (int $n): string => "private \$p$n = $n;", range(1, 5000)));
        $class = eval("return (new class { $names })::class;");

        $encoded = ValueEncoder::encode(new $class());

        self::assertCount(1000, $encoded['private']);
        self::assertSame([true, 'max_items: 5000'], [$encoded['truncated'], $encoded['hint']]);
    }

    /**
     * @dataProvider enclosing
     *
     * @param Closure(object): array<mixed> $seen
     */
    public function testAnObjectThatACallerHasSeenIsAReference(Closure $seen): void
    {
        $object = new stdClass();

        $encoded = ValueEncoder::encode([$object], $seen($object), 1);

        self::assertSame('reference', $encoded['value'][0]['type']);
        self::assertSame(spl_object_id($object), $encoded['value'][0]['id']);
    }

    /**
     * @return iterable<string, array{Closure(object): array<mixed>}>
     */
    public static function enclosing(): iterable
    {
        yield 'the object' => [static fn (object $object): array => [$object]];
        yield 'its id' => [static fn (object $object): array => [spl_object_id($object)]];
        yield 'its id as a key' => [static fn (object $object): array => [spl_object_id($object) => true]];
        yield 'among what is nothing' => [static fn (object $object): array => ['x', -1, null, 7 => false, $object]];
    }

    public function testADepthThatACallerHasReachedCounts(): void
    {
        self::assertArrayHasKey('value', ValueEncoder::encode([1], [], 2));
        self::assertSame(
            ['type' => 'array', 'count' => 1, 'truncated' => true, 'hint' => 'depth: 4'],
            ValueEncoder::encode([1], depth: 3),
        );
        self::assertArrayHasKey('value', ValueEncoder::encode([1], [], -5));
        self::assertTrue(ValueEncoder::encode([1], [], PHP_INT_MAX)['truncated']);
    }

    public function testDynamicAndNumericPropertiesAreShown(): void
    {
        $object = new stdClass();
        $object->{'a b'} = 1;
        $object->{'7'} = 2;

        self::assertSame(['a b', 7], array_keys(ValueEncoder::encode($object)['properties']));
    }

    public function testAnEnumCaseNamesItself(): void
    {
        $id = static fn (object $case): int => spl_object_id($case);
        $show = static fn (object $case): array => array_diff_key(ValueEncoder::encode($case), ['properties' => 1]);

        self::assertSame(
            ['type' => 'object', 'class' => Side::class, 'id' => $id(Side::Left), 'case' => 'Left'],
            $show(Side::Left),
        );
        self::assertSame(
            ['type' => 'object', 'class' => Colour::class, 'id' => $id(Colour::Red), 'case' => 'Red', 'backing' => 'r'],
            $show(Colour::Red),
        );
        self::assertSame(
            ['type' => 'object', 'class' => Level::class, 'id' => $id(Level::Low), 'case' => 'Low', 'backing' => 0],
            $show(Level::Low),
        );
    }

    public function testADateShowsItselfInRfc3339(): void
    {
        $display = static fn (string $date): string => ValueEncoder::encode(new DateTimeImmutable($date))['display'];

        self::assertSame('2024-02-29T23:59:58+05:30', $display('2024-02-29 23:59:58 +05:30'));
        self::assertSame('2020-01-01T00:00:00+00:00', ValueEncoder::encode(new DateTime('2020-01-01 UTC'))['display']);
        self::assertSame('object', ValueEncoder::encode(new DateTime())['type']);
        self::assertEquals(
            new DateTimeImmutable('2024-02-03 04:05:06.789 UTC'),
            new DateTimeImmutable($display('2024-02-03 04:05:06.789 UTC')),
        );
    }

    public function testTheFieldsOfADateIntervalAreItsPublicProperties(): void
    {
        $interval = new DateInterval('P2D');

        $properties = ValueEncoder::encode($interval)['properties'];

        self::assertIsArray($properties);
        self::assertSame(array_keys(get_object_vars($interval)), array_keys($properties));
        self::assertSame(['type' => 'int', 'value' => 2], $properties['d']);
    }

    public function testAClosureShowsWhereItIsWritten(): void
    {
        $closure = static fn (): int => 1;

        $encoded = ValueEncoder::encode($closure);

        self::assertSame(['object', 'Closure'], [$encoded['type'], $encoded['class']]);
        self::assertSame(__FILE__ . ':' . (__LINE__ - 5), $encoded['display']);
    }

    public function testAClosureOfANativeFunctionShowsItsName(): void
    {
        self::assertSame('strlen()', ValueEncoder::encode(strlen(...))['display']);
    }

    public function testATraversableIsPreviewed(): void
    {
        self::assertSame(
            [
                'type' => 'iterable',
                'class' => ArrayObject::class,
                'preview' => [
                    ['key' => ['type' => 'string', 'value' => 'a'], 'value' => ['type' => 'int', 'value' => 1]],
                    ['key' => ['type' => 'int', 'value' => 5], 'value' => ['type' => 'null', 'value' => null]],
                ],
                'exhausted' => true,
                'size_hint' => 2,
            ],
            ValueEncoder::encode(new ArrayObject(['a' => 1, 5 => null])),
        );
    }

    public function testAGeneratorHasNoSizeAndKeysOfAnyType(): void
    {
        $encoded = ValueEncoder::encode((static function (): iterable {
            yield [1] => 'a';
            yield 1.5 => 'b';
        })());

        self::assertSame(['type', 'class', 'preview', 'exhausted'], array_keys($encoded));
        self::assertSame('array', $encoded['preview'][0]['key']['type']);
        self::assertSame(['type' => 'float', 'value' => 1.5], $encoded['preview'][1]['key']);
    }

    public function testAResourceNamesItsKind(): void
    {
        $file = fopen('php://memory', 'r');
        self::assertIsResource($file);

        self::assertSame(['type' => 'resource', 'value' => 'stream'], ValueEncoder::encode($file));
        fclose($file);
        self::assertSame(['type' => 'resource', 'value' => 'closed'], ValueEncoder::encode($file));
    }

    public function testAnObjectOnThePathToItselfIsAReference(): void
    {
        $loop = new stdClass();
        $loop->inside = [$loop];

        self::assertSame(
            ['type' => 'reference', 'class' => 'stdClass', 'id' => spl_object_id($loop)],
            ValueEncoder::encode($loop)['properties']['inside']['value'][0],
        );
    }

    public function testAnObjectThatIsMetTwiceSideBySideIsShownTwice(): void
    {
        $object = (object) ['a' => 1];

        $encoded = ValueEncoder::encode([$object, $object]);

        self::assertSame('object', $encoded['value'][1]['type']);
        self::assertSame($encoded['value'][0], $encoded['value'][1]);
    }

    public function testPhpReferencesAreSeenThrough(): void
    {
        $one = 1;

        self::assertSame(ValueEncoder::encode(['a' => 1]), ValueEncoder::encode(['a' => &$one]));
    }
}
