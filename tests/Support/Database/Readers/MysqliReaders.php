<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Database\Readers;

use Closure;
use mysqli;

/**
 * How an application reads by mysqli's methods.
 */
final class MysqliReaders
{
    private function __construct()
    {
    }

    /**
     * @return iterable<string, Closure>
     */
    public static function each(mysqli $c): iterable
    {
        $users = 'SELECT id, name FROM users ORDER BY id';
        yield 'use_result()' => static function () use ($c, $users): array {
            $c->real_query($users);
            $result = $c->use_result();
            $rows = [$result->fetch_assoc(), $result->fetch_object()];
            $result->free();

            return $rows;
        };
        yield 'fetch_fields()' => fn () => array_map(
            static fn (object $field): array => [$field->name, $field->type, $field->table],
            $c->query($users)->fetch_fields(),
        );
        yield 'bind_result()' => static function () use ($c): array {
            $statement = $c->prepare('SELECT id, name FROM users WHERE name LIKE ? ORDER BY id');
            $like = '%a%';
            $statement->bind_param('s', $like);
            $statement->execute();
            $statement->bind_result($id, $name);
            $rows = [];
            while ($statement->fetch()) {
                $rows[] = [$id, $name];
            }

            return $rows;
        };
        yield 'store_result()' => static function () use ($c, $users): array {
            $statement = $c->prepare($users);
            $statement->execute();
            $statement->store_result();

            return [$statement->num_rows, $statement->field_count, $statement->affected_rows];
        };
        yield 'a cursor' => static function () use ($c, $users): array {
            $statement = $c->prepare($users);
            $statement->attr_set(MYSQLI_STMT_ATTR_CURSOR_TYPE, MYSQLI_CURSOR_TYPE_READ_ONLY);
            $statement->execute();
            $statement->bind_result($id, $name);
            $rows = [];
            while ($statement->fetch()) {
                $rows[] = $name;
            }
            $statement->reset();

            return $rows;
        };
        yield 'execute_query()' => fn () => method_exists($c, 'execute_query')
            ? $c->execute_query('SELECT name FROM users WHERE id = ?', [1])->fetch_all() : [['Ada']];
        yield 'long data' => static function () use ($c): array {
            $statement = $c->prepare('SELECT LENGTH(?)');
            $data = null;
            $statement->bind_param('b', $data);
            $statement->send_long_data(0, str_repeat("into outfile ';", 1000));
            $statement->execute();

            return $statement->get_result()->fetch_all();
        };
        yield 'begin_transaction()' => fn () => [
            $c->begin_transaction(MYSQLI_TRANS_START_READ_ONLY, 'of_reading'), $c->query($users)->num_rows,
            $c->commit(), $c->begin_transaction(MYSQLI_TRANS_START_WITH_CONSISTENT_SNAPSHOT), $c->savepoint('a'),
            $c->query($users)->num_rows, $c->release_savepoint('a'), $c->rollback(),
        ];
        yield 'autocommit()' => fn () => [
            $c->autocommit(false), $c->query($users)->num_rows, $c->commit(MYSQLI_TRANS_COR_NO_RELEASE),
            $c->autocommit(true),
        ];
        yield 'what the connection is' => fn () => [
            $c->character_set_name(), $c->get_charset()->charset, $c->server_version, $c->stat() !== '', $c->ping(),
            $c->host_info, $c->thread_id > 0, $c->sqlstate, $c->errno, $c->insert_id,
        ];
        yield 'what the last statement was' => static function () use ($c): array {
            $c->query('SELECT CAST("x" AS SIGNED) AS x');

            return [$c->warning_count, $c->get_warnings()->message, $c->affected_rows, $c->field_count, $c->info];
        };
        yield 'poll()' => static function () use ($c): array {
            $rows = [];
            foreach (['SELECT SLEEP(0.01)', 'SELECT name FROM users ORDER BY id', 'SELECT 3'] as $sql) {
                $c->query($sql, MYSQLI_ASYNC);
                $read = $error = $reject = [$c];
                $rows[] = mysqli::poll($read, $error, $reject, 5);
                $rows[] = $c->reap_async_query()->fetch_all();
            }

            return $rows;
        };
        yield 'set_charset()' => fn () => [$c->set_charset('latin1'), $c->set_charset('utf8mb4')];
        yield 'select_db()' => fn () => [
            $c->select_db('information_schema'), $c->query('SELECT DATABASE()')->fetch_all(), $c->select_db('shop'),
        ];
        yield 'real_escape_string()' => fn () => $c->query(
            'SELECT \'' . $c->real_escape_string("it's \\ ; -- \" INTO OUTFILE '/x' \0 \n") . '\'',
        )->fetch_all();
    }
}
