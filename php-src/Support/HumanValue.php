<?php

declare(strict_types=1);

namespace Altair\Eval\Support;

/**
 * An encoded value as a line, and the indented tree below it.
 *
 * @internal
 */
final class HumanValue
{
    /** @var array<string, true> the numbers of objects that something refers to: only these show theirs */
    private readonly array $referenced;

    /**
     * @param array<string, mixed> $value as {@see \Altair\Eval\Encoder\ValueEncoder::encode()} shapes it
     */
    public function __construct(private readonly array $value)
    {
        $referenced = [];
        self::find($value, $referenced);
        $this->referenced = $referenced;
    }

    /**
     * The value in a line: `int = 2`, `array(2)`, `object App\User`.
     */
    public function headline(): string
    {
        return $this->describe($this->value);
    }

    /**
     * What is nested in it, each entry a line.
     *
     * @return list<string>
     */
    public function tree(): array
    {
        return $this->children($this->value, '  ');
    }

    /**
     * `Class: message` of an encoded exception, in a line.
     *
     * @param array<string, mixed> $encoded
     */
    public static function exception(array $encoded): string
    {
        $message = Text::line((string) ($encoded['message'] ?? ''));

        return Text::line((string) ($encoded['class'] ?? '')) . ($message === '' ? '' : ": $message");
    }

    /**
     * @param array<string, true> $found
     */
    private static function find(mixed $value, array &$found): void
    {
        $value = is_object($value) ? (array) $value : $value;
        if (is_array($value)) {
            if (($value['type'] ?? null) === 'reference') {
                $found[(string) $value['id']] = true;
            }
            foreach ($value as $item) {
                self::find($item, $found);
            }
        }
    }

    /**
     * @param array<string, mixed> $value
     * @return list<string>
     */
    private function children(array $value, string $indent): array
    {
        $items = match ($value['type'] ?? null) {
            'array' => (array) ($value['value'] ?? []),
            'object' => (array) ($value['properties'] ?? []),
            default => [],
        };
        $isList = ($value['is_list'] ?? false) === true;
        $lines = [];
        foreach ($items as $name => $item) {
            $name = $isList ? (string) $name : self::key((string) $name);
            array_push($lines, ...$this->entry($name, (array) $item, $indent));
        }
        foreach ($value['preview'] ?? [] as $item) {
            $key = $item['key'] ?? null;
            $name = match (true) {
                is_string($key) => self::key($key),
                is_array($key) => $this->describe($key),
                default => self::scalar($key),
            };
            array_push($lines, ...$this->entry($name, (array) $item['value'], $indent));
        }
        $shown = count($items) + count($value['preview'] ?? []);
        if (isset($value['error'])) {
            $lines[] = $indent . '! ' . self::exception((array) $value['error']);
        }

        return [...$lines, ...array_map(static fn (string $rest) => $indent . $rest, self::rest($value, $shown))];
    }

    /**
     * @param array<string, mixed> $value
     * @return list<string>
     */
    private function entry(string $name, array $value, string $indent): array
    {
        return ["$indent$name: " . $this->describe($value), ...$this->children($value, "$indent  ")];
    }

    /**
     * What is missing below a value of which so many entries are shown: a line, or none.
     *
     * @param array<string, mixed> $value
     * @return list<string>
     */
    private static function rest(array $value, int $shown): array
    {
        if (($value['exhausted'] ?? true) === false && !isset($value['error'])) {
            return ['… and more'];
        }
        if (!isset($value['truncated']) || $shown === 0) {
            return [];
        }
        $left = (int) ($value['count'] ?? 0) - $shown;

        return [$left > 0 ? "… and $left more" : '… and more'];
    }

    /**
     * @param array<string, mixed> $value
     */
    private function describe(array $value): string
    {
        $type = (string) ($value['type'] ?? 'unknown');
        $isCut = isset($value['truncated']);
        // No room was left for more than the type.
        if ($isCut && !isset($value['value']) && !isset($value['count']) && !isset($value['class'])) {
            return Text::line($type) . ' (truncated)';
        }
        $class = Text::line((string) ($value['class'] ?? ''));
        $text = match ($type) {
            'null' => 'null',
            'bool', 'int', 'float' => "$type = " . self::plain($value['value'] ?? null),
            'string' => self::string($value),
            'array' => 'array(' . ($value['count'] ?? '') . ')',
            'object' => $this->object($value, $class),
            'iterable' => "iterable $class" . (isset($value['size_hint']) ? " ({$value['size_hint']})" : ''),
            'resource' => 'resource (' . self::plain($value['value'] ?? null) . ')',
            'reference' => "reference to $class #" . ($value['id'] ?? ''),
            default => Text::line((string) json_encode($value, JSON_PARTIAL_OUTPUT_ON_ERROR)),
        };
        $children = (array) ($value['value'] ?? $value['properties'] ?? $value['preview'] ?? []);

        return $isCut && $type !== 'string' && $children === [] ? "$text (truncated)" : $text;
    }

    /**
     * @param array<string, mixed> $value
     */
    private static function string(array $value): string
    {
        // The length is there when the text does not show it: cut, or encoded.
        return 'string' . (isset($value['encoding']) ? ' (' . Text::line($value['encoding']) . ')' : '')
            . ' = ' . Text::quoted((string) ($value['value'] ?? ''))
            . (isset($value['length']) ? " ({$value['length']} bytes)" : '');
    }

    /**
     * @param array<string, mixed> $value
     */
    private function object(array $value, string $class): string
    {
        $backing = $value['backing'] ?? null;
        $backing = is_array($backing) ? $backing['value'] ?? null : $backing;
        $id = (string) ($value['id'] ?? '');

        return "object $class"
            . (isset($value['case']) ? '::' . Text::line($value['case']) : '')
            . ($backing === null ? '' : ' = ' . self::scalar($backing))
            . (isset($this->referenced[$id]) ? " #$id" : '')
            . (isset($value['display']) ? ' (' . Text::line($value['display']) . ')' : '');
    }

    private static function scalar(mixed $value): string
    {
        return is_string($value) ? Text::quoted($value) : self::plain($value);
    }

    private static function plain(mixed $value): string
    {
        if (is_string($value)) {
            return Text::line($value);
        }
        $json = (string) json_encode($value, JSON_PRESERVE_ZERO_FRACTION | JSON_PARTIAL_OUTPUT_ON_ERROR);

        return str_replace('.0e', 'e', $json);
    }

    /** A key as it is where it cannot be mistaken, else in quotes. */
    private static function key(string $name): string
    {
        return preg_match('/^[\p{L}\p{N}_.-]+$/Du', $name) === 1 ? $name : Text::quoted($name);
    }
}
