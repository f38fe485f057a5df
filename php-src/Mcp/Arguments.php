<?php

declare(strict_types=1);

namespace Altair\Eval\Mcp;

use Altair\Eval\EvalRequest;
use InvalidArgumentException;

/**
 * The arguments of a call, with the checks and the messages of `altair mcp:serve`.
 *
 * @internal
 */
final class Arguments
{
    private function __construct(
        public readonly string $snippet,
        public readonly int $timeoutMs,
        public readonly bool $allowWrites,
        public readonly bool $allowNetwork,
        public readonly ?string $database,
        public readonly bool $queries,
    ) {
    }

    /**
     * Reads the arguments of a call.
     *
     * @param array<array-key, mixed> $given the decoded JSON
     * @param bool $writes whether calls may ask for real writes
     * @param bool $network whether calls may ask for connections
     * @param bool $rollback whether calls may ask for database sessions that are rolled back
     * @throws InvalidArgumentException with all errors and advice, for the agent
     */
    public static function read(array $given, bool $writes, bool $network, bool $rollback): self
    {
        $wrong = [];
        $arguments = new self(
            self::snippet($given, $wrong),
            self::timeout($given, $wrong),
            self::permission($given, 'allow_writes', $writes, $wrong),
            self::permission($given, 'allow_network', $network, $wrong),
            self::database($given, $writes, $rollback, $wrong),
            self::permission($given, 'queries', true, $wrong),
        );
        foreach (array_keys(array_diff_key($given, ToolDescription::INPUT['properties'])) as $name) {
            $wrong[] = $name === 'unsafe'
                ? 'There is no way to ask ' . ToolDescription::NAME . ' for an unsafe run. A person can make one with '
                    . '`altair eval --unsafe`.'
                : "There is no argument `$name`; there are `snippet`, `timeout_ms`, `allow_writes`, `allow_network`, "
                    . '`database` and `queries`.';
        }
        if ($wrong !== []) {
            throw new InvalidArgumentException('Nothing was run. ' . implode(' ', $wrong));
        }

        return $arguments;
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
        // In JSON Schema, a number with a zero fraction is an integer, too.
        $isWhole = is_int($value) || (is_float($value) && is_finite($value) && fmod($value, 1.0) === 0.0);
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
    private static function permission(array $given, string $name, bool $isPermitted, array &$wrong): bool
    {
        $value = array_key_exists($name, $given) ? $given[$name] : false;
        if ($value === false || ($value === true && $isPermitted)) {
            return $value;
        }
        $flag = '--' . strtr($name, '_', '-');
        $wrong[] = $value === true
            ? "`$name` is not allowed by this server. Whoever runs it can start it with $flag; leave `$name` out "
                . 'otherwise.'
            : "`$name` must be true or false, not " . self::kind($value) . '.';

        return false;
    }

    /**
     * @param array<array-key, mixed> $given
     * @param list<string> $wrong
     */
    private static function database(array $given, bool $writes, bool $rollback, array &$wrong): ?string
    {
        if (!array_key_exists('database', $given)) {
            return null;
        }
        $mode = $given['database'];
        $modes = ToolDescription::INPUT['properties']['database']['enum'];
        if (!in_array($mode, $modes, true)) {
            $wrong[] = '`database` must be one of ' . implode(', ', $modes) . '.';

            return null;
        }
        $flag = match (true) {
            $mode === 'rollback' && !$rollback => '--allow-rollback',
            $mode === 'write' && !$writes => '--allow-writes',
            default => null,
        };
        if ($flag !== null) {
            $wrong[] = "`database` \"$mode\" is not allowed by this server. Whoever runs it can start it with $flag; "
                . 'leave `database` out otherwise.';
        }

        return $mode;
    }

    /** The type of a JSON value, in words. */
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
