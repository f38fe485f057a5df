<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Database;

use Altair\Eval\Tests\Support\Skip;
use Altair\Eval\Tests\Support\Warm\WarmTestCase;
use PDO;

/**
 * Tests of what a run may do in a database, through each of PHP's clients.
 */
abstract class SessionTestCase extends WarmTestCase
{
    /**
     * @return iterable<string, array{class-string<SqlServer>, Client}>
     */
    public static function clients(): iterable
    {
        foreach (Client::OF_MARIADB as $client) {
            yield "MariaDB by $client->value" => [MariaDb::class, $client];
        }
        foreach (Client::OF_POSTGRESQL as $client) {
            yield "PostgreSQL by $client->value" => [PostgreSql::class, $client];
        }
    }

    /**
     * @return iterable<string, array{Client}>
     */
    public static function sqliteClients(): iterable
    {
        foreach (Client::OF_SQLITE as $client) {
            yield $client->value => [$client];
        }
    }

    /**
     * @return iterable<string, array{class-string<SqlServer>, Client}>
     */
    public static function oneOfEach(): iterable
    {
        yield 'MariaDB by PDO' => [MariaDb::class, Client::PdoExec];
        yield 'MariaDB by mysqli' => [MariaDb::class, Client::MysqliQuery];
        yield 'PostgreSQL by PDO' => [PostgreSql::class, Client::PdoExec];
        yield 'PostgreSQL by pgsql' => [PostgreSql::class, Client::PgQuery];
    }

    final protected function server(string $class): SqlServer
    {
        $missing = $class::whyMissing();
        if ($missing !== null) {
            Skip::NotInstalled->because($missing);
        }
        $server = $class::shared();
        $server->reset();
        $administrator = $server->connect();
        array_map(
            $administrator->exec(...),
            $class === MariaDb::class ? Statements::IN_MARIADB : Statements::IN_POSTGRESQL,
        );

        return $server;
    }

    final protected function fill(string $database): void
    {
        $pdo = new PDO("sqlite:$database");
        $pdo->exec('CREATE TABLE users (id INTEGER PRIMARY KEY, email TEXT, name TEXT)');
        $pdo->exec("INSERT INTO users VALUES (1, 'ada@shop.example', 'Ada'), (2, 'grace@shop.example', 'Grace')");
    }
}
