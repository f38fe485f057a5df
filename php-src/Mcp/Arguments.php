<?php

declare(strict_types=1);

namespace Altair\Eval\Mcp;

use Altair\Eval\EvalRequest;
use InvalidArgumentException;

/**
 * What a call asks for, and whether it may: the checks of `altair mcp:serve`, in its words.
 *
 * @internal
 */
final class Arguments
{
    /** What the agent has without what it asks for. */
    private const WITHOUT = [
        'allow_writes' => 'what a run writes to the project is thrown away and told of in '
            . '`diagnostics.file_changes`',
        'allow_network' => "a run reaches the application's own services only",
        'database' => 'database sessions only read',
    ];

    /**
     * @param array<string, mixed> $arguments
     */
    private function __construct(
        public readonly string $snippet,
        public readonly int $timeoutMs,
        public readonly bool $allowWrites,
        public readonly bool $allowNetwork,
        public readonly bool $queries,
        public readonly bool $diff,
        public readonly bool $verbose,
        public readonly bool $typed,
        public readonly ?int $depth,
        public readonly ?int $maxItems,
        public readonly ?int $maxString,
        public readonly array $arguments,
        public readonly ?string $database,
    ) {
    }

    /**
     * Reads what a call brings.
     *
     * @param array<array-key, mixed> $given as JSON was decoded
     * @param bool $writes whether calls may ask for real writes
     * @param bool $network whether calls may ask for connections
     * @param bool $rollback whether calls may ask for database sessions that are rolled back
     * @throws InvalidArgumentException that says everything that is wrong, and what to do, for the agent to read
     */
    public static function read(array $given, bool $writes, bool $network, bool $rollback): self
    {
        $wrong = [];
        // In the order in which the server tells of them.
        $arguments = new self(
            self::snippet($given, $wrong),
            self::timeout($given, $wrong),
            self::flag($given, 'allow_writes', $wrong),
            self::flag($given, 'allow_network', $wrong),
            self::flag($given, 'queries', $wrong),
            self::flag($given, 'diff', $wrong),
            self::flag($given, 'verbose', $wrong),
            self::flag($given, 'typed', $wrong),
            self::number($given, 'depth', $wrong),
            self::number($given, 'max_items', $wrong),
            self::number($given, 'max_string', $wrong),
            self::variables($given, $wrong),
            self::database($given, $wrong),
        );
        $schema = json_decode((string) file_get_contents(EvalTool::INPUT_SCHEMA), true);
        foreach (array_keys(array_diff_key($given, $schema['properties'])) as $name) {
            $wrong[] = $name === 'unsafe'
                ? 'There is no way to ask ' . EvalTool::NAME . ' for an unsafe run. A person can make one with '
                    . '`altair eval --unsafe`.'
                : "There is no argument `$name`; there are `"
                    . implode('`, `', array_keys($schema['properties'])) . '`.';
        }
        if ($wrong !== []) {
            throw new InvalidArgumentException('Nothing was run. ' . implode(' ', $wrong));
        }
        $arguments->checkPermission($writes, $network, $rollback);

        return $arguments;
    }

    /**
     * @throws InvalidArgumentException
     */
    private function checkPermission(bool $writes, bool $network, bool $rollback): void
    {
        $lacking = array_keys(array_filter([
            'allow_writes' => $this->allowWrites && !$writes,
            'allow_network' => $this->allowNetwork && !$network,
            'database' => ($this->database === 'rollback' && !$rollback) || ($this->database === 'write' && !$writes),
        ]));
        if ($lacking === []) {
            return;
        }
        $named = fn (string $name): string => $name === 'database' ? "`database` \"$this->database\"" : "`$name`";
        throw new InvalidArgumentException(
            'Nothing was run. This server does not permit ' . implode(' and ', array_map($named, $lacking))
            . '. Without it, ' . implode(', and ', array_intersect_key(self::WITHOUT, array_flip($lacking)))
            . '. Only the person who runs this server can permit more.',
        );
    }

    /**
     * @param array<array-key, mixed> $given
     * @param list<string> $wrong
     */
    private static function snippet(array $given, array &$wrong): string
    {
        $snippet = $given['snippet'] ?? null;
        if (is_string($snippet) && $snippet !== '') {
            return $snippet;
        }
        $wrong[] = match (true) {
            !array_key_exists('snippet', $given) => '`snippet` is missing: the PHP code to run.',
            $snippet === '' => '`snippet` is empty: give some PHP to run.',
            default => '`snippet` must be a string, not ' . self::kind($snippet) . '.',
        };

        return '';
    }

    /**
     * @param array<array-key, mixed> $given
     * @param list<string> $wrong
     */
    private static function timeout(array $given, array &$wrong): int
    {
        if (!array_key_exists('timeout_ms', $given)) {
            return EvalRequest::DEFAULT_TIMEOUT_MS;
        }
        $value = $given['timeout_ms'];
        [$min, $max] = [EvalRequest::MIN_TIMEOUT_MS, EvalRequest::MAX_TIMEOUT_MS];
        $isWhole = self::isWhole($value);
        if ($isWhole && $value >= $min && $value <= $max) {
            return (int) $value;
        }
        $wrong[] = $isWhole
            ? "`timeout_ms` must be from $min to $max, not "
                . str_replace('.0e', 'e', (string) json_encode($value, JSON_PRESERVE_ZERO_FRACTION)) . '.'
            : '`timeout_ms` must be an integer, not ' . self::kind($value) . '.';

        return EvalRequest::DEFAULT_TIMEOUT_MS;
    }

    /**
     * @param array<array-key, mixed> $given
     * @param list<string> $wrong
     */
    private static function flag(array $given, string $name, array &$wrong): bool
    {
        $value = array_key_exists($name, $given) ? $given[$name] : false;
        if (is_bool($value)) {
            return $value;
        }
        $wrong[] = "`$name` must be true or false, not " . self::kind($value) . '.';

        return false;
    }

    /**
     * @param array<array-key, mixed> $given
     * @param list<string> $wrong
     */
    private static function number(array $given, string $name, array &$wrong): ?int
    {
        if (!array_key_exists($name, $given)) {
            return null;
        }
        $value = $given[$name];
        if (self::isWhole($value)) {
            // A request brings it within its bounds.
            return (int) max(-1e9, min(1e9, $value));
        }
        $wrong[] = "`$name` must be an integer, not " . self::kind($value) . '.';

        return null;
    }

    /**
     * @param array<array-key, mixed> $given
     * @param list<string> $wrong
     * @return array<string, mixed>
     */
    private static function variables(array $given, array &$wrong): array
    {
        $value = array_key_exists('arguments', $given) ? $given['arguments'] : [];
        // An empty object and an empty list are the same once they are decoded.
        if (!is_array($value) || ($value !== [] && array_is_list($value))) {
            $wrong[] = '`arguments` must be an object of names and values, not ' . self::kind($value) . '.';

            return [];
        }

        // Names and sizes are the evaluator's to check.
        return $value;
    }

    /**
     * @param array<array-key, mixed> $given
     * @param list<string> $wrong
     */
    private static function database(array $given, array &$wrong): ?string
    {
        if (!array_key_exists('database', $given)) {
            return null;
        }
        $modes = ['read-only', 'rollback', 'write'];
        if (in_array($given['database'], $modes, true)) {
            return $given['database'];
        }
        $wrong[] = '`database` must be one of ' . implode(', ', $modes) . '.';

        return null;
    }

    /** What JSON Schema calls an integer may be written with a fraction of zero. */
    private static function isWhole(mixed $value): bool
    {
        return is_int($value) || (is_float($value) && is_finite($value) && fmod($value, 1.0) === 0.0);
    }

    /** A JSON value's kind, in words. */
    private static function kind(mixed $value): string
    {
        return match (true) {
            $value === null => 'null',
            is_bool($value) => 'a boolean',
            is_int($value), is_float($value) => 'a number',
            is_string($value) => 'a string',
            is_array($value) && array_is_list($value) => 'an array',
            default => 'an object',
        };
    }
}
