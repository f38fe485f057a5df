<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Database\Readers;

use PDO;
use PDOException;
use Random\Engine\Mt19937;
use Random\Randomizer;

/**
 * Random values that are bound to statements, and come back.
 */
final class Parameters
{
    /** Values of one statement. */
    private const BATCH = 50;

    /** Of a value, as a rule and for one in a hundred. */
    private const LENGTH_MAX = 200;
    private const LONG = 2000;

    /** Those that have gone wrong and are told of. */
    private const SHOWN = 3;

    /** What texts are made of, beside characters: all that a scanner may stop at, and what is refused where it is code. */
    private const PIECES = [
        "'", "''", '"', '`', '\\', '\\\\', "\\'", '\\"', '$$', '$a$', '$1', ';', '; ', '--', '-- ', '#', '/*',
        '*/', '/*!50000 ', '/*M!100100', '/*+', '/*/**/', '?', '??', ':a', '::', '(', ')', '[', ']', '{', '}',
        '@', '@@', '%', '_', "\n", "\r", "\t", ' ', ' ', 'E\'', 'U&"', 'U&\'', 'N\'', '_binary\'', 'x\'',
        'into outfile', ' INTO OUTFILE ', ' into dumpfile \'/x\'', 'SET SESSION TRANSACTION READ WRITE',
        'tx_read_only = 0', 'default_transaction_read_only', 'CALL tries()', 'COMMIT', 'lo_import(',
        'lo_unlink(1)', 'dblink(\'x\')', 'pg_notify (', 'query_to_xml(', 'crosstab($1)', '.lo_creat',
        'COPY t TO PROGRAM', 'GLOBAL', 'WRITE', 'DELETE FROM users', 'select', 'union', '1e5', '0x', 'a', 'é',
        '東京', '😀', "\u{a0}", "\u{feff}", "\u{202e}", 'ｓｅｌｅｃｔ', '¥', '表', "\u{7f}", "\u{1}",
    ];

    private function __construct()
    {
    }

    /**
     * Sends some and tells of those that were refused or came back as something else.
     *
     * @return array{int, list<string>} how many were sent; what has gone wrong, the first few
     */
    public static function send(PDO $c, int $seed, int $count): array
    {
        $isMySql = $c->getAttribute(PDO::ATTR_DRIVER_NAME) === 'mysql';
        $random = new Randomizer(new Mt19937($seed));
        $wrong = [];
        for ($sent = 0; $sent < $count && $wrong === []; $sent += self::BATCH) {
            $values = [];
            for ($i = 0; $i < self::BATCH; $i++) {
                $isBinary = $random->getInt(0, 1) === 1;
                $values[] = [$isBinary, self::value($random, $isBinary, $isMySql)];
            }
            $wrong = self::differences($c, $isMySql, $values);
        }

        return [$sent, array_slice($wrong, 0, self::SHOWN)];
    }

    /**
     * @param list<array{bool, string}> $values
     * @return list<string>
     */
    private static function differences(PDO $c, bool $isMySql, array $values): array
    {
        try {
            $row = self::sentBack($c, $isMySql, $values);
        } catch (PDOException $e) {
            // Which of them it is.
            $each = count($values) === 1 ? []
                : array_map(static fn (array $value): array => self::differences($c, $isMySql, [$value]), $values);

            return array_merge(...$each) ?: ["{$e->getMessage()}: " . self::asText($values[0][1])];
        }
        $wrong = [];
        foreach ($values as $i => [, $value]) {
            if ($row[$i] !== $value) {
                $wrong[] = self::asText($value) . ' came back as ' . self::asText((string) $row[$i]);
            }
        }

        return $wrong;
    }

    /**
     * @param list<array{bool, string}> $values
     * @return list<string|null>
     */
    private static function sentBack(PDO $c, bool $isMySql, array $values): array
    {
        $marks = array_map(static fn (array $value): string => match (true) {
            $isMySql => '?',
            $value[0] => '?::bytea',
            default => '?::text',
        }, $values);
        $statement = $c->prepare('SELECT ' . implode(' AS v, ', $marks) . ' AS v');
        foreach ($values as $i => [$isBinary, $value]) {
            $statement->bindValue($i + 1, $value, $isBinary ? PDO::PARAM_LOB : PDO::PARAM_STR);
        }
        $statement->execute() || throw new PDOException('Nothing was sent');

        return array_map(
            static fn (mixed $value): ?string => is_resource($value) ? stream_get_contents($value) : $value,
            $statement->fetch(PDO::FETCH_NUM),
        );
    }

    private static function asText(string $value): string
    {
        return substr(addcslashes($value, "\0..\37\177..\377"), 0, self::LONG);
    }

    private static function value(Randomizer $random, bool $isBinary, bool $isMySql): string
    {
        $length = $random->getInt(1, 100) === 1 ? self::LONG : $random->getInt(0, self::LENGTH_MAX);
        if ($isBinary) {
            return $length === 0 ? '' : $random->getBytes($length);
        }
        $text = '';
        $last = count(self::PIECES) - 1;
        while (strlen($text) < $length) {
            $text .= $random->getInt(0, 3) === 0 ? mb_chr(self::code($random, $isMySql))
                : self::PIECES[$random->getInt(0, $last)];
        }

        return $text;
    }

    /** A character; PostgreSQL's texts have no NUL. */
    private static function code(Randomizer $random, bool $isMySql): int
    {
        return match ($random->getInt(0, 3)) {
            0 => $random->getInt($isMySql ? 0 : 1, 0x7f),
            1 => $random->getInt(0x80, 0x7ff),
            2 => $random->getInt(0x800, 0xd7ff),
            3 => $random->getInt(0x10000, 0x10ffff),
        };
    }
}
