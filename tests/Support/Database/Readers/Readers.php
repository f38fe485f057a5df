<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Database\Readers;

/**
 * Statements that applications read with, in groups of which each is for one connection, in its order.
 */
final class Readers
{
    private function __construct()
    {
    }

    /**
     * @return array<string, array<string, Reader>> by group, by a label of each
     */
    public static function of(string $driver): array
    {
        [$groups, $changing] = $driver === 'mysql'
            ? [MariaDbReaders::GROUPS, MariaDbReaders::CHANGING]
            : [PostgreSqlReaders::GROUPS, PostgreSqlReaders::CHANGING];
        $readers = [];
        foreach ($groups as $group => $statements) {
            foreach ($statements as $n => $statement) {
                $statement = (array) $statement;
                $readers[$group]["$group $n: $statement[0]"] = new Reader($statement[0], array_slice($statement, 1));
            }
        }
        foreach ($changing as $n => $sql) {
            $readers['changing']["changing $n: $sql"] = new Reader($sql, changes: true);
        }

        return $readers;
    }
}
