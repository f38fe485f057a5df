<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Sandbox\Runtime;

use Altair\Eval\Tests\Support\RuntimeTestCase;
use ValueError;

/**
 * `timeoutMs` and `memoryLimitMb` of an entry.
 */
final class LimitsTest extends RuntimeTestCase
{
    public function testAnEntryHasTheLimitsOfARequestByDefault(): void
    {
        self::assertSame('128M', $this->runtime()->enter(static fn () => ini_get('memory_limit')));
        self::assertSame('128M', $this->runtime(guarded: false)->enter(static fn () => ini_get('memory_limit')));
    }

    /**
     * @dataProvider guarded
     */
    public function testAMemoryLimitIsThatOfOneEntry(bool $guarded): void
    {
        $runtime = $this->runtime(guarded: $guarded);
        $take = static fn (int $mb): array => [strlen(str_repeat('x', $mb << 20)) >> 20, ini_get('memory_limit')];

        self::assertSame([60, '128M'], $runtime->enter($take, [60]));
        self::assertSame([200, '300M'], $runtime->enter($take, [200], memoryLimitMb: 300));
        self::assertSame([10, '40M'], $runtime->enter($take, [10], memoryLimitMb: 40));
        self::assertSame([60, '128M'], $runtime->enter($take, [60]), 'No longer than for that one.');
        self::assertStringStartsWith(
            'sandbox unusable: Allowed memory size of 41943040 bytes exhausted',
            self::failure(static fn (): mixed => $runtime->enter($take, [60], null, 40)),
        );
    }

    /**
     * @dataProvider guarded
     */
    public function testAMemoryLimitAmongTheSettingsIsThatOfEachEntry(bool $guarded): void
    {
        $limit = static fn (): string => ini_get('memory_limit');
        $runtime = $this->runtime(['memory_limit' => '64M'], guarded: $guarded);
        self::assertSame('64M', $runtime->enter($limit));
        self::assertSame('16M', $runtime->enter($limit, memoryLimitMb: 16));
        self::assertSame('64M', $runtime->enter($limit));
        $runtime->enter(static function (): void {
            ini_set('memory_limit', '1G');
        });
        self::assertSame('64M', $runtime->enter($limit));

        $without = $this->runtime(['memory_limit' => -1], guarded: $guarded);
        self::assertSame('-1', $without->enter($limit));
        self::assertSame('200000000', $this->runtime(['memory_limit' => 200_000_000])->enter($limit));
    }

    public static function guarded(): iterable
    {
        yield 'guarded' => [true];
        yield 'not guarded' => [false];
    }

    public function testAnEntryInARuntimeThatUsesMoreThanItMayIsNotEntered(): void
    {
        $runtime = $this->runtime();
        $runtime->enter(static function (): void {
            $GLOBALS['kept'] = str_repeat('x', 60 << 20);
        });

        self::assertStringMatchesFormat(
            'sandbox bailed out: it uses %d MiB already, more than the memory limit of 16 MiB',
            self::failure(static fn (): mixed => $runtime->enter(static fn (): int => 1, [], null, 16)),
        );
        self::assertSame(60 << 20, $runtime->enter(static fn (): int => strlen($GLOBALS['kept'])));
    }

    public function testArgumentsCountAsMemoryOfTheEntry(): void
    {
        $runtime = $this->runtime();
        $count = static fn (array $list): int => count($list);

        $thrown = self::thrown(static fn (): mixed => $runtime->enter($count, [array_fill(0, 2_000_000, 1)], null, 16));
        self::assertStringMatchesFormat(
            'illegal variable (larger than the memory limit%S) passed to sandbox at argument 1',
            $thrown->getMessage(),
        );
        self::assertSame(2_000_000, $runtime->enter($count, [array_fill(0, 2_000_000, 1)]));
    }

    /**
     * @dataProvider huge
     */
    public function testHugeLimitsAreLimits(int $huge): void
    {
        $runtime = $this->runtime();

        self::assertSame(1, $runtime->enter(static fn (): int => 1, timeoutMs: $huge, memoryLimitMb: $huge));
        self::assertSame(1, $runtime->enter(static fn (): int => 1, [], $huge));
        $limit = $runtime->enter(static fn (): string => ini_get('memory_limit'), [], null, $huge);
        self::assertSame($huge > PHP_INT_MAX >> 20 ? '-1' : "{$huge}M", $limit);
    }

    public static function huge(): iterable
    {
        yield [1 << 42];
        yield [1 << 44];
        yield [PHP_INT_MAX];
    }

    /**
     * @dataProvider none
     */
    public function testLimitsBelowOneAreRefused(int $none): void
    {
        $runtime = $this->runtime();
        foreach (['timeoutMs' => 3, 'memoryLimitMb' => 4] as $name => $number) {
            $thrown = self::thrown(static fn () => $runtime->enter(static fn (): int => 1, ...[$name => $none]));
            self::assertInstanceOf(ValueError::class, $thrown);
            self::assertSame(
                "Altair\\Sandbox\\Runtime::enter(): Argument #$number (\$$name) must be at least 1",
                $thrown->getMessage(),
            );
        }
        self::assertSame(1, $runtime->enter(static fn (): int => 1), 'Nothing has become of it.');
    }

    public static function none(): iterable
    {
        yield [0];
        yield [-1];
        yield [PHP_INT_MIN];
    }

    public function testADeadlineIsThatOfOneEntry(): void
    {
        $runtime = $this->runtime();
        self::assertSame(1, $runtime->enter(static fn (): int => 1, timeoutMs: self::SOON_MS));
        // Longer than that deadline, and nobody waits meanwhile.
        usleep((self::SOON_MS + 100) * 1000);
        $runtime->enter(static function (int $ms): void {
            usleep($ms * 1000);
        }, [self::SOON_MS + 100]);

        self::assertSame(2, $runtime->enter(static fn (): int => 2));
    }
}
