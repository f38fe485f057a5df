<?php

declare(strict_types=1);

namespace Altair\Eval\Testing;

/**
 * Decodes an encoded value, if it is complete.
 *
 * @internal
 */
final class PlainValue
{
    private function __construct()
    {
    }

    /**
     * @param array<string, mixed> $encoded from {@see \Altair\Eval\Encoder\ValueEncoder::encode()}
     * @param string $place its position in the whole value
     * @throws NotPlainException if it is not null, a scalar or an array of them, or if it is truncated
     */
    public static function of(array $encoded, string $place = ''): mixed
    {
        $at = $place === '' ? 'it' : "at $place it";
        if (isset($encoded['truncated'])) {
            throw new NotPlainException("$at is {$encoded['type']}, and was cut: too deep, too long or too large.");
        }

        return match ($encoded['type']) {
            'null' => null,
            'bool', 'int' => $encoded['value'],
            'float' => self::float($encoded['value']),
            'string' => isset($encoded['encoding']) ? base64_decode($encoded['value'], true) : $encoded['value'],
            'array' => self::array((array) $encoded['value'], (array) ($encoded['key_bytes'] ?? []), $place),
            default => throw new NotPlainException(
                "$at is {$encoded['type']} " . ($encoded['class'] ?? $encoded['value'] ?? '')
                . '; let the snippet return what is to be compared of it.',
            ),
        };
    }

    private static function float(string|int|float $value): float
    {
        return match ($value) {
            'NaN' => NAN,
            'Infinity' => INF,
            '-Infinity' => (-INF),
            default => (float) $value,
        };
    }

    /**
     * @param array<array-key, array<string, mixed>> $items
     * @param array<array-key, string> $bytes the keys that are not UTF-8, by how they are shown
     * @return array<array-key, mixed>
     */
    private static function array(array $items, array $bytes, string $place): array
    {
        $plain = [];
        foreach ($items as $key => $item) {
            $own = isset($bytes[$key]) ? (string) base64_decode($bytes[$key], true) : $key;
            $plain[$own] = self::of((array) $item, $place . '[' . var_export($key, true) . ']');
        }

        return $plain;
    }
}
