<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Escape;

use Altair\Eval\Tests\Support\Database\MariaDb;
use Altair\Eval\Tests\Support\Database\PostgreSql;
use Altair\Eval\Tests\Support\Database\SqlServer;
use Altair\Eval\Tests\Support\Database\Statements;
use Altair\Eval\Tests\Support\Escape\Attack;
use Altair\Eval\Tests\Support\Escape\EscapeTestCase;
use Altair\Eval\Tests\Support\Escape\Scene;
use Altair\Eval\Tests\Support\Escape\Setting;
use Closure;
use PDO;

/**
 * A run writes nothing into the application's real databases through the clients of PHP: not by lifting the mode of its
 * session, nor by what that mode does not stop.
 */
final class SessionsEscapeTest extends EscapeTestCase
{
    /** As administrators have it: everything that the attacks need is permitted. */
    private const MARIADB = [
        'a write' => '$p->exec($w);',
        'lifting it' => '$p->exec("SET SESSION TRANSACTION READ WRITE"); $p->exec($w);',
        'lifting it in a comment' => '$p->exec("/*!50000 SET tx_read_only = 0 */"); $p->exec($w);',
        'lifting it for one statement' => '$p->exec("SET STATEMENT tx_read_only = 0 FOR $w");',
        'a block' => '$p->exec("BEGIN NOT ATOMIC SET tx_read_only = 0; $w; END");',
        'a dynamic statement' => '$p->exec("EXECUTE IMMEDIATE CONCAT(\'SET tx_read\', \'_only = 0\')"); $p->exec($w);',
        'a procedure' => '$p->exec("CALL tries()");',
        'a function that lifts it' => '$p->query("SELECT lifts()")->fetchAll(); $p->exec($w);',
        'a function that lifts it, and one that writes' => '$p->query("SELECT lifts()")->fetchAll();'
            . ' $p->query("SELECT writes()")->fetchAll();',
        'functions in one text' => '$p->exec("SELECT lifts(); SELECT writes()");',
        'a view' => '$p->query("SELECT * FROM lifting")->fetchAll(); $p->exec($w);',
        'an initial command' => '$p = new PDO($d, $u, $k, [PDO::MYSQL_ATTR_INIT_COMMAND => $w]);',
        'several statements' => '$p->exec("SELECT 1; SET tx_read_only = 0; $w");',
        'a transaction that writes' => '$p->exec("START TRANSACTION READ WRITE"); $p->exec($w); $p->exec("COMMIT");',
        'a change of user' => '$m = new mysqli("127.0.0.1", $u, $k, "shop", $s->port); $m->query("SELECT 1");'
            . ' $m->change_user($u, $k, "shop"); $m->query($w);',
        'a transaction of mysqli' => '$m = new mysqli("127.0.0.1", $u, $k, "shop", $s->port);'
            . ' $m->begin_transaction(MYSQLI_TRANS_START_READ_WRITE); $m->query($w); $m->commit();',
        'a statement with another end' => '$p->exec("SET sql_mode = \'NO_BACKSLASH_ESCAPES\'");'
            . ' $p->exec("SELECT \'\\\\\'; $w; -- \'");',
        'a table' => '$p->exec("CREATE TABLE trophy (a INT)");',
        'an account' => '$p->exec("CREATE USER mallory");',
    ];

    private const POSTGRESQL = [
        'a write' => '$p->exec($w);',
        'lifting it' => '$p->exec("SET default_transaction_read_only = off"); $p->exec($w);',
        'lifting it by a function' => '$p->query("SELECT set_config(\'default_transaction_\' || \'read_only\', \'off\','
            . ' false)"); $p->exec($w);',
        'resetting it' => '$p->exec("RESET ALL"); $p->exec($w);',
        'discarding it' => '$p->exec("DISCARD ALL"); $p->exec($w);',
        'a block' => '$p->exec("DO \$\$ BEGIN COMMIT; SET TRANSACTION READ WRITE; $w; END \$\$");',
        'a procedure' => '$p->exec("CALL tries()");',
        'a function that lifts it' => '$p->query("SELECT lifts()"); $p->exec($w);',
        'a view' => '$p->query("SELECT * FROM lifting"); $p->exec($w);',
        'functions in one text' => '$p->exec("SELECT lifts(); COMMIT; SELECT writes()");',
        'a transaction that writes' => '$p->exec("BEGIN READ WRITE"); $p->exec($w); $p->exec("COMMIT");',
        'a mode that is chained' => '$p->exec("BEGIN"); $p->exec("COMMIT AND CHAIN");'
            . ' $p->exec("SET TRANSACTION READ WRITE"); $p->exec($w); $p->exec("COMMIT");',
        'options of the connection' => '$c = pg_connect("host=127.0.0.1 port=$s->port dbname=shop user=$u password=$k'
            . ' options=\'-c default_transaction_read_only=off\'"); pg_query($c, $w);',
        'a copy' => '$p->pgsqlCopyFromArray("users", ["42\tw@x\tW"]);',
        'a large object' => '$p->beginTransaction(); $p->pgsqlLOBCreate(); $p->commit();',
        'a large object by a function' => '$p->query("SELECT lo_from_bytea(0, \'x\')");',
        'a program of the server\'s' => '$p->exec("COPY (SELECT 1) TO PROGRAM \'psql -qc \\"SELECT 1\\"; true\'");'
            . ' $p->exec($w);',
        'a table' => '$p->exec("CREATE TABLE trophy (a int)");',
        'a role' => '$p->exec("CREATE ROLE mallory");',
    ];

    /** @var array<class-string<SqlServer>, bool> whether a database is as it was made */
    private static array $isClean = [];

    public static function tearDownAfterClass(): void
    {
        self::$isClean = [];
        parent::tearDownAfterClass();
    }

    public static function attacks(): iterable
    {
        yield from self::on(MariaDb::class, self::MARIADB, Statements::IN_MARIADB, [
            'SELECT id FROM shop.users WHERE id > 2',
            "SELECT 'table' FROM information_schema.tables WHERE table_name = 'trophy'",
            "SELECT user FROM mysql.user WHERE user = 'mallory'",
        ]);
        yield from self::on(PostgreSql::class, self::POSTGRESQL, Statements::IN_POSTGRESQL, [
            'SELECT id FROM users WHERE id > 2',
            "SELECT 'table' FROM pg_tables WHERE tablename = 'trophy'",
            "SELECT rolname FROM pg_roles WHERE rolname = 'mallory'",
            'SELECT oid FROM pg_largeobject_metadata',
        ]);
    }

    /**
     * @param class-string<SqlServer> $class
     * @param array<string, string> $snippets
     * @param list<string> $routines
     * @param list<string> $traces queries that find what was written
     */
    private static function on(string $class, array $snippets, array $routines, array $traces): iterable
    {
        if ($class::whyMissing() !== null) {
            return;
        }
        $kind = $class === MariaDb::class ? 'MariaDB' : 'PostgreSQL';
        foreach ($snippets as $name => $snippet) {
            yield new Attack(
                "$kind: $name",
                '$d = $s->dsn; $u = $s->user; $k = $s->password; $w = "INSERT INTO users VALUES (42, \'w@x\', \'W\')";'
                    . ' $p = new PDO($d, $u, $k); ' . $snippet,
                static function () use ($class, $traces): array {
                    $administrator = $class::shared()->connect();
                    $look = static fn (string $trace): array
                        => $administrator->query($trace)->fetchAll(PDO::FETCH_COLUMN);
                    $found = array_map($look, $traces);

                    self::$isClean[$class] = array_filter($found) === [];

                    return array_map(strval(...), array_merge(...$found));
                },
                Setting::WITH_INI,
                prepare: self::preparing($class, $routines),
            );
        }
    }

    /**
     * @param class-string<SqlServer> $class
     * @param list<string> $routines
     */
    private static function preparing(string $class, array $routines): Closure
    {
        return static function (Scene $scene) use ($class, $routines): void {
            $server = $class::shared();
            // What has left no trace needs no other database after it.
            if (!(self::$isClean[$class] ?? false)) {
                $server->reset();
                $administrator = $server->connect();
                array_map($administrator->exec(...), $routines);
            }
            self::$isClean[$class] = false;
            $scene->request('services', [$server->address()]);
            foreach (['dsn', 'user', 'password', 'port'] as $fact) {
                $scene->tell($fact, $server->$fact());
            }
        };
    }
}
