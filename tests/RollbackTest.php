<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\Exception\InvalidRequestException;
use Altair\Eval\Tests\Support\Database\Client;
use Altair\Eval\Tests\Support\Database\MariaDb;
use Altair\Eval\Tests\Support\Database\PostgreSql;
use Altair\Eval\Tests\Support\Database\SessionTestCase;
use Altair\Eval\Tests\Support\Database\SqlServer;
use PDO;

/**
 * With `database: rollback` an application writes as ever, and nothing of it is there when the run has ended.
 */
final class RollbackTest extends SessionTestCase
{
    private const INSERT = "INSERT INTO users VALUES (42, 'w@x', 'W')";

    /** A row of mysql.servers. */
    private const ENTRY = "('s', 'h', 'd', 'u', 'p', 1, '', '', '')";

    /** Runs statements on one connection; each with what it said, and whether the client is in a transaction then. */
    private const EACH = <<<'PHP'
        $c = $connect();
        foreach ($statements as $sql) {
            try {
                $run($c, $sql);
                $said[] = [$sql, ''];
            } catch (Throwable $e) {
                $said[] = [$sql, $e->getMessage()];
            }
        }
        return $said;
        PHP;

    /**
     * @param class-string<SqlServer> $class
     * @dataProvider clients
     */
    public function testWhatIsWrittenIsSeenAndRolledBack(string $class, Client $client): void
    {
        $server = $this->server($class);
        // The same row cannot be there twice, and can be again when it is gone.
        $statements = [
            self::INSERT, self::INSERT, 'DELETE FROM users WHERE id = 42', self::INSERT,
            'BEGIN', 'DELETE FROM users WHERE id = 42', 'ROLLBACK', self::INSERT,
            'BEGIN', 'DELETE FROM users WHERE id = 42', 'SAVEPOINT x', self::INSERT, 'ROLLBACK TO SAVEPOINT x',
            self::INSERT, 'COMMIT', self::INSERT,
        ];
        foreach (['cold', 'ask'] as $way) {
            $said = $this->said($way, $server, $client, $statements);
            $failed = array_keys(array_filter(array_column($said, 1)));
            self::assertSame([1, 7, 15], $failed, json_encode($said, JSON_PRETTY_PRINT));
            self::assertSame(SqlServer::ROWS, $server->rows());
        }
    }

    /**
     * @param class-string<SqlServer> $class
     * @dataProvider clients
     */
    public function testWhatWouldStayIsRefused(string $class, Client $client): void
    {
        $server = $this->server($class);
        $file = $this->application()->path('out');
        $statements = $class === MariaDb::class
            ? ['CREATE TABLE t (a INT)', 'TRUNCATE users', 'LOCK TABLES users WRITE', 'CALL tries()', "XA END 'x'",
                'XA COMMIT \'x\'', 'BEGIN NOT ATOMIC INSERT INTO users VALUES (9, "x", "X"); COMMIT; END',
                "EXECUTE IMMEDIATE 'COMMIT'", 'SET GLOBAL max_connections = 60', 'KILL 1', 'FLUSH TABLES',
                'INSERT INTO isam VALUES (1)', 'SELECT 1 INTO OUTFILE "' . $file . '"',
                'SELECT 1; COMMIT', 'ANALYZE TABLE users']
            : ["DO \$\$ BEGIN COPY users TO '$file'; END \$\$", "PREPARE TRANSACTION 'x'", 'VACUUM',
                'CREATE DATABASE x', 'DO $$ BEGIN COMMIT; END $$', 'CALL tries()',
                "COPY users TO PROGRAM 'true'", 'ALTER SYSTEM SET work_mem = 1000', 'SELECT pg_reload_conf()',
                "SELECT dblink_exec('dbname=shop', 'DELETE FROM users')", 'SELECT 1; COMMIT', 'CHECKPOINT',
                "CREATE FUNCTION f(oid, text) RETURNS int LANGUAGE internal AS 'be_lo_export'",
                "CREATE OR REPLACE FUNCTION f() RETURNS int AS 'dblink' LANGUAGE C",
                'ALTER FUNCTION lo_export RENAME TO quiet',
                "UPDATE pg_proc SET proname = 'q' WHERE proname = 'lo_export'",
                "ALTER FOREIGN TABLE t OPTIONS (ADD program 'touch $file')"];
        $said = $this->said('ask', $server, $client, [self::INSERT, ...$statements, self::INSERT]);
        self::assertNotContains('', array_column(array_slice($said, 1), 1), json_encode($said, JSON_PRETTY_PRINT));
        self::assertSame('', $said[0][1]);
        self::assertStringContainsStringIgnoringCase('duplicate', end($said)[1], 'What was written before is there.');
        self::assertSame(SqlServer::ROWS, $server->rows());
        self::assertFileDoesNotExist($file);
        if ($class === MariaDb::class) {
            self::assertSame(0, (int) $server->connect()->query('SELECT COUNT(*) FROM isam')->fetchColumn());
            self::assertSame([], $server->connect()->query('XA RECOVER')->fetchAll());
        }
    }

    /**
     * @return iterable<string, array{class-string<SqlServer>, Client, string}>
     */
    public static function ends(): iterable
    {
        $ends = [
            'a value' => 'return 1;', 'an exception' => 'throw new Exception("x");', 'exit' => 'exit(3);',
            'a fatal error' => 'function f(int $x) {} eval("x"); f();', 'no memory' => 'str_repeat("x", 1 << 30);',
            'the deadline' => 'while (true) { usleep(1000); }', 'an open transaction' => '$run($c, "BEGIN"); $run($c,'
                . ' "DELETE FROM users"); return 1;',
        ];
        foreach (self::oneOfEach() as $name => [$class, $client]) {
            foreach ($ends as $end => $code) {
                yield "$name: $end" => [$class, $client, $code];
            }
        }
    }

    /**
     * @param class-string<SqlServer> $class
     * @dataProvider ends
     */
    public function testHoweverItEndsAllIsRolledBack(string $class, Client $client, string $end): void
    {
        $server = $this->server($class);
        $snippet = $client->code($server) . ' $c = $connect(); $run($c, ' . var_export(self::INSERT, true) . "); $end";
        $options = ['services' => [$server->address()], 'database' => 'rollback', 'timeoutMs' => 1500];
        $result = $this->ask($snippet, ...$options);
        self::assertNotSame('boot_failed', $result->diagnostics['outcome']);
        self::assertSame(SqlServer::ROWS, $server->rows());
    }

    public function testClientsAreToldOfTheirOwnTransactionsAlone(): void
    {
        foreach ([MariaDb::class, PostgreSql::class] as $class) {
            $server = $this->server($class);
            $snippet = Client::PdoExec->code($server) . ' $c = $connect(); $is = [$c->inTransaction()];'
                . ' $c->query("SELECT 1")->fetchAll(); $is[] = $c->inTransaction(); $c->beginTransaction();'
                . ' $c->exec("DELETE FROM users"); $is[] = $c->inTransaction(); $c->rollBack();'
                . ' $is[] = $c->inTransaction(); $c->beginTransaction(); $c->exec("DELETE FROM users WHERE id = 1");'
                . ' $c->commit(); $is[] = $c->inTransaction();'
                . ' return [...$is, $c->query("SELECT id FROM users")->fetchAll(PDO::FETCH_COLUMN)];';
            $result = $this->ask($snippet, services: [$server->address()], database: 'rollback');
            self::assertEquals([false, false, true, false, false, [2]], self::returned($result), $class);
            self::assertSame(SqlServer::ROWS, $server->rows());
        }
    }

    public function testAChainBeginsATransactionWhereThereIsNone(): void
    {
        $server = $this->server(MariaDb::class);
        $snippet = Client::PdoExec->code($server) . ' $c = $connect(); $is = [];'
            . ' foreach (["COMMIT AND CHAIN", "ROLLBACK AND CHAIN"] as $chain) { $c->exec($chain);'
            . ' $is[] = $c->inTransaction(); $c->exec("DELETE FROM users"); $c->rollBack();'
            . ' $is[] = $c->inTransaction(); $is[] = count($c->query("SELECT * FROM users")->fetchAll()); }'
            . ' return $is;';
        foreach (['rollback', 'write'] as $mode) {
            $result = $this->ask($snippet, services: [$server->address()], database: $mode);
            self::assertSame([true, false, 2, true, false, 2], self::returned($result), $mode);
            self::assertSame(SqlServer::ROWS, $server->rows());
        }
    }

    public function testWhatIsSetInATransactionOrOutsideOfOneIsAsWithoutGuards(): void
    {
        $server = $this->server(MariaDb::class);
        $snippet = Client::MysqliQuery->code($server) . ' $c = $connect(); $say = static function ($t) use ($c) {'
            . ' try { $r = $c->query($t); return $r === true ? true : $r->num_rows; }'
            . ' catch (mysqli_sql_exception $e) { return $e->getCode(); } };'
            . ' return array_map($say, ["BEGIN", "DELETE FROM users", "SET autocommit = 1", "ROLLBACK",'
            . ' "SELECT * FROM users", "BEGIN", "DELETE FROM users", "SET autocommit = 0", "ROLLBACK",'
            . ' "SELECT * FROM users", "SET autocommit = 1", "SAVEPOINT a", "ROLLBACK TO SAVEPOINT a",'
            . ' "BEGIN", "SAVEPOINT b", "DELETE FROM users", "ROLLBACK TO SAVEPOINT b", "COMMIT",'
            . ' "SELECT * FROM users"]);';
        $expected = [
            true, true, true, true, 2, true, true, true, true, 2, true, true, 1305, true, true, true, true, true, 2,
        ];
        foreach (['rollback', 'write'] as $mode) {
            $result = $this->ask($snippet, services: [$server->address()], database: $mode);
            self::assertSame($expected, self::returned($result), $mode);
            self::assertSame(SqlServer::ROWS, $server->rows());
        }
    }

    public function testAutocommitIsTheApplicationsOwn(): void
    {
        $server = $this->server(MariaDb::class);
        $snippet = Client::MysqliQuery->code($server) . ' $c = $connect(); $c->autocommit(false);'
            . ' $c->query("DELETE FROM users"); $c->rollback(); $n[] = $c->query("SELECT * FROM users")->num_rows;'
            . ' $c->query("DELETE FROM users WHERE id = 1"); $c->commit(); $c->rollback();'
            . ' $n[] = $c->query("SELECT * FROM users")->num_rows; $c->autocommit(true);'
            . ' $c->query("DELETE FROM users"); $c->rollback(); $n[] = $c->query("SELECT * FROM users")->num_rows;'
            . ' return $n;';
        $result = $this->ask($snippet, services: [$server->address()], database: 'rollback');
        self::assertSame([2, 1, 0], self::returned($result));
        self::assertSame(SqlServer::ROWS, $server->rows());
    }

    public function testWhatPostgreSqlCanUndoMayBeDone(): void
    {
        $server = $this->server(PostgreSql::class);
        $said = $this->said('ask', $server, Client::PgQuery, [
            'CREATE TABLE t (a int)', 'INSERT INTO t VALUES (1)', 'ALTER TABLE users ADD x int', 'TRUNCATE users',
            'SELECT lo_creat(1)', 'DO $$ BEGIN DELETE FROM t; END $$', 'NOTIFY x', 'GRANT ALL ON users TO PUBLIC',
        ]);
        self::assertSame([], array_filter(array_column($said, 1)), json_encode($said));
        self::assertSame(SqlServer::ROWS, $server->rows());
        $tables = $server->connect()->query("SELECT COUNT(*) FROM pg_tables WHERE tablename = 't'")->fetchColumn();
        self::assertSame(0, (int) $tables);
    }

    public function testWhatIsDeferredToTheEndOfATransactionIsSeenToAtItsEnd(): void
    {
        $server = $this->server(PostgreSql::class);
        $tables = ['CREATE TABLE parent (id int PRIMARY KEY)', 'CREATE TABLE child (parent int REFERENCES parent'
            . ' DEFERRABLE INITIALLY DEFERRED)', 'BEGIN', 'INSERT INTO child VALUES (1)'];
        // The second transaction can defer its constraints, as the first did.
        $fine = ['INSERT INTO parent VALUES (1)', 'COMMIT', 'BEGIN', 'INSERT INTO child VALUES (2)',
            'INSERT INTO parent VALUES (2)', 'COMMIT', 'SELECT 1 / (COUNT(*) - 1) FROM child'];
        $broken = ['COMMIT', 'SELECT 1 / (1 - COUNT(*)) FROM child'];
        foreach ([Client::PdoExec, Client::PgQuery] as $client) {
            $said = $this->said('ask', $server, $client, [...$tables, ...$fine]);
            self::assertSame([], array_filter(array_column($said, 1)), json_encode($said));
            $said = array_column($this->said('ask', $server, $client, [...$tables, ...$broken]), 1);
            self::assertStringContainsString('violates foreign key constraint', $said[4]);
            self::assertSame([4], array_keys(array_filter($said)), 'What it wrote is gone with it.');
        }
    }

    /**
     * @return iterable<string, array{string}>
     */
    public static function waysToLastingTables(): iterable
    {
        yield 'its name' => ['INSERT INTO isam VALUES (1)'];
        yield 'its name, prepared' => ["EXECUTE IMMEDIATE 'INSERT INTO isam VALUES (1)'"];
        yield 'a name that is no word' => ['INSERT INTO `is-am` VALUES (1)'];
        yield 'a name that is a number' => ['INSERT INTO `12` VALUES (1)'];
        yield 'a view' => ['INSERT INTO seen VALUES (1)'];
        yield 'a view on a view' => ['INSERT INTO seen_again VALUES (1)'];
        yield 'a trigger' => ["INSERT INTO noted VALUES (1)"];
        yield 'a procedure' => ['CALL notes()'];
        yield 'its name behind a version' => ['INSERT INTO /*!50000isam VALUES (1)*/'];
        yield 'a temporary table' => ['CREATE TEMPORARY TABLE m (a INT) ENGINE = MERGE UNION = (isam)'];
        yield 'a view with a function' => ['SELECT * FROM staying'];
        yield 'a view on a view with a function' => ['SELECT * FROM staying_on'];
        yield 'a function behind a version' => ['SET @a = /*!100100noting() */'];
        yield 'a function' => ['SELECT noting()'];
        yield 'a function, set' => ['SET @a = noting()'];
        yield 'a table of the server' => ['INSERT INTO mysql.servers VALUES ' . self::ENTRY];
    }

    /**
     * @dataProvider waysToLastingTables
     */
    public function testWhatHasNoTransactionsIsNotWritten(string $sql): void
    {
        $server = $this->server(MariaDb::class);
        $administrator = $server->connect();
        array_map($administrator->exec(...), [
            'CREATE TABLE isam (a INT) ENGINE = MyISAM', 'CREATE TABLE `is-am` (a INT) ENGINE = MyISAM',
            'CREATE TABLE `12` (a INT) ENGINE = MyISAM', 'CREATE VIEW seen AS SELECT * FROM isam',
            'CREATE VIEW seen_again AS SELECT * FROM seen', 'CREATE TABLE noted (a INT) ENGINE = InnoDB',
            'CREATE TRIGGER note AFTER INSERT ON noted FOR EACH ROW INSERT INTO isam VALUES (1)',
            'CREATE PROCEDURE notes() INSERT INTO isam VALUES (1)',
            'CREATE FUNCTION noting() RETURNS INT BEGIN INSERT INTO isam VALUES (1); RETURN 1; END',
            'CREATE VIEW staying AS SELECT noting() AS a', 'CREATE VIEW staying_on AS SELECT * FROM staying',
            'GRANT ALL ON *.* TO shop', 'DELETE FROM mysql.servers',
        ]);
        foreach ([Client::PdoExec, Client::PdoEmulated] as $client) {
            $said = $this->said('ask', $server, $client, [
                "INSERT INTO `users` VALUES (5, '12 isams', 'is-am')", 'SET SESSION sql_mode = ""',
                'DO (SELECT COUNT(*) FROM isam)', 'DO (SELECT COUNT(*) FROM `is-am`)', $sql,
            ]);
            self::assertSame(['', '', '', ''], array_column(array_slice($said, 0, 4), 1));
            self::assertNotSame('', $said[4][1]);
            foreach (['isam', '`is-am`', '`12`', 'mysql.servers'] as $table) {
                self::assertSame(0, (int) $administrator->query("SELECT COUNT(*) FROM $table")->fetchColumn(), $table);
            }
        }
    }

    /**
     * @return iterable<string, array{string, 1?: string}> code that connects as `$c`, and a statement that writes to a
     *                                                    table of the server's own schema
     */
    public static function waysToTheServersTables(): iterable
    {
        $connects = '$c = new mysqli("127.0.0.1", $user, $key, "shop", $port);';
        yield 'mysqli connects to it' => ['$c = new mysqli("127.0.0.1", $user, $key, "mysql", $port);'];
        yield 'PDO connects to it' => ['$c = new PDO("mysql:host=127.0.0.1;port=$port;dbname=mysql", $user, $key);'];
        yield 'select_db()' => ["$connects \$c->select_db('mysql');"];
        yield 'USE' => ["$connects \$c->query('USE mysql');"];
        yield 'a procedure' => [$connects, 'CALL puts()'];
        yield 'a view' => [$connects, 'INSERT INTO seen VALUES ' . self::ENTRY];
        yield 'a trigger' => [$connects, 'INSERT INTO puts VALUES (1)'];
    }

    /**
     * They are the only ones without transactions.
     *
     * @dataProvider waysToTheServersTables
     */
    public function testATableOfTheServerIsNotWrittenWithoutItsSchema(
        string $connects,
        string $writes = 'INSERT INTO servers VALUES ' . self::ENTRY,
    ): void {
        $server = $this->server(MariaDb::class);
        $administrator = $server->connect();
        $put = 'INSERT INTO mysql.servers VALUES ' . self::ENTRY;
        array_map($administrator->exec(...), [
            'GRANT ALL ON *.* TO shop', 'DELETE FROM mysql.servers', 'CREATE TABLE puts (a INT) ENGINE = InnoDB',
            str_contains($writes, 'CALL') ? "CREATE PROCEDURE puts() $put" : 'DO 0',
            str_contains($writes, 'seen') ? 'CREATE VIEW seen AS SELECT * FROM mysql.servers' : 'DO 0',
            str_contains($writes, 'puts V') ? "CREATE TRIGGER put AFTER INSERT ON puts FOR EACH ROW $put" : 'DO 0',
        ]);
        $snippet = "\$port = {$server->port()}; \$user = '{$server->user()}'; \$key = '{$server->password()}';"
            . " try { $connects \$c->query('INSERT INTO shop.users VALUES (5, \"e@x\", \"E\")'); \$began = true;"
            . ' $c->query(' . var_export($writes, true) . '); return "written"; }'
            . ' catch (RuntimeException $e) { return isset($began) ? "refused" : $e->getMessage(); }';

        $said = self::returned($this->ask($snippet, services: [$server->address()], database: 'rollback'));

        self::assertSame(0, (int) $administrator->query('SELECT COUNT(*) FROM mysql.servers')->fetchColumn());
        self::assertSame('refused', $said);
    }

    /** The server resets the session then, and with it what keeps it from writing. */
    public function testAChangeOfUserRollsBackAndTheSessionGoesOn(): void
    {
        $server = $this->server(MariaDb::class);
        $snippet = "\$port = {$server->port()}; \$user = '{$server->user()}'; \$key = '{$server->password()}';"
            . ' $c = new mysqli("127.0.0.1", $user, $key, "shop", $port);'
            . ' $count = fn () => (int) $c->query("SELECT COUNT(*) FROM users")->fetch_row()[0];'
            . ' $write = fn () => $c->query(' . var_export(self::INSERT, true) . ');'
            . ' $write(); $seen[] = $count(); $seen[] = $c->change_user($user, $key, "shop"); $seen[] = $count();'
            . ' $write(); $c->query("COMMIT"); $seen[] = $count();'
            . ' try { $c->change_user($user, "wrong", "shop"); } catch (mysqli_sql_exception) { $seen[] = false; }'
            . ' try { $write(); } catch (mysqli_sql_exception) { } return $seen;';
        $rows = count(SqlServer::ROWS);
        foreach (['cold', 'ask'] as $way) {
            $seen = self::returned($this->$way($snippet, services: [$server->address()], database: 'rollback'));

            self::assertSame([$rows + 1, true, $rows, $rows + 1, false], $seen);
            self::assertSame(SqlServer::ROWS, $server->rows());
        }
    }

    public function testALargeInsertIsSent(): void
    {
        $server = $this->server(MariaDb::class);
        $server->connect()->exec('CREATE TABLE IF NOT EXISTS shop.isam (a INT) ENGINE = MyISAM');
        $snippet = Client::PdoExec->code($server) . ' $c = $connect();'
            . ' $c->exec("CREATE TEMPORARY TABLE n (a INT, b TEXT)");'
            . ' return $c->exec("INSERT INTO n VALUES " . implode(",", array_map('
            . 'fn ($i) => "($i, \'some words of a text\')", range(1, 5000))));';
        $result = $this->ask($snippet, services: [$server->address()], database: 'rollback');
        self::assertSame(5000, self::returned($result));
    }

    public function testTheProjectsLayerRollsSqliteBack(): void
    {
        $database = $this->application()->path('shop.sqlite');
        $this->fill($database);
        $snippet = "\$p = new PDO('sqlite:$database'); \$p->exec('DELETE FROM users');"
            . ' return $p->query("SELECT COUNT(*) FROM users")->fetchColumn();';
        self::assertEquals(0, self::returned($this->ask($snippet, database: 'rollback')));
        self::assertSame(2, (int) (new PDO("sqlite:$database"))->query('SELECT COUNT(*) FROM users')->fetchColumn());
        // Where writes to the project are real, there is no layer.
        $result = $this->ask($snippet, database: 'rollback', allowWrites: true);
        self::assertSame('PDOException', $result->exception['class'] ?? null);
        self::assertSame(2, (int) (new PDO("sqlite:$database"))->query('SELECT COUNT(*) FROM users')->fetchColumn());
    }

    public function testWithoutItTheSameRequestOnlyReads(): void
    {
        $server = $this->server(PostgreSql::class);
        $snippet = Client::PdoExec->code($server) . ' $run($connect(), ' . var_export(self::INSERT, true) . ');';
        foreach ([[], ['database' => 'read-only'], ['database' => 'read-only', 'allowWrites' => true]] as $options) {
            $result = $this->ask($snippet, ...['services' => [$server->address()]] + $options);
            self::assertSame('25006', $result->exception['code'] ?? null, json_encode($options));
        }
        self::assertSame(SqlServer::ROWS, $server->rows());
        $result = $this->ask($snippet, services: [$server->address()], database: 'write');
        self::assertNull($result->exception);
        self::assertContains([42, 'w@x', 'W'], $server->rows());
    }

    public function testAModeThatThereIsNotIsRefused(): void
    {
        $this->expectException(InvalidRequestException::class);
        $this->expectExceptionMessage('read-only, rollback, write');
        $this->ask('return 1;', database: 'undo');
    }

    public function testAnUnsafeRunCannotBeRolledBack(): void
    {
        $this->expectException(InvalidRequestException::class);
        $this->expectExceptionMessage('unsafe');
        $this->ask('return 1;', database: 'rollback', unsafe: true);
    }

    /**
     * @param list<string> $statements
     * @return list<array{string, string}>
     */
    private function said(string $way, SqlServer $server, Client $client, array $statements): array
    {
        if ($server instanceof MariaDb) {
            $server->connect()->exec('CREATE TABLE IF NOT EXISTS shop.isam (a INT) ENGINE = MyISAM');
        }
        $snippet = $client->code($server) . "\n\$statements = " . var_export($statements, true) . ";\n" . self::EACH;

        return self::returned($this->$way($snippet, services: [$server->address()], database: 'rollback'));
    }
}
