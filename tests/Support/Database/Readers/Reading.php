<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Database\Readers;

use Closure;
use Throwable;

/**
 * Asks each thing and notes what has come of it in a short text: by these texts two runs are compared.
 */
final class Reading
{
    /** What the note of something that has failed begins with. */
    public const FAILED = 'FAILED ';

    /** Characters of rows that a note shows; where there are more, their sum is in it, too. */
    private const SHOWN = 300;

    private function __construct()
    {
    }

    /**
     * Statements, each group of them on a connection of its own, and what else a client reads by.
     *
     * @param array<string, mixed> $to see Asker
     * @return array{array<string, string>, array<string, string>} the notes of both by label
     */
    public static function all(Asker $asker, array $to): array
    {
        $notes = [];
        foreach (Readers::of($to['driver']) as $readers) {
            $notes += self::statements($asker, $to, $readers);
        }
        $c = $asker->connect($to);
        $others = [];
        foreach ($asker->readers($c) as $label => $read) {
            $others[$label] = self::note($read);
        }

        return [$notes, $others];
    }

    /**
     * @param array<string, mixed> $to
     * @param array<string, Reader> $readers
     * @return array<string, string>
     */
    public static function statements(Asker $asker, array $to, array $readers): array
    {
        $c = $asker->connect($to);
        $ask = static fn (Reader $reader): Closure
            => static fn (): array => $asker->ask($c, $reader->sql, $reader->values);
        $notes = array_map(
            static fn (Reader $reader): string => self::note($ask($reader), $reader->changes),
            $readers,
        );
        $asker->disconnect($c);

        return $notes;
    }

    private static function note(Closure $read, bool $changes = false): string
    {
        try {
            $rows = $read();
        } catch (Throwable $e) {
            $code = method_exists($e, 'getSQLState') ? $e->getSQLState() : $e->getCode();

            return self::FAILED . $e::class . " $code: {$e->getMessage()}";
        }
        if ($changes) {
            return 'rows';
        }
        $text = self::asText(is_object($rows) && method_exists($rows, 'toArray') ? $rows->toArray() : $rows);

        return strlen($text) > self::SHOWN ? substr($text, 0, self::SHOWN) . '… ' . md5($text) : $text;
    }

    private static function asText(mixed $value): string
    {
        $values = [$value];
        array_walk_recursive($values, static function (mixed &$value): void {
            $value = is_resource($value) ? stream_get_contents($value) : $value;
        });

        // A byte that is no ASCII may be in no text of UTF-8.
        return addcslashes(serialize($values[0]), "\0..\37\177..\377");
    }
}
