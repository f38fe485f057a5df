<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\Encoder\ValueEncoder;
use Altair\Eval\Tests\Support\Values\Secretive;
use Altair\Eval\Tests\Support\Values\Side;
use ArrayIterator;
use Closure;
use Generator;
use PHPUnit\Framework\TestCase;
use stdClass;

/**
 * However large, deep or tangled a value is, its description stays small and says what it leaves out.
 */
final class ValueEncoderBoundsTest extends TestCase
{
    private const MARK = '...(truncated)';

    public function testAStringOfTenThousandBytesIsWhole(): void
    {
        $text = str_repeat('a', 10000);

        self::assertSame(['type' => 'string', 'value' => $text], ValueEncoder::encode($text));
    }

    public function testALongerStringIsCutThere(): void
    {
        self::assertSame(
            [
                'type' => 'string',
                'value' => str_repeat('a', 10000) . self::MARK,
                'truncated' => true,
                'length' => 10001,
                'hint' => 'max_string: 10001',
            ],
            ValueEncoder::encode(str_repeat('a', 10001)),
        );
    }

    /**
     * @dataProvider characters
     */
    public function testAStringIsNeverCutInsideACharacter(string $character, int $before): void
    {
        $head = str_repeat('a', $before);

        $encoded = ValueEncoder::encode($head . $character . str_repeat('b', 100));

        self::assertSame($head . self::MARK, $encoded['value']);
        self::assertSame($before + strlen($character) + 100, $encoded['length']);
    }

    /**
     * @return iterable<array{string, int}>
     */
    public static function characters(): iterable
    {
        yield ["\u{e9}", 9999];
        yield ["\u{65e5}", 9998];
        yield ["\u{1F600}", 9997];
    }

    public function testABinaryStringIsCutAsBytes(): void
    {
        $binary = str_repeat("\xff\x00", 5001);

        $encoded = ValueEncoder::encode($binary);

        self::assertSame(substr($binary, 0, 10000), base64_decode($encoded['value'], true));
        self::assertSame([true, 10002], [$encoded['truncated'], $encoded['length']]);
    }

    public function testAnArrayOfAThousandEntriesIsWhole(): void
    {
        $encoded = ValueEncoder::encode(range(1, 1000));

        self::assertCount(1000, $encoded['value']);
        self::assertArrayNotHasKey('truncated', $encoded);
    }

    public function testALongerArrayShowsAThousandEntriesAndItsCount(): void
    {
        foreach ([range(1, 1001), array_fill_keys(range(5, 1005), null)] as $array) {
            $encoded = ValueEncoder::encode($array);

            self::assertCount(1000, $encoded['value']);
            self::assertSame([1001, true], [$encoded['count'], $encoded['truncated']]);
            self::assertSame(array_slice(array_keys($array), 0, 1000), array_keys($encoded['value']));
        }
    }

    public function testAnIterableOfFiftyItemsIsExhausted(): void
    {
        $encoded = ValueEncoder::encode($this->upTo(50));

        self::assertCount(50, $encoded['preview']);
        self::assertTrue($encoded['exhausted']);
    }

    public function testALongerIterableIsNotExhausted(): void
    {
        foreach ([$this->upTo(51), $this->upTo(PHP_INT_MAX), new ArrayIterator(range(1, 51))] as $iterable) {
            $encoded = ValueEncoder::encode($iterable);

            self::assertCount(50, $encoded['preview']);
            self::assertFalse($encoded['exhausted']);
        }
        self::assertSame(51, $encoded['size_hint']);
    }

    public function testContainersAboveDepthThreeAreShown(): void
    {
        $two = ValueEncoder::encode([[['leaf']]])['value'][0]['value'][0];

        self::assertSame(
            ['type' => 'array', 'is_list' => true, 'count' => 1, 'value' => [['type' => 'string', 'value' => 'leaf']]],
            $two,
        );
    }

    public function testContainersFromDepthThreeOnAreNamedOnly(): void
    {
        $object = new Secretive();
        $cut = ['truncated' => true, 'hint' => 'depth: 4'];

        $shown = ValueEncoder::encode([[[[], ['a' => [1]], $object, new ArrayIterator([1])]]]);
        [$empty, $array, $named, $unread] = $shown['value'][0]['value'][0]['value'];

        self::assertSame(['type' => 'array', 'count' => 0] + $cut, $empty);
        self::assertSame(['type' => 'array', 'count' => 1, 'truncated' => true, 'hint' => 'depth: 5'], $array);
        self::assertSame(
            ['type' => 'object', 'class' => Secretive::class, 'id' => spl_object_id($object)] + $cut,
            $named,
        );
        self::assertSame(['type' => 'iterable', 'class' => ArrayIterator::class] + $cut, $unread);
    }

    public function testObjectsIterablesAndArraysCountAlikeForTheDepth(): void
    {
        $leaf = new stdClass();
        $value = (object) ['a' => new ArrayIterator([['b' => $leaf]])];

        $b = ValueEncoder::encode($value)['properties']['a']['preview'][0]['value']['value']['b'];

        self::assertSame(['object', 'stdClass', true], [$b['type'], $b['class'], $b['truncated']]);
        self::assertSame(spl_object_id($leaf), $b['id']);
    }

    public function testAnEnumAtDepthThreeStillNamesItsCase(): void
    {
        $encoded = ValueEncoder::encode([[[Side::Left]]])['value'][0]['value'][0]['value'][0];

        self::assertSame(['Left', true], [$encoded['case'], $encoded['truncated']]);
    }

    public function testStructuresOfAHundredThousandItemsAreCut(): void
    {
        $many = range(1, 100000);
        $heap = new \SplMinHeap();
        $queue = new \SplQueue();
        $storage = new \SplObjectStorage();
        foreach ($many as $n) {
            $heap->insert($n);
            $queue[] = $n;
            $storage[new stdClass()] = $n;
        }
        foreach ([$heap, $queue, $storage, new ArrayIterator($many), \SplFixedArray::fromArray($many)] as $all) {
            $encoded = ValueEncoder::encode($all);

            self::assertCount(50, $encoded['preview']);
            self::assertSame([false, 100000], [$encoded['exhausted'], $encoded['size_hint']]);
            self::assertSame('max_items: 10000', $encoded['hint']);
            self::assertSame(1, $encoded['preview'][0]['value']['value']);
            self::assertCount(100000, $all, 'It still holds them.');
        }
        self::assertSame('max_items: 10000', ValueEncoder::encode($many)['hint']);
    }

    public function testIterablesBelowDepthThreeAreNotTouched(): void
    {
        $begun = false;
        $generator = (static function () use (&$begun): Generator {
            $begun = true;
            yield 1;
        })();

        ValueEncoder::encode([[[$generator]]]);

        self::assertFalse($begun);
    }

    public function testAnArrayThatHoldsItselfEndsAtTheDepth(): void
    {
        $array = ['a' => 1];
        $array['self'] = &$array;

        self::assertLessThan(2000, strlen((string) json_encode(ValueEncoder::encode($array))));
    }

    /**
     * @dataProvider hugeValues
     */
    public function testTheWholeValueTakesAtMostOneMebibyte(Closure $make): void
    {
        $json = json_encode(ValueEncoder::encode($make()), JSON_THROW_ON_ERROR);

        self::assertLessThanOrEqual(1 << 20, strlen($json));
        self::assertGreaterThan(1 << 18, strlen($json), 'It uses what there is.');
        self::assertTrue(str_contains($json, '"truncated":true'));
    }

    /**
     * Closures, so that a failure does not print the values.
     *
     * @return iterable<string, array{Closure(): mixed}>
     */
    public static function hugeValues(): iterable
    {
        $many = static fn (mixed $value): Closure => static fn (): array => array_fill(0, 900, $value);
        $long = str_repeat('x', 10000);
        yield 'a list of long strings' => [$many($long)];
        yield 'a map of long strings' => [static fn (): array => ['k' => 1] + array_fill(0, 900, $long)];
        yield 'strings that JSON escapes' => [$many(str_repeat("\x01/\"\u{1F600}", 1400))];
        yield 'binary strings' => [$many(str_repeat("\xff", 10000))];
        yield 'an object of long strings' => [static fn (): object => (object) array_fill(0, 900, $long)];
        yield 'lists of lists' => [$many(array_fill(0, 900, array_fill(0, 9, 1)))];
        yield 'lists of empty lists' => [$many(array_fill(0, 1000, []))];
        yield 'lists of objects' => [$many(array_fill(0, 1000, new stdClass()))];
        yield 'floats of many digits' => [$many(array_fill(0, 1000, -1.2345678901234567e-300))];
        yield 'long keys' => [$many([str_repeat("\u{1F600}", 240) => array_fill(0, 9, 1)])];
        yield 'iterables of iterables' => [$many(new ArrayIterator(array_fill(0, 50, $long)))];
        yield 'long keys of an iterable' => [$many(new ArrayIterator([str_repeat("\u{e9}", 400) => []]))];
    }

    public function testWhatStandsBeforeTheCutIsKept(): void
    {
        $encoded = ValueEncoder::encode(['first' => 1, 'second' => array_fill(0, 900, str_repeat('x', 10000))]);

        self::assertSame(['type' => 'int', 'value' => 1], $encoded['value']['first']);
        self::assertSame(900, $encoded['value']['second']['count']);
        self::assertTrue($encoded['value']['second']['truncated']);
    }

    /**
     * @return Generator<int>
     */
    private function upTo(int $n): Generator
    {
        for ($i = 1; $i <= $n; $i++) {
            yield $i;
        }
    }
}
