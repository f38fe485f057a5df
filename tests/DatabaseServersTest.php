<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\Tests\Support\Database\MariaDb;
use Altair\Eval\Tests\Support\Database\PostgreSql;
use Altair\Eval\Tests\Support\Database\Redis;
use Altair\Eval\Tests\Support\Database\Server;
use Altair\Eval\Tests\Support\Database\SqlServer;
use Altair\Eval\Tests\Support\Escape\Snapshot;
use Altair\Eval\Tests\Support\Processes;
use Altair\Eval\Tests\Support\Script;
use Altair\Eval\Tests\Support\Skip;
use mysqli;
use PDO;
use PHPUnit\Framework\TestCase;

/**
 * The database servers that tests have: they are real, the application may do everything on them, and they are gone
 * with the tests.
 */
final class DatabaseServersTest extends TestCase
{
    /** Seconds in which everything has to be gone, on the slowest of machines. */
    private const PATIENCE = 10;

    private const LISTENS = '0A';

    /**
     * @return iterable<string, array{class-string<Server>}>
     */
    public static function servers(): iterable
    {
        yield 'MariaDB' => [MariaDb::class];
        yield 'PostgreSQL' => [PostgreSql::class];
        yield 'Redis' => [Redis::class];
    }

    public function testMariaDbHasTheRowsHoweverItIsReached(): void
    {
        $server = self::server(MariaDb::class);
        $server->connect()->exec("DELETE FROM users; CREATE USER mallory; CREATE DATABASE loot");

        $server->reset();

        [$user, $password] = [$server->user(), $server->password()];
        $select = 'SELECT id, email, name FROM users ORDER BY id';
        $connections = [
            new mysqli('127.0.0.1', $user, $password, 'shop', $server->port()),
            new mysqli('localhost', $user, $password, 'shop', null, $server->socket()),
        ];
        foreach ($connections as $connection) {
            $seen = array_map(
                static fn (array $row): array => [(int) $row[0], $row[1], $row[2]],
                $connection->query($select)->fetch_all(),
            );
            self::assertSame(SqlServer::ROWS, $seen);
        }
        $this->assertPdoSeesTheRows($server);
        $left = $server->connect('mysql')->query("SELECT user FROM user WHERE user = 'mallory'"
            . " UNION ALL SELECT schema_name FROM information_schema.schemata WHERE schema_name = 'loot'");
        self::assertSame([], $left->fetchAll());
    }

    public function testPostgreSqlHasTheRowsHoweverItIsReached(): void
    {
        $server = self::server(PostgreSql::class);
        $server->connect()->exec('DELETE FROM users');
        $server->connect()->exec('CREATE ROLE mallory');
        $server->connect()->exec('CREATE DATABASE loot OWNER mallory');

        $server->reset();

        foreach (['127.0.0.1', $server->socketDirectory()] as $host) {
            $connection = pg_connect("host=$host port={$server->port()} dbname=shop"
                . " user={$server->user()} password={$server->password()}");
            $seen = array_map(
                static fn (array $row): array => [(int) $row[0], $row[1], $row[2]],
                pg_fetch_all(pg_query($connection, 'SELECT * FROM users ORDER BY id'), PGSQL_NUM),
            );
            self::assertSame(SqlServer::ROWS, $seen);
        }
        $this->assertPdoSeesTheRows($server);
        $left = $server->connect('postgres')->query("SELECT rolname FROM pg_roles WHERE rolname = 'mallory'"
            . " UNION ALL SELECT datname FROM pg_database WHERE datname = 'loot'");
        self::assertSame([], $left->fetchAll());
    }

    public function testRedisHasItsEntriesHoweverItIsReached(): void
    {
        $server = self::server(Redis::class);
        $server->connect()->set('greeting', 'gone');

        $server->reset();

        foreach ([true, false] as $socket) {
            $connection = $server->connect($socket);
            self::assertSame(array_keys(Redis::ENTRIES), $connection->keys('*'));
            self::assertSame(Redis::ENTRIES['greeting'], $connection->get('greeting'));
        }
        $this->expectException(\RedisException::class);
        $stranger = new \Redis();
        $stranger->connect('127.0.0.1', $server->port());
        $stranger->get('greeting');
    }

    /**
     * @param class-string<Server> $class
     * @dataProvider servers
     */
    public function testItListensOnOneAddressAlone(string $class): void
    {
        $server = self::server($class);

        // An address is a number in the machine's own order.
        $address = sprintf('%08X:%04X', unpack('L', inet_pton('127.0.0.1'))[1], $server->port());
        self::assertSame([$address], self::addressesOf($server->pid()));
        self::assertSame("127.0.0.1:{$server->port()}", $server->address());
        self::assertLessThan(100, strlen($server->socket()));
    }

    /**
     * @return iterable<string, array{string, int|null}> what the process does at last, the signal that it is sent
     */
    public static function ends(): iterable
    {
        yield 'that is killed' => ['sleep(60);', SIGKILL];
        yield 'that is interrupted' => ['sleep(60);', SIGINT];
        yield 'that fails' => ['throw new Exception();', null];
    }

    /**
     * @dataProvider ends
     */
    public function testNothingIsLeftAfterAProcess(string $atLast, ?int $signal): void
    {
        $classes = array_column(iterator_to_array($this->servers()), 0);
        array_map(self::server(...), $classes);
        $script = new Script('require ' . var_export(__DIR__ . '/bootstrap.php', true) . ';'
            . ' $open = stream_socket_server("tcp://127.0.0.1:0");'
            . ' $own = fn () => [' . Processes::class . '::descriptors(), ' . Processes::class . '::children()];'
            . ' $before = $own(); $servers = [];'
            . ' foreach (' . var_export($classes, true) . ' as $class) {'
            . '     $server = $class::shared(); $servers[] = [$server->pid(), $server->directory()];'
            . ' }'
            . ' say([$servers, $before, $own()]);' . $atLast);
        [$servers, $before, $after] = json_decode($script->line(), true, flags: JSON_THROW_ON_ERROR);

        self::assertSame($before, $after, 'A process that has servers has neither children nor descriptors of them.');
        self::assertCount(count($classes), $servers);
        $left = [];
        foreach ($servers as [$pid, $directory]) {
            $shared = array_intersect(Processes::descriptors((string) $pid), array_diff($after[0], ['/dev/null']));
            self::assertSame([], $shared, 'What the process has open is not the server\'s.');
            $processes = [$pid, ...array_keys(Snapshot::descendants($pid))];
            $left[] = static fn (): array => [
                ...array_filter($processes, static fn (int $of): bool => (Processes::stat($of)[0] ?? 'Z') !== 'Z'),
                ...Processes::startedWith($directory),
                ...glob($directory),
            ];
        }
        $look = static fn (): array => array_merge(...array_map(static fn (callable $of): array => $of(), $left));
        self::assertGreaterThanOrEqual(3 * count($classes), count($look()));

        if ($signal !== null) {
            $script->signal($signal);
        }
        $script->end();
        // One that is ended by a signal has nothing to do with it any more.
        $deadline = $signal === null ? 0 : microtime(true) + self::PATIENCE;
        while ($look() !== [] && microtime(true) < $deadline) {
            usleep(1000);
        }

        self::assertSame([], $look());
    }

    public function testAServerThatHasEndedIsStartedAnew(): void
    {
        $ended = self::server(Redis::class);
        try {
            $ended->connect()->rawCommand('SHUTDOWN', 'NOW');
        } catch (\RedisException) {
            // The connection ends with it.
        }
        $deadline = microtime(true) + self::PATIENCE;
        while ($ended->runs() && microtime(true) < $deadline) {
            usleep(1000);
        }

        $server = Redis::shared();

        self::assertDirectoryDoesNotExist($ended->directory());
        self::assertSame('hello', $server->connect()->get('greeting'));
    }

    private function assertPdoSeesTheRows(SqlServer $server): void
    {
        self::assertSame(SqlServer::ROWS, $server->rows());
        foreach ([true, false] as $socket) {
            $rows = $server->connectAsApplication($socket)->query('SELECT id, email, name FROM users ORDER BY id');
            self::assertSame(SqlServer::ROWS, $rows->fetchAll(PDO::FETCH_NUM));
        }
    }

    /**
     * @template T of Server
     * @param class-string<T> $class
     * @return T
     */
    private static function server(string $class): Server
    {
        $missing = $class::whyMissing();
        if ($missing !== null) {
            Skip::NotInstalled->because($missing);
        }

        return $class::shared();
    }

    /**
     * @return list<string> local addresses on which a process listens, as the kernel writes them
     */
    private static function addressesOf(int $pid): array
    {
        $addresses = [];
        foreach (['tcp', 'tcp6'] as $protocol) {
            foreach (array_slice(file("/proc/net/$protocol"), 1) as $line) {
                $fields = preg_split('/ +/', trim($line));
                $isItsOwn = in_array("socket:[$fields[9]]", Processes::descriptors((string) $pid), true);
                if ($fields[3] === self::LISTENS && $isItsOwn) {
                    $addresses[] = $fields[1];
                }
            }
        }

        return $addresses;
    }
}
