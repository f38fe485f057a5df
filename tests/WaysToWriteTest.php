<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\Tests\Support\Database\Client;
use Altair\Eval\Tests\Support\Database\MariaDb;
use Altair\Eval\Tests\Support\Database\PostgreSql;
use Altair\Eval\Tests\Support\Database\SessionTestCase;
use Altair\Eval\Tests\Support\Database\SqlServer;

/**
 * Ways in which a session that only reads has been made to write, where its statements were judged by a reading of
 * their text that was not the server's; and values that no such reading is to stumble over.
 */
final class WaysToWriteTest extends SessionTestCase
{
    private const INSERT = "INSERT INTO users VALUES (9, 'x@x', 'X')";

    /** Values that are tried with each client. */
    private const VALUES = 1500;

    /**
     * @return iterable<string, array{class-string<SqlServer>, Client, list<string>}>
     */
    public static function texts(): iterable
    {
        $insert = self::INSERT;
        $ofMariaDb = [
            'names in brackets' => [
                "SET sql_mode = 'MSSQL'",
                "SELECT [']; SET SESSION TRANSACTION READ WRITE; $insert; -- ']",
                $insert,
            ],
            'a file, behind names in brackets' => [
                "SET sql_mode = 'MSSQL'", "SELECT 1 AS ['] INTO OUTFILE 'FILE' -- ']",
            ],
            'a file, behind a star and a comment' => ["SELECT */* ' */FROM (SELECT 1) x INTO OUTFILE 'FILE'"],
            'another reading of backslashes' => [
                "SET sql_mode = 'NO_BACKSLASH_ESCAPES'", "SELECT '\\' INTO OUTFILE 'FILE' -- '",
            ],
            'a sequence' => ['SET @a = NEXT VALUE FOR numbers', 'SELECT NEXT VALUE FOR numbers'],
            'a chain' => ['BEGIN', 'SELECT lifts()', 'COMMIT AND CHAIN', $insert, 'COMMIT'],
            'one transaction, told before' => ['SET @@tx_read_only = 0, @a = 1', 'BEGIN', $insert, 'COMMIT'],
            'a mode for one statement, with an accent' => ["SET STATEMENT tx_read_ônly = 0 FOR $insert"],
        ];
        foreach ($ofMariaDb as $name => $texts) {
            foreach (Client::OF_MARIADB as $client) {
                yield "MariaDB, $name: $client->value" => [MariaDb::class, $client, $texts];
            }
        }
        $ofPostgreSql = [
            'a chain' => ['BEGIN', 'SELECT lifts()', 'COMMIT AND CHAIN', $insert, 'COMMIT'],
            'a lift by a setting, and a chain' => [
                'BEGIN', "SELECT set_config('default_transaction_read_only', 'off', false)", 'COMMIT AND CHAIN',
                $insert, 'COMMIT',
            ],
            'a lift by a setting of its own' => [
                'BEGIN', "SET LOCAL work_mem = '1MB'", "SELECT set_config('transaction_read_only', 'off', false)",
                $insert, 'COMMIT',
            ],
            'a tag that is none' => ['SELECT $1e5$$, lo_creat(-1), $$x'],
            'a name with a tag in it' => ['SELECT 1 AS a$$, lo_creat(-1) AS b$$'],
            'a program' => ["COPY (SELECT 'TO STDOUT') TO PROGRAM 'touch FILE'"],
            'code' => ["DO \$\$ BEGIN COMMIT; SET TRANSACTION READ WRITE; $insert; END \$\$"],
            'large objects like columns' => ['SELECT n.lo_creat FROM generate_series(1, 1) n'],
        ];
        foreach ($ofPostgreSql as $name => $texts) {
            foreach (Client::OF_POSTGRESQL as $client) {
                yield "PostgreSQL, $name: $client->value" => [PostgreSql::class, $client, $texts];
            }
        }
    }

    /**
     * @param class-string<SqlServer> $class
     * @param list<string> $texts
     * @dataProvider texts
     */
    public function testNothingIsWritten(string $class, Client $client, array $texts): void
    {
        $server = $this->prepared($class);
        $file = sys_get_temp_dir() . '/altair-written-' . bin2hex(random_bytes(6));
        $texts = str_replace('FILE', $file, $texts);
        $snippet = $client->code($server) . ' $c = $connect(); foreach (' . var_export($texts, true) . ' as $sql) {'
            . ' try { $run($c, $sql); } catch (Throwable $e) { $said[] = $e->getMessage(); } } return $said ?? [];';
        $said = self::returned($this->ask($snippet, services: [$server->address()]));
        $this->assertUnchanged($server, $file);
        self::assertNotSame([], $said, 'Something of it is refused.');
    }

    /**
     * @return iterable<string, array{string}>
     */
    public static function calls(): iterable
    {
        $pg = '$c = pg_connect("host=127.0.0.1 port=$port dbname=shop user=$user password=$password");';
        $table = '(SELECT 1) TO PROGRAM \'touch FILE\'';
        yield 'pg_copy_to, a comment' => ["$pg @pg_copy_to(\$c, \"$table /*\", '*', '/ --');"];
        yield 'pg_copy_to, a comment to the end' => ["$pg @pg_copy_to(\$c, \"$table --\");"];
        yield 'pg_copy_to, a text for NULL' => [
            "$pg @pg_copy_to(\$c, 'users', ',', \"x' ) TO PROGRAM 'touch FILE' --\"); @pg_query(\$c, 'VACUUM');",
        ];
        yield 'pg_copy_to, dollars' => ["$pg @pg_copy_to(\$c, \"$table NULL AS \$\$\", ',', '\$\$');"];
        $lift = "@pg_query(\$c, 'SET transaction_read_only = off /* on */');";
        $insert = var_export(self::INSERT, true);
        yield 'a commit under a name' => ["$pg pg_prepare(\$c, 'k', 'COMMIT AND CHAIN'); pg_query(\$c, 'BEGIN');"
            . " pg_query(\$c, 'SELECT 1'); @pg_query(\$c, 'EXECUTE k'); $lift @pg_query(\$c, $insert);"
            . " @pg_query(\$c, 'COMMIT'); @pg_query(\$c, $insert);"];
        yield 'a name for two' => ["$pg pg_prepare(\$c, 'i', $insert); @pg_prepare(\$c, 'i', 'SET work_mem = 1000');"
            . " pg_prepare(\$c, 'k', 'COMMIT'); @pg_prepare(\$c, 'k', 'SET work_mem = 1000'); pg_query(\$c, 'BEGIN');"
            . " $lift @pg_execute(\$c, 'i', []); @pg_execute(\$c, 'k', []); @pg_query(\$c, 'COMMIT');"
            . " @pg_query(\$c, $insert);"];
        $pdo = '$c = new PDO($dsn, $user, $password, [PDO::ATTR_ERRMODE => PDO::ERRMODE_SILENT]);';
        $attributes = ['', ', [PDO::ATTR_EMULATE_PREPARES => true]', ', [PDO::PGSQL_ATTR_DISABLE_PREPARES => true]'];
        foreach ($attributes as $i => $as) {
            yield "a placeholder before a tag, $i" => [
                "$pdo \$s = \$c->prepare('SELECT 1 AS a?\$\$, lo_creat(-1), \$\$b'$as); \$s && \$s->execute([1]);",
            ];
            yield "a value with a tag, $i" => [
                "$pdo \$s = \$c->prepare('SELECT ?::text, lo_creat(-1), ?::text'$as);"
                    . ' $s && $s->execute(["$" . "$", "$" . "$"]);',
            ];
        }
        yield 'ODBC' => ['try { new PDO("odbc:shop"); } catch (Error $e) { $said = $e->getMessage(); }'];
    }

    /** @dataProvider calls */
    public function testNoCallWritesEither(string $code): void
    {
        $server = $this->prepared(PostgreSql::class);
        $file = sys_get_temp_dir() . '/altair-written-' . bin2hex(random_bytes(6));
        $set = ['dsn' => $server->dsn(), 'user' => $server->user(), 'password' => $server->password(),
            'port' => $server->port()];
        $code = str_replace('FILE', $file, $code);
        $snippet = 'extract(' . var_export($set, true) . "); $code return \$said ?? '';";
        $result = $this->ask($snippet, services: [$server->address()]);
        self::returned($result);
        $this->assertUnchanged($server, $file);
        $lifts = array_column($result->diagnostics['blocked'] ?? [], 'lift');
        self::assertNotSame([], array_intersect(['--rollback', '--writes'], $lifts));
    }

    public function testAChangeOfUserThatFailsLeavesNothingOpen(): void
    {
        $server = $this->prepared(MariaDb::class);
        $snippet = Client::MysqliQuery->code($server) . ' $c = $connect(); $c->query("SELECT 1");'
            . ' try { $c->change_user("shop", "wrong", "shop"); } catch (Throwable) { }'
            . ' try { $c->query(' . var_export(self::INSERT, true) . '); return "written"; }'
            . ' catch (Throwable $e) { return $e->getMessage(); }';
        foreach (['read-only', 'rollback'] as $database) {
            $this->ask($snippet, services: [$server->address()], database: $database);
            $this->assertUnchanged($server, '/nowhere');
        }
    }

    public function testACommitUnderANameIsRolledBackToo(): void
    {
        $server = $this->prepared(PostgreSql::class);
        $snippet = Client::PgQuery->code($server) . ' $c = $connect(); pg_prepare($c, "k", "COMMIT");'
            . ' pg_prepare($c, "j", "COMMIT"); @pg_prepare($c, "j", "SELECT 1"); $run($c, '
            . var_export(self::INSERT, true) . '); @pg_query($c, "EXECUTE k"); @pg_execute($c, "k", []);'
            . ' @pg_execute($c, "j", []); return 1;';
        self::assertSame(1, self::returned($this->ask($snippet, services: [$server->address()], database: 'rollback')));
        $this->assertUnchanged($server, '/nowhere');
    }

    /**
     * @return iterable<string, array{class-string<SqlServer>, bool, bool}>
     */
    public static function valued(): iterable
    {
        foreach ([MariaDb::class, PostgreSql::class] as $class) {
            foreach ([false, true] as $emulates) {
                yield "$class, " . ($emulates ? 'emulated' : 'prepared') => [$class, $emulates, false];
            }
        }
        yield 'MariaDB, bytes, emulated' => [MariaDb::class, true, true];
    }

    /**
     * @param class-string<SqlServer> $class
     * @dataProvider valued
     */
    public function testNoValueIsRefused(string $class, bool $emulates, bool $binary): void
    {
        $server = $this->prepared($class);
        $words = ["'", '"', '\\', '$$', '--', '/*', '*/', ';', '#', '`', '[', ']', "O'Brien; Ltd", 'INTO OUTFILE',
            'CALL', 'U&"', 'dblink(', 'lo_creat(', 'SET SESSION', "\n", 'é', '東', '$1', 'E\'', '?', ':a', '%'];
        $snippet = '$c = new PDO(' . var_export($server->dsn(), true) . ", 'shop', '{$server->password()}',"
            . ' [PDO::ATTR_EMULATE_PREPARES => ' . var_export($emulates, true) . ']); mt_srand(7);'
            . ' $words = ' . var_export($words, true) . '; $wrong = [];'
            . ' for ($i = 0; $i < ' . self::VALUES . '; $i++) {'
            . ($binary ? ' $value = random_bytes(mt_rand(0, 2000));'
                : ' $value = ""; for ($n = mt_rand(0, 40); $n > 0; $n--) { $value .= $words[array_rand($words)]'
                . ' . (mt_rand(0, 2) ? " " : ""); }')
            . ' try { $s = $c->prepare("SELECT " . ' . ($class === PostgreSql::class ? '"CAST(? AS text)"' : '"?"')
            . ' . " AS v"); $s->execute([$value]); $seen = $s->fetchColumn(); } catch (Throwable $e) {'
            . ' $seen = $e->getMessage(); } if ($seen !== $value) { $wrong[] = bin2hex($value) . " " . $seen; } }'
            . ' return [count($wrong), $wrong[0] ?? ""];';
        $dsn = $binary ? str_replace('charset=utf8mb4', 'charset=binary', $snippet) : $snippet;
        $result = $this->ask($dsn, services: [$server->address()]);
        self::assertSame([0, ''], self::returned($result));
        self::assertArrayNotHasKey('blocked', $result->diagnostics);
    }

    /**
     * @param class-string<SqlServer> $class
     */
    private function prepared(string $class): SqlServer
    {
        $server = $this->server($class);
        if ($class === MariaDb::class) {
            $server->connect()->exec('CREATE SEQUENCE shop.numbers');
        }

        return $server;
    }

    private function assertUnchanged(SqlServer $server, string $file): void
    {
        self::assertSame(SqlServer::ROWS, $server->rows());
        self::assertFileDoesNotExist($file);
        $ask = $server instanceof MariaDb ? 'SELECT next_not_cached_value FROM shop.numbers'
            : 'SELECT COUNT(*) + 1 FROM pg_largeobject_metadata';
        self::assertSame(1, (int) $server->connect()->query($ask)->fetchColumn());
    }
}
