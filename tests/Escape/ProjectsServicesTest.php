<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Escape;

use Altair\Eval\Tests\Support\Escape\Daemon;
use Altair\Eval\Tests\Support\TemporaryApplication;
use Altair\Eval\Tests\Support\Without;
use PHPUnit\Framework\TestCase;

/**
 * A project names daemons that do what they are told: those of its own user, and root's. Its boot, its runs and their
 * forks reach none of them without the user's word, and what it may name they reach.
 */
final class ProjectsServicesTest extends TestCase
{
    /** Whose the project is where root is the host of somebody else's. */
    private const OWNER = 54329;

    /** Whose the servers are that any project may name: a user of a service. */
    private const SERVER = 54328;

    /** Where sockets are that are in no place of its own kind. */
    private string $place = '';

    private TemporaryApplication $application;

    protected function setUp(): void
    {
        // Not below the directory for temporary files, where sockets are another matter.
        $this->place = '/var/tmp/altair-daemon-' . bin2hex(random_bytes(4));
        mkdir($this->place);
        chmod($this->place, 01777);
        $this->application = new TemporaryApplication();
    }

    protected function tearDown(): void
    {
        exec('rm -rf -- ' . escapeshellarg($this->place));
    }

    /**
     * @return iterable<string, array{list<string>, int}> what is taken away, and whose the project is
     */
    public static function places(): iterable
    {
        $own = posix_geteuid();
        yield 'as this user' => [[], $own];
        yield 'without mounts' => [['mounts', 'copies'], $own];
        yield 'behind an outer listener' => [['listener'], $own];
        if ($own === 0) {
            $user = 'user=' . self::OWNER;
            yield 'as an ordinary user' => [[$user], self::OWNER];
            yield 'as an ordinary user, without mounts' => [['mounts', 'copies', $user], self::OWNER];
            yield 'as an ordinary user behind an outer listener' => [['listener', 'mounts', $user], self::OWNER];
            yield 'as root over another user' => [[], self::OWNER];
            yield 'as root over another user, without mounts' => [['mounts', 'copies'], self::OWNER];
            yield 'as root over another user behind an outer listener' => [['listener', 'mounts'], self::OWNER];
        }
    }

    /** An address of loopback that no other test uses, for a port that is to be a certain one. */
    private static function loopback(): string
    {
        return sprintf('127.%d.%d.%d', random_int(1, 254), random_int(0, 254), random_int(1, 254));
    }

    /** A daemon with sockets and ports that a project may not name, whoever of these two has it. */
    private function daemon(int $uid): Daemon
    {
        return new Daemon($uid, "$this->place/told-$uid", [
            "unix://$this->place/daemon-$uid.sock",
            "unix:///tmp/altair-daemon-" . bin2hex(random_bytes(4)),
            ...array_map(static fn (int $port): string => 'tcp://' . self::loopback() . ":$port", [2375, 2379, 10250]),
        ]);
    }

    /**
     * What boots, runs and forks of a host have got from each service: `done`, or why not; and what was blocked.
     *
     * @param list<string> $what is taken away
     * @param list<string> $services
     * @return list<array{0: array<string, string>, 1: array<string, string>, 2: list<array<string, string>>}>
     */
    private function tell(array $what, array $services, string $options = ''): array
    {
        $this->application->write('vendor/autoload.php', '<?php function tell(): array { $all = '
            . var_export($services, true) . '; foreach ($all as $to) {'
            . ' $scheme = $to[0] === "/" ? "unix" : "tcp"; [$code, $why] = [0, ""];'
            . ' $there = @stream_socket_client("$scheme://$to", $code, $why, 5);'
            . ' if ($there) { fwrite($there, "make it\n"); $why = trim((string) fgets($there)); }'
            . ' $said[$to] = (string) $why; } return $said; } $GLOBALS["boot"] = tell();');
        $code = '$evaluator = new Altair\Eval\Evaluator(warm: true); $said = [];'
            . ' for ($call = 0; $call < 6 && ($start ?? "") !== "warm"; $call++) {'
            . ' $result = $evaluator->evaluate(new Altair\Eval\EvalRequest("return json_encode([\$GLOBALS[\'boot\'], tell()]);",'
            . var_export($this->application->root, true) . ", timeoutMs: 60000, database: 'write' $options));"
            . ' $start = $result->diagnostics["start"];'
            . ' $said[] = [...json_decode($result->result["value"] ?? throw new RuntimeException(json_encode($result->toArray(true)))),'
            . ' $result->diagnostics["blocked"] ?? []]; }'
            . ' echo json_encode($said);';
        [, $output, $errors] = Without::php($what, $code);

        return json_decode($output, true) ?? self::fail($output . $errors);
    }

    private function declare(string ...$services): void
    {
        $extra = ['altair-eval' => ['services' => $services]];
        $this->application->write('composer.json', json_encode(['extra' => $extra], JSON_THROW_ON_ERROR));
    }

    private function giveAway(int $owner): void
    {
        $owner === posix_geteuid() || $this->application->giveTo($owner, $owner);
    }

    /**
     * @dataProvider places
     * @param list<string> $what
     */
    public function testADaemonOfItsOwnUserOrOfRootDoesNothingForAProject(array $what, int $owner): void
    {
        $daemons = [$this->daemon($owner)];
        if (posix_geteuid() === 0 && $owner !== 0) {
            $daemons[] = $this->daemon(0);
        }
        $debugger = new Daemon($owner, "$this->place/debugger", ['tcp://127.0.0.1:0', 'tcp://[::1]:0']);
        $services = [...$debugger->services, ...array_merge(...array_column($daemons, 'services'))];
        // The same socket under another name, and through a link.
        link($daemons[0]->services[0], "$this->place/innocent.sock");
        symlink($daemons[0]->services[0], "$this->place/link.sock");
        array_push($services, "$this->place/innocent.sock", "$this->place/link.sock");
        $this->declare(...$services);
        $this->giveAway($owner);

        $said = $this->tell($what, $services);
        self::assertSame([], array_merge($debugger->told(), ...array_map(
            static fn (Daemon $daemon): array => $daemon->told(),
            $daemons,
        )), var_export($said, true));
    }
}
