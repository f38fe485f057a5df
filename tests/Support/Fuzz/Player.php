<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Fuzz;

use Exception;
use mysqli;
use mysqli_result;
use mysqli_stmt;
use PDO;
use PDOStatement;
use PgSql\Connection;
use PgSql\Result;
use Throwable;

/**
 * Plays sequences: has a client of PHP's say their steps to a server. Confined, in the child; and without guards, in a
 * process of its own. It needs no other file.
 *
 * A sequence is an array: `client`, `open` (for each connection what it is opened with) and `steps`, of each the number
 * of a connection, a verb and what it is told.
 *
 * @phpstan-type Sequence array{client: string, open: list<array<string, mixed>>, steps: list<list<mixed>>}
 */
final class Player
{
    /** Characters of a message that are told. */
    private const SHOWN = 160;

    /** Seconds after which a step is told to be slow. */
    private const SLOW = 3;

    /** @var array<int, PDO|mysqli|Connection> */
    private array $connections = [];

    /** What a client has not read to its end, and what is prepared. */
    private array $kept = [];

    /**
     * @param array{kind: string, port: int, password: string, words: array<string, string>} $server
     */
    public function __construct(private readonly array $server)
    {
        error_reporting(0);
        mysqli_report(MYSQLI_REPORT_ERROR | MYSQLI_REPORT_STRICT);
    }

    /**
     * Plays all of them, and prints for each that it begins, and what each step came to.
     *
     * @param list<array<string, mixed>> $sequences
     */
    public function playAll(array $sequences): void
    {
        foreach ($sequences as $at => $sequence) {
            echo "begin $at\n";
            echo json_encode($this->play($sequence), JSON_INVALID_UTF8_SUBSTITUTE), "\n";
        }
    }

    /**
     * @param array<string, mixed> $sequence
     * @return list<string> what each step came to: `ok …` or a class and a message
     */
    public function play(array $sequence): array
    {
        $said = [];
        foreach ($sequence['steps'] as [$number, $verb, $told]) {
            $began = hrtime(true);
            try {
                $connection = $this->connections[$number]
                    ??= $this->open($sequence['client'], $sequence['open'][$number] ?? []);
                $came = 'ok ' . $this->digest($this->{$sequence['client'] . ucfirst($verb)}($connection, ...$told));
            } catch (Throwable $e) {
                $came = $e::class . ': ' . substr(strtr($e->getMessage(), ["\n" => ' ']), 0, self::SHOWN);
            }
            $seconds = (hrtime(true) - $began) / 1e9;
            $said[] = $came . ($seconds > self::SLOW ? sprintf(' [slow: %.1f s]', $seconds) : '');
        }
        $this->kept = [];
        foreach ($this->connections as $connection) {
            try {
                match (true) {
                    $connection instanceof mysqli => $connection->close(),
                    $connection instanceof Connection => pg_close($connection),
                    default => null,
                };
            } catch (Throwable) {
                // It was closed before.
            }
        }
        $this->connections = [];
        unset($connection);

        return $said;
    }

    private function digest(mixed $value): string
    {
        // Where the server has its files is another place each time.
        $names = array_flip(array_diff_key($this->server['words'], ['VICTIM_ID' => 0]));
        $value = [$value];
        array_walk_recursive($value, static function (mixed &$one) use ($names): void {
            $one = is_string($one) ? strtr($one, $names) : $one;
        });
        $shown = (string) json_encode($value, JSON_INVALID_UTF8_SUBSTITUTE | JSON_UNESCAPED_SLASHES);

        return substr(md5(serialize($value)), 0, 12) . ' ' . substr($shown, 0, self::SHOWN);
    }

    /** A text with the server's own words in it. */
    private function text(mixed $text): mixed
    {
        return is_string($text) ? strtr($text, $this->server['words']) : $text;
    }

    /**
     * @param array<string, mixed> $options
     */
    private function open(string $client, array $options): PDO|mysqli|Connection
    {
        ['kind' => $kind, 'port' => $port, 'password' => $password] = $this->server;
        if ($client === 'mysqli') {
            return $this->openMysqli($options, $port, $password);
        }
        if ($client === 'pgsql') {
            $text = "host=127.0.0.1 port=$port dbname=shop user=shop password=$password";
            $text .= isset($options['options']) ? " options='{$options['options']}'" : '';

            return pg_connect($text, PGSQL_CONNECT_FORCE_NEW) ?: throw new Exception('not connected');
        }
        $dsn = "$kind:host=127.0.0.1;port=$port;dbname=shop";
        $dsn .= isset($options['charset']) ? ";charset={$options['charset']}" : '';
        $dsn .= isset($options['options']) ? ";options='{$options['options']}'" : '';
        $attributes = array_map($this->text(...), $options['attributes'] ?? []);

        return new PDO($dsn, 'shop', $password, $attributes + [PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION]);
    }

    /**
     * @param array<string, mixed> $options
     */
    private function openMysqli(array $options, int $port, string $password): mysqli
    {
        $mysqli = mysqli_init();
        foreach ($options['options'] ?? [] as $option => $value) {
            $mysqli->options($option, $this->text($value));
        }
        $host = isset($options['persistent']) ? 'p:127.0.0.1' : '127.0.0.1';
        $mysqli->real_connect($host, 'shop', $password, 'shop', $port, null, $options['flags'] ?? 0);

        return $mysqli;
    }

    /* ---- PDO ---- */

    private function pdoExec(PDO $pdo, string $text): int|false
    {
        return $pdo->exec($this->text($text));
    }

    private function pdoQuery(PDO $pdo, string $text): array
    {
        return self::rowsOf($pdo->query($this->text($text)));
    }

    /** Leaves what it says unread. */
    private function pdoAsk(PDO $pdo, string $text): bool
    {
        $this->kept[] = $pdo->query($this->text($text));

        return true;
    }

    /**
     * @param array<int, mixed> $attributes
     * @param array<int|string, mixed> $values
     */
    private function pdoPrepare(PDO $pdo, string $text, array $attributes, array $values, int $times = 1): array
    {
        $rows = [];
        $statement = $pdo->prepare($this->text($text), $attributes);
        for (; $times > 0; $times--) {
            $statement->execute(array_map($this->text(...), $values));
            $rows[] = self::rowsOf($statement);
        }

        return $rows;
    }

    private function pdoBegin(PDO $pdo): bool
    {
        return $pdo->beginTransaction();
    }

    private function pdoCommit(PDO $pdo): bool
    {
        return $pdo->commit();
    }

    private function pdoRollback(PDO $pdo): bool
    {
        return $pdo->rollBack();
    }

    private function pdoIn(PDO $pdo): bool
    {
        return $pdo->inTransaction();
    }

    private function pdoAttribute(PDO $pdo, int $attribute, mixed $value): bool
    {
        return $pdo->setAttribute($attribute, $value);
    }

    /** A value in its quotes, in the place of a mark. */
    private function pdoQuoted(PDO $pdo, string $text, string $value): array
    {
        $value = $pdo->quote($this->text($value));

        return self::rowsOf($pdo->query(strtr($this->text($text), ['{?}' => $value])));
    }

    /**
     * @param list<string> $rows
     */
    private function pdoCopyFrom(PDO $pdo, string $table, array $rows, string $separator, string $null): bool
    {
        return $pdo->pgsqlCopyFromArray($this->text($table), $rows, $separator, $null);
    }

    private function pdoCopyTo(PDO $pdo, string $table, string $separator, string $null): array|bool
    {
        return $pdo->pgsqlCopyToArray($this->text($table), $separator, $null);
    }

    private function pdoLob(PDO $pdo, string $what): mixed
    {
        return match ($what) {
            'create' => $pdo->pgsqlLOBCreate() > 0,
            'unlink' => $pdo->pgsqlLOBUnlink('4242'),
            default => fwrite($pdo->pgsqlLOBOpen('4242', $what) ?: throw new Exception('not opened'), 'written'),
        };
    }

    private static function rowsOf(PDOStatement|false $statement): array
    {
        $rows = [];
        do {
            $rows[] = $statement && $statement->columnCount() > 0 ? $statement->fetchAll(PDO::FETCH_NUM) : null;
            // PostgreSQL's driver has no more than one.
            $has_more = $statement && count($rows) < 20 && self::goesOn($statement);
        } while ($has_more);

        return $rows;
    }

    private static function goesOn(PDOStatement $statement): bool
    {
        try {
            return $statement->nextRowset();
        } catch (Throwable $e) {
            if ($e->getCode() === 'IM001') {
                return false;
            }

            throw $e;
        }
    }

    /* ---- mysqli ---- */

    private function mysqliQuery(mysqli $mysqli, string $text): mixed
    {
        return self::all($mysqli->query($this->text($text)));
    }

    /** Reads row by row, and not to the end. */
    private function mysqliUse(mysqli $mysqli, string $text): bool
    {
        $result = $mysqli->query($this->text($text), MYSQLI_USE_RESULT);
        $row = $result instanceof mysqli_result ? $result->fetch_row() : null;
        $this->kept[] = $result;

        return $row !== null;
    }

    private function mysqliMulti(mysqli $mysqli, string $text, bool $reads): array
    {
        $mysqli->multi_query($this->text($text));
        for ($rows = []; $reads && count($rows) < 20;) {
            $rows[] = self::all($mysqli->store_result());
            if (!$mysqli->more_results() || !$mysqli->next_result()) {
                break;
            }
        }

        return $rows;
    }

    /**
     * @param list<mixed> $values
     */
    private function mysqliPrepare(mysqli $mysqli, string $text, array $values, int $times = 1, int $cursor = 0): array
    {
        $statement = $mysqli->stmt_init();
        $statement->prepare($this->text($text));
        if ($cursor !== 0) {
            $statement->attr_set(MYSQLI_STMT_ATTR_CURSOR_TYPE, $cursor);
        }
        for ($rows = []; $times > 0; $times--) {
            $statement->execute($values === [] ? null : array_map($this->text(...), $values));
            $rows[] = self::all($statement->get_result());
        }

        return $rows;
    }

    private function mysqliKeep(mysqli $mysqli, string $name, string $text): bool
    {
        $this->kept[$name] = $mysqli->prepare($this->text($text));

        return true;
    }

    /**
     * @param list<mixed> $values
     */
    private function mysqliKept(mysqli $mysqli, string $name, array $values): mixed
    {
        $statement = $this->kept[$name] ?? null;
        if (!$statement instanceof mysqli_stmt) {
            return null;
        }
        $statement->execute($values === [] ? null : array_map($this->text(...), $values));

        return self::all($statement->get_result());
    }

    /** A value that is sent in parts, before its statement is executed. */
    private function mysqliLong(mysqli $mysqli, string $text, string $value): bool
    {
        $statement = $mysqli->prepare($this->text($text));
        $none = null;
        $statement->bind_param('b', $none);
        $statement->send_long_data(0, $this->text($value));

        return $statement->execute();
    }

    private function mysqliAsync(mysqli $mysqli, string $text, bool $reads): mixed
    {
        $mysqli->query($this->text($text), MYSQLI_ASYNC);

        return $reads ? self::all($mysqli->reap_async_query()) : null;
    }

    private function mysqliAutocommit(mysqli $mysqli, bool $on): bool
    {
        return $mysqli->autocommit($on);
    }

    private function mysqliBegin(mysqli $mysqli, int $flags, ?string $name): bool
    {
        return $mysqli->begin_transaction($flags, $name);
    }

    private function mysqliCommit(mysqli $mysqli, int $flags, ?string $name): bool
    {
        return $mysqli->commit($flags, $name);
    }

    private function mysqliRollback(mysqli $mysqli, int $flags, ?string $name): bool
    {
        return $mysqli->rollback($flags, $name);
    }

    private function mysqliPoint(mysqli $mysqli, string $name, bool $release): bool
    {
        return $release ? $mysqli->release_savepoint($name) : $mysqli->savepoint($name);
    }

    private function mysqliUser(mysqli $mysqli, string $user, bool $right, ?string $database): bool
    {
        return $mysqli->change_user($user, $right ? $this->server['password'] : 'wrong', $database);
    }

    private function mysqliCall(mysqli $mysqli, string $method, mixed ...$values): bool
    {
        $values = array_map($this->text(...), $values);

        return (bool) ($method === 'kill' ? $mysqli->kill((int) $values[0]) : $mysqli->$method(...$values));
    }

    private static function all(mysqli_result|bool|null $result): mixed
    {
        return $result instanceof mysqli_result ? $result->fetch_all() : $result;
    }

    /* ---- pgsql ---- */

    private static function result(Connection $server, Result|bool $result): array
    {
        if (!$result instanceof Result || (string) pg_result_error($result) !== '') {
            throw new Exception(($result instanceof Result ? pg_result_error($result) : '') ?: pg_last_error($server));
        }

        return [pg_affected_rows($result), pg_num_rows($result) > 0 ? pg_fetch_all($result, PGSQL_NUM) : []];
    }

    private function pgsqlQuery(Connection $server, string $text): array
    {
        return self::result($server, pg_query($server, $this->text($text)));
    }

    /** On the last connection that was opened. */
    private function pgsqlLast(Connection $server, string $text): array
    {
        return self::result($server, pg_query($this->text($text)));
    }

    /**
     * @param list<mixed> $values
     */
    private function pgsqlParams(Connection $server, string $text, array $values): array
    {
        return self::result($server, pg_query_params($server, $this->text($text), $this->values($values)));
    }

    private function pgsqlPrepare(Connection $server, string $name, string $text): array
    {
        return self::result($server, pg_prepare($server, $name, $this->text($text)));
    }

    /**
     * @param list<mixed> $values
     */
    private function pgsqlExecute(Connection $server, string $name, array $values): array
    {
        return self::result($server, pg_execute($server, $name, $this->values($values)));
    }

    /** Sends, and takes so many of the answers; fewer than there are leaves the rest. */
    private function pgsqlSendText(Connection $server, string $text, int $takes): array
    {
        return self::taken($server, pg_send_query($server, $this->text($text)), $takes);
    }

    private function pgsqlSendParams(Connection $server, string $text, array $values, int $takes): array
    {
        return self::taken($server, pg_send_query_params($server, $this->text($text), $this->values($values)), $takes);
    }

    private function pgsqlSendPrepare(Connection $server, string $text, string $name, int $takes): array
    {
        return self::taken($server, pg_send_prepare($server, $name, $this->text($text)), $takes);
    }

    private function pgsqlSendExecute(Connection $server, string $name, array $values, int $takes): array
    {
        return self::taken($server, pg_send_execute($server, $name, $this->values($values)), $takes);
    }

    private static function taken(Connection $server, int|bool $sent, int $takes): array
    {
        if ($sent === false) {
            throw new Exception('not sent');
        }
        for ($rows = []; $takes > 0 && ($result = pg_get_result($server)) !== false; $takes--) {
            $rows[] = self::result($server, $result);
        }

        return [$sent, $rows];
    }

    /** A `COPY … FROM STDIN` and its lines; it may be left open. */
    private function pgsqlPut(Connection $server, string $text, array $lines, bool $ends): array
    {
        $result = self::result($server, pg_query($server, $this->text($text)));
        foreach ($lines as $line) {
            pg_put_line($server, $line);
        }

        return [$result, $ends && pg_end_copy($server)];
    }

    private function pgsqlCopyFrom(Connection $server, string $table, array $rows, string $by, string $null): bool
    {
        return pg_copy_from($server, $this->text($table), $rows, $by, $this->text($null))
            ?: throw new Exception(pg_last_error($server));
    }

    private function pgsqlCopyTo(Connection $server, string $table, string $by, string $null): array
    {
        return pg_copy_to($server, $this->text($table), $by, $this->text($null))
            ?: throw new Exception(pg_last_error($server));
    }

    /** The functions that make a statement of arrays. */
    private function pgsqlDml(Connection $server, string $function, string $table, array ...$told): mixed
    {
        [$arrays, $flags] = [array_map($this->values(...), array_slice($told, 0, -1)), end($told)[0]];
        $done = ("pg_$function")($server, $this->text($table), ...[...$arrays, $flags]);

        return $done instanceof Result ? self::result($server, $done)
            : ($done ?: throw new Exception(pg_last_error($server) ?: 'false'));
    }

    private function pgsqlLo(Connection $server, string $function, mixed ...$told): bool
    {
        $told = array_map($this->text(...), $told);
        if ($function !== 'write') {
            return (bool) (("pg_lo_$function")($server, ...$told) ?: throw new Exception(pg_last_error($server)));
        }
        $object = pg_lo_open($server, $told[0], $told[1]) ?: throw new Exception(pg_last_error($server));
        pg_lo_write($object, 'written');
        pg_lo_truncate($object, 3);

        return pg_lo_close($object);
    }

    private function pgsqlCall(Connection $server, string $function, mixed ...$told): bool
    {
        $done = ("pg_$function")($server, ...array_map($this->text(...), $told));

        return $done !== false && $done !== -1;
    }

    /**
     * @param array<int|string, mixed> $values
     */
    private function values(array $values): array
    {
        return array_map($this->text(...), $values);
    }
}
