<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Database\Readers;

use Closure;
use Doctrine\DBAL\Connection as DoctrineConnection;
use Doctrine\DBAL\DriverManager;
use Illuminate\Database\Capsule\Manager;
use Illuminate\Database\Connection as LaravelConnection;
use mysqli;
use PDO;
use PgSql\Connection as PgConnection;
use PgSql\Result;
use RuntimeException;

/**
 * A way in which an application asks its database. It is what a run does: nothing here knows of PHPUnit.
 *
 * @phpstan-type Place array{driver: 'mysql'|'pgsql', port: int, user: string, password: string}
 */
enum Asker: string
{
    case PdoEmulated = 'PDO, prepared by emulation';
    case PdoNative = 'PDO, prepared';
    case PdoUnbuffered = 'PDO, row by row';
    case PdoParams = 'PDO, by PQexecParams()';
    case PdoCursor = 'PDO, by a cursor';
    case Mysqli = 'mysqli::query()';
    case MysqliMulti = 'mysqli::multi_query()';
    case MysqliAsynchronous = 'mysqli, asynchronous';
    case MysqliPrepared = 'mysqli, prepared';
    case Pg = 'pg_query()';
    case PgSend = 'pg_send_query()';
    case PgParams = 'pg_query_params()';
    case PgPrepared = 'pg_prepare()';
    case Doctrine = 'Doctrine, by PDO';
    case DoctrineMysqli = 'Doctrine, by mysqli';
    case DoctrinePgsql = 'Doctrine, by pgsql';
    case Laravel = 'Laravel';

    public const OF_MARIADB = [
        self::PdoEmulated, self::PdoNative, self::PdoUnbuffered, self::Mysqli, self::MysqliMulti,
        self::MysqliAsynchronous, self::MysqliPrepared, self::Doctrine, self::DoctrineMysqli, self::Laravel,
    ];

    public const OF_POSTGRESQL = [
        self::PdoEmulated, self::PdoNative, self::PdoParams, self::PdoCursor, self::Pg, self::PgSend, self::PgParams,
        self::PgPrepared, self::Doctrine, self::DoctrinePgsql, self::Laravel,
    ];

    /** Whether it is a framework's. */
    public function isOfFramework(): bool
    {
        return $this->libraries() !== [] && !str_starts_with($this->name, 'Pdo');
    }

    /**
     * @return list<string> the libraries of what it reads by, by their directories in the include path
     */
    public function libraries(): array
    {
        return match ($this) {
            self::PdoEmulated, self::PdoNative => ['Symfony/Component/HttpFoundation', 'Symfony/Component/Cache'],
            self::Doctrine, self::DoctrineMysqli, self::DoctrinePgsql => ['Doctrine/DBAL'],
            // Laravel asks Doctrine of what type a column is.
            self::Laravel => ['Illuminate', 'Doctrine/DBAL'],
            default => [],
        };
    }

    /**
     * Whether an error says that there is no such way for a statement: MySQL does not prepare all of them, a cursor of
     * PostgreSQL's is one of a query that only reads, and to Doctrine by pgsql PDO's `??` is no operator.
     */
    public function saysOfNoWay(string $error): bool
    {
        return preg_match(match ($this) {
            self::PdoCursor => '~syntax error at or near|ursors must be READ ONLY|INTO is not allowed here~',
            self::DoctrinePgsql => '~\?\? unknown~',
            default => '~not supported in the prepared statement protocol yet~',
        }, $error) === 1;
    }

    /**
     * @param Place $to
     */
    public function connect(array $to): PDO|mysqli|PgConnection|DoctrineConnection|LaravelConnection
    {
        return match ($this) {
            self::PdoEmulated => self::pdo($to, [PDO::ATTR_EMULATE_PREPARES => true]),
            self::PdoNative, self::PdoCursor => self::pdo($to, [PDO::ATTR_EMULATE_PREPARES => false]),
            self::PdoUnbuffered => self::pdo($to, [
                PDO::ATTR_EMULATE_PREPARES => false, PDO::MYSQL_ATTR_USE_BUFFERED_QUERY => false,
            ]),
            self::PdoParams => self::pdo($to, [PDO::PGSQL_ATTR_DISABLE_PREPARES => true]),
            self::Mysqli, self::MysqliMulti, self::MysqliAsynchronous, self::MysqliPrepared => self::mysqli($to),
            self::Pg, self::PgSend, self::PgParams, self::PgPrepared => self::pg($to),
            self::Doctrine => self::doctrine($to, "pdo_{$to['driver']}"),
            self::DoctrineMysqli => self::doctrine($to, 'mysqli'),
            self::DoctrinePgsql => self::doctrine($to, 'pgsql'),
            self::Laravel => self::laravel($to),
        };
    }

    /** Ends a session. Those of frameworks are held by more than their connection. */
    public function disconnect(object $c): void
    {
        match (true) {
            $c instanceof DoctrineConnection => $c->close(),
            $c instanceof LaravelConnection => $c->disconnect(),
            default => null,
        };
    }

    /**
     * How else it reads than by statements.
     *
     * @return iterable<string, Closure>
     */
    public function readers(object $c): iterable
    {
        return match (true) {
            $c instanceof DoctrineConnection => DoctrineReaders::each($c),
            $c instanceof LaravelConnection => LaravelReaders::each($c),
            $this === self::PdoEmulated, $this === self::PdoNative => PdoReaders::each($c),
            $this === self::Mysqli => MysqliReaders::each($c),
            $this === self::Pg => PgReaders::each($c),
            default => [],
        };
    }

    /**
     * Asks, and gives the rows.
     *
     * @param list<bool|int|string|null> $values for the `?` of the statement
     * @return list<list<mixed>>
     */
    public function ask(object $c, string $sql, array $values = []): array
    {
        return match ($this) {
            self::PdoEmulated, self::PdoNative, self::PdoUnbuffered, self::PdoParams => self::byPdo($c, $sql, $values),
            self::PdoCursor => self::byPdo($c, $sql, $values, [PDO::ATTR_CURSOR => PDO::CURSOR_SCROLL]),
            self::Mysqli, self::MysqliMulti, self::MysqliAsynchronous
                => $this->byMysqli($c, self::filled($sql, $values, fn ($it) => "'{$c->real_escape_string($it)}'")),
            self::MysqliPrepared => self::byMysqliPrepared($c, $sql, $values),
            self::Pg, self::PgSend
                => $this->byPg($c, self::filled($sql, $values, fn ($it) => pg_escape_literal($c, $it)), null),
            self::PgParams, self::PgPrepared => $this->byPg($c, self::numbered($sql, $values), $values),
            self::Doctrine, self::DoctrineMysqli, self::DoctrinePgsql => self::byDoctrine($c, $sql, $values),
            self::Laravel => array_map(
                static fn (object $row): array => array_values((array) $row),
                $c->select($sql, $values),
            ),
        };
    }

    /**
     * @param Place $to
     * @param array<int, mixed> $options
     */
    private static function pdo(array $to, array $options): PDO
    {
        $dsn = "{$to['driver']}:host=127.0.0.1;port={$to['port']};dbname=shop"
            . ($to['driver'] === 'mysql' ? ';charset=utf8mb4' : '');

        return new PDO($dsn, $to['user'], $to['password'], $options);
    }

    /**
     * @param Place $to
     */
    private static function mysqli(array $to): mysqli
    {
        mysqli_report(MYSQLI_REPORT_ERROR | MYSQLI_REPORT_STRICT);
        $mysqli = new mysqli('127.0.0.1', $to['user'], $to['password'], 'shop', $to['port']);
        $mysqli->set_charset('utf8mb4');

        return $mysqli;
    }

    /**
     * @param Place $to
     */
    private static function pg(array $to): PgConnection
    {
        return pg_connect(
            "host=127.0.0.1 port={$to['port']} dbname=shop user={$to['user']} password={$to['password']}",
            PGSQL_CONNECT_FORCE_NEW,
        );
    }

    /**
     * @param Place $to
     */
    private static function doctrine(array $to, string $driver): DoctrineConnection
    {
        return DriverManager::getConnection([
            'driver' => $driver, 'host' => '127.0.0.1', 'port' => $to['port'], 'dbname' => 'shop',
            'user' => $to['user'], 'password' => $to['password'],
            'charset' => $to['driver'] === 'mysql' ? 'utf8mb4' : 'utf8',
        ]);
    }

    /**
     * @param Place $to
     */
    private static function laravel(array $to): LaravelConnection
    {
        $manager = new Manager();
        $manager->addConnection([
            'driver' => $to['driver'], 'host' => '127.0.0.1', 'port' => $to['port'], 'database' => 'shop',
            'username' => $to['user'], 'password' => $to['password'], 'prefix' => '', 'strict' => true,
            'isolation_level' => 'READ COMMITTED', 'application_name' => 'shop',
        ] + ($to['driver'] === 'mysql'
            ? ['charset' => 'utf8mb4', 'collation' => 'utf8mb4_unicode_ci', 'timezone' => '+00:00']
            : ['charset' => 'utf8', 'search_path' => 'public', 'timezone' => 'UTC']));
        $manager->setAsGlobal();
        $manager->bootEloquent();

        return $manager->getConnection();
    }

    /**
     * @param list<bool|int|string|null> $values
     * @param array<int, mixed> $options
     * @return list<list<mixed>>
     */
    private static function byPdo(PDO $c, string $sql, array $values, array $options = []): array
    {
        $statement = $c->prepare($sql, $options);
        foreach ($values as $i => $value) {
            $statement->bindValue($i + 1, $value, is_int($value) ? PDO::PARAM_INT : PDO::PARAM_STR);
        }
        $statement->execute();

        return $statement->columnCount() === 0 ? [] : $statement->fetchAll(PDO::FETCH_NUM);
    }

    /**
     * @return list<list<mixed>>
     */
    private function byMysqli(mysqli $c, string $sql): array
    {
        if ($this === self::MysqliMulti) {
            $c->multi_query($sql);
            $result = $c->store_result();
            while ($c->more_results()) {
                $c->next_result();
                ($c->store_result() ?: null)?->free();
            }
        } elseif ($this === self::MysqliAsynchronous) {
            $c->query($sql, MYSQLI_ASYNC);
            $result = $c->reap_async_query();
        } else {
            $result = $c->query($sql);
        }

        return is_bool($result) ? [] : $result->fetch_all();
    }

    /**
     * @param list<bool|int|string|null> $values
     * @return list<list<mixed>>
     */
    private static function byMysqliPrepared(mysqli $c, string $sql, array $values): array
    {
        $statement = $c->prepare($sql);
        if ($values !== []) {
            $types = array_map(static fn (mixed $value): string => is_int($value) ? 'i' : 's', $values);
            $statement->bind_param(implode('', $types), ...$values);
        }
        $statement->execute();
        $result = $statement->get_result();

        return $result === false ? [] : $result->fetch_all();
    }

    /**
     * @param list<bool|int|string|null>|null $values null where they are in the text
     * @return list<list<mixed>>
     */
    private function byPg(PgConnection $c, string $sql, ?array $values): array
    {
        static $count = 0;
        pg_set_error_verbosity($c, PGSQL_ERRORS_VERBOSE);
        $result = match ($this) {
            self::Pg => @pg_query($c, $sql),
            self::PgSend => pg_send_query($c, $sql) ? pg_get_result($c) : false,
            self::PgParams => @pg_query_params($c, $sql, $values),
            self::PgPrepared => @pg_prepare($c, 'of ' . ++$count, $sql)
                ? @pg_execute($c, "of $count", $values) : false,
        };
        $error = $result instanceof Result ? pg_result_error($result) : pg_last_error($c);
        while ($this === self::PgSend && pg_get_result($c) !== false) {
        }
        if ($error !== '') {
            throw new RuntimeException($error);
        }

        return pg_fetch_all($result, PGSQL_NUM);
    }

    /**
     * @param list<bool|int|string|null> $values
     * @return list<list<mixed>>
     */
    private static function byDoctrine(DoctrineConnection $c, string $sql, array $values): array
    {
        $types = array_map(
            static fn (mixed $value): string => is_int($value) ? 'integer' : 'string',
            $values,
        );
        $result = $c->executeQuery($sql, $values, $types);

        return $result->columnCount() === 0 ? [] : $result->fetchAllNumeric();
    }

    /**
     * The statement with its values in it. Where it has any, each `?` in it stands for one.
     *
     * @param list<bool|int|string|null> $values
     */
    private static function filled(string $sql, array $values, callable $quote): string
    {
        return self::replaced($sql, count($values), static function (int $at) use ($values, $quote): string {
            $value = $values[$at];

            return match (true) {
                $value === null => 'NULL',
                is_int($value) => (string) $value,
                default => $quote($value),
            };
        });
    }

    /**
     * The statement with `$1` for its first `?`.
     *
     * @param list<bool|int|string|null> $values
     */
    private static function numbered(string $sql, array $values): string
    {
        return self::replaced($sql, count($values), static fn (int $at): string => '$' . ($at + 1));
    }

    /** For PDO `??` is an operator of PostgreSQL's. */
    private static function replaced(string $sql, int $count, callable $by): string
    {
        $at = 0;

        return $count === 0 ? str_replace('??', '?', $sql) : preg_replace_callback(
            '~\?\??~',
            static function (array $mark) use (&$at, $by): string {
                return $mark[0] === '??' ? '?' : $by($at++);
            },
            $sql,
        );
    }
}
