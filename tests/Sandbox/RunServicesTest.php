<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Sandbox;

use Altair\Eval\Tests\Support\Command;
use Altair\Eval\Tests\Support\Escape\Daemon;
use Altair\Eval\Tests\Support\Skip;
use Altair\Eval\Tests\Support\TemporaryApplication;
use Altair\Eval\Tests\Support\Without;
use PHPUnit\Framework\TestCase;

/**
 * What `altair run` connects to: what the project that it is in may name, and what the user does.
 */
final class RunServicesTest extends TestCase
{
    private const SERVER = 54328;

    private string $place = '';

    private TemporaryApplication $application;

    protected function setUp(): void
    {
        $this->place = '/var/tmp/altair-daemon-' . bin2hex(random_bytes(4));
        mkdir($this->place);
        chmod($this->place, 01777);
        $this->application = new TemporaryApplication();
    }

    protected function tearDown(): void
    {
        exec('rm -rf -- ' . escapeshellarg($this->place));
    }

    private function declare(string ...$services): void
    {
        $extra = ['altair-eval' => ['services' => $services]];
        $this->application->write('composer.json', json_encode(['extra' => $extra], JSON_THROW_ON_ERROR));
    }

    /**
     * @param list<string> $what is taken away
     */
    private function inProject(array $what, string $service, string ...$options): Command
    {
        $scheme = $service[0] === '/' ? 'unix' : 'tcp';
        $code = "\$to = @stream_socket_client('$scheme://$service', \$c, \$why, 5);"
            . ' $to && fwrite($to, "make it\n"); echo $to ? fgets($to) : $why;';
        $run = [Command::native(), 'run', '--format=json', ...$options, '--', PHP_BINARY, '-n', '-r', $code];

        return Command::of([...Without::under($what), ...$run], $this->application->root);
    }

    /**
     * @return iterable<string, array{list<string>}>
     */
    public static function places(): iterable
    {
        yield 'as it is' => [['filter']];
        yield 'without mounts' => [['mounts', 'copies']];
    }

    /**
     * @dataProvider places
     * @param list<string> $what
     */
    public function testADaemonOfItsOwnUserDoesNothingWithoutTheUsersWord(array $what): void
    {
        $daemon = new Daemon(posix_geteuid(), "$this->place/told", [
            "unix://$this->place/own.sock", 'tcp://127.0.0.1:0',
        ]);
        $this->declare(...$daemon->services);
        foreach ($daemon->services as $service) {
            $refused = $this->inProject($what, $service);
            self::assertSame([], $daemon->told(), $refused->output . $refused->errors);
            $blocked = array_column($refused->json()['blocked'], 'what', 'lift')["--service=$service"] ?? '';
            $line = "altair allow --root={$this->application->root} --service=$service";
            self::assertStringContainsString($line, $blocked, $refused->output);
            $allowed = $this->inProject($what, $service, "--service=$service");
            self::assertSame([$service], $daemon->told(), $allowed->output . $allowed->errors);
        }
    }

    /**
     * @dataProvider places
     * @param list<string> $what
     */
    public function testAServerOfAnotherUserIsReachedUnlessNoneIsWanted(array $what): void
    {
        posix_geteuid() === 0 || Skip::NeedsRoot->because('Only root can have another user listen.');
        $server = new Daemon(self::SERVER, "$this->place/told", [
            "unix://$this->place/server.sock", 'tcp://127.0.0.1:0',
        ]);
        $this->declare(...$server->services);
        foreach ($server->services as $service) {
            $reached = $this->inProject($what, $service);
            self::assertSame([$service], $server->told(), $reached->output . $reached->errors);
            $this->inProject($what, $service, '--service=none');
            self::assertSame([], $server->told());
        }
    }
}
