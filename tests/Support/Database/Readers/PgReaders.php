<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Database\Readers;

use Closure;
use PgSql\Connection;

/**
 * How an application reads by the functions of pgsql.
 */
final class PgReaders
{
    private function __construct()
    {
    }

    /**
     * @return iterable<string, Closure>
     */
    public static function each(Connection $c): iterable
    {
        $users = 'SELECT id, name FROM users ORDER BY id';
        yield 'pg_fetch_*()' => fn () => [
            pg_fetch_row(pg_query($c, $users)), pg_fetch_assoc(pg_query($c, $users), 1),
            pg_fetch_object(pg_query($c, $users)), pg_fetch_all_columns(pg_query($c, $users), 1),
            pg_fetch_result(pg_query($c, $users), 1, 'name'),
        ];
        yield 'what a result is' => static function () use ($c, $users): array {
            $of = pg_query($c, $users);

            return [
                pg_num_rows($of), pg_num_fields($of), pg_field_name($of, 1), pg_field_type($of, 0),
                pg_field_table($of, 0), pg_affected_rows($of), pg_result_status($of, PGSQL_STATUS_STRING),
            ];
        };
        yield 'pg_meta_data()' => fn () => array_map(
            static fn (array $column): array => [$column['type'], $column['not null']],
            pg_meta_data($c, 'orders'),
        );
        yield 'pg_select()' => fn () => pg_select($c, 'users', ['id' => '1']);
        yield 'pg_convert()' => fn () => pg_convert($c, 'users', ['id' => '7', 'name' => "it's"]);
        yield 'pg_copy_to()' => fn () => [
            pg_copy_to($c, 'users'), pg_copy_to($c, '(SELECT id FROM posts ORDER BY id)', ';', 'none'),
        ];
        yield 'large objects' => static function () use ($c): array {
            pg_query($c, 'BEGIN');
            $object = pg_lo_open($c, 424242, 'r');
            $parts = [pg_lo_read($object, 7), pg_lo_tell($object), pg_lo_seek($object, 2, PGSQL_SEEK_SET)];
            $parts[] = pg_lo_read($object);
            pg_lo_close($object);
            $file = tempnam(sys_get_temp_dir(), 'object');
            pg_lo_export($c, 424242, $file);
            $parts[] = file_get_contents($file);
            unlink($file);
            pg_query($c, 'COMMIT');

            return $parts;
        };
        yield 'pg_send_prepare()' => static function () use ($c): array {
            pg_send_prepare($c, 'sent', 'SELECT name FROM users WHERE id = $1');
            while (pg_get_result($c) !== false) {
            }
            pg_send_execute($c, 'sent', ['2']);
            $rows = pg_fetch_all(pg_get_result($c));
            while (pg_get_result($c) !== false) {
            }

            return $rows;
        };
        yield 'pg_send_query_params()' => static function () use ($c): array {
            pg_send_query_params($c, 'SELECT $1::text AS a', ["; -- lo_import('x') $$"]);
            $rows = pg_fetch_all(pg_get_result($c));
            while (pg_connection_busy($c) || pg_get_result($c) !== false) {
            }

            return $rows;
        };
        yield 'a prepared one, twice' => static function () use ($c): array {
            pg_prepare($c, 'twice', 'SELECT name FROM users WHERE id = $1');

            return [pg_fetch_all(pg_execute($c, 'twice', [1])), pg_fetch_all(pg_execute($c, 'twice', [2]))];
        };
        yield 'a transaction' => fn () => [
            pg_query($c, 'BEGIN') !== false,
            pg_query($c, 'SET TRANSACTION ISOLATION LEVEL SERIALIZABLE READ ONLY') !== false,
            pg_fetch_all(pg_query($c, 'SHOW transaction_isolation')), pg_transaction_status($c),
            pg_query($c, 'END') !== false, pg_transaction_status($c),
        ];
        yield 'a level of isolation after a look' => static function () use ($c): array {
            pg_query($c, 'BEGIN');
            pg_query($c, 'SHOW transaction_isolation');
            $isSet = @pg_query($c, 'SET TRANSACTION ISOLATION LEVEL REPEATABLE READ') !== false;
            $error = pg_last_error($c);
            $level = @pg_query($c, 'SHOW transaction_isolation');
            pg_query($c, 'ROLLBACK');

            return [$isSet, $error, $level === false ? null : pg_fetch_all($level)];
        };
        yield 'what the connection is' => fn () => [
            pg_parameter_status($c, 'server_encoding'), pg_client_encoding($c), pg_set_client_encoding($c, 'UTF8'),
            pg_version($c)['server'], pg_dbname($c), pg_ping($c), pg_connection_status($c), pg_get_pid($c) > 0,
            pg_last_error($c), pg_get_notify($c),
        ];
        yield 'pg_escape_*()' => fn () => pg_fetch_all(pg_query($c, 'SELECT '
            . pg_escape_literal($c, "it's \\ ; lo_import(1) $$") . ', \'' . pg_escape_string($c, "o'x") . '\', \''
            . pg_escape_bytea($c, "\0\xff'") . '\' AS ' . pg_escape_identifier($c, 'a "dblink(" b')));
        yield 'notices' => fn () => [
            pg_query($c, 'COMMIT') !== false, str_contains(pg_last_notice($c), 'no transaction in progress'),
        ];
        yield 'pg_connection_reset()' => fn () => [pg_connection_reset($c), pg_fetch_all(pg_query($c, $users))];
    }
}
