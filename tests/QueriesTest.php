<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\EvalResult;
use Altair\Eval\Tests\Support\Database\Client;
use Altair\Eval\Tests\Support\Database\MariaDb;
use Altair\Eval\Tests\Support\Database\PostgreSql;
use Altair\Eval\Tests\Support\Database\SessionTestCase;
use Altair\Eval\Tests\Support\Database\SqlServer;

/**
 * What a run asks its databases is told: each statement with how often, its rows, its time and the line that asks.
 */
final class QueriesTest extends SessionTestCase
{
    /** A statement, how often, and its rows. */
    private const READS = [['SELECT id, email FROM users', 1, 2]];

    private const WRITES = [
        ["INSERT INTO users VALUES (7, 'a@x', 'A'), (8, 'b@x', 'B'), (9, 'c@x', 'C')", 1, 3],
        ["UPDATE users SET name = 'X' WHERE id > 7", 1, 2],
        ['DELETE FROM users WHERE id = 7', 1, 1],
    ];

    private const LOOP = [['SELECT name FROM users WHERE id = ?', 2, 2]];

    private const NOTHING = [['DO ?', 5, 0]];

    /**
     * @return iterable<string, array{class-string<SqlServer>, Client, array<string, mixed>}>
     */
    public static function clientsInEachMode(): iterable
    {
        $modes = [
            'read-only' => ['queries' => true], 'rollback' => ['database' => 'rollback'],
            'write' => ['database' => 'write', 'queries' => true],
        ];
        foreach (self::clients() as $name => [$class, $client]) {
            foreach ($modes as $mode => $options) {
                yield "$name: $mode" => [$class, $client, $options];
            }
        }
    }

    /**
     * @param class-string<SqlServer> $class
     * @param array<string, mixed> $options
     * @dataProvider clientsInEachMode
     */
    public function testEachStatementIsToldWithItsRows(string $class, Client $client, array $options): void
    {
        $server = $this->server($class);
        // PDO::exec() leaves rows of MySQL's unread, and takes no other statement then.
        $reads = $class === PostgreSql::class || !in_array($client, [Client::PdoExec, Client::PdoSilent], true);
        $writes = isset($options['database']);
        $expected = [
            ...($reads ? self::READS : []), ...($writes ? self::WRITES : []), ...($reads ? self::LOOP : self::NOTHING),
        ];
        $statements = array_merge(...array_map(
            static fn (array $it) => array_map(static fn (int $id) => strtr($it[0], ['?' => $id]), range(1, $it[1])),
            $expected,
        ));
        $code = $client->code($server);
        $snippet = "$code\n\$c = \$connect();\nforeach (" . var_export($statements, true)
            . ' as $sql) { $run($c, $sql); }';
        $line = substr_count($code, "\n") + 1;
        foreach (['cold', 'ask'] as $way) {
            $server->reset();
            $result = $this->$way($snippet, ...['services' => [$server->address()]] + $options);
            self::assertNull($result->exception, json_encode($result->exception));
            $queries = $result->diagnostics['queries'];
            $told = array_map(
                static fn (array $query): array => [$query['sql'], $query['times'], $query['rows']],
                $queries,
            );
            self::assertSame($expected, $told, "$way: " . json_encode($queries, JSON_PRETTY_PRINT));
            foreach ($queries as $query) {
                self::assertSame("snippet:$line", $query['at']);
                self::assertGreaterThan(0, $query['ms']);
                self::assertLessThan(2000, $query['ms']);
            }
            $changes = ['users' => ['inserted' => 3, 'updated' => 2, 'deleted' => 1]];
            self::assertSame($writes ? $changes : null, $result->diagnostics['database_changes'] ?? null);
        }
    }

    public function testWithoutAskingNothingIsTold(): void
    {
        $server = $this->server(PostgreSql::class);
        $snippet = Client::PdoExec->code($server) . ' $run($connect(), "SELECT 1");';
        foreach ([[], ['database' => 'read-only']] as $options) {
            $result = $this->ask($snippet, ...['services' => [$server->address()]] + $options);
            self::assertArrayNotHasKey('queries', $result->diagnostics);
        }
        self::assertSame([], $this->ask('return 1;', queries: true)->diagnostics['queries']);
    }

    /**
     * @param class-string<SqlServer> $class
     * @dataProvider oneOfEach
     */
    public function testChangesAreThoseThatTheApplicationKeeps(string $class, Client $client): void
    {
        $server = $this->server($class);
        $result = $this->rolledBack($server, $client, [
            'BEGIN', 'DELETE FROM users', 'ROLLBACK',
            'BEGIN', "INSERT INTO users VALUES (3, 'c', 'C')", 'SAVEPOINT x', 'DELETE FROM users',
            'ROLLBACK TO SAVEPOINT x', "UPDATE users SET name = 'Y' WHERE id = 3", 'COMMIT',
        ]);
        self::assertSame(
            ['users' => ['inserted' => 1, 'updated' => 1, 'deleted' => 0]],
            $result->diagnostics['database_changes'],
        );
        self::assertSame(SqlServer::ROWS, $server->rows());
    }

    /**
     * @return iterable<string, array{class-string<SqlServer>, Client}>
     */
    public static function readers(): iterable
    {
        foreach (self::oneOfEach() as $name => [$class, $client]) {
            yield $name => [$class, $client === Client::PdoExec ? Client::PdoQuery : $client];
        }
    }

    /**
     * @param class-string<SqlServer> $class
     * @dataProvider readers
     */
    public function testASlowStatementIsToldWhenTheDeadlineMeetsIt(string $class, Client $client): void
    {
        $server = $this->server($class);
        $sleep = $class === MariaDb::class ? 'SELECT SLEEP(9)' : 'SELECT pg_sleep(9)';
        $snippet = $client->code($server) . ' $c = $connect(); $run($c, "SELECT 1"); $run($c, "' . $sleep . '");';
        $result = $this->ask($snippet, services: [$server->address()], queries: true, timeoutMs: 2500);
        self::assertTrue($result->timedOut);
        [$first, $slow] = $result->diagnostics['queries'];
        self::assertSame(['SELECT 1', $sleep], [$first['sql'], $slow['sql']]);
        self::assertGreaterThan(300, $slow['ms']);
        self::assertLessThan($slow['ms'], $first['ms']);
    }

    public function testTheLineIsTheApplicationsOwn(): void
    {
        $server = $this->server(MariaDb::class);
        $application = $this->application();
        $application->write('vendor/some/Db.php', "<?php\nclass Db {\n function all(\$c) {\n  return"
            . " \$c->query('SELECT 1')->fetchAll();\n }\n}");
        $application->write('src/Users.php', "<?php\nclass Users {\n function all(\$c) {\n\n  return (new"
            . " Db)->all(\$c);\n }\n}");
        $snippet = "require 'vendor/some/Db.php'; require 'src/Users.php';\n" . Client::PdoExec->code($server)
            . "\n (new Users)->all(\$connect()); (new Db)->all(\$connect());";
        $queries = $this->ask($snippet, services: [$server->address()], queries: true)->diagnostics['queries'];
        self::assertSame([['SELECT 1', 2, 'src/Users.php:5']], array_map(
            static fn (array $query): array => [$query['sql'], $query['times'], $query['at']],
            $queries,
        ));
    }

    public function testTriggersAndFunctionsOfPostgreSqlAreCounted(): void
    {
        $server = $this->server(PostgreSql::class);
        $server->connectAsApplication()->exec('CREATE TABLE log (a int); CREATE FUNCTION note() RETURNS trigger'
            . ' LANGUAGE plpgsql AS $$ BEGIN INSERT INTO log VALUES (1), (2); RETURN NULL; END $$;'
            . ' CREATE TRIGGER note AFTER DELETE ON users FOR EACH ROW EXECUTE FUNCTION note()');
        $result = $this->rolledBack($server, Client::PgQuery, ['DELETE FROM users']);
        self::assertSame([
            'log' => ['inserted' => 4, 'updated' => 0, 'deleted' => 0],
            'users' => ['inserted' => 0, 'updated' => 0, 'deleted' => 2],
        ], $result->diagnostics['database_changes']);
    }

    public function testSecretsAreNoneOfIt(): void
    {
        $server = $this->server(PostgreSql::class);
        $this->application()->write('.env', "API_KEY=s3cr3t-Key-0f-Th1s-Appl1cation\n");
        $result = $this->rolledBack($server, Client::PgQuery, ["SELECT 's3cr3t-Key-0f-Th1s-Appl1cation' AS a"]);
        self::assertStringNotContainsString('s3cr3t', json_encode($result->toArray(verbose: true)));
        self::assertSame("SELECT '[redacted:API_KEY]' AS a", $result->diagnostics['queries'][0]['sql']);
    }

    public function testRowsThatAreReadOneByOneAreCounted(): void
    {
        $server = $this->server(MariaDb::class);
        $rows = ' SELECT seq FROM seq_1_to_1000';
        $snippet = Client::PdoExec->code($server) . ' $c = $connect();'
            . ' $c->setAttribute(PDO::MYSQL_ATTR_USE_BUFFERED_QUERY, false);'
            . " foreach (\$c->query('$rows') as \$row); \$s = \$c->prepare('$rows LIMIT 10'); \$s->execute();"
            . ' foreach ($s as $row); $s = null; $c->query("SELECT 1")->fetchAll();';
        $queries = $this->ask($snippet, services: [$server->address()], queries: true)->diagnostics['queries'];
        self::assertSame([1000, 10, 1], array_column($queries, 'rows'));
    }

    public function testAServersOwnStatementsAreNotTold(): void
    {
        // What the extension has the server do for the mode is no statement of the application's, nor what PDO does
        // for its prepared ones.
        foreach ([MariaDb::class, PostgreSql::class] as $class) {
            $server = $this->server($class);
            $result = $this->rolledBack($server, Client::PdoPrepared, ['SELECT 1', 'SELECT 1']);
            $queries = $result->diagnostics['queries'];
            self::assertSame([['SELECT 1', 2]], array_map(static fn ($q) => [$q['sql'], $q['times']], $queries));
        }
    }

    /**
     * @param list<string> $statements
     */
    private function rolledBack(SqlServer $server, Client $client, array $statements): EvalResult
    {
        $snippet = $client->code($server) . ' $c = $connect(); foreach (' . var_export($statements, true)
            . ' as $sql) { $run($c, $sql); }';
        $result = $this->ask($snippet, services: [$server->address()], database: 'rollback');
        self::assertNull($result->exception, json_encode($result->exception));

        return $result;
    }
}
