<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\Tests\Support\Database\MariaDb;
use Altair\Eval\Tests\Support\Database\PostgreSql;
use Altair\Eval\Tests\Support\Database\Redis;
use Altair\Eval\Tests\Support\Database\Server;
use Altair\Eval\Tests\Support\PeerListener;
use Altair\Eval\Tests\Support\Skip;
use Altair\Eval\Tests\Support\TemporaryApplication;
use Altair\Eval\Tests\Support\Without;
use PHPUnit\Framework\TestCase;

/**
 * Services are reached where a container's default profile takes from the host what it has elsewhere: mounts, copies of
 * descriptors, and rights over other users' processes. And where another sandbox has the seccomp listener already.
 */
final class ServicesInContainersTest extends TestCase
{
    private const USER = 65534;

    private TemporaryApplication $application;

    /** @var list<resource> */
    private array $listeners = [];

    protected function setUp(): void
    {
        $this->application = new TemporaryApplication();
        $this->application->write('kept', 'kept');
        foreach (['DATABASE_URL', 'REDIS_URL'] as $name) {
            putenv($name);
        }
    }

    /**
     * @return iterable<string, array{list<string>, ?int}> what is taken away, and the owner of the project
     */
    public static function places(): iterable
    {
        yield 'as this user' => [['mounts', 'copies'], null];
        yield 'behind an outer listener' => [['listener'], null];
        yield 'behind an outer listener, without mounts and copies' => [['listener', 'mounts', 'copies'], null];
        if (posix_geteuid() === 0) {
            yield 'as an ordinary user' => [['mounts', 'copies', 'user=' . self::USER], self::USER];
            yield 'as root over another user' => [['mounts', 'copies'], self::USER];
            yield 'as root over another user, with a private root' => [['copies'], self::USER];
            yield 'as an ordinary user behind an outer listener' =>
                [['listener', 'mounts', 'user=' . self::USER], self::USER];
            yield 'as root over another user behind an outer listener' =>
                [['listener', 'mounts', 'copies'], self::USER];
        }
    }

    /** Listens there, and gives the port. */
    private function listen(string $address): string
    {
        $this->listeners[] = $listener = stream_socket_server($address) ?: self::fail($address);

        return substr(strrchr((string) stream_socket_get_name($listener, false), ':'), 1);
    }

    private function wasReached(int $listener): bool
    {
        return @stream_socket_accept($this->listeners[$listener], 0) !== false;
    }

    /**
     * @param list<string> $what
     * @param list<string> $services
     * @return array<string, mixed>
     */
    private function evaluate(array $what, ?int $owner, string $snippet, array $services): array
    {
        if ($owner !== null) {
            $this->application->giveTo($owner, $owner);
        }
        $request = ['snippet' => $snippet, 'projectRoot' => $this->application->root, 'services' => $services];

        return Without::evaluate($what, $request + ['timeoutMs' => 30000]);
    }

    /**
     * @dataProvider places
     * @param list<string> $what
     */
    public function testADeclaredNameIsReachedAndNoOther(array $what, ?int $owner): void
    {
        $port = $this->listen('tcp://127.0.0.1:0');
        $this->listen("tcp://127.0.0.2:$port");
        $snippet = <<<'PHP'
            $async = STREAM_CLIENT_CONNECT | STREAM_CLIENT_ASYNC_CONNECT;
            $one = stream_socket_client('tcp://localhost:PORT', $code, $why, 5);
            $two = stream_socket_client('tcp://localhost:PORT', $code, $why, 5, $async);
            [$none, $ready] = [[], [$two]];
            stream_select($none, $ready, $none, 5);
            $began = microtime(true);
            $unknown = [gethostbyname('db.invalid'), gethostbyname(gethostname())];

            return [
                'blocking' => stream_socket_get_name($one, true), 'async' => stream_socket_get_name($two, true),
                'unknown' => $unknown === ['db.invalid', gethostname()], 'soon' => microtime(true) - $began < 4,
                'other' => @stream_socket_client('tcp://127.0.0.2:PORT', $code, $why, 5),
            ];
            PHP;
        $snippet = strtr($snippet, ['PORT' => $port]);
        $result = $this->evaluate($what, $owner, $snippet, ["localhost:$port"]);

        $address = "127.0.0.1:$port";
        $expected = ['blocking' => $address, 'async' => $address, 'unknown' => true, 'soon' => true, 'other' => false];
        self::assertSame($expected, self::plain($result), var_export($result, true));
        self::assertTrue($this->wasReached(0) && $this->wasReached(0) && !$this->wasReached(1));
        self::assertContains("--service=127.0.0.2:$port", array_column($result['diagnostics']['blocked'], 'lift'));
    }

    /**
     * @dataProvider places
     * @param list<string> $what
     */
    public function testDatabasesAnswerByAddressNameAndPath(array $what, ?int $owner): void
    {
        $find = 'SELECT name FROM users WHERE email = \'grace@shop.example\'';
        $snippet = '$found = [];';
        $services = [];
        $expected = [];
        foreach ([MariaDb::class, PostgreSql::class] as $class) {
            $server = $this->server($class);
            $login = var_export($server->user(), true) . ', ' . var_export($server->password(), true);
            $dsns = [$server->dsn(false), $server->dsn(true)];
            if ($class === PostgreSql::class) {
                $dsns[] = str_replace('127.0.0.1', 'localhost', $server->dsn(false));
            }
            foreach ($dsns as $dsn) {
                $query = var_export($find, true);
                $dsn = var_export($dsn, true);
                $snippet .= "\$found[] = (new PDO($dsn, $login))->query($query)->fetchColumn();";
                $expected[] = 'Grace';
            }
            array_push($services, $server->address(), "localhost:{$server->port()}", $server->socket());
        }
        if (Redis::whyMissing() === null) {
            $server = $this->server(Redis::class);
            $snippet .= "\$r = new Redis(); \$r->connect('localhost', {$server->port()});"
                . ' $r->auth(' . var_export($server->password(), true) . '); $found[] = $r->get("greeting");';
            $services[] = "localhost:{$server->port()}";
            $expected[] = 'hello';
        }
        $result = $this->evaluate($what, $owner, "$snippet return \$found;", $services);

        self::assertSame($expected, self::plain($result), var_export($result, true));
        self::assertArrayNotHasKey('blocked', array_filter($result['diagnostics']));
    }

    public function testTheLoopOfTheManualConnectsASocketThatDoesNotWait(): void
    {
        $port = $this->listen('tcp://127.0.0.1:0');
        $snippet = <<<'PHP'
            $socket = socket_create(AF_INET, SOCK_STREAM, SOL_TCP);
            socket_set_nonblock($socket);
            for ($until = microtime(true) + 5; !@socket_connect($socket, '127.0.0.1', PORT);) {
                $code = socket_last_error($socket);
                if (!in_array($code, [SOCKET_EINPROGRESS, SOCKET_EALREADY], true) || microtime(true) > $until) {
                    return $code === SOCKET_EISCONN ? 'connected' : socket_strerror($code);
                }
                usleep(1000);
            }

            return 'connected';
            PHP;
        $result = $this->evaluate(['mounts', 'copies'], null, strtr($snippet, ['PORT' => $port]), ["127.0.0.1:$port"]);

        self::assertSame('connected', self::plain($result), var_export($result, true));
    }

    public function testWhoeverAsksTheKernelIsToldTheUserOfTheRun(): void
    {
        if (posix_geteuid() !== 0) {
            Skip::NeedsRoot->because('Only root has runs that run as another user.');
        }
        $peers = new TemporaryApplication();
        $listener = new PeerListener($peers->path('peers.sock'));
        chmod($peers->root, 0755);
        $snippet = "return (bool) stream_socket_client('unix://$listener->path', \$code, \$why, 5);";
        $result = $this->evaluate(['listener', 'mounts', 'copies'], self::USER, $snippet, [$listener->path]);

        self::assertTrue(self::plain($result), var_export($result, true));
        self::assertSame([self::USER], $listener->users());
    }

    public function testAnIsolatedPhpBehindAnOuterListenerIsServedInEachOfItsEntries(): void
    {
        $port = $this->listen('tcp://127.0.0.1:0');
        $this->listen("tcp://127.0.0.2:$port");
        $script = <<<'PHP'
            <?php
            $request = new Altair\Eval\EvalRequest('', __DIR__, services: ['localhost:PORT']);
            $runtime = Altair\Sandbox\Runtime::fromRequest($request);
            for ($i = 0; $i < 3; $i++) {
                echo json_encode($runtime->enter(static fn (): array => [
                    (bool) @stream_socket_client("tcp://localhost:PORT", $code, $why, 5),
                    (bool) @stream_socket_client("tcp://127.0.0.2:PORT", $code, $why, 5),
                ]));
            }
            echo json_encode(array_column($runtime->blocked(), 'lift'));
            PHP;
        $this->application->write('script.php', strtr($script, ['PORT' => $port]));
        $command = [PHP_BINARY, '-d', 'extension=' . Without::extension(), $this->application->path('script.php')];
        [, $output, $errors] = Without::command(['listener'], $command);

        $expected = str_repeat('[true,false]', 3) . json_encode(["services: ['127.0.0.2:$port']"]);
        self::assertSame($expected, $output, $errors);
        self::assertFalse($this->wasReached(1));
    }

    public function testForksOfATemplateAreServedToo(): void
    {
        $port = $this->listen('tcp://127.0.0.1:0');
        $this->listen("tcp://127.0.0.2:$port");
        $code = <<<'PHP'
            $evaluator = new Altair\Eval\Evaluator();
            $snippet = 'for ($i = 0; $i < 9; $i++) { $to = stream_socket_client("tcp://localhost:%1$s", $c, $e, 5); }'
                . ' return [(bool) $to, (bool) @stream_socket_client("tcp://127.0.0.2:%1$s", $c, $e, 5)];';
            for ($i = 0; $i < 3; $i++) {
                $request = new Altair\Eval\EvalRequest($snippet, %2$s, services: ['localhost:%1$s']);
                $result = $evaluator->evaluate($request)->toArray(true);
                $kept = [];
                foreach ($result['result']['value'] ?? [] as $value) {
                    $kept[] = $value['value'];
                }
                echo json_encode([$result['diagnostics']['start'], $kept]), "\n";
            }
            for ($until = microtime(true) + 10; microtime(true) < $until; usleep(1000)) {
                $names = array_map('file_get_contents', glob('/proc/self/task/*/comm'));
                if (preg_grep('~^altair-sockets~', $names) === []) {
                    exit('ended');
                }
            }
            PHP;
        $code = sprintf($code, $port, var_export($this->application->root, true));
        [, $output, $errors] = Without::php(['copies'], $code);

        $lines = explode("\n", $output);
        self::assertSame('ended', $lines[3] ?? null, $output . $errors);
        // The second one boots a template, or finds one that has booted meanwhile.
        foreach (['cold', 'first|warm', 'warm'] as $i => $start) {
            self::assertMatchesRegularExpression('/\A\["(' . $start . ')",\[true,false\]\]\z/', $lines[$i], $output);
        }
        self::assertFalse($this->wasReached(1));
    }

    /**
     * @param array<string, mixed> $result
     */
    private static function plain(array $result): mixed
    {
        $value = $result['result']['value'] ?? null;

        return is_array($value) ? array_map(static fn (array $one): mixed => $one['value'], $value) : $value;
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
