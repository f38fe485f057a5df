<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Compact;

use RuntimeException;

/**
 * Reads the compact encoding, by docs/compact.md.
 */
final class Decoder
{
    private const FLOATS = ['NaN' => NAN, 'Infinity' => INF, '-Infinity' => -INF];

    /** @var list<string> JSON pointers to the enclosing objects */
    private array $enclosing = [];

    public static function decode(string $json): mixed
    {
        return (new self())->value(json_decode($json, true, flags: JSON_THROW_ON_ERROR), '');
    }

    private function value(mixed $json, string $at): mixed
    {
        return match (true) {
            !is_array($json) => $json,
            array_is_list($json) => $this->list($json, $at),
            array_key_exists('@cut', $json) => $this->cut($json, $at),
            array_key_exists('@error', $json) => new Shown(
                'error',
                ['class' => $json['@error'], 'message' => $json['message']],
                [['items', $this->value($json['items'], "$at/items")]],
            ),
            array_key_exists('@object', $json) => $this->object('object', $json['@object'], $json, $at),
            array_key_exists('@lazy', $json) => $this->object('lazy', $json['@lazy'], $json, $at),
            array_key_exists('@objects', $json) => $this->objects($json, $at),
            array_key_exists('@iterable', $json) => $this->iterable($json, $at),
            array_key_exists('@map', $json) => self::keyed($this->pairs($json['@map'], "$at/@map")),
            array_key_exists('@int', $json) => (int) $json['@int'],
            array_key_exists('@float', $json) => self::FLOATS[$json['@float']],
            array_key_exists('@bytes', $json) => base64_decode($json['@bytes'], true),
            array_key_exists('@enum', $json) => self::facts('enum', $json),
            array_key_exists('@date', $json) => self::facts('date', $json),
            array_key_exists('@closure', $json) => self::facts('closure', ['@closure' => $json['@closure']]),
            array_key_exists('@resource', $json) => self::facts('resource', $json),
            array_key_exists('@uninitialized', $json) => new Shown('uninitialized'),
            array_key_exists('@ref', $json) => new Shown('reference', ['up' => $this->up($json['@ref'])]),
            default => $this->map($json, $at),
        };
    }

    /**
     * @param list<mixed> $json
     * @return list<mixed>
     */
    private function list(array $json, string $at): array
    {
        return array_map(fn (int $key): mixed => $this->value($json[$key], "$at/$key"), array_keys($json));
    }

    /**
     * @param array<string, mixed> $json
     * @return array<string, mixed>
     */
    private function map(array $json, string $at): array
    {
        $map = [];
        foreach ($json as $key => $item) {
            $name = str_starts_with($key, '@') ? substr($key, 1) : $key;
            if (str_starts_with($key, '@') && !str_starts_with($name, '@')) {
                throw new RuntimeException("There is no tag $key.");
            }
            $map[$name] = $this->value($item, $at . '/' . self::step($key));
        }

        return $map;
    }

    /**
     * @param list<array{mixed, mixed}> $pairs
     * @return list<array{mixed, mixed}>
     */
    private function pairs(array $pairs, string $at): array
    {
        return array_map(
            fn (int $n): array => [
                $this->value($pairs[$n][0], "$at/$n/0"),
                $this->value($pairs[$n][1], "$at/$n/1"),
            ],
            array_keys($pairs),
        );
    }

    /**
     * @param list<array{mixed, mixed}> $pairs
     * @return array<array-key, mixed>
     */
    private static function keyed(array $pairs): array
    {
        return array_column($pairs, 1, 0);
    }

    /**
     * @param array<string, mixed> $json
     */
    private function object(string $kind, string $class, array $json, string $at): Shown
    {
        $this->enclosing[] = $at;
        $facts = ['class' => $class];
        $entries = [];
        foreach ($json as $key => $item) {
            $key = (string) $key;
            if ($key === '@map') {
                foreach ($this->pairs($item, "$at/@map") as $n => [$name, $value]) {
                    // Base64 holds public names only.
                    $entries[] = [is_string($item[$n][0]) ? self::name($name) : ['', $name], $value];
                }
            } elseif (in_array($key, ['@proxy', '@display'], true)) {
                $facts[substr($key, 1)] = $item;
            } elseif ($key !== "@$kind") {
                $entries[] = [self::name($key), $this->value($item, $at . '/' . self::step($key))];
            }
        }
        array_pop($this->enclosing);

        return new Shown($kind, $facts, $entries);
    }

    /**
     * @return array{string, string} the mark of its visibility, and the name
     */
    private static function name(string $key): array
    {
        return match (true) {
            preg_match('/^@[@#-]/', $key) === 1 => ['', substr($key, 1)],
            preg_match('/^[#-]/', $key) === 1 => [$key[0], substr($key, 1)],
            str_starts_with($key, '@') => throw new RuntimeException("There is no tag $key."),
            default => ['', $key],
        };
    }

    /**
     * @param array<string, mixed> $json
     * @return list<Shown>
     */
    private function objects(array $json, string $at): array
    {
        return array_map(
            fn (int $n): Shown => $this->object('object', $json['@objects'], $json['items'][$n], "$at/items/$n"),
            array_keys($json['items']),
        );
    }

    /**
     * @param array<string, mixed> $json
     */
    private function iterable(array $json, string $at): Shown
    {
        $facts = ['class' => $json['@iterable']] + array_diff_key($json, ['@iterable' => 1, 'items' => 1]);
        $items = $json['items'] ?? [];
        if (array_keys($items) === ['@map']) {
            return new Shown('iterable', $facts, $this->pairs($items['@map'], "$at/items/@map"));
        }
        $items = $this->value($items, "$at/items");

        return new Shown('iterable', $facts, array_map(null, array_keys($items), array_values($items)));
    }

    /**
     * @param array<string, mixed> $json
     */
    private function cut(array $json, string $at): Shown
    {
        $facts = ['kind' => $json['@cut']] + array_diff_key($json, ['@cut' => 1, 'items' => 1, 'text' => 1]);
        foreach (['items', 'text'] as $shown) {
            if (array_key_exists($shown, $json)) {
                $this->enclosing[] = $at;
                $value = $this->value($json[$shown], "$at/$shown");
                array_pop($this->enclosing);

                return new Shown('cut', $facts, [[$shown, $value]]);
            }
        }

        return new Shown('cut', $facts);
    }

    /**
     * @param array<string, mixed> $json
     */
    private static function facts(string $kind, array $json): Shown
    {
        return new Shown($kind, ['shown' => $json["@$kind"]] + array_diff_key($json, ["@$kind" => 1]));
    }

    /** How many enclosing objects there are from here to the one that is pointed to. */
    private function up(string $pointer): int
    {
        $place = array_search($pointer, array_reverse($this->enclosing), true);

        return is_int($place) ? $place : throw new RuntimeException("Nothing around is at $pointer.");
    }

    private static function step(string $key): string
    {
        return strtr($key, ['~' => '~0', '/' => '~1']);
    }
}
