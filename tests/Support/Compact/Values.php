<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Compact;

use Altair\Eval\Tests\Support\Values\Colour;
use Altair\Eval\Tests\Support\Values\Level;
use Altair\Eval\Tests\Support\Values\Side;
use DateTime;
use DateTimeImmutable;
use DateTimeInterface;
use DateTimeZone;
use stdClass;

/**
 * Values of every kind, the same for each seed, and none so large that a part of it would not be shown.
 */
final class Values
{
    /** Containers below this depth would be named only. */
    private const DEPTH = 3;

    private const TEXTS = [
        '', '0', '7', '07', '-3', '-0', '9223372036854775807', '9223372036854775808', '4294967295', '1.5', 'id', 'type',
        'items', 'hint', '@', '@@', '@object', '@cut', '@map', '#', '#a', '-', '-a', '@#a', '@-a', '__proto__',
        'length', 'constructor',
        'a/b~c', 'ключ', '鍵', '💥', "tab\t\n", "nul\0", "\u{2028}", '"\\', '[hidden]', '...(truncated)',
    ];

    private const BYTES = ["\xff", "\xc3", "a\xe2\x82", "\x80\x81\x82\x83", "\xed\xa0\x80"];

    private const INTS = [
        0, 1, -1, 7, 4294967295, 9007199254740991, 9007199254740992, 9007199254740993, -9007199254740992,
        -9007199254740993, PHP_INT_MAX, PHP_INT_MIN,
    ];

    private const FLOATS = [
        0.0, -0.0, 1.0, 0.1, 1e300, 1e20, -1e-300, 5e-324, PHP_FLOAT_MAX, NAN, INF, -INF, 9007199254740993.0, 1e15,
    ];

    private const ZONES = ['UTC', '+00:00', '+05:30', '-12:00', 'Europe/Berlin', 'America/St_Johns', 'EST'];

    /**
     * @param bool $isWhole whether the encoder tells names that are not UTF-8, and keys of iterables that are no texts
     */
    public function __construct(int $seed, private readonly bool $isWhole)
    {
        mt_srand($seed);
    }

    public function next(int $depth = 0): mixed
    {
        return match (mt_rand(0, $depth < self::DEPTH ? 16 : 9)) {
            0 => mt_rand(0, 2) === 0 ? null : (bool) mt_rand(0, 1),
            1, 2 => $this->int(),
            3, 4 => $this->float(),
            5 => $this->text(),
            6 => self::BYTES[mt_rand(0, 4)] . $this->text(),
            7 => [Colour::Red, Level::Low, Side::cases()[0]][mt_rand(0, 2)],
            8 => $this->date(),
            9 => mt_rand(0, 3) === 0 ? STDERR : static fn (): int => 1,
            10, 11 => $this->list($depth),
            12, 13 => $this->map($depth),
            14 => $this->object($depth),
            15 => $this->rows($depth),
            16 => mt_rand(0, 1) === 0 ? $this->faces($depth) : $this->pairs($depth),
        };
    }

    private function int(): int
    {
        return mt_rand(0, 1) === 0 ? self::INTS[mt_rand(0, 11)] : mt_rand(-100000, 100000);
    }

    private function float(): float
    {
        if (mt_rand(0, 1) === 0) {
            return self::FLOATS[mt_rand(0, 13)];
        }
        // Any bits.
        return unpack('E', pack('NN', mt_rand(0, 0x7FFFFFFF) << 1, mt_rand(0, 0x7FFFFFFF)))[1];
    }

    private function text(): string
    {
        return self::TEXTS[mt_rand(0, count(self::TEXTS) - 1)] . (mt_rand(0, 3) === 0 ? str_repeat('x', 30) : '');
    }

    private function date(): DateTimeInterface
    {
        $class = mt_rand(0, 1) === 0 ? DateTime::class : DateTimeImmutable::class;
        $date = new $class('@' . mt_rand(-2 ** 31, 2 ** 31));
        $date = $date->setTimezone(new DateTimeZone(self::ZONES[mt_rand(0, 6)]));

        return $date->setTime(mt_rand(0, 23), mt_rand(0, 59), mt_rand(0, 59), mt_rand(0, 1) * mt_rand(0, 999999));
    }

    /**
     * @return list<mixed>
     */
    private function list(int $depth): array
    {
        return array_map(fn (): mixed => $this->next($depth + 1), range(0, mt_rand(0, 4)));
    }

    /**
     * @return array<array-key, mixed>
     */
    private function map(int $depth): array
    {
        $map = [];
        for ($left = mt_rand(0, 4); $left > 0; --$left) {
            $map[mt_rand(0, 2) === 0 ? $this->int() : $this->name()] = $this->next($depth + 1);
        }

        return $map;
    }

    private function name(): string
    {
        return $this->isWhole && mt_rand(0, 5) === 0 ? self::BYTES[mt_rand(0, 4)] : $this->text();
    }

    private function object(int $depth): stdClass
    {
        $object = new stdClass();
        for ($left = mt_rand(0, 4); $left > 0; --$left) {
            $name = $this->name();
            $object->{$name} = $this->next($depth + 1);
        }
        if (mt_rand(0, 3) === 0) {
            $object->own = mt_rand(0, 1) === 0 || $depth + 1 >= self::DEPTH ? $object : [$object];
        }

        return $object;
    }

    /**
     * @return list<stdClass>
     */
    private function rows(int $depth): array
    {
        $names = [$this->name(), 'id', $this->text()];
        if ($depth + 1 >= self::DEPTH) {
            return [];
        }

        return array_map(
            fn (): object => (object) array_combine($names, [$this->int(), $this->float(), $this->next($depth + 2)]),
            range(0, mt_rand(1, 3)),
        );
    }

    private function faces(int $depth): Faces
    {
        return new Faces($this->next($depth + 1), $this->next($depth + 1));
    }

    private function pairs(int $depth): Pairs
    {
        $keys = [fn (int $n): int => $n, fn (): mixed => $this->text(), fn (): mixed => $this->next(self::DEPTH)];
        $key = $keys[mt_rand(0, $this->isWhole ? 2 : 1)];

        return new Pairs(array_map(
            fn (int $n): array => [$key($n), $this->next($depth + 1)],
            array_slice(range(0, 4), 0, mt_rand(0, 5)),
        ));
    }
}
