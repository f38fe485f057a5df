<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Sandbox\Runtime;

use Altair\Sandbox\Enums\SandboxDriver;
use Altair\Sandbox\Runtime;
use Closure;
use Error;
use PHPUnit\Framework\TestCase;
use stdClass;
use Throwable;

/**
 * What travels between a caller and an isolated PHP: scalars, null and arrays, by value.
 */
final class RuntimeValuesTest extends TestCase
{
    /** How deep arrays may be nested in each other. */
    private const DEPTH_MAX = 4096;

    /** Seconds after which a refusal was not quick. */
    private const QUICK = 20;

    private Runtime $runtime;

    protected function setUp(): void
    {
        // A template would stay with this process.
        ini_set('altair_eval.warm', '0');
        $this->runtime = new Runtime();
    }

    protected function tearDown(): void
    {
        ini_set('altair_eval.warm', '1');
        unset($this->runtime);
    }

    /**
     * @return iterable<array{mixed}>
     */
    public static function values(): iterable
    {
        foreach (
            [
                null, false, true, 0, -1, 63, 64, -64, -65, PHP_INT_MAX, PHP_INT_MIN, 0.5, 1.0, INF, -INF,
                PHP_FLOAT_MIN, '', 'a', "\0", "\0\xff\0", '0', '12', 'Zoë', [], [], [[]], [null], [1, [2, [3]]],
                ['a' => ['b' => ['c' => 1]]], ['' => 1], ["\0*\0a" => 1], [PHP_INT_MAX => 1], [PHP_INT_MIN => 1],
                ['1.5' => 1, '01' => 2, '-0' => 3],
                [1, 'a' => 2, 3, -7 => 4, 5], range(0, 300), array_fill_keys(range('a', 'z'), [1.5, true]),
            ] as $value
        ) {
            yield [$value];
        }
    }

    /**
     * @dataProvider values
     */
    public function testAValueTravelsBothWays(mixed $value): void
    {
        self::assertSame($value, $this->back($value));
        self::assertSame([$value, $value], $this->back([$value, $value]));
        self::assertSame(['k' => $value, 7 => $value], $this->back(['k' => $value, 7 => $value]));
    }

    public function testWhatArrivesIsWhatWasSent(): void
    {
        $seen = static fn (mixed ...$values): string => serialize($values);
        $values = ['a', -1, 1.5, null, true, [3 => 'x', 'k' => ['y']]];

        self::assertSame(serialize($values), $this->runtime->enter($seen, $values));
        // Keys of the list of arguments are ignored, and so are its holes.
        self::assertSame(serialize($values), $this->runtime->enter($seen, array_combine(range('a', 'f'), $values)));
        self::assertSame(serialize([1 => 'a', 2 => 'b']), $this->runtime->enter(
            static fn (mixed ...$values): string => serialize([1 => $values[0], 2 => $values[1]]),
            array_diff([0, 'a', 0, 'b'], [0]),
        ));
    }

    public function testAFloatKeepsEachOfItsBits(): void
    {
        foreach (
            [
                '8000000000000000', // -0.0
                '7ff8000000001234', // NaN with something in it
                'fff8000000000001',
                '0000000000000001', // the smallest there is
                '800fffffffffffff', // the largest that is not normal
                '7ff0000000000000',
                '3fb999999999999a',
            ] as $bits
        ) {
            $float = unpack('E', (string) hex2bin($bits))[1];
            $back = $this->back($float);
            self::assertIsFloat($back);
            self::assertSame($bits, bin2hex(pack('E', $back)));
            self::assertSame($bits, bin2hex(pack('E', $this->back(['f' => [$float]])['f'][0])));
        }
    }

    public function testAnArrayKeepsTheOrderAndTheTypesOfItsKeys(): void
    {
        $array = ['z' => 1, 'a' => 2, 10 => 3, 2 => 4, '07' => 5, ' 1' => 6, '9223372036854775808' => 7, -3 => 8];

        $back = $this->back($array);

        self::assertSame($array, $back);
        self::assertSame(array_map(gettype(...), array_keys($array)), array_map(gettype(...), array_keys($back)));
    }

    public function testNumericStringKeysOfAnObjectAreIntegersInItsArray(): void
    {
        $object = new stdClass();
        $object->{'12'} = 'a';
        $object->{'-5'} = 'b';
        $object->name = 'c';

        $back = $this->back((array) $object);

        self::assertSame([12 => 'a', -5 => 'b', 'name' => 'c'], $back);
        self::assertSame('a', $back['12']);
        self::assertSame('A', $this->runtime->enter(static fn (array $a): string => strtoupper($a[12]), [$back]));
    }

    public function testAListWithHolesKeepsItsKeys(): void
    {
        $holes = ['a', 'b', 'c', 'd'];
        unset($holes[0], $holes[2]);
        $removed = ['x' => 1, 'y' => 2, 'z' => 3];
        unset($removed['y']);

        self::assertSame([1 => 'b', 3 => 'd'], $this->back($holes));
        self::assertSame(['x' => 1, 'z' => 3], $this->back($removed));
        unset($holes[1], $holes[3]);
        self::assertSame([], $this->back($holes));
        self::assertTrue(array_is_list($this->back([1, 2, 3])));
    }

    public function testAValueIsAppendedWhereANewArrayWithTheseKeysAppendsIt(): void
    {
        foreach (
            [[], [1, 2, 3], [5 => 'a'], ['k' => 1], [-5 => 'a'], [-5 => 'a', 3 => 'b'], [3 => 'b', -5 => 'a']] as $array
        ) {
            $expected = $array;
            $expected[] = 'next';
            $back = $this->back($array);
            $back[] = 'next';
            self::assertSame($expected, $back);
        }
        // What was removed from its end is forgotten, as by serialize().
        $shorter = [1, 2, 3];
        unset($shorter[2]);
        $back = $this->back($shorter);
        $back[] = 'next';
        self::assertSame([1, 2, 'next'], $back);
        // There is no place behind the last.
        $back = $this->back([PHP_INT_MAX => 1]);
        $this->expectExceptionMessage('next element is already occupied');
        $back[] = 'next';
    }

    public function testWhatCameBackIsAnArrayLikeAnyOther(): void
    {
        $back = $this->back(['a' => 1, 'b' => [1, 2], 3 => 'x']);
        foreach (range(0, 100) as $n) {
            $back["key$n"] = $n;
            $back['b'][] = $n;
        }
        unset($back['a']);
        $back['a'] = 'again';
        ksort($back['b']);

        self::assertSame('again', end($back));
        self::assertSame(100, $back['key100']);
        self::assertCount(103, $back['b']);
        self::assertFalse(isset($back['nothing']));
        self::assertCount(104, $back);
    }

    public function testAReferenceTravelsAsItsValue(): void
    {
        $value = 'before';
        $array = ['r' => &$value, 's' => &$value, 'a' => [&$value]];

        $back = $this->runtime->enter(static function (array $a): array {
            $a['r'] = 'there';

            return $a;
        }, [$array]);

        self::assertSame(['r' => 'there', 's' => 'before', 'a' => ['before']], $back);
        self::assertSame('before', $value);
        $back['s'] = 'after';
        self::assertSame('before', $value);
        self::assertSame(['before'], $back['a']);
        self::assertSame(['there' => 1], $this->runtime->enter(static function (): array {
            $one = 1;

            return ['there' => &$one];
        }));
    }

    public function testWhatIsSentIsUnchanged(): void
    {
        $shared = ['x' => str_repeat('a', 50)];
        $array = [$shared, $shared, 'k' => &$shared];
        $before = serialize($array);
        $copy = $array;

        $this->back($array);

        self::assertSame($before, serialize($array));
        self::assertSame($before, serialize($copy));
        // Nothing that walks arrays takes it for one that is being walked.
        self::assertSame(3, count($array, COUNT_RECURSIVE) - 3);
        self::assertIsString(json_encode($array));
    }

    public function testArraysAreNestedAsDeepAsTheyMayBe(): void
    {
        $deepest = self::nested(self::DEPTH_MAX);

        $back = $this->back($deepest);

        for ($depth = 0; is_array($back); $depth++) {
            $back = $back['k'] ?? $back[0];
        }
        self::assertSame([self::DEPTH_MAX, 'bottom'], [$depth, $back]);
    }

    public function testArraysThatAreNestedDeeperAreRefused(): void
    {
        $thrown = $this->thrownBy(static fn (mixed $v): mixed => 1, [self::nested(self::DEPTH_MAX + 1)]);
        self::assertInstanceOf(Error::class, $thrown);
        self::assertStringContainsString('nested', $thrown->getMessage());

        $thrown = $this->thrownBy(static function (int $depth): array {
            for ($value = 1; $depth > 0; $depth--) {
                $value = [$value];
            }

            return $value;
        }, [self::DEPTH_MAX + 1]);
        self::assertNotNull($thrown);
        self::assertStringContainsString('nested', $thrown->getMessage());
    }

    public function testAnArrayThatHoldsItselfIsRefused(): void
    {
        $recursive = ['a' => 1];
        $recursive['self'] = &$recursive;
        $thrown = $this->thrownBy(static fn (mixed $v): mixed => 1, [$recursive]);
        self::assertInstanceOf(Error::class, $thrown);
        self::assertStringContainsString('nested', $thrown->getMessage());
        unset($recursive['self']);

        $thrown = $this->thrownBy(static function (): array {
            $list = [1];
            $list[] = &$list;

            return $list;
        });
        self::assertNotNull($thrown);
        self::assertStringContainsString('nested', $thrown->getMessage());
    }

    public function testAnArrayThatIsSharedExponentiallyIsRefusedSoon(): void
    {
        foreach ([[], 'text', [['k' => 1]]] as $shared) {
            for ($i = 0; $i < 40; $i++) {
                $shared = [$shared, $shared];
            }
            $began = microtime(true);
            $thrown = $this->thrownBy(static fn (mixed $v): mixed => 1, [$shared]);
            self::assertNotNull($thrown);
            self::assertMatchesRegularExpression('~large|memory~', $thrown->getMessage());
            self::assertLessThan(self::QUICK, microtime(true) - $began);
        }
        $thrown = $this->thrownBy(static function (): array {
            $shared = [];
            for ($i = 0; $i < 40; $i++) {
                $shared = [$shared, $shared];
            }

            return $shared;
        });
        self::assertNotNull($thrown);
        self::assertMatchesRegularExpression('~large|memory~', $thrown->getMessage());
    }

    public function testAnArrayThatIsMostlyHolesAndSharedIsRefusedSoon(): void
    {
        $holes = range(0, 1_000_000);
        for ($i = 0; $i < 1_000_000; $i++) {
            unset($holes[$i]);
        }
        self::assertSame([1_000_000 => 1_000_000], $this->back($holes));

        $began = microtime(true);
        $thrown = $this->thrownBy(static fn (mixed $v): mixed => 1, [array_fill(0, 1_000_000, $holes)]);
        self::assertNotNull($thrown);
        self::assertLessThan(self::QUICK, microtime(true) - $began);
    }

    public function testAnArrayMayBeSharedWithinReason(): void
    {
        $shared = ['k' => 'v'];
        for ($i = 0; $i < 10; $i++) {
            $shared = [$shared, $shared];
        }

        self::assertSame($shared, $this->back($shared));
    }

    public function testAnObjectOrAResourceIsNoArgument(): void
    {
        $closed = fopen('php://memory', 'r');
        fclose($closed);
        $object = new stdClass();
        foreach (
            [
                [[$object], 'object', 1],
                [[1, 'k' => $object], 'object', 2],
                [[1, [2], [[['deep' => [SandboxDriver::cases()[0]]]]]], 'object', 3],
                [[static fn (): int => 1], 'object', 1],
                [[STDIN], 'resource', 1],
                [[[], ['a' => ['b' => STDIN]]], 'resource', 2],
                [[1, 2, [$closed]], 'resource', 3],
                [[[&$object]], 'object', 1],
            ] as [$arguments, $kind, $number]
        ) {
            $thrown = $this->thrownBy(static fn (mixed ...$v): mixed => 1, $arguments);
            self::assertInstanceOf(Error::class, $thrown);
            self::assertSame("illegal variable ($kind) passed to sandbox at argument $number", $thrown->getMessage());
        }
    }

    public function testObjectsAndResourcesComeBackAsTrue(): void
    {
        self::assertTrue($this->runtime->enter(static fn (): mixed => new stdClass()));
        self::assertTrue($this->runtime->enter(static fn (): mixed => STDOUT));
        self::assertSame(
            [
                'object' => true, 'resource' => true, 'closed' => true, 'enum' => true, 'closure' => true,
                'deep' => [[['x' => true]]], 'kept' => 'text', 'reference' => true, 'lazy' => true,
            ],
            $this->runtime->enter(static function (): array {
                $object = new \ArrayObject([1]);
                $closed = fopen('php://memory', 'r');
                fclose($closed);

                return [
                    'object' => $object, 'resource' => fopen('php://memory', 'r'), 'closed' => $closed,
                    'enum' => \Altair\Sandbox\Enums\SandboxDriver::cases()[0], 'closure' => strlen(...),
                    'deep' => [[['x' => $object]]], 'kept' => 'text', 'reference' => &$object,
                    'lazy' => new \DateTimeZone('UTC'),
                ];
            }),
        );
    }

    public function testNoCodeOfAnObjectRuns(): void
    {
        self::assertSame([true, true, ''], $this->runtime->enter(static function (): array {
            $object = new \ArrayIterator(['x']);

            return [$object, new \Exception('a'), ob_get_contents() ?: ''];
        }));
    }

    public function testWithoutAValueTheReturnIsNull(): void
    {
        self::assertNull($this->runtime->enter(static function (): void {
        }));
    }

    public function testLargeStringsTravel(): void
    {
        foreach ([10, 100] as $megabytes) {
            $text = str_repeat("\0\xff" . random_bytes(1022), $megabytes << 10);
            $hash = hash('xxh128', $text);
            $back = $this->runtime->enter(static function (string $v): string {
                return $v;
            }, [$text], timeoutMs: 60_000, memoryLimitMb: 512);
            self::assertSame($hash, hash('xxh128', $back));
            unset($back, $text);
        }
    }

    public function testManySmallEntriesTravel(): void
    {
        $rows = [];
        for ($i = 0; $i < 20_000; $i++) {
            $rows[] = ['id' => $i, 'name' => "row $i", 'price' => $i / 7, 'tags' => ['a', 'b'], 'gone' => null];
        }

        self::assertSame($rows, $this->back($rows));
    }

    public function testAValueThatTheCallerHasNoMemoryForIsRefusedAndTheCallerGoesOn(): void
    {
        $limit = ini_get('memory_limit');
        try {
            ini_set('memory_limit', (string) (memory_get_usage(true) + (64 << 20)));
            foreach (
                [
                    static fn (): string => str_repeat('a', 100 << 20),
                    static fn (): array => array_fill(0, 5_000_000, null),
                    static fn (): array => array_fill(0, 30_000, str_repeat('a', 3000)),
                ] as $large
            ) {
                $thrown = $this->thrownBy($large, memoryLimitMb: 1024);
                self::assertNotNull($thrown);
                self::assertStringContainsString('memory', $thrown->getMessage());
            }
            self::assertSame([1], $this->back([1]));
        } finally {
            ini_set('memory_limit', $limit);
        }
    }

    private function back(mixed $value): mixed
    {
        return $this->runtime->enter(static function ($v) {
            return $v;
        }, [$value]);
    }

    /**
     * @param array<mixed> $arguments
     */
    private function thrownBy(Closure $closure, array $arguments = [], int $memoryLimitMb = 128): ?Throwable
    {
        try {
            $this->runtime->enter($closure, $arguments, memoryLimitMb: $memoryLimitMb);
        } catch (Throwable $thrown) {
            return $thrown;
        }

        return null;
    }

    private static function nested(int $depth): mixed
    {
        $value = 'bottom';
        for (; $depth > 0; $depth--) {
            $value = $depth % 2 ? [$value] : ['k' => $value];
        }

        return $value;
    }
}
