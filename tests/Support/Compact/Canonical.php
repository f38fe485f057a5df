<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Compact;

/**
 * A text that two values have in common only if they are the same, bit for bit and in order. decode.mjs writes it too.
 */
final class Canonical
{
    /**
     * @param bool $isJavaScript whether numbers are JavaScript's, which has one kind of them
     */
    public function __construct(private readonly bool $isJavaScript = false)
    {
    }

    public function text(mixed $value): string
    {
        return match (true) {
            $value === null => 'null',
            is_bool($value) => $value ? 'true' : 'false',
            is_int($value) => $this->int($value),
            is_float($value) => is_nan($value) ? 'nan' : 'd' . bin2hex(pack('E', $value)),
            is_string($value) => 's' . bin2hex($value),
            is_array($value) => 'array' . $this->pairs(array_map(null, array_keys($value), array_values($value))),
            $value instanceof Shown => $this->shown($value),
        };
    }

    private function int(int $value): string
    {
        return $this->isJavaScript && abs($value) <= 2 ** 53 ? $this->text((float) $value) : "i$value";
    }

    private function shown(Shown $value): string
    {
        $facts = $value->facts;
        ksort($facts);
        $entries = $value->entries;
        if ($value->kind === 'object' && $facts['class'] !== 'stdClass') {
            // The order of declared properties is the encoder's.
            usort($entries, static fn (array $a, array $b): int => strcmp(implode($a[0]), implode($b[0])));
        }

        return $value->kind . $this->text($facts) . $this->pairs($entries);
    }

    /**
     * @param list<array{mixed, mixed}> $pairs
     */
    private function pairs(array $pairs): string
    {
        $text = fn (array $pair): string => $this->text($pair[0]) . '=' . $this->text($pair[1]);

        return '(' . implode(',', array_map($text, $pairs)) . ')';
    }
}
