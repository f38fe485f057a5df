<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\Tests\Support\Database\MariaDb;
use Altair\Eval\Tests\Support\Database\PostgreSql;
use Altair\Eval\Tests\Support\Database\Redis;
use Altair\Eval\Tests\Support\Database\Server;
use Altair\Eval\Tests\Support\Skip;
use Altair\Eval\Tests\Support\Warm\WarmTestCase;

/**
 * A run asks the application's real servers, by every client and both ways, and reaches no other one.
 */
final class RealServicesTest extends WarmTestCase
{
    private const EMAIL = 'grace@shop.example';

    protected function setUp(): void
    {
        parent::setUp();
        foreach (['DATABASE_URL', 'REDIS_URL'] as $name) {
            $this->setVariable($name, null);
        }
    }

    /**
     * Code for a snippet that finds a name by its address: `%s` stands for what is asked.
     *
     * @return iterable<string, array{class-string<Server>, bool, string}>
     */
    public static function clients(): iterable
    {
        $find = '"SELECT name FROM users WHERE email = \'%s\'"';
        $pdo = "(new PDO(\$s['dsn'], \$s['user'], \$s['password']))->query($find)->fetchColumn()";
        $pg = "pg_fetch_result(pg_query(pg_connect(\"host=\$s[host] port=\$s[port] dbname=shop user=\$s[user]"
            . " password=\$s[password]\"), $find), 0)";
        foreach ([false, true] as $socket) {
            $way = $socket ? 'its socket' : 'TCP';
            yield "MariaDB by PDO, $way" => [MariaDb::class, $socket, $pdo];
            $mysqli = "(new mysqli(\$s['host'], \$s['user'], \$s['password'], 'shop', \$s['port'], \$s['socket']))";
            yield "MariaDB by mysqli, $way" => [MariaDb::class, $socket, $mysqli . "->query($find)->fetch_column()"];
            yield "PostgreSQL by PDO, $way" => [PostgreSql::class, $socket, $pdo];
            yield "PostgreSQL by pgsql, $way" => [PostgreSql::class, $socket, $pg];
            yield "Redis, $way" => [Redis::class, $socket, '(function () use ($s) { $r = new Redis(); $r->connect('
                . '$s["host"], $s["port"]); $r->auth($s["password"]);'
                . ' return $r->get("greeting") === "hello" ? "Grace" : "";'
                . ' })()'];
        }
    }

    /**
     * @param class-string<Server> $class
     * @dataProvider clients
     */
    public function testTheSameQueryWorksByEveryClient(string $class, bool $socket, string $code): void
    {
        $server = $this->server($class);
        $snippet = 'try { return ' . sprintf($code, self::EMAIL) . '; }'
            . ' catch (Throwable $e) { return $e->getMessage(); }';
        $facts = '$s = ' . var_export($this->facts($server, $socket), true) . ';';
        $service = $socket ? $server->socket() : $server->address();
        foreach (['cold', 'ask', 'ask'] as $way) {
            $result = $this->$way($facts . $snippet, services: [$service]);
            self::assertSame('Grace', self::returned($result), var_export($result->toArray(), true));
            self::assertArrayNotHasKey('blocked', $result->diagnostics);
            // Another one than is declared.
            $other = $this->$way("$facts error_reporting(0); $snippet", services: ['127.0.0.1:1', '/run/none.sock']);
            self::assertNotSame('Grace', $other->result['value'] ?? '');
            self::assertContains("--service=$service", array_column($other->diagnostics['blocked'] ?? [], 'lift'));
        }
    }

    /**
     * @param class-string<Server> $class
     * @dataProvider clients
     */
    public function testTheEnvironmentIsEnough(string $class, bool $socket, string $code): void
    {
        $server = $this->server($class);
        [$user, $password, $port] = [$server->user(), $server->password(), $server->port()];
        $path = $server instanceof PostgreSql ? $server->socketDirectory() : $server->socket();
        [$name, $url] = match ($class) {
            MariaDb::class => ['DATABASE_URL', $socket
                ? "mysql://$user:$password@localhost/shop?unix_socket=$path"
                : "mysql://$user:$password@127.0.0.1:$port/shop"],
            PostgreSql::class => ['DATABASE_URL', $socket
                ? "postgresql:///shop?host=$path&port=$port" : "postgresql://$user:$password@127.0.0.1:$port/shop"],
            Redis::class => ['REDIS_URL', $socket ? "unix://$path" : "redis://:$password@127.0.0.1:$port"],
        };
        $this->setVariable($name, $url);
        $facts = '$s = ' . var_export($this->facts($server, $socket), true) . ';';
        $result = $this->ask("$facts return " . sprintf($code, self::EMAIL) . ';');
        self::assertSame('Grace', self::returned($result), var_export($result->toArray(), true));
    }

    public function testARunCanWriteToRedisWhichHasNoSuchMode(): void
    {
        $server = $this->server(Redis::class);
        $facts = $this->facts($server, false);
        $snippet = "\$r = new Redis(); \$r->connect('127.0.0.1', $facts[port]); \$r->auth('$facts[password]');"
            . ' return $r->set("written", "yes");';
        self::assertTrue(self::returned($this->ask($snippet, services: [$server->address()])));
        self::assertSame('yes', $server->connect()->get('written'));
    }

    public function testTheShopHasItsDataWhereverItIsTold(): void
    {
        $shop = dirname(__DIR__) . '/examples/shop';
        $ask = 'return [container(PDO::class)->getAttribute(PDO::ATTR_DRIVER_NAME),'
            . ' container(Shop\UserRepository::class)->findByEmail("ada@shop.example")->name,'
            . ' count(container(Shop\OrderRepository::class)->withStatus(Shop\OrderStatus::Paid))];';
        $expected = self::returned($this->ask($ask, projectRoot: $shop));
        self::assertSame('sqlite', array_shift($expected));
        foreach ([MariaDb::class => 'mysql', PostgreSql::class => 'pgsql'] as $class => $driver) {
            $server = $this->server($class);
            $server->connect()->exec('DROP TABLE users');
            $url = "$driver://{$server->user()}:{$server->password()}@{$server->address()}/shop";
            $this->setVariable('DATABASE_URL', $url);
            exec(escapeshellarg(PHP_BINARY) . ' ' . escapeshellarg("$shop/fill-database.php") . ' 2>&1', $said, $code);
            self::assertSame([0, []], [$code, $said]);
            $result = $this->ask($ask, projectRoot: $shop);
            self::assertSame([$driver, ...$expected], self::returned($result), var_export($result->toArray(), true));
        }
    }

    /**
     * @return array<string, mixed> what a client needs
     */
    private function facts(Server $server, bool $socket): array
    {
        $host = match (true) {
            !$socket => '127.0.0.1',
            $server instanceof PostgreSql => $server->socketDirectory(),
            $server instanceof MariaDb => 'localhost',
            default => $server->socket(),
        };

        return [
            'dsn' => $server instanceof Redis ? '' : $server->dsn($socket),
            'host' => $host,
            'port' => $socket && $server instanceof Redis ? 0 : $server->port(),
            'socket' => $server->socket(),
            'user' => $server->user(),
            'password' => $server->password(),
        ];
    }

    /**
     * @param class-string<Server> $class
     */
    private function server(string $class): Server
    {
        if ($class::whyMissing() !== null) {
            Skip::NotInstalled->because($class::whyMissing());
        }
        $server = $class::shared();
        $server->reset();

        return $server;
    }
}
