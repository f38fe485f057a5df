<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\EvalRequest;
use Altair\Eval\EvalResult;
use Altair\Eval\Evaluator;
use Altair\Eval\Exception\InvalidRequestException;
use Altair\Eval\Tests\Support\AnotherUser;
use Altair\Eval\Tests\Support\Command;
use Altair\Eval\Tests\Support\Processes;
use Altair\Eval\Tests\Support\TemporaryApplication;
use Altair\Eval\Tests\Support\Warm\WarmTestCase;

/**
 * What a run may connect to while the network is off, from wherever it is declared.
 */
final class ServicesTest extends WarmTestCase
{
    /** Where the connection went, or what PHP said. */
    private const CONNECT = '$to = %s; return @stream_socket_client($to, $code, $why, 5) ? "connected" : $why;';

    private TemporaryApplication $place;

    /** @var list<resource> */
    private array $listeners = [];

    /** @var list<string> */
    private const NAMES = [
        'DATABASE_URL', 'DB_CONNECTION', 'DB_HOST', 'DB_PORT', 'DB_SOCKET', 'DB_URL', 'REDIS_URL', 'REDIS_HOST',
        'REDIS_PORT', 'MEMCACHED_URL', 'MEMCACHED_HOST', 'MEMCACHED_SERVERS', 'MONGODB_URI', 'MONGODB_URL', 'AMQP_URL',
    ];

    protected function setUp(): void
    {
        parent::setUp();
        $this->place = new TemporaryApplication();
        foreach (self::NAMES as $name) {
            $this->setVariable($name, null);
        }
    }

    protected function assertPostConditions(): void
    {
        array_map('fclose', $this->listeners);
        $this->listeners = [];
        parent::assertPostConditions();
    }

    /** Listens there, and gives the address. */
    private function listen(string $address = 'tcp://127.0.0.1:0'): string
    {
        $this->listeners[] = $listener = stream_socket_server($address) ?: self::fail($address);
        if (str_starts_with($address, 'unix:')) {
            chmod(substr($address, strlen('unix://')), 0777);
        }

        return (string) stream_socket_get_name($listener, false);
    }

    /** The same as another user, whose servers a project may name. */
    private function listenAsAnother(string $address = 'tcp://127.0.0.1:0'): string
    {
        $name = $this->listen($address);
        AnotherUser::has(end($this->listeners));

        return $name;
    }

    private function wasReached(int $listener): bool
    {
        return @stream_socket_accept($this->listeners[$listener], 0) !== false;
    }

    private static function port(string $address): string
    {
        return substr(strrchr($address, ':'), 1);
    }

    /** Connects, cold and warm alike. */
    private function connect(string $to, mixed ...$options): EvalResult
    {
        $snippet = sprintf(self::CONNECT, var_export($to, true));
        $warm = $this->ask($snippet, ...$options);
        $cold = $this->cold($snippet, ...$options);
        self::assertEquals($cold->result, $warm->result);
        self::assertEquals($cold->diagnostics['blocked'] ?? [], $warm->diagnostics['blocked'] ?? []);

        return $warm;
    }

    private function assertReached(int $listener, string $to, mixed ...$options): void
    {
        $result = $this->connect($to, ...$options);
        self::assertSame('connected', self::plain($result->result), var_export($result->toArray(), true));
        self::assertTrue($this->wasReached($listener) && $this->wasReached($listener), 'warm and cold');
    }

    private function assertRefused(int $listener, string $to, string $lift, mixed ...$options): void
    {
        $result = $this->connect($to, ...$options);
        self::assertNotSame('connected', $result->result['value'] ?? null);
        self::assertFalse($this->wasReached($listener));
        self::assertContains($lift, array_column($result->diagnostics['blocked'], 'lift'));
    }

    public function testADeclaredAddressIsReachedAndNoOther(): void
    {
        $declared = $this->listen();
        $port = self::port($declared);
        $otherPort = $this->listen();
        $otherAddress = $this->listen("tcp://127.0.0.2:$port");
        $options = ['services' => [$declared]];

        $this->assertReached(0, "tcp://$declared", ...$options);
        $this->assertRefused(1, "tcp://$otherPort", "--service=$otherPort", ...$options);
        $this->assertRefused(2, "tcp://$otherAddress", "--service=$otherAddress", ...$options);
        $this->assertReached(2, "tcp://$otherAddress", services: [$declared, $otherAddress]);
    }

    public function testIPv6IsReachedByAddress(): void
    {
        $declared = $this->listen('tcp://[::1]:0');
        $other = $this->listen('tcp://[::1]:0');

        $this->assertReached(0, "tcp://$declared", services: [$declared]);
        $this->assertRefused(1, "tcp://$other", "--service=$other", services: [$declared]);
    }

    public function testADeclaredSocketIsReachedAndNoOther(): void
    {
        $declared = $this->listen('unix://' . $this->place->path('declared.sock'));
        $other = $this->listen('unix://' . $this->place->path('other.sock'));

        $this->assertReached(0, "unix://$declared", services: [$declared]);
        $this->assertRefused(1, "unix://$other", "--service=$other", services: [$declared]);
        // Applications look for it first.
        self::assertSame(
            ['socket', false],
            $this->value("return [filetype('$declared'), file_exists('$other')];", services: [$declared]),
        );
    }

    public function testASocketInTheProjectIsReached(): void
    {
        $declared = $this->listen('unix://' . $this->application()->path('own.sock'));
        $other = $this->listen('unix://' . $this->application()->path('other.sock'));

        $this->assertReached(0, "unix://$declared", services: [$declared]);
        $this->assertRefused(1, "unix://$other", "--service=$other", services: [$declared]);
        $this->assertReached(0, "unix://$declared", services: [$declared], allowWrites: true);
    }

    public function testASocketThatALinkLeadsToIsReachedUnderBothNames(): void
    {
        mkdir($this->place->path('real'));
        symlink($this->place->path('real'), $this->place->path('link'));
        $real = $this->listen('unix://' . $this->place->path('real/db.sock'));
        $named = $this->place->path('link/db.sock');

        $this->assertReached(0, "unix://$named", services: [$named]);
        $this->assertReached(0, "unix://$real", services: [$named]);
    }

    public function testWhatIsNoSocketIsNotShown(): void
    {
        $secret = $this->place->write('secret', 'the secret');
        $this->setVariable('DB_SOCKET', $secret);
        $read = "return @file_get_contents('$secret');";
        self::assertFalse($this->value($read));
        $this->declare([$secret, $this->place->root]);
        self::assertFalse($this->value($read));
        self::assertFalse(self::returned($this->cold($read)));
        $this->expectException(InvalidRequestException::class);
        $this->expectExceptionMessage('no socket at that path');
        $this->evaluate('1', services: [$secret]);
    }

    public function testWithTheNetworkOnADeclaredSocketIsReachedBesides(): void
    {
        $anywhere = $this->listen();
        $declared = $this->listen('unix://' . $this->place->path('declared.sock'));
        $other = $this->listen('unix://' . $this->place->path('other.sock'));
        $options = ['services' => [$declared], 'allowNetwork' => true];

        $this->assertReached(0, "tcp://$anywhere", ...$options);
        $this->assertReached(1, "unix://$declared", ...$options);
        $this->assertRefused(2, "unix://$other", "--service=$other", ...$options);
    }

    public function testADeclaredNameHasTheHostsAnswersAndNoOtherNameHasAny(): void
    {
        $port = self::port($this->listen());
        $options = ['services' => ["localhost:$port"]];

        $this->assertReached(0, "tcp://localhost:$port", ...$options);
        $lookUp = 'return [gethostbyname("localhost"), gethostbyname("db.invalid"), gethostbyname(gethostname()),'
            . ' @dns_get_record("localhost"), array_map("trim", file("/etc/hosts"))];';
        [$known, $unknown, $own, $asked, $hosts] = $this->value($lookUp, ...$options);
        self::assertSame(['127.0.0.1', 'db.invalid', gethostname(), false], [$known, $unknown, $own, $asked]);
        self::assertSame([], preg_grep('~^(127\.0\.0\.1|::1) localhost$~', $hosts, PREG_GREP_INVERT));
        $result = $this->ask('@dns_get_record("example.com");', ...$options);
        self::assertStringContainsString('UDP', $result->diagnostics['blocked'][0]['what']);
    }

    public function testWhatBootLooksUpInTheFileOfNamesLeavesItsTemplateFresh(): void
    {
        $port = self::port($this->listen());
        $this->booting('$GLOBALS["found"] = [gethostbyname("localhost"), file_get_contents("/etc/hosts")];');
        $this->warmed('1', services: ["localhost:$port"]);
        $result = $this->ask('return $GLOBALS["found"][0];', services: ["localhost:$port"]);
        self::assertSame('127.0.0.1', self::plain($result->result));
        self::assertStart('warm', $result);
    }

    public function testBootMayConnectAndIsThenRepeatedInEachRun(): void
    {
        $declared = $this->listen();
        $other = $this->listen();
        $this->booting("\$GLOBALS['to'] = [@stream_socket_client('tcp://$declared', \$c, \$e, 5) !== false,"
            . " @stream_socket_client('tcp://$other', \$c, \$e, 5)];");

        $result = $this->ask('return $GLOBALS["to"];', services: [$declared]);
        self::assertSame([true, false], self::plain($result->result), var_export($result->toArray(), true));
        self::assertTrue($this->wasReached(0));
        self::assertFalse($this->wasReached(1));
    }

    public function testTheFunctionsThatConnectAreThereWhereThereIsAService(): void
    {
        $ask = 'return [function_exists("fsockopen"), function_exists("stream_socket_server"),'
            . ' ini_get("allow_url_fopen")];';
        self::assertSame([false, false, '0'], $this->value($ask));
        self::assertSame([false, false, '0'], $this->value($ask, services: []));
        self::assertSame([true, false, '1'], $this->value($ask, services: ['127.0.0.1:1']));
    }

    public function testWithoutAnyServiceARefusalNamesTheFlag(): void
    {
        $address = $this->listen();
        $result = $this->ask("fsockopen('127.0.0.1', " . self::port($address) . ');');
        self::assertSame(
            [['what' => "connect to $address", 'guard' => 'ini', 'lift' => "--service=$address"]],
            $result->diagnostics['blocked'],
        );
    }

    /**
     * @return iterable<string, array{mixed, string}>
     */
    public static function unfit(): iterable
    {
        yield 'no port' => ['db', 'port is missing'];
        yield 'a range of ports' => ['127.0.0.1:1-9', 'several ports'];
        yield 'a range of addresses' => ['10.0.0.0/8:80', 'range of addresses'];
        yield 'no such name' => ['db.invalid:3306', 'does not resolve'];
        yield 'a relative path' => ['var/db.sock', 'absolute'];
        yield 'a URL' => ['mysql://db:3306/x', 'URL'];
        yield 'any address' => ['0.0.0.0:3306', 'any address'];
        yield 'nothing' => ['', 'empty'];
        yield 'no text' => [3306, 'has to be a string'];
        yield 'bytes' => ["\xff:1", 'not a valid name'];
        yield 'a line break' => ["db\n127.0.0.1 evil:1", 'not a valid name'];
    }

    /**
     * @dataProvider unfit
     */
    public function testWhatIsNoServiceIsRefusedWithTheReason(mixed $service, string $why): void
    {
        $this->expectException(InvalidRequestException::class);
        $this->expectExceptionMessage($why);
        $this->evaluate('1', services: ['127.0.0.1:1', $service]);
    }

    public function testAThousandServicesAreTakenAndOneMoreIsNot(): void
    {
        $declared = $this->listen();
        $many = array_map(static fn (int $port): string => "127.0.0.3:$port", range(1, 999));
        $this->assertReached(0, "tcp://$declared", services: [...$many, $declared, $declared]);

        $this->expectException(InvalidRequestException::class);
        $this->expectExceptionMessage('at most 1000');
        $this->evaluate('1', services: [...$many, $declared, '127.0.0.3:1000']);
    }

    public function testComposerJsonDeclaresServicesAndTheRequestTakesItsPlace(): void
    {
        [$declared, $requested] = [$this->listenAsAnother(), $this->listen()];
        $this->declare([$declared]);

        $this->assertReached(0, "tcp://$declared");
        $this->assertRefused(1, "tcp://$requested", "--service=$requested");
        $this->assertReached(1, "tcp://$requested", services: [$requested]);
        $this->assertRefused(0, "tcp://$declared", "--service=$declared", services: [$requested]);
        $this->assertRefused(0, "tcp://$declared", "--service=$declared", services: []);
        // What is declared for all runs need not be there for each.
        $this->declare(['db.invalid:3306', $declared]);
        $this->assertReached(0, "tcp://$declared");
        $this->declare([]);
        $this->setVariable('DATABASE_URL', "mysql://$declared/shop");
        $this->assertRefused(0, "tcp://$declared", "--service=$declared");
    }

    public function testAListInComposerJsonThatCannotBeUsedIsSaid(): void
    {
        $this->declare(['db']);
        $this->expectException(InvalidRequestException::class);
        $this->expectExceptionMessage('extra.altair-eval.services in composer.json');
        $this->evaluate('1');
    }

    private function declare(array $services): void
    {
        $extra = ['altair-eval' => ['services' => $services]];
        $this->application()->write('composer.json', json_encode(['extra' => $extra]));
    }

    public function testTheEnvironmentNamesServicesWhereNothingElseDoes(): void
    {
        $database = $this->listenAsAnother();
        $cache = $this->listenAsAnother();
        $this->setVariable('DATABASE_URL', "mysql://shop:s3cret@$database/shop");
        $this->setVariable('REDIS_HOST', '127.0.0.1');
        $this->setVariable('REDIS_PORT', self::port($cache));
        $this->setVariable('MAILER_DSN', 'smtp://' . $mail = $this->listen());

        $this->assertReached(0, "tcp://$database");
        $this->assertReached(1, "tcp://$cache");
        $this->assertRefused(2, "tcp://$mail", "--service=$mail");
    }

    /**
     * What applications call their services. `A` is an address that listens, `P` its port.
     *
     * @return iterable<string, array{array<string, string>}>
     */
    public static function applications(): iterable
    {
        yield 'Laravel since 11' => [['DB_URL' => 'mysql://root:x@A/laravel']];
        yield 'Laravel without a host' => [['DB_CONNECTION' => 'mysql', 'DB_PORT' => 'P']];
        yield 'Laravel on PostgreSQL, without a host' => [['DB_CONNECTION' => 'pgsql', 'DB_PORT' => 'P']];
        yield 'a port that is left of another database' => [
            ['DB_CONNECTION' => 'pgsql', 'DB_HOST' => '127.0.0.1', 'DB_PORT' => 'P'],
        ];
        yield 'several hosts' => [['DB_HOST' => '127.0.0.9, 127.0.0.1', 'DB_PORT' => 'P']];
        yield 'hosts to read from' => [['DB_READ_HOST' => '127.0.0.9,A', 'DB_WRITE_HOST' => '127.0.0.9']];
        yield 'a second database' => [['SHOP_DB_HOST' => '127.0.0.1', 'SHOP_DB_PORT' => 'P']];
        yield 'a second URL' => [['DATABASE_REPLICA_URL' => 'postgresql://shop@A/shop']];
        yield 'WordPress' => [['WORDPRESS_DB_HOST' => 'A']];
        yield 'MySQL' => [['MYSQL_HOST' => '127.0.0.1', 'MYSQL_PORT' => 'P']];
        yield 'PostgreSQL' => [['PGHOST' => '127.0.0.1', 'PGPORT' => 'P']];
        yield 'Redis over TLS' => [['REDIS_TLS_URL' => 'rediss://:x@A']];
        yield 'a queue' => [['MESSENGER_TRANSPORT_DSN' => 'amqp://guest:guest@A/%2f/messages']];
        yield 'a name of its own' => [['REPORTS' => 'sqlsrv://sa:x@A/reports']];
        yield 'a host by its name' => [['DB_HOST' => 'localhost', 'DB_PORT' => 'P']];
    }

    /**
     * @dataProvider applications
     * @param array<string, string> $variables
     */
    public function testAServiceIsFoundByTheNameThatItsApplicationHas(array $variables): void
    {
        $address = $this->listenAsAnother();
        foreach ($variables as $name => $value) {
            $this->setVariable($name, strtr($value, ['A' => $address, 'P' => self::port($address)]));
        }

        $this->assertReached(0, "tcp://$address");
    }

    public function testAUrlOfNoDatabaseIsNoService(): void
    {
        $address = $this->listen();
        foreach (['APP_URL' => 'https', 'MAILER_DSN' => 'smtp', 'DOCKER_HOST' => 'tcp'] as $name => $scheme) {
            $this->setVariable($name, "$scheme://$address");
        }
        $this->setVariable('DB_CONNECTION', 'sqlite');
        $this->setVariable('DB_HOST', $address);

        $this->assertRefused(0, "tcp://$address", "--service=$address");
    }

    public function testTheProjectsEnvFilesNameServicesTooAndTheEnvironmentGoesBeforeThem(): void
    {
        [$first, $second] = [$this->listenAsAnother(), $this->listenAsAnother()];
        $this->setVariable('APP_ENV', null);
        $this->application()->write('.env', "DATABASE_URL=\"mysql://shop:s3cret@$first/shop\"\n");

        $this->assertReached(0, "tcp://$first");
        $this->application()->write('.env.local', "DATABASE_URL=mysql://$second/shop\n");
        $this->assertReached(1, "tcp://$second");
        $this->assertRefused(0, "tcp://$first", "--service=$first");
        $this->setVariable('DATABASE_URL', "mysql://$first/shop");
        $this->assertReached(0, "tcp://$first");
    }

    public function testTheDoctorShowsWhatWasFoundAndNoPassword(): void
    {
        $address = $this->listen();
        $lines = ["DATABASE_URL=mysql://shop:s3cret@$address/shop", 'REDIS_URL=redis://db.invalid', ''];
        $this->application()->write('.env', implode("\n", $lines));
        $root = $this->application()->root;
        $shown = Command::run(['doctor', "--root=$root"]);

        $found = "$address  from DATABASE_URL=mysql://***@$address/shop (.env), the project's";
        self::assertStringContainsString($found, $shown->output);
        self::assertStringContainsString('The service db.invalid:6379 cannot be used', $shown->output);
        self::assertStringNotContainsString('s3cret', $shown->output);
        $this->declare(['db']);
        $shown = Command::run(['doctor', "--root=$root", '--format=json']);
        self::assertStringContainsString('port is missing', $shown->json()['problems'][0]);
        self::assertSame(1, $shown->exitCode);
    }

    public function testTheCommandTakesServices(): void
    {
        $address = $this->listen();
        $root = '--root=' . $this->application()->root;
        $snippet = sprintf(self::CONNECT, "'tcp://$address'");
        $run = static fn (string ...$options): Command => Command::run(
            ['eval', $root, '--format=json', ...$options, $snippet],
        );

        self::assertSame('connected', $run("--service=$address", '--service=127.0.0.1:1')->json()['result']['value']);
        self::assertTrue($this->wasReached(0));
        $this->setVariable('DATABASE_URL', "mysql://$address/x");
        self::assertSame('connected', $run()->json()['result']['value']);
        self::assertTrue($this->wasReached(0));
        self::assertNotSame('connected', $run('--service=none')->json()['result']['value'] ?? null);
        self::assertFalse($this->wasReached(0));
        $wrong = $run('--service=db');
        self::assertSame(2, $wrong->exitCode);
        self::assertStringContainsString('port is missing', $wrong->errors);
    }

    public function testARunThatEndsWhileItConnectsLeavesNothing(): void
    {
        // A listener whose queue is full does not answer.
        $context = stream_context_create(['socket' => ['backlog' => 0]]);
        $flags = STREAM_SERVER_BIND | STREAM_SERVER_LISTEN;
        $this->listeners[] = $full = stream_socket_server('tcp://127.0.0.1:0', $c, $e, $flags, $context);
        $address = (string) stream_socket_get_name($full, false);
        for ($i = 0; $i < 4; $i++) {
            $this->listeners[] = stream_socket_client("tcp://$address", $c, $e, 0, STREAM_CLIENT_ASYNC_CONNECT);
        }
        $this->listeners = array_filter($this->listeners);
        $before = Processes::descriptors();
        $connect = 'socket_connect(socket_create(AF_INET, SOCK_STREAM, SOL_TCP), "127.0.0.1", '
            . self::port($address) . ');';
        foreach (['ask', 'cold'] as $way) {
            $result = $this->$way($connect, services: [$address], timeoutMs: 500);
            self::assertSame('timed_out', $result->diagnostics['outcome']);
        }
        $this->evaluator = null;
        for ($until = microtime(true) + self::PATIENCE; microtime(true) < $until; usleep(1000)) {
            if (count(Processes::descriptors()) <= count($before)) {
                break;
            }
        }
        self::assertLessThanOrEqual(count($before), count(Processes::descriptors()));
    }
}
