<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\Tests\Support\Database\Client;
use Altair\Eval\Tests\Support\Database\MariaDb;
use Altair\Eval\Tests\Support\Database\PostgreSql;
use Altair\Eval\Tests\Support\Database\SessionTestCase;
use Altair\Eval\Tests\Support\Database\SqlServer;
use Altair\Eval\Tests\Support\Database\Statements;
use Altair\Eval\Tests\Support\TemporaryApplication;
use PDO;

/**
 * Database sessions of a run only read, through whichever client, unless it may write.
 */
final class ReadOnlySessionsTest extends SessionTestCase
{
    /** Runs each statement on a connection of its own, and tries to write on it afterwards. */
    private const TRY_EACH = <<<'PHP'
        $ended = [];
        foreach ($statements as $sql) {
            $c = $connect();
            try {
                $run($c, $sql);
                $ended[$sql] = ['', ''];
            } catch (Throwable $e) {
                $ended[$sql] = [$e::class, $e->getMessage()];
            }
            foreach (['ROLLBACK', 'SELECT writes()', $write] as $next) {
                try {
                    $run($c, $next);
                    $ended[$sql][] = $next;
                } catch (Throwable) {
                }
            }
            $c = null;
        }
        return $ended;
        PHP;

    private const WRITE = "INSERT INTO users VALUES (42, 'w@x', 'W')";

    private TemporaryApplication $place;

    protected function setUp(): void
    {
        parent::setUp();
        $this->place = new TemporaryApplication();
        chmod($this->place->root, 0777);
    }

    /**
     * @param class-string<SqlServer> $class
     * @dataProvider clients
     */
    public function testEachStatementComesToWhatItMust(string $class, Client $client): void
    {
        $server = $this->server($class);
        $file = $this->place->path('out');
        $table = $class === MariaDb::class ? Statements::ofMariaDb($file) : Statements::ofPostgreSql($file);
        $statements = iterator_to_array($table);
        $snippet = $client->code($server) . self::tryEach(array_keys($statements));
        foreach (['cold', 'ask'] as $way) {
            $result = $this->$way($snippet, services: [$server->address()]);
            $this->assertEnds($statements, self::returned($result), $client);
            self::assertSame(SqlServer::ROWS, $server->rows(), 'What really is in the table.');
            self::assertFileDoesNotExist($file);
            self::assertContains('--writes', array_column($result->diagnostics['blocked'] ?? [], 'lift'));
        }
    }

    /** @dataProvider sqliteClients */
    public function testSqliteIsReadOnlyToo(Client $client): void
    {
        $database = $this->application()->path('shop.sqlite');
        $this->fill($database);
        $file = $this->place->path('out');
        $statements = iterator_to_array(Statements::ofSqlite($file));
        $snippet = $client->code($database) . self::tryEach(array_keys($statements));
        foreach (['cold', 'ask'] as $way) {
            $this->assertEnds($statements, self::returned($this->$way($snippet)), $client);
        }
        // The layer is not what keeps them: with it, the run itself would see its writes.
        self::assertSame(2, (int) (new PDO("sqlite:$database"))->query('SELECT COUNT(*) FROM users')->fetchColumn());
    }

    /**
     * @param list<string> $statements
     */
    private static function tryEach(array $statements): string
    {
        [$all, $write] = [var_export($statements, true), var_export(self::WRITE, true)];

        return "\n\$statements = $all; \$write = $write;\n" . self::TRY_EACH;
    }

    /**
     * @param array<string, string> $statements
     * @param array<string, list<string>> $ended
     */
    private function assertEnds(array $statements, array $ended, Client $client): void
    {
        $wrong = [];
        foreach ($statements as $sql => $must) {
            [$class, $message] = $ended[$sql];
            $wrote = array_slice($ended[$sql], 2);
            $came = match (true) {
                $class === '' => Statements::WORKS,
                str_contains($message, '--writes') => Statements::NOT_SENT,
                default => Statements::DATABASE,
            };
            $isFit = $came !== Statements::DATABASE
                || preg_match('~read.?only|multiple commands|error in your SQL syntax~i', $message) === 1;
            if ($came !== $must || array_diff($wrote, ['ROLLBACK']) !== [] || !$isFit) {
                $wrong[$sql] = [$must, $class, $message, $wrote];
            }
        }
        self::assertSame([], $wrong, $client->value);
    }

    /**
     * @param class-string<SqlServer> $class
     * @dataProvider oneOfEach
     */
    public function testWithWritesTheSameStatementsAreTheApplicationsAffair(string $class, Client $client): void
    {
        $server = $this->server($class);
        $mode = $class === MariaDb::class
            ? ['SET SESSION TRANSACTION READ WRITE', 'CALL tries()', 'CREATE TABLE t (a INT)']
            : ['SET default_transaction_read_only = off', 'CREATE TABLE t (a int)', 'SELECT writes()'];
        $snippet = $client->code($server) . ' $c = $connect(); foreach (' . var_export([...$mode, self::WRITE], true)
            . ' as $sql) { $run($c, $sql); } return true;';
        $result = $this->ask($snippet, services: [$server->address()], allowWrites: true);
        self::assertTrue(self::returned($result));
        self::assertContains([42, 'w@x', 'W'], $server->rows());
        self::assertArrayNotHasKey('blocked', $result->diagnostics);
        // What an unsafe run does is its own affair, too.
        $server->reset();
        $write = $client->code($server) . ' $run($connect(), ' . var_export(self::WRITE, true) . '); return true;';
        self::assertTrue(self::returned($this->ask($write, unsafe: true)));
        self::assertContains([42, 'w@x', 'W'], $server->rows());
    }

    /**
     * @param class-string<SqlServer> $class
     * @dataProvider oneOfEach
     */
    public function testTheUsualAnswersAndErrorsAreTheDatabasesOwn(string $class, Client $client): void
    {
        $server = $this->server($class);
        $write = var_export(self::WRITE, true);
        $snippet = $client->code($server) . "
            \$c = \$connect();
            try { \$run(\$c, $write); } catch (Throwable \$e) { return [\$e::class, \$e->getMessage()]; }";
        $result = $this->ask($snippet, services: [$server->address()]);
        [$thrown, $message] = self::returned($result);
        self::assertNotSame('Error', $thrown);
        self::assertMatchesRegularExpression('~read.only~i', $message);
        self::assertSame(
            [['what' => 'write to the database', 'guard' => 'ini', 'lift' => '--rollback']],
            $result->diagnostics['blocked'],
        );
    }

    public function testARefusalNamesTheLeastThatLiftsIt(): void
    {
        $lifts = [
            [MariaDb::class, Client::PdoExec, self::WRITE, '--rollback'],
            [MariaDb::class, Client::PdoExec, 'CALL tries()', '--rollback'],
            [MariaDb::class, Client::PdoExec, 'FLUSH TABLES', '--writes'],
            [MariaDb::class, Client::PdoExec, 'SET GLOBAL wait_timeout = 100', '--writes'],
            [PostgreSql::class, Client::PgQuery, self::WRITE, '--rollback'],
            [PostgreSql::class, Client::PgQuery, 'DO $$ BEGIN END $$', '--rollback'],
            [PostgreSql::class, Client::PgQuery, 'SELECT pg_reload_conf()', '--writes'],
            [PostgreSql::class, Client::PgQuery, "PREPARE TRANSACTION 'x'", '--writes'],
        ];
        foreach ($lifts as [$class, $client, $sql, $lift]) {
            $server = $this->server($class);
            $snippet = $client->code($server) . ' try { $run($connect(), ' . var_export($sql, true) . '); }'
                . ' catch (Throwable $e) { return $e->getMessage(); }';
            $result = $this->ask($snippet, services: [$server->address()]);
            self::assertSame([$lift], array_column($result->diagnostics['blocked'], 'lift'), $sql);
            $message = self::returned($result);
            if (str_contains($message, '--')) {
                self::assertSame($lift === '--rollback', str_contains($message, '--rollback'), $message);
                self::assertStringContainsString('--writes', $message);
            }
        }
    }

    /**
     * @return iterable<string, array{Client}>
     */
    public static function clientsOfPostgreSql(): iterable
    {
        foreach (Client::OF_POSTGRESQL as $client) {
            yield $client->value => [$client];
        }
    }

    /** @dataProvider clientsOfPostgreSql */
    public function testWhatLiftsTheModeOfPostgreSqlHasNoEffect(Client $client): void
    {
        $server = $this->server(PostgreSql::class);
        $all = [];
        foreach (Statements::LIFTS_OF_POSTGRESQL as $lift) {
            array_push(
                $all,
                [$lift, self::WRITE],
                [$lift, 'BEGIN', self::WRITE, 'COMMIT'],
                ['BEGIN', $lift, self::WRITE, 'COMMIT'],
                ['BEGIN', $lift, 'SAVEPOINT x', self::WRITE, 'COMMIT'],
                ['BEGIN', 'SELECT 1', $lift, self::WRITE, 'COMMIT'],
                ['BEGIN', 'SAVEPOINT x', $lift, 'RELEASE x', self::WRITE, 'COMMIT'],
                ['BEGIN', $lift, 'SELECT 1', 'COMMIT AND CHAIN', self::WRITE, 'COMMIT'],
                ['BEGIN', 'SELECT 1', 'COMMIT AND CHAIN', $lift, self::WRITE, 'COMMIT'],
                ['BEGIN', 'SELECT 1', 'ROLLBACK AND CHAIN', $lift, 'SELECT writes()', 'COMMIT'],
                ["PREPARE w AS " . self::WRITE, 'BEGIN', $lift, 'EXECUTE w', 'COMMIT'],
            );
        }
        $snippet = $client->code($server) . "\n\$all = " . var_export($all, true) . ';' . <<<'PHP'
            foreach ($all as $statements) {
                $c = $connect();
                $said = [];
                foreach ($statements as $sql) {
                    try { $run($c, $sql); } catch (Throwable $e) { $said[] = $e->getMessage(); }
                }
                $ended[] = $said === [] ? $statements : null;
            }
            return array_values(array_filter($ended));
            PHP;
        $result = $this->ask($snippet, services: [$server->address()], timeoutMs: 30000);
        self::assertSame([], self::returned($result), 'Something in each of them is refused.');
        self::assertSame(SqlServer::ROWS, $server->rows());
    }

    /**
     * @param class-string<SqlServer> $class
     * @dataProvider oneOfEach
     */
    public function testAConnectionThatBootOpenedOnlyReads(string $class, Client $client): void
    {
        $server = $this->server($class);
        $this->booting($client->code($server) . ' $GLOBALS["c"] = $connect(); $GLOBALS["run"] = $run;'
            . ' try { $run($GLOBALS["c"], ' . var_export(self::WRITE, true) . '); $GLOBALS["wrote"] = true; }'
            . ' catch (Throwable $e) { $GLOBALS["wrote"] = $e->getMessage(); }');
        $isMariaDb = $class === MariaDb::class;
        $lift = $isMariaDb ? 'SET tx_read_only = 0' : 'SET default_transaction_read_only = off';
        $snippet = "\$said = [\$GLOBALS['wrote']]; foreach (['$lift', " . var_export(self::WRITE, true) . '] as $sql) {'
            . ' try { ($GLOBALS["run"])($GLOBALS["c"], $sql); $said[] = true; }'
            . ' catch (Throwable $e) { $said[] = $e->getMessage(); } } return $said;';
        foreach (['ask', 'ask', 'cold'] as $way) {
            [$boots, $lifts, $writes] = self::returned($this->$way($snippet, services: [$server->address()]));
            self::assertMatchesRegularExpression('~read.only~i', (string) $boots);
            // PostgreSQL tells of it, and it is set again.
            $isMariaDb ? self::assertStringContainsString('--writes', (string) $lifts) : self::assertTrue($lifts);
            self::assertMatchesRegularExpression('~read.only~i', (string) $writes);
        }
        self::assertSame(SqlServer::ROWS, $server->rows());
    }

    /**
     * Ways around a statement.
     *
     * @return iterable<string, array{class-string<SqlServer>, Client, string}>
     */
    public static function otherWays(): iterable
    {
        $maria = [MariaDb::class, Client::PdoExec];
        $init = 'new PDO($dsn, $user, $password, [PDO::MYSQL_ATTR_INIT_COMMAND => "%s"]);';
        yield 'an initial command that lifts' => [
            ...$maria, sprintf($init, 'SET SESSION TRANSACTION READ WRITE'),
        ];
        yield 'an initial command that writes' => [
            ...$maria, sprintf($init, "INSERT INTO users VALUES (5,'i@x','I')"),
        ];
        yield 'an initial command of mysqli' => [...$maria, '$m = mysqli_init(); $m->options(MYSQLI_INIT_COMMAND,'
            . ' "SET tx_read_only = 0"); $m->real_connect("127.0.0.1", $user, $password, "shop", $port);'];
        $mysqli = '$m = new mysqli("127.0.0.1", $user, $password, "shop", $port);';
        yield 'a change of user' => [...$maria, $mysqli
            . ' $m->change_user($user, $password, "shop"); $m->query($write);'];
        yield 'a transaction of mysqli that writes' => [...$maria,
            "$mysqli \$m->begin_transaction(MYSQLI_TRANS_START_READ_WRITE);"];
        yield 'a transaction of mysqli' => [...$maria, "$mysqli \$m->begin_transaction(); \$m->query(\$write);"];
        yield 'a persistent connection that is used again' => [...$maria, '$m = new mysqli("p:127.0.0.1", $user,'
            . ' $password, "shop", $port); $m->close(); $m = new mysqli("p:127.0.0.1", $user, $password, "shop",'
            . ' $port); $m->query($write);'];
        yield 'a lift in a transaction, and another one' => [...$maria, "$mysqli \$m->query('BEGIN');"
            . ' $m->query("SELECT lifts()"); $m->query("BEGIN"); $m->query($write); $m->query("COMMIT");'];
        yield 'a lift in a transaction, and a prepared one' => [...$maria, "$mysqli \$m->query('BEGIN');"
            . ' $m->query("SELECT lifts()"); $s = $m->prepare("BEGIN"); $s->execute(); $m->query($write);'
            . ' $m->query("COMMIT");'];
        yield 'a lift, and a commit that chains' => [...$maria, "$mysqli \$m->query('BEGIN');"
            . ' $m->query("SELECT lifts()"); $m->query("COMMIT AND CHAIN"); $m->query($write);'
            . ' $m->query("COMMIT");'];
        yield 'a lift without autocommit' => [...$maria, "$mysqli \$m->autocommit(false); \$m->query('SELECT lifts()');"
            . ' $m->commit(); $m->query($write); $m->commit();'];
        yield 'flushing' => [...$maria, "$mysqli @\$m->refresh(MYSQLI_REFRESH_TABLES);"];
        yield 'killing' => [...$maria, "$mysqli @\$m->kill(1);"];
        yield 'a class that extends PDO' => [...$maria, '$c = new class($dsn, $user, $password) extends PDO {};'
            . ' $c->exec("SET tx_read_only = 0");'];
        yield 'a constructor that is called later' => [...$maria, '$c = (new ReflectionClass("PDO"))'
            . '->newInstanceWithoutConstructor(); $c->__construct($dsn, $user, $password); $c->exec($write);'];
        $postgres = [PostgreSql::class, Client::PdoExec];
        $pdo = '$c = new PDO($dsn, $user, $password);';
        yield 'a transaction of PDO' => [...$postgres, "$pdo \$c->beginTransaction(); \$c->exec(\$write);"];
        yield 'a lift, and a transaction of PDO' => [...$postgres, "$pdo \$c->query('SELECT lifts()');"
            . ' $c->beginTransaction(); $c->exec($write); $c->commit();'];
        yield 'a lift, and a statement from before' => [...$postgres, "$pdo \$s = \$c->prepare('SELECT writes()');"
            . ' $c->query("SELECT lifts()"); $s->execute();'];
        yield 'copying' => [...$postgres, "$pdo \$c->pgsqlCopyFromArray('users', [\"5\tc@x\tC\"]);"];
        yield 'a large object' => [...$postgres, "$pdo \$c->beginTransaction(); \$c->pgsqlLOBCreate();"];
        yield 'a large object that is opened to write' => [...$postgres,
            "$pdo \$c->beginTransaction(); \$c->pgsqlLOBOpen('1', 'w');"];
        $pg = '$c = pg_connect("host=127.0.0.1 port=$port dbname=shop user=$user password=$password");';
        yield 'options of the connection' => [...$postgres, '$c = pg_connect("host=127.0.0.1 port=$port dbname=shop'
            . ' user=$user password=$password options=\'-c default_transaction_read_only=off\'");'
            . ' if (!@pg_query($c, $write)) { throw new Exception(pg_last_error($c)); }'];
        yield 'a connection that is reset' => [...$postgres, "$pg pg_query(\$c, 'SELECT 1'); pg_connection_reset(\$c);"
            . ' if (!@pg_query($c, $write)) { throw new Exception(pg_last_error($c)); }'];
        yield 'a function that inserts' => [...$postgres, $pg . ' if (!@pg_insert($c, "users",'
            . ' ["id" => 5, "email" => "i@x", "name" => "I"])) { throw new Exception(pg_last_error($c)); }'];
        yield 'a large object of pgsql' => [...$postgres, "$pg pg_query(\$c, 'BEGIN'); pg_lo_create(\$c);"];
        yield 'a text that is another one each time' => [...$postgres, "$pg \$t = new class { public int \$n = 0;"
            . ' public function __toString(): string { return $this->n++ ? "SET default_transaction_read_only = off"'
            . ' : "SELECT 1"; } }; pg_query($c, $t);'
            . ' if (!@pg_query($c, $write)) { throw new Exception(pg_last_error($c)); }'];
        yield 'a copy to a program' => [...$postgres,
            $pg . ' pg_copy_to($c, "(SELECT 1) TO PROGRAM \'true\' --");'];
        yield 'a copy of what writes, first of all' => [...$postgres, $pg
            . ' $done = @pg_copy_to($c, "(INSERT INTO users VALUES (9, \'x@x\', \'X\') RETURNING id)");'
            . ' if (!$done) { throw new Exception(pg_last_error($c)); }'];
        yield 'a copy with more statements' => [...$postgres, $pg . ' pg_copy_to($c, "users TO STDOUT; SET SESSION'
            . ' CHARACTERISTICS AS TRANSACTION READ WRITE; COMMIT; " . $write . " --");'];
        yield 'a copy from' => [...$postgres, "$pg pg_copy_from(\$c, 'users', [\"9\tx@x\tX\"]);"];
        yield 'a copy to a program by PDO' => [...$postgres,
            "$pdo \$c->pgsqlCopyToArray(\"(SELECT 1) TO PROGRAM 'true' --\");"];
        yield 'a copy of what writes by PDO' => [...$postgres,
            "$pdo \$c->pgsqlCopyToArray(\"(INSERT INTO users VALUES (9, 'x@x', 'X') RETURNING id)\");"];
        yield 'an encoding' => [...$postgres, $pg . ' pg_set_client_encoding($c,'
            . ' "UTF8\';SET default_transaction_read_only=off;COMMIT;DELETE FROM users;--");'];
        yield 'values that are pasted' => [...$postgres, $pg . ' pg_select($c, "users", ["id" => "1; SET SESSION'
            . ' CHARACTERISTICS AS TRANSACTION READ WRITE; COMMIT; DELETE FROM users; --"], PGSQL_DML_NO_CONV'
            . ' | PGSQL_DML_EXEC);'];
        yield 'a handler of errors' => [...$postgres, $pg . ' set_error_handler(function () use ($c, $write) {'
            . ' pg_query($c, "SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE"); pg_query($c, $write);'
            . ' return true; }); pg_query("SELECT 1"); pg_query($c, "SELECT nonsense");'];
        yield 'a fiber that is left in a handler' => [...$postgres, $pg . ' $f = new Fiber(function () {'
            . ' set_error_handler(fn () => Fiber::suspend()); pg_query("SELECT 1"); pg_query("SELECT nonsense"); });'
            . ' $f->start(); if (!@pg_query($c, $write)) { throw new Exception(pg_last_error($c)); }'];
        yield 'a constructor that throws when it is done' => [...$postgres, '$o = (new ReflectionClass("PDO"))'
            . '->newInstanceWithoutConstructor(); try { $o->__construct($dsn, $user, $password,'
            . ' [PDO::ATTR_ERRMODE => 99]); } catch (Throwable) { } $o->exec($write);'
            . ' throw new Exception($o->errorInfo()[2] ?? "");'];
        yield 'results that nobody has taken' => [...$postgres, $pg . ' pg_send_query($c, "SELECT lifts()");'
            . ' if (!@pg_query($c, $write)) { throw new Exception(pg_last_error($c)); }'];
        yield 'the end of a transaction, and another' => [...$postgres, $pdo . ' $c->exec("BEGIN");'
            . ' $c->query("SELECT lifts()"); $c->exec("COMMIT; BEGIN"); $c->exec($write); $c->exec("COMMIT");'];
        yield 'the same in MariaDB' => [...$maria, '$c = new PDO($dsn, $user, $password); $c->exec("BEGIN");'
            . ' $c->query("SELECT lifts()")->fetchAll(); $c->exec("COMMIT; BEGIN"); $c->exec($write);'];
        yield 'a look back, and a transaction' => [...$maria, '$c = new PDO($dsn, $user, $password);'
            . ' $c->query("SELECT lifts()")->fetchAll(); $c->query("SHOW WARNINGS; BEGIN"); $c->exec($write);'];
        yield 'a function like a column' => [...$postgres, "$pdo \$c->query('SELECT (424242::oid).lo_create');"];
        yield 'a named argument' => [...$postgres, "$pg pg_query(query: 'VACUUM', connection: \$c);"];
        yield 'the old name' => [...$postgres, "$pg pg_exec(\$c, 'VACUUM');"];
        yield 'a first-class callable' => [...$postgres, "$pg (pg_query(...))(\$c, 'CHECKPOINT');"];
    }

    /**
     * @param class-string<SqlServer> $class
     * @dataProvider otherWays
     */
    public function testNoOtherWayLeadsToAWrite(string $class, Client $client, string $code): void
    {
        $server = $this->server($class);
        $set = ['dsn' => $server->dsn(), 'user' => $server->user(), 'password' => $server->password(),
            'port' => $server->port(), 'write' => self::WRITE];
        $snippet = 'extract(' . var_export($set, true) . "); try { $code return 'nothing was said'; }"
            . ' catch (Throwable $e) { return $e->getMessage(); }';
        foreach (['cold', 'ask'] as $way) {
            $result = $this->$way($snippet, services: [$server->address()]);
            $said = self::returned($result);
            self::assertSame(SqlServer::ROWS, $server->rows());
            $lifts = array_column($result->diagnostics['blocked'] ?? [], 'lift');
            self::assertNotSame([], array_intersect(['--rollback', '--writes'], $lifts), $said);
        }
    }

    public function testSeveralStatementsToSqliteAreLookedAtOneByOne(): void
    {
        $database = $this->application()->path('shop.sqlite');
        $this->fill($database);
        $snippet = "\$p = new PDO('sqlite:$database'); \$said = []; foreach (['SELECT 1; PRAGMA query_only = 0; %1\$s',"
            . " 'SELECT 1; %1\$s'] as \$sql) { try { \$p->exec(\$sql); } catch (PDOException \$e) {"
            . ' $said[] = $e->getCode(); } } return [$said, $p->query("SELECT COUNT(*) FROM users")->fetchColumn()];';
        $result = $this->ask(sprintf($snippet, 'DELETE FROM users'));
        self::assertEquals([['25006', '25006'], 2], self::returned($result));
    }

    public function testAnInMemoryDatabaseMayBeFilled(): void
    {
        $snippet = '$p = new PDO("sqlite::memory:"); $p->exec("CREATE TABLE t (a)");'
            . ' $p->exec("INSERT INTO t VALUES (1)");'
            . ' try { $p->exec("ATTACH \'x\' AS y"); } catch (PDOException $e) { return [$p->query("SELECT a FROM t")'
            . '->fetchColumn(), $e->getMessage()]; }';
        [$value, $message] = self::returned($this->ask($snippet));
        self::assertSame(1, $value);
        self::assertStringStartsWith('SQLSTATE[25006]: Read only sql transaction: 23 ATTACH is refused', $message);
    }

    public function testADatabaseThatIsCalledLikeOneInMemoryIsNone(): void
    {
        $database = $this->application()->path('shop.sqlite');
        $this->fill($database);
        foreach (["file:$database?x=mode=memory", "file:$database#mode=memory"] as $name) {
            $snippet = "\$p = new PDO('sqlite:$name'); try { \$p->exec(" . var_export(self::WRITE, true) . ');'
                . ' return "written"; } catch (PDOException $e) { return $e->getMessage(); }';
            self::assertStringContainsString('readonly', self::returned($this->ask($snippet)), $name);
        }
    }

    public function testAFailureBeforeAPreparedStatementIsTold(): void
    {
        $server = $this->server(MariaDb::class);
        $snippet = "\$c = new mysqli('127.0.0.1', 'shop', '{$server->password()}', 'shop', {$server->port()});"
            . ' $s = $c->prepare("SELECT 1"); $c->real_query("SELECT 1 UNION SELECT 2"); $r = $c->use_result();'
            . ' try { $s->execute(); return "nothing"; } catch (mysqli_sql_exception $e) { return $e->getMessage(); }';
        $said = self::returned($this->ask($snippet, services: [$server->address()]));
        self::assertStringContainsString('out of sync', $said);
    }

    public function testTheSessionsOfARunAreTheDatabasesOwnReadOnlyMode(): void
    {
        $maria = $this->server(MariaDb::class);
        $postgres = $this->server(PostgreSql::class);
        $services = [$maria->address(), $postgres->address()];
        $code = Client::PdoQuery->code($maria) . ' $a = $connect()->query("SELECT @@tx_read_only")->fetchColumn();'
            . Client::PdoQuery->code($postgres)
            . ' return [$a, $connect()->query("SHOW default_transaction_read_only")->fetchColumn()];';
        self::assertEquals([1, 'on'], self::returned($this->ask($code, services: $services)));
        self::assertEquals([0, 'off'], self::returned($this->ask($code, services: $services, allowWrites: true)));
    }
}
