<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Escape;

use Altair\Eval\Tests\Support\Command;
use Altair\Eval\Tests\Support\PoolProcess;
use Altair\Eval\Tests\Support\Processes;
use Altair\Eval\Tests\Support\Skip;
use Altair\Eval\Tests\Support\TemporaryApplication;
use Altair\Eval\Tests\Support\Without;
use PHPUnit\Framework\TestCase;

/**
 * What a root's host has in its environment, and the owner of the project that it evaluates in: what the application
 * sends to a service, and what the owner finds in the processes of the run. Seen from outside.
 */
final class HostEnvironmentTest extends TestCase
{
    /** Who owns the project; no other test's user. */
    private const OWNER = 54331;

    /** Found in nobody else's memory. */
    private string $secret;

    private TemporaryApplication $application;

    private TemporaryApplication $outside;

    private ?PoolProcess $pool = null;

    /** @var resource */
    private $listener;

    private int $port;

    /**
     * A run that boots and tells the service, says that it is there, and waits until it may end: so many times.
     */
    private const HOST = <<<'PHP'
        $evaluator = new Altair\Eval\Evaluator(warm: %s);
        $snippet = 'echo "there"; while (!file_exists("%s/end")) { usleep(1000); } return 1;';
        $request = static fn (string $code) => new Altair\Eval\EvalRequest(
            $code,
            '%s',
            20000,
            services: ['127.0.0.1:%d'],
            readablePaths: ['%s'],
        );
        for ($call = 0; $call < %d; $call++) {
            $evaluator->evaluate($request('return 1;'));
        }
        $there = static function (string $type, string $chunk): void {
            echo $type === 'out' ? "there\n" : $chunk;
            flush();
        };
        $result = $evaluator->evaluate($request($snippet), $there);
        echo $result->diagnostics['outcome'], ' ', $result->diagnostics['start'],
            ' ', var_export($result->diagnostics['pool'] ?? false, true), "\n";
        PHP;

    /** What boot does with all that it has got. */
    private const BOOT = <<<'PHP'
        <?php
        $service = stream_socket_client('tcp://127.0.0.1:%d');
        fwrite($service, "booted\n" . json_encode([getenv(), $_SERVER, $_ENV], JSON_PARTIAL_OUTPUT_ON_ERROR)
            . @file_get_contents('/proc/self/environ'));
        fclose($service);
        PHP;

    /** What the owner reads of every process, and whether the secret is there, whose halves it is told. */
    private const LOOK = <<<'PHP'
        [, $first, $second, $root] = $argv;
        foreach (array_filter(scandir('/proc'), is_numeric(...)) as $pid) {
            if ((int) $pid === getmypid()) {
                continue;
            }
            $environment = (string) @file_get_contents("/proc/$pid/environ");
            $memory = @fopen("/proc/$pid/mem", 'r');
            $found = [];
            foreach ($memory ? @file("/proc/$pid/maps") ?: [] : [] as $line) {
                if (preg_match('/^([0-9a-f]+)-([0-9a-f]+) rw/', $line, $range) !== 1) {
                    continue;
                }
                [$from, $to] = [hexdec($range[1]), hexdec($range[2])];
                if ($to - $from <= 64 << 20 && fseek($memory, $from) === 0) {
                    $text = (string) @stream_get_contents($memory, $to - $from);
                    $at = strpos($text, $first);
                    while ($at !== false) {
                        if (substr($text, $at + strlen($first), strlen($second)) === $second) {
                            $found[] = 'in memory';
                            break;
                        }
                        $at = strpos($text, $first, $at + 1);
                    }
                }
            }
            $at = strpos($environment, $first . $second);
            $at === false || $found[] = 'in its environment';
            $isOfRun = str_contains($environment, 'ALTAIR_EVAL_UNSAFE=0');
            if ($isOfRun || $found !== []) {
                echo $isOfRun ? 'run' : 'process', ' ', $memory ? 'open' : 'closed', ' ', implode(', ', $found), "\n";
            }
        }
        PHP;

    protected function setUp(): void
    {
        if (posix_geteuid() !== 0) {
            Skip::NeedsRoot->because('Only root can be a host of another user\'s project.');
        }
        $this->secret = bin2hex(random_bytes(16));
        $this->outside = new TemporaryApplication();
        mkdir($this->outside->path('tmp'));
        chmod($this->outside->path('tmp'), 01777);
        mkdir($this->outside->path('end'));
        $this->listener = stream_socket_server('tcp://127.0.0.1:0');
        $this->port = (int) substr((string) strrchr(stream_socket_get_name($this->listener, false), ':'), 1);
        $this->application = new TemporaryApplication([
            'vendor/autoload.php' => sprintf(self::BOOT, $this->port),
            // To be named by the project is not to be its.
            '.env' => "SOME_SECRET=\nGITHUB_TOKEN=\n",
        ]);
        $this->application->giveTo(self::OWNER, self::OWNER);
    }

    protected function assertPostConditions(): void
    {
        $this->pool?->end();
        self::assertSame([], Processes::leftOf($this->application->root), 'No process is left.');
    }

    protected function tearDown(): void
    {
        $this->pool?->end();
    }

    /**
     * @return iterable<string, array{list<string>, string, int}> what is taken away, how the run starts, calls before
     */
    public static function starts(): iterable
    {
        $places = ['with mounts' => [], 'without mounts' => ['mounts'], 'in a container' => ['mounts', 'copies']];
        foreach ($places as $where => $without) {
            yield "cold, $where" => [$without, 'cold', 0];
            yield "warm, $where" => [$without, 'booted|warm', 2];
        }
    }

    /**
     * @param list<string> $without
     * @dataProvider starts
     */
    public function testTheOwnerOfTheProjectGetsNothingOfARootsEnvironment(
        array $without,
        string $start,
        int $before,
    ): void {
        [$told, $seen] = $this->evaluated($without, $start !== 'cold', $before);

        self::assertMatchesRegularExpression("/^returned ($start) false/", $told);
        $this->assertNothingGotOut($seen);
    }

    public function testNorByThePool(): void
    {
        $this->pool = new PoolProcess();
        $this->pool->start();
        [$told, $seen] = $this->evaluated([], true, 2, $this->pool->environment);

        self::assertMatchesRegularExpression('/^returned (booted|warm) true/', $told);
        $this->assertNothingGotOut($seen);
    }

    /**
     * @return iterable<string, array{string, int, int}> what is whose, and its mode
     */
    public static function changes(): iterable
    {
        yield 'everybody makes files in the root' => ['', 0, 01777];
        yield 'a group does' => ['', 0, 0775];
        yield 'the autoloader is another user\'s' => ['vendor/autoload.php', self::OWNER, 0644];
        yield 'everybody writes it' => ['vendor/autoload.php', 0, 0666];
        yield 'the manifest is another user\'s' => ['composer.json', self::OWNER, 0644];
    }

    /**
     * Root executes the code of a directory of its own, and others can have put it there.
     *
     * @dataProvider changes
     */
    public function testNorCodeThatOthersHavePutIntoADirectoryOfRoots(string $name, int $user, int $mode): void
    {
        $application = new TemporaryApplication(['vendor/autoload.php' => '<?php', 'composer.json' => '{}']);
        $evaluate = fn (): string => Command::of(
            [Command::native(), 'eval', "--root=$application->root", 'return md5((string) getenv("SOME_SECRET"));'],
            '/',
            '',
            ['SOME_SECRET' => $this->secret],
        )->output;
        self::assertStringContainsString(md5($this->secret), $evaluate(), 'It is root\'s alone.');

        chown($application->path($name), $user);
        chmod($application->path($name), $mode);
        self::assertStringContainsString(md5(''), $evaluate());
    }

    /** A command of `altair run` works as the owner of the directory, and has no less to tell. */
    public function testNorACommandInTheOwnersDirectory(): void
    {
        $secrets = ['SOME_SECRET' => $this->secret, 'GITHUB_TOKEN' => $this->secret];
        $variables = $secrets + ['TERM' => 'xterm', 'LANG' => 'C'];
        foreach ([[], ['mounts']] as $without) {
            $command = [
                ...Without::under($without), 'env', '-C', $this->application->root, Command::native(), 'run', '--',
            ];
            $run = Command::of([...$command, 'sh', '-c', 'id -u; env | cut -d= -f1'], '/', '', $variables);
            $names = explode("\n", $run->output);

            self::assertSame((string) self::OWNER, array_shift($names), $run->errors);
            self::assertSame(['LANG', 'PATH', 'TERM'], array_values(array_intersect(['LANG', 'PATH', 'TERM'], $names)));
            self::assertSame([], array_intersect(['SOME_SECRET', 'GITHUB_TOKEN'], $names));
            $run = Command::of(
                [...array_slice($command, 0, -1), '--env=SOME_SECRET', '--', 'printenv', 'SOME_SECRET'],
                '/',
                '',
                $variables,
            );
            self::assertTrue($run->output === "$this->secret\n", $run->errors);
        }
        $run = Command::of([...array_slice($command, 0, -1), '--env=LD_PRELOAD', '--', 'true'], '/', '', $variables);
        self::assertSame(125, $run->exitCode);
        self::assertStringContainsString('--env=LD_PRELOAD cannot be passed', $run->errors);
    }

    /**
     * What passes all the same: the short list, the owner's home, and what the user names, on every way.
     */
    public function testWhatIsNoSecretPassesAndWhatTheUserNamesDoes(): void
    {
        $variables = [
            'SOME_SECRET' => $this->secret, 'OTHER_SECRET' => $this->secret, 'APP_ENV' => 'test', 'APP_DEBUG' => '1',
            'KERNEL_CLASS' => 'App\\Kernel', 'TZ' => 'UTC', 'LC_ALL' => 'C', 'HOME' => '/root',
        ];
        $this->application->write('vendor/autoload.php', '<?php getenv("OTHER_SECRET");');
        $snippet = 'return [array_keys(array_filter(getenv(), "is_string")), getenv("SOME_SECRET") !== false];';
        $arguments = ['eval', '--root=' . $this->application->root, '--format=json', '--no-redact', $snippet];
        $without = Command::run($arguments, '/', '', $variables);
        $with = Command::run([...$arguments, '--env=SOME_SECRET'], '/', '', $variables);

        self::assertSame(0, $without->exitCode, $without->errors);
        $got = json_encode($without->json()['result']);
        foreach (['PATH', 'APP_ENV', 'APP_DEBUG', 'KERNEL_CLASS', 'TZ', 'LC_ALL'] as $name) {
            self::assertStringContainsString("\"$name\"", $got);
        }
        // A user that the system does not know has no home; root's is none of its own.
        self::assertStringNotContainsString('"HOME"', $got);
        self::assertSame(
            ['--env=OTHER_SECRET', '--env=SOME_SECRET'],
            array_column($without->json()['diagnostics']['blocked'], 'lift'),
        );
        self::assertSame(
            ['--env=OTHER_SECRET'],
            array_column($with->json()['diagnostics']['blocked'], 'lift'),
        );
    }

    /** A root in a container, whose settings only the container has: the first process has the same. */
    public function testWhatTheContainersFirstProcessHasPasses(): void
    {
        $this->application->write('vendor/autoload.php', '<?php');
        $snippet = 'return array_map(fn ($name) => getenv($name) !== false, ["SETTING", "CHANGED", "SOME_SECRET"]);';
        $eval = [Command::native(), 'eval', '--root=' . $this->application->root, '--format=compact', $snippet];
        $inner = implode(' ', array_map(escapeshellarg(...), $eval));
        $later = "CHANGED=other SOME_SECRET=$this->secret exec $inner";
        // The shell is the first process, and the evaluation what somebody starts there later.
        $container = ['unshare', '--pid', '--fork', '--mount-proc', 'env', 'SETTING=container', 'CHANGED=container'];
        $run = Command::of(
            [...$container, 'sh', '-c', 'sh -c ' . escapeshellarg($later) . '; exit $?'],
            '/',
            '',
            ['ALTAIR_EVAL_EXTENSION' => Without::extension()],
        );
        self::assertSame([true, false, false], $run->json()['result'] ?? $run->output . $run->errors);

        // The machine's first process is no container's.
        $variables = ['ALTAIR_EVAL_EXTENSION' => Without::extension(), 'SETTING' => 'container'];
        $run = Command::of($eval, '/', '', $variables);
        self::assertFalse($run->json()['result'][0] ?? true, $run->output . $run->errors);
    }

    /** The user's file passes names, too: here root's, in a place of the test's own. */
    public function testTheUsersFileNamesWhatPasses(): void
    {
        $this->application->write('vendor/autoload.php', '<?php');
        $home = posix_getpwuid(0)['dir'];
        $root = $this->application->root;
        $snippet = 'return getenv("SOME_SECRET") !== false;';
        $eval = [Command::native(), 'eval', "--root=$root", '--format=compact', $snippet];
        $script = 'mount -t tmpfs -o mode=0700 home ' . escapeshellarg($home) . ' && mkdir -p ~/.config/altair'
            . ' && umask 077 && printf %s "$1" > ~/.config/altair/config.toml && shift && exec "$@"';
        foreach ([['SOME_SECRET', true], ['OTHER', false]] as [$name, $passes]) {
            $file = "[project.\"$root\"]\nenv = [\"$name\"]\n";
            $run = Command::of(
                ['unshare', '--mount', 'sh', '-c', $script, 'sh', $file, ...$eval],
                '/',
                '',
                ['ALTAIR_EVAL_EXTENSION' => Without::extension(), 'SOME_SECRET' => $this->secret, 'HOME' => $home],
            );
            self::assertSame($passes, $run->json()['result'] ?? $run->output . $run->errors);
        }
    }

    private function assertNothingGotOut(string $seen): void
    {
        $arrived = '';
        while ($connection = @stream_socket_accept($this->listener, 0)) {
            $arrived .= stream_get_contents($connection);
        }
        self::assertStringStartsWith('booted', $arrived, 'Boot has told what it has.');
        self::assertSame(
            [false, []],
            [str_contains($arrived, $this->secret), preg_grep('/ in /', explode("\n", $seen))],
            $seen,
        );
    }

    /**
     * @param list<string> $without
     * @param array<string, string> $variables
     * @return array{string, string} what the host says of the run, and what the owner has seen meanwhile
     */
    private function evaluated(array $without, bool $warm, int $before, array $variables = []): array
    {
        $code = sprintf(
            self::HOST,
            var_export($warm, true),
            $this->outside->path('end'),
            $this->application->root,
            $this->port,
            $this->outside->path('end'),
            $before,
        );
        $command = [
            ...Without::under($without), PHP_BINARY, '-d', 'extension=' . Without::extension(),
            '-d', 'display_errors=stderr', '-r', $code, '--', $this->application->root,
        ];
        $environment = $variables + [
            'SOME_SECRET' => $this->secret,
            'GITHUB_TOKEN' => $this->secret,
            'ALTAIR_EVAL_POOL' => 'off',
            'TMPDIR' => $this->outside->path('tmp'),
        ];
        $errors = tmpfile();
        $streams = [['file', '/dev/null', 'r'], ['pipe', 'w'], $errors];
        $host = proc_open($command, $streams, $pipes, '/', $environment + getenv());
        $seen = '';
        $told = '';
        while (($line = fgets($pipes[1])) !== false) {
            $line === "there\n" ? $seen .= $this->look() : $told .= $line;
            touch($this->outside->path('end/end'));
        }
        proc_close($host);
        rewind($errors);

        return [$told . stream_get_contents($errors), $seen];
    }

    /** What the owner finds in processes. */
    private function look(): string
    {
        [$first, $second] = str_split($this->secret, 16);
        $command = [
            'setpriv', '--reuid=' . self::OWNER, '--regid=' . self::OWNER, '--clear-groups', '--',
            PHP_BINARY, '-n', '-d', 'memory_limit=-1', '-r', self::LOOK, '--', $first, $second, 'x',
        ];
        $process = proc_open($command, [['file', '/dev/null', 'r'], ['pipe', 'w']], $pipes, '/', []);
        $seen = (string) stream_get_contents($pipes[1]);
        proc_close($process);

        return $seen;
    }
}
