<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Escape;

use Altair\Eval\Tests\Support\Command;
use Altair\Eval\Tests\Support\Escape\Daemon;
use Altair\Eval\Tests\Support\Escape\Place;
use Altair\Eval\Tests\Support\Skip;
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
     * What a host's boot and its run have got from each service, then forks of a template: `done`, or why not; and what
     * was blocked.
     *
     * @param list<string> $what is taken away
     * @param list<string> $services
     * @param array<string, string> $environment that the host is started with
     * @param string $before what the host does first
     * @return non-empty-list<array{array<string, string>, list<array<string, string>>}>
     */
    private function tell(
        array $what,
        array $services,
        string $options = '',
        array $environment = [],
        string $before = '',
    ): array {
        $this->boots($services);
        // A boot that connects is repeated for each run, so that one without is made, too.
        $code = <<<'PHP'
            $evaluator = new Altair\Eval\Evaluator(warm: true);
            [$root, $said, $start] = [ROOT, [], ''];
            for ($call = 0; $call < CALLS && $start !== 'warm'; $call++) {
                $snippet = 'return json_encode([$GLOBALS["boot"], tell()]);';
                $request = new Altair\Eval\EvalRequest($snippet, $root, timeoutMs: 60000 OPTIONS);
                $result = $evaluator->evaluate($request);
                $start = $result->diagnostics['start'];
                isset($result->result['value']) || throw new RuntimeException(json_encode($result->toArray(true)));
                foreach (array_filter(json_decode($result->result['value'], true)) as $one) {
                    $said[] = [$one, $result->diagnostics['blocked'] ?? []];
                }
                @unlink("$root/boots");
            }
            echo json_encode([$start, $said, $result->diagnostics['start_reason'] ?? '']);
            PHP;
        // There is no template behind another listener.
        [$calls, $last] = in_array('listener', $what, true) ? [2, 'cold'] : [8, 'warm'];
        $root = var_export($this->application->root, true);
        $code = strtr($code, ['CALLS' => $calls, 'ROOT' => $root, 'OPTIONS' => $options]);
        $host = [PHP_BINARY, '-d', 'extension=' . Without::extension(), '-d', 'display_errors=stderr', '-r'];
        [, $output, $errors] = Without::command($what, [...$host, $before . $code], $environment);
        [$start, $said, $why] = json_decode($output, true) ?? self::fail($output . $errors);
        self::assertSame($last, $start, $why);

        return $said;
    }

    /**
     * Gives the application a function that tells services to make something, and a boot that calls it.
     *
     * @param list<string> $services
     */
    private function boots(array $services): void
    {
        $this->application->write('boots', '');
        $this->application->write('vendor/autoload.php', '<?php function tell(): array { $all = '
            . var_export($services, true) . '; foreach ($all as $to) {'
            . ' $scheme = $to[0] === "/" ? "unix" : "tcp"; [$code, $why] = [0, ""];'
            . ' $there = @stream_socket_client("$scheme://$to", $code, $why, 5);'
            . ' if ($there) { fwrite($there, "make it\n"); $why = trim((string) fgets($there)); }'
            . ' $said[$to] = (string) $why; } return $said; }'
            . ' $GLOBALS["boot"] = file_exists(__DIR__ . "/../boots") ? tell() : [];');
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

    /**
     * @dataProvider places
     * @param list<string> $what
     */
    public function testWhatIsRefusedIsToldWithTheWordThatAllowsIt(array $what, int $owner): void
    {
        $daemon = new Daemon($owner, "$this->place/told", ["unix://$this->place/own.sock", 'tcp://127.0.0.1:0']);
        $this->declare(...$daemon->services);
        $this->giveAway($owner);

        foreach ($this->tell($what, $daemon->services) as [, $blocked]) {
            foreach ($daemon->services as $service) {
                $told = array_column($blocked, 'what', 'lift')["--service=$service"] ?? '';
                self::assertStringContainsString("connect to $service: only the project names it", $told);
                $root = $this->application->root;
                self::assertStringContainsString("altair allow --root=$root --service=$service", $told);
            }
        }
        self::assertSame([], $daemon->told());
        // For one call.
        foreach ($this->tell($what, $daemon->services, ', services: ' . var_export($daemon->services, true)) as $said) {
            self::assertSame([array_fill_keys($daemon->services, 'done'), []], $said);
        }
        self::assertSame($daemon->services, $daemon->told());
    }

    /**
     * @dataProvider places
     * @param list<string> $what
     */
    public function testAVariableIsTheUsersWhereTheHostWasStartedWithItAndElseTheProjects(array $what, int $owner): void
    {
        $daemon = new Daemon($owner, "$this->place/told", ["unix://$this->place/own.sock", 'tcp://127.0.0.1:0']);
        [$socket, $address] = $daemon->services;
        $variables = ['DB_SOCKET' => $socket, 'DATABASE_URL' => "mysql://shop@$address/shop"];
        $this->giveAway($owner);
        $services = $daemon->services;

        // A run of another user gets a variable of the host's only if the user passes it.
        $passed = ', env: ' . var_export(array_keys($variables), true);
        $this->tell($what, $services, $passed, $variables);
        self::assertSame($services, $daemon->told(), 'Whoever starts the host has the word.');
        $puts = '';
        foreach ($variables as $name => $value) {
            $puts .= "putenv('$name=$value'); \$_ENV['$name'] = '$value'; ";
            file_put_contents($this->application->path('.env'), "$name=$value\n", FILE_APPEND);
        }
        $said = $this->tell($what, $services, $passed, before: $puts);
        self::assertSame([], $daemon->told(), 'putenv(): ' . var_export($said, true));
        $said = $this->tell($what, $services);
        self::assertSame([], $daemon->told(), '.env: ' . var_export($said, true));
    }

    /**
     * @dataProvider places
     * @param list<string> $what
     */
    public function testServersThatAProjectMayNameAreReached(array $what, int $owner): void
    {
        $own = new Daemon($owner, "$this->place/own", array_map(
            static fn (int $port): string => 'tcp://' . self::loopback() . ":$port",
            [3306, 5432, 6379, 11211, 27017, 1433, 5672, 9200],
        ));
        $daemons = [$own];
        if (posix_geteuid() === 0) {
            $daemons[] = new Daemon(self::SERVER, "$this->place/server", [
                "unix://$this->place/server.sock",
                'unix:///tmp/.s.PGSQL.' . random_int(10000, 60000),
                'tcp://127.0.0.1:0',
                'tcp://' . self::loopback() . ':9090',
            ]);
            $owner === 0 || $daemons[] = new Daemon(0, "$this->place/root", ['tcp://127.0.0.1:0']);
        }
        $services = array_merge(...array_column($daemons, 'services'));
        $this->declare(...$services);
        $this->giveAway($owner);

        foreach ($this->tell($what, $services) as $said) {
            self::assertSame([array_fill_keys($services, 'done'), []], $said);
        }
    }

    public function testWithoutTheFilterOnlyTheUsersServicesAreReached(): void
    {
        $daemon = new Daemon(posix_geteuid(), "$this->place/told", [
            "unix://$this->place/own.sock", 'tcp://127.0.0.1:0',
        ]);
        $this->declare(...$daemon->services);
        $host = fn (string $options): string => '$result = (new Altair\Eval\Evaluator(warm: false))->evaluate('
            . 'new Altair\Eval\EvalRequest("return json_encode(tell());", '
            . var_export($this->application->root, true) . ", timeoutMs: 60000 $options));"
            . ' echo json_encode($result->toArray(true));';
        $this->boots($daemon->services);
        $omit = ['-d', 'altair_eval.omit=seccomp'];
        [, $output] = Without::php([], $host(''), $omit);
        self::assertSame('returned', json_decode($output, true)['diagnostics']['outcome'] ?? null, $output);
        self::assertSame([], $daemon->told(), $output);
        [, $output] = Without::php([], $host(', services: ' . var_export($daemon->services, true)), $omit);
        self::assertSame($daemon->services, $daemon->told(), $output);
    }

    /** The file stands in the home of root, which is another one here. */
    public function testWhatTheUserAllowsCountsFromTheNextCallUntilItIsTakenBack(): void
    {
        posix_geteuid() === 0 || Skip::NeedsRoot->because('Only root can have another home in its place.');
        Place::hasMounts() || Skip::RefusedToAll->because('Nothing can be mounted here.');
        $daemon = new Daemon(0, "$this->place/told", ['tcp://127.0.0.1:0', "unix://$this->place/own.sock"]);
        $this->declare(...$daemon->services);
        $home = posix_getpwuid(0)['dir'];
        $code = <<<'PHP'
            [, $root, $file, $allow] = $argv;
            $evaluator = new Altair\Eval\Evaluator(warm: true);
            $tell = static function () use ($evaluator, $root): array {
                do {
                    $request = new Altair\Eval\EvalRequest('return json_encode(tell());', $root, timeoutMs: 60000);
                    $result = $evaluator->evaluate($request);
                } while ($result->diagnostics['start'] !== 'warm');

                return array_values(json_decode($result->result['value'], true));
            };
            $said = [$tell()];
            mkdir(dirname($file), 0700, true);
            file_put_contents($file, $allow);
            $said[] = $tell();
            unlink($file);
            $said[] = $tell();
            echo json_encode($said);
            PHP;
        $this->boots($daemon->services);
        $this->application->remove('boots');
        $file = "$home/.config/altair/config.toml";
        $root = $this->application->root;
        $allow = "[project.\"$root\"]\nservices = " . json_encode($daemon->services, JSON_UNESCAPED_SLASHES) . "\n";
        $mount = 'mount -t tmpfs none ' . escapeshellarg($home) . ' && exec "$@"';
        $host = [PHP_BINARY, '-d', 'extension=' . Without::extension(), '-r', $code, '--', $root, $file, $allow];
        $said = Command::of(['unshare', '--mount', 'sh', '-c', $mount, 'sh', ...$host]);
        $refused = ['Operation not permitted', 'Operation not permitted'];
        self::assertSame([$refused, ['done', 'done'], $refused], json_decode($said->output, true), $said->errors);
    }
}
