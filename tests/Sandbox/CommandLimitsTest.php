<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Sandbox;

use Altair\Eval\Tests\Support\SandboxTestCase;
use Altair\Sandbox\Data\ExecResult;
use InvalidArgumentException;
use RuntimeException;

/**
 * What a command may connect to and use up, and what its result says of what was refused. All addresses are this
 * machine's own.
 */
final class CommandLimitsTest extends SandboxTestCase
{
    /** @var list<resource> */
    private array $servers = [];

    private function server(): int
    {
        // The kernel accepts for it.
        $this->servers[] = $server = stream_socket_server('tcp://127.0.0.1:0');

        return (int) substr((string) strrchr(stream_socket_get_name($server, false), ':'), 1);
    }

    protected function assertPostConditions(): void
    {
        $this->servers = [];
        parent::assertPostConditions();
    }

    private static function connect(int $port): string
    {
        return "(exec 3<>/dev/tcp/127.0.0.1/$port) 2>/dev/null && echo connected || echo refused";
    }

    private function bash(string $driver, string $script, mixed $policy): ExecResult
    {
        return $this->sandbox($driver, $policy)->execute(['bash', '-c', $script, $this->commandMark]);
    }

    /**
     * @dataProvider localDrivers
     */
    public function testAServerOfTheHostIsReachedOnlyWithTheNetworkOn(string $driver): void
    {
        $connect = self::connect($this->server());

        $off = $this->bash($driver, $connect, $this->policy());
        self::assertSame($driver === 'host' ? "connected\n" : "refused\n", $off->stdout(), $off->stderr());
        $on = $this->bash($driver, $connect, $this->policy()->withNetwork(true));
        self::assertSame("connected\n", $on->stdout(), $on->stderr());
    }

    public function testAContainerHasNoNetworkUnlessAllowed(): void
    {
        $port = $this->server();

        $seen = $this->printed('docker', "ls /sys/class/net; nc -w 1 127.0.0.1 $port </dev/null || echo refused");

        self::assertSame("lo\nrefused\n", $seen);
    }

    public function testACommandMayListenAndConnectWithinItsOwnNetwork(): void
    {
        $script = 'php -r \'$s = stream_socket_server("tcp://127.0.0.1:0");'
            . '$c = stream_socket_client("tcp://" . stream_socket_get_name($s, false));'
            . ' echo $c ? "connected" : "not";\'';

        self::assertSame('connected', $this->printed('native', $script));
    }

    public function testServicesReachExactlyWhatTheyName(): void
    {
        [$declared, $other] = [$this->server(), $this->server()];
        $script = self::connect($declared) . '; ' . self::connect($other);

        $result = $this->bash('native', $script, $this->policy()->withServices("127.0.0.1:$declared"));

        self::assertSame("connected\nrefused\n", $result->stdout(), $result->stderr());
        self::assertContains("withServices('127.0.0.1:$other')", array_column($result->blocked(), 'lift'));
        // Named in turn, it is reached.
        $both = $this->policy()->withServices("127.0.0.1:$declared", "127.0.0.1:$other");
        self::assertSame("connected\nconnected\n", $this->bash('native', $script, $both)->stdout());
    }

    public function testASocketOfTheHostIsReachedOnlyAsAService(): void
    {
        [$declared, $other] = [$this->base->path('declared.sock'), $this->base->path('other.sock')];
        foreach ([$declared, $other] as $path) {
            $this->servers[] = stream_socket_server("unix://$path");
            chmod($path, 0777);
        }
        $script = '';
        foreach ([$declared, $other] as $path) {
            $script .= "php -r 'echo @stream_socket_client(\"unix://$path\") ? \"connected\\n\" : \"refused\\n\";'; ";
        }

        $policy = $this->policy();
        self::assertSame("refused\nrefused\n", $this->bash('native', $script, $policy)->stdout());
        $result = $this->bash('native', $script, $policy->withServices($declared));
        self::assertSame("connected\nrefused\n", $result->stdout(), $result->stderr());
        // Also where the directory can be read.
        $seen = $policy->withServices($declared)->withReadablePaths($this->base->root);
        self::assertSame("connected\nrefused\n", $this->bash('native', $script, $seen)->stdout());
        unlink($declared);
        unlink($other);
    }

    public function testWhatIsNoServiceIsRefused(): void
    {
        foreach (['', 'no port', 'relative/path', '127.0.0.1:0', '127.0.0.1:70000', ':80'] as $address) {
            $this->assertRefused(
                InvalidArgumentException::class,
                '',
                fn () => $this->sh('native', 'true', $this->policy()->withServices($address)),
            );
        }
    }

    public function testARefusedConnectionIsToldWithWhatWouldAllowIt(): void
    {
        $port = $this->server();
        // Beside a service there is the host's network, and each connection is asked for.
        $policy = $this->policy()->withServices('127.0.0.1:' . $this->server());

        $blocked = $this->bash('native', self::connect($port), $policy)->blocked();

        self::assertCount(1, $blocked);
        self::assertSame(['what', 'guard', 'lift'], array_keys($blocked[0]));
        self::assertStringContainsString((string) $port, $blocked[0]['what']);
        self::assertSame('seccomp', $blocked[0]['guard']);
        self::assertSame("withServices('127.0.0.1:$port')", $blocked[0]['lift']);
    }

    /** In a network of its own nobody refuses that; the kernel finds no such service. */
    public function testAServiceOfTheMachineIsNamedToWhomMeantIt(): void
    {
        $port = $this->server();
        $result = $this->bash('native', self::connect($port), $this->policy());
        self::assertSame("refused\n", $result->stdout());
        self::assertSame([[
            'what' => "connect to 127.0.0.1:$port",
            'guard' => 'seccomp',
            'lift' => "withServices('127.0.0.1:$port')",
        ]], $result->blocked());
    }

    public function testWaitingForAServiceOfItsOwnIsNoRefusal(): void
    {
        // The first connection may be made in the moment in which the service begins; the second finds it.
        $script = <<<'SH'
            php -r 'usleep(300000); $s = stream_socket_server("tcp://127.0.0.1:8123");
                for ($i = 0; $i < 2; $i++) { $all[] = stream_socket_accept($s, 30); }' &
            until (exec 3<>/dev/tcp/127.0.0.1/8123) 2>/dev/null; do sleep 0.05; done
            exec 3<>/dev/tcp/127.0.0.1/8123 && echo met
            SH;
        $result = $this->bash('native', $script, $this->policy());
        self::assertSame("met\n", $result->stdout(), $result->stderr());
        self::assertSame([], $result->blocked());
    }

    /**
     * @return iterable<string, array{string}>
     */
    public static function memoryLimited(): iterable
    {
        foreach (['native', 'bubblewrap', 'firejail'] as $driver) {
            yield $driver => [$driver];
        }
    }

    private static function allocate(int $megabytes): string
    {
        return "php -d memory_limit=-1 -r '\$x = str_repeat(\"x\", $megabytes << 20); echo \"got it\";' 2>/dev/null";
    }

    /**
     * @dataProvider memoryLimited
     */
    public function testMemoryIsLimitedByDefault(string $driver): void
    {
        self::assertSame('', $this->sh($driver, self::allocate(300))->stdout());
        self::assertSame('got it', $this->sh($driver, self::allocate(30))->stdout());
        $more = $this->policy()->withMemory('1G');
        self::assertSame('got it', $this->sh($driver, self::allocate(300), $more)->stdout());
    }

    public function testUnderHostMemoryIsLimitedOnceALimitWasChosen(): void
    {
        self::assertSame('got it', $this->sh('host', self::allocate(300))->stdout());
        // The default's value, chosen.
        $chosen = $this->policy()->withMemory('128M');
        self::assertSame('', $this->sh('host', self::allocate(300), $chosen)->stdout());
        self::assertSame('got it', $this->sh('host', self::allocate(30), $chosen)->stdout());
        // Other settings keep that it was chosen, or not.
        self::assertSame('', $this->sh('host', self::allocate(300), $chosen->withTimeout(50))->stdout());
        self::assertSame('got it', $this->sh('host', self::allocate(300), $this->policy()->withTimeout(50))->stdout());
    }

    public function testAContainersMemoryIsLimited(): void
    {
        $allocate = 'dd if=/dev/zero of=/dev/null bs=300M count=1 2>/dev/null && echo got it';

        self::assertSame('', $this->sh('docker', $allocate)->stdout());
        self::assertSame("got it\n", $this->sh('docker', $allocate, $this->policy()->withMemory('1G'))->stdout());
    }

    public function testANativeCommandHasNoPowers(): void
    {
        $status = $this->printed('native', 'cat /proc/self/status');

        self::assertMatchesRegularExpression('/^NoNewPrivs:\s+1$/m', $status);
        self::assertMatchesRegularExpression('/^Seccomp:\s+2$/m', $status);
        foreach (['CapEff', 'CapPrm', 'CapBnd', 'CapAmb'] as $set) {
            self::assertMatchesRegularExpression("/^$set:\\s+0+$/m", $status);
        }
        if (posix_geteuid() === 0) {
            self::assertMatchesRegularExpression('/^Uid:\s+65534\b/m', $status);
        }
    }

    public function testWhatTheFilterRefusesIsTold(): void
    {
        $result = $this->sh('native', 'mkdir m; mount -t tmpfs x m; unshare -Ur true; exit 0');

        self::assertNotSame([], $result->blocked());
        foreach ($result->blocked() as $blocked) {
            self::assertSame(['what', 'guard', 'lift'], array_keys($blocked));
        }
    }

    public function testAServiceWithoutAnAddressIsSaid(): void
    {
        // No server is asked for it: no name has an empty part.
        $this->assertRefused(
            RuntimeException::class,
            'altair..invalid',
            fn () => $this->sh('native', 'true', $this->policy()->withTimeout(5)->withServices('altair..invalid:80')),
        );
    }
}
