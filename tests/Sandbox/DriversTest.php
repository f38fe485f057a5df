<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Sandbox;

use Altair\Eval\Tests\Support\DockerEngine;
use Altair\Eval\Tests\Support\SandboxTestCase;
use Altair\Eval\Tests\Support\TemporaryApplication;
use Altair\Eval\Tests\Support\Without;
use Altair\Sandbox\Config\ExecutionPolicy;
use Altair\Sandbox\Sandbox;
use InvalidArgumentException;
use LogicException;
use RuntimeException;

/**
 * What a command and its caller have of each other, whatever enforces the policy: arguments, exit codes, environment,
 * directory, and what is refused before anything is started.
 */
final class DriversTest extends SandboxTestCase
{
    /** What some drivers set by themselves, or a shell in them. */
    private const OWN_VARIABLES = [
        'docker' => ['HOME', 'HOSTNAME', 'PATH', 'PWD', 'SHLVL'],
        'firejail' => [
            '_', 'container', 'FIREJAIL_QUIET', 'HOME', 'KDE_FORK_SLAVES', 'PATH', 'PROMPT_COMMAND', 'PWD',
            'QML_DISABLE_DISK_CACHE', 'QT_X11_NO_MITSHM', 'SHELL', 'SHLVL',
        ],
    ];

    /**
     * @dataProvider drivers
     */
    public function testACommandRunsAndBothOfItsStreamsAreKeptApart(string $driver): void
    {
        $result = $this->sh($driver, 'echo out; echo err >&2');

        self::assertSame("out\n", $result->stdout());
        self::assertSame("err\n", $result->stderr());
        self::assertSame(0, $result->exitCode());
        self::assertTrue($result->success());
        self::assertFalse($result->timedOut());
        self::assertNull($result->timeoutReason());
        self::assertFalse($result->truncatedStdout() || $result->truncatedStderr());
        self::assertSame([], $result->blocked());
        self::assertNull($result->fileChanges());
        self::assertGreaterThan(0.0, $result->duration());
        self::assertLessThan(self::PATIENCE, $result->duration());
    }

    /**
     * @dataProvider drivers
     */
    public function testArgumentsArriveAsTheyAreAndNoShellReadsThem(string $driver): void
    {
        $odd = ['', ' ', '$HOME', '`id`', "a\nb", '--', '-x', '%s\n', "quo'te\"", 'ünï', '*', '\\'];
        if ($driver !== 'docker') {
            $odd[] = "\xff\xfe";
        }

        $result = $this->sandbox($driver)->execute(
            ['sh', '-c', 'for a; do printf "<%s>" "$a"; done', $this->commandMark, ...$odd],
        );

        self::assertSame('<' . implode('><', $odd) . '>', $result->stdout());
    }

    public function testDockerRefusesWhatItsClientWouldChange(): void
    {
        foreach ([["\xff", []], ['x', ['A' => "\xff"]], ['x', ["\xff" => 'a']]] as [$argument, $env]) {
            $this->assertRefused(InvalidArgumentException::class, 'Docker can pass only UTF-8', function () use (
                $argument,
                $env,
            ): void {
                Sandbox::docker($this->policy()->withEnv($env))->execute(['echo', $argument]);
            });
        }
    }

    /**
     * @dataProvider drivers
     */
    public function testKeysOfTheArrayDoNotMatter(string $driver): void
    {
        $result = $this->sandbox($driver)->execute(['b' => 'printf', 7 => '%s-%s', 'a' => 'x', 'c' => 'y']);

        self::assertSame('x-y', $result->stdout());
    }

    /**
     * @dataProvider drivers
     */
    public function testTheExitCodeIsTheCommandsOwn(string $driver): void
    {
        foreach ($driver === 'docker' ? [3, 127] : [1, 3, 125, 126, 127, 255] as $code) {
            $result = $this->sh($driver, "exit $code");
            self::assertSame($code, $result->exitCode());
            self::assertFalse($result->success());
            self::assertFalse($result->timedOut());
        }
    }

    /**
     * @dataProvider drivers
     */
    public function testACommandThatASignalEndsHas128AndTheSignal(string $driver): void
    {
        self::assertSame(128 + SIGKILL, $this->sh($driver, 'kill -KILL $$')->exitCode());
        self::assertSame(128 + SIGTERM, $this->sh($driver, 'kill -TERM $$')->exitCode());
    }

    public function testUnderHostAMissingCommandIsAResult(): void
    {
        foreach (['altair-is-not-there', '/nowhere/at/all', './nor/here'] as $name) {
            $result = $this->sandbox('host')->execute([$name]);

            self::assertSame(127, $result->exitCode());
            self::assertSame('', $result->stdout());
            self::assertStringContainsString('Failed to start host process', $result->stderr());
            self::assertFalse($result->success());
        }
    }

    /**
     * @dataProvider drivers
     */
    public function testAMissingCommandIs127(string $driver): void
    {
        $result = $this->sandbox($driver)->execute(['altair-is-not-there']);

        self::assertSame($driver === 'bubblewrap' ? 1 : 127, $result->exitCode(), $result->stderr());
        self::assertStringContainsString('altair-is-not-there', $result->stderr());
    }

    /**
     * @return iterable<string, array{string}>
     */
    public static function ownPrograms(): iterable
    {
        yield 'host' => ['host'];
        yield 'native' => ['native'];
    }

    /**
     * @dataProvider ownPrograms
     */
    public function testWhatCannotBeExecutedIs126AsInAShell(string $driver): void
    {
        $file = $this->base->write('plain', "#!/bin/sh\n");
        $broken = $this->base->write('broken', "\x7fELF", 0755);
        $policy = $this->policy()->withReadablePaths($this->base->root);

        foreach ([$file, $broken, '/etc'] as $program) {
            $result = $this->sandbox($driver, $policy)->execute([$program]);
            self::assertSame(126, $result->exitCode(), $program . $result->stderr());
            self::assertNotSame('', $result->stderr());
        }
    }

    /**
     * @dataProvider drivers
     */
    public function testTheEnvironmentIsEmptyUnlessThePolicySaysOtherwise(string $driver): void
    {
        $this->setVariable('ALTAIR_OF_THE_HOST', 'secret');

        $plain = $this->printed($driver, 'env', $this->policy()->withEnv([]));
        self::assertStringNotContainsString('ALTAIR', $plain);
        self::assertStringNotContainsString('secret', $plain);
        preg_match_all('/^(\w+)=/m', $plain, $names);
        self::assertSame([], array_values(array_diff($names[1], self::OWN_VARIABLES[$driver] ?? ['PWD'])));

        // Behind Firejail there is a shell, which drops what it could not name.
        $odd = $driver === 'firejail' ? 'UN' : 'ÜN.';
        $env = ['A' => 'x y', $odd => "ü\nz", 'E' => '', 'N' => 7];
        $chosen = $this->sandbox($driver, $this->policy()->withEnv($env))->execute(['env'])->stdout();
        self::assertStringContainsString("A=x y\n", $chosen);
        self::assertStringContainsString("E=\n", $chosen);
        self::assertStringContainsString("N=7\n", $chosen);
        self::assertStringContainsString("$odd=ü\nz\n", $chosen);
        self::assertStringNotContainsString('secret', $chosen);
    }

    /**
     * @dataProvider drivers
     */
    public function testInheritedVariablesYieldToThePolicysAndTheStrippedOnesNeverPass(string $driver): void
    {
        $stripped = [
            'LD_LIBRARY_PATH', 'ld_audit', 'Aws_Secret_Access_Key', 'NODE_OPTIONS', 'npm_config_x', 'PYTHONPATH',
            'GLIBC_TUNABLES', 'RUBYOPT', 'PIP_X', 'gcp_key', 'ALTAIR_MCP_TOKEN',
        ];
        foreach ([...$stripped, 'ALTAIR_SEEN', 'ALTAIR_BOTH'] as $name) {
            // Nothing that a loader could stumble over.
            $this->setVariable($name, 'inherited');
        }
        $env = ['ALTAIR_BOTH' => 'own', ...array_fill_keys($stripped, 'chosen')];

        foreach ([true, false] as $inherit) {
            $seen = $this->printed($driver, 'env', $this->policy()->withEnv($env, inherit: $inherit));
            self::assertStringContainsString("ALTAIR_BOTH=own\n", $seen);
            self::assertSame($inherit, str_contains($seen, "ALTAIR_SEEN=inherited\n"), $seen);
            foreach ($stripped as $name) {
                self::assertStringNotContainsString("$name=", $seen);
            }
        }
    }

    /**
     * @dataProvider drivers
     */
    public function testNoValueOfAVariableShowsInAListOfProcesses(string $driver): void
    {
        $secret = 'secret-' . bin2hex(random_bytes(8));
        [$gate, $stdin] = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
        $seen = [];
        $look = static function () use (&$seen, $gate, $secret): void {
            foreach (glob('/proc/[0-9]*/cmdline') ?: [] as $file) {
                $line = (string) @file_get_contents($file);
                if (str_contains($line, $secret)) {
                    $seen[] = $line;
                }
            }
            fwrite($gate, "go\n");
        };

        $policy = $this->policy()->withEnv(['SECRET' => $secret]);
        $result = $this->sh($driver, 'echo ready; read go; echo $SECRET', $policy, $stdin, $look);

        self::assertSame("ready\n$secret\n", $result->stdout());
        self::assertSame([], $seen);
    }

    /**
     * @dataProvider confiningDrivers
     */
    public function testEachCommandWorksInAFreshDirectoryBelowTheBaseThatIsGoneAfterwards(string $driver): void
    {
        $this->base->write('of-the-host', 'kept');
        $during = [];
        $look = function () use (&$during): void {
            $during[] = self::workDirectories($this->base->root);
        };
        [$gate, $stdin] = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
        $open = static function () use ($look, $gate): void {
            $look();
            fwrite($gate, "\n");
        };

        for ($i = 0; $i < 2; $i++) {
            $script = 'ls -A; echo x > written; mkdir -p a/b; ln -s / a/b/root; chmod 0 a; cat written; read go';
            $result = $this->sh($driver, $script, null, $stdin, $open);
            self::assertSame("x\n", $result->stdout(), $result->stderr());
            self::assertSame([], self::workDirectories($this->base->root));
        }
        self::assertCount(1, $during[0]);
        self::assertMatchesRegularExpression('/^sandbox-\w+$/', $during[0][0]);
        self::assertNotSame($during[0], end($during));
        self::assertSame('kept', file_get_contents($this->base->path('of-the-host')));
    }

    /**
     * @dataProvider confiningDrivers
     */
    public function testTheWorkDirectoryIsGoneHoweverTheCommandEnded(string $driver): void
    {
        $fill = 'mkdir -p d/e; echo > d/e/f; ';
        $this->sh($driver, $fill . 'exit 9');
        self::assertSame([], self::workDirectories($this->base->root), 'after a failure');
        $this->sh($driver, $fill . 'kill -9 $$');
        self::assertSame([], self::workDirectories($this->base->root), 'after a signal');
        $this->sandbox($driver)->execute(['altair-is-not-there']);
        self::assertSame([], self::workDirectories($this->base->root), 'after a command that is not there');
        $onOutput = static fn () => throw new LogicException('mine');
        $thrown = self::thrownBy(fn () => $this->sh($driver, "$fill echo x; exec sleep 1000", null, null, $onOutput));
        self::assertInstanceOf(LogicException::class, $thrown);
        self::assertSame([], self::workDirectories($this->base->root), 'after an exception');
    }

    /**
     * @dataProvider confiningDrivers
     */
    public function testItsRemovalFollowsNoSymlink(string $driver): void
    {
        $outside = new TemporaryApplication(['kept' => 'x', 'd/kept' => 'x']);
        $script = "ln -s {$outside->root} link; ln -s {$outside->root}/d d; mkdir e; ln -s ../../of-the-host e/up;"
            . 'ls -A';
        $this->base->write('of-the-host', 'kept');

        self::assertSame("d\ne\nlink\n", $this->printed($driver, $script));

        self::assertFileExists($outside->path('kept'));
        self::assertFileExists($outside->path('d/kept'));
        self::assertFileExists($this->base->path('of-the-host'));
    }

    public function testUnderHostACommandWorksInTheBaseDirectoryItself(): void
    {
        self::assertSame($this->base->root . "\n", $this->printed('host', 'pwd; echo x > written'));
        self::assertFileExists($this->base->path('written'));
    }

    /**
     * @dataProvider drivers
     */
    public function testABaseDirectoryThatCannotBeUsedIsNamed(string $driver): void
    {
        $file = $this->base->write('file', '');
        foreach ([$file, $this->base->path('missing'), '', "$file/x"] as $base) {
            $sandbox = $this->sandbox($driver, ExecutionPolicy::in($base));
            $this->assertRefused(
                InvalidArgumentException::class,
                "Base directory is invalid or not writable: $base",
                static fn () => $sandbox->execute(['true']),
            );
        }
    }

    public function testABaseDirectoryThatTheCallerMayNotWriteIsNamed(): void
    {
        $closed = $this->base->path('closed');
        mkdir($closed, 0555);
        $mount = posix_geteuid() === 0;
        $mount && exec('mount -t tmpfs -o ro,size=4k tmpfs ' . escapeshellarg($closed));
        try {
            foreach (['host', 'native', 'bubblewrap', 'firejail'] as $driver) {
                $this->assertRefused(
                    InvalidArgumentException::class,
                    "Base directory is invalid or not writable: $closed",
                    fn () => $this->sh($driver, 'true', ExecutionPolicy::in($closed)),
                );
            }
        } finally {
            $mount && exec('umount ' . escapeshellarg($closed));
        }
    }

    /**
     * @dataProvider drivers
     */
    public function testABaseDirectoryMayBeASymlinkAndHaveAnyName(string $driver): void
    {
        $odd = $this->base->path("a b:c,d\"e'f\nü");
        if ($driver === 'firejail') {
            $odd = $this->base->path('a b:c');
        }
        mkdir($odd);
        symlink($odd, $this->base->path('link'));

        foreach ([$odd, $this->base->path('link')] as $base) {
            $policy = ExecutionPolicy::in($base)->withTimeout(self::PATIENCE);
            $result = $this->sh($driver, 'echo x > f && cat f', $policy);
            self::assertSame("x\n", $result->stdout(), $result->stderr());
            self::assertSame([], self::workDirectories($odd));
        }
    }

    /**
     * @dataProvider drivers
     */
    public function testWhatNoProgramCanBeToldIsRefused(string $driver): void
    {
        $sandbox = $this->sandbox($driver);
        $refused = static fn (array $argv) => static fn () => $sandbox->execute($argv);

        $this->assertRefused(InvalidArgumentException::class, 'must not be empty', $refused([]));
        $this->assertRefused(InvalidArgumentException::class, 'NUL', $refused(["ec\0ho"]));
        $this->assertRefused(InvalidArgumentException::class, 'NUL', $refused(['echo', "a\0b"]));
        $this->assertRefused(InvalidArgumentException::class, 'has to be a string', $refused(['echo', 7]));
        $this->assertRefused(InvalidArgumentException::class, 'has to be a string', $refused(['echo', ['a']]));
        $this->assertRefused(InvalidArgumentException::class, 'empty', $refused(['']));
    }

    /**
     * @dataProvider drivers
     */
    public function testAnArgumentThatIsTooLongIsSaidAndLeavesNothing(string $driver): void
    {
        // The kernel takes 128 KiB of one argument.
        $thrown = null;
        $code = null;
        try {
            $code = $this->sandbox($driver)->execute(['echo', str_repeat('x', 1 << 18)])->exitCode();
        } catch (RuntimeException $thrown) {
        }

        self::assertTrue($thrown !== null || $code !== 0);
    }

    /**
     * @return iterable<string, array{string, string, string}>
     */
    public static function programs(): iterable
    {
        yield 'docker' => ['docker', 'docker', 'DOCKER_BIN'];
        yield 'podman' => ['podman', 'podman', 'PODMAN_BIN'];
        yield 'firejail' => ['firejail', 'firejail', 'FIREJAIL_BIN'];
        yield 'bubblewrap' => ['bubblewrap', 'bwrap', 'BWRAP_BIN'];
    }

    /**
     * @dataProvider programs
     */
    public function testAMissingDriverIsNamed(string $driver, string $program, string $variable): void
    {
        $named = [$driver . 'Bin' => '/nowhere/' . $program];
        $directory = $this->base->root;
        $plain = $this->base->write($program, 'not a program');
        foreach ([$named, [$driver . 'Bin' => $directory], [$driver . 'Bin' => $plain]] as $options) {
            $thrown = self::thrownBy(fn () => Sandbox::$driver($this->policy(), ...$options)->execute(['true']));
            self::assertInstanceOf(RuntimeException::class, $thrown);
            self::assertSame("Failed to start $program", $thrown->getMessage());
        }
        self::assertSame("Failed to start $program", $this->startedWith([$variable => '/nowhere/else'], $driver));
    }

    /**
     * @dataProvider programs
     */
    public function testADriversProgramIsTheArgumentThenTheVariableThenTheFirstInPath(
        string $driver,
        string $program,
        string $variable,
    ): void {
        $say = static fn (string $what): string => "#!/bin/sh\ncase \$1 in --help) exit;; esac\nprintf $what\n";
        $argument = $this->base->write('argument', $say('argument'), 0755);
        $ofVariable = $this->base->write('variable', $say('variable'), 0755);
        $this->base->write("path/$program", $say('path'), 0755);
        $this->base->write('path/other-name', $say('name'), 0755);
        $path = ['PATH' => $this->base->path('path') . ':' . getenv('PATH')];
        $both = $path + [$variable => $ofVariable];

        self::assertSame('path', $this->startedWith($path, $driver));
        self::assertSame('name', $this->startedWith($path, $driver, 'other-name'));
        self::assertSame('argument', $this->startedWith($path, $driver, $argument));
        self::assertSame('variable', $this->startedWith($both, $driver));
        self::assertSame('argument', $this->startedWith($both, $driver, $argument));
    }

    /**
     * @param array<string, string> $environment that PHP is started with
     * @return string what a driver's program prints there, or why it was not started
     */
    private function startedWith(array $environment, string $driver, ?string $binary = null): string
    {
        $code = '[, $driver, $base, $binary] = $argv;'
            . ' $sandbox = Altair\Sandbox\Sandbox::$driver(Altair\Sandbox\Config\ExecutionPolicy::in($base),'
            . ' ...["{$driver}Bin" => $binary ?: null]);'
            . ' try { echo $sandbox->execute(["true"])->stdout(); }'
            . ' catch (RuntimeException $thrown) { echo $thrown->getMessage(); }';
        $command = [PHP_BINARY, '-d', 'extension=' . Without::extension(), '-r', $code, '--'];
        [, $output] = Without::command([], [...$command, $driver, $this->base->root, (string) $binary], $environment);

        return $output;
    }

    /**
     * @dataProvider programs
     */
    public function testLayersAndServicesAreRefusedByDriversThatHaveNone(string $driver): void
    {
        $policies = [$this->policy()->withLayer($this->base->root), $this->policy()->withServices('127.0.0.1:1')];
        foreach ($policies as $policy) {
            foreach ([$driver, 'host'] as $name) {
                $this->assertRefused(
                    InvalidArgumentException::class,
                    "The driver $name supports neither layers nor services. Use native.",
                    static fn () => Sandbox::fromPolicy($policy)->using($name)->execute(['true']),
                );
            }
        }
    }

    public function testAContainersCommandIsNeverRootAndHasAReadOnlyRoot(): void
    {
        $script = 'id -u; pwd; touch /x 2>&1 || echo refused; grep NoNewPrivs /proc/self/status';
        $seen = $this->printed('docker', $script);

        self::assertStringStartsWith("65534\n/work\n", $seen);
        self::assertStringContainsString('refused', $seen);
        self::assertMatchesRegularExpression('/NoNewPrivs:\s+1/', $seen);
    }

    public function testAnImageThatIsNotThereIsAResultThatSaysSo(): void
    {
        $this->useEngine();

        // No registry's name: nothing is asked for over the network.
        $result = Sandbox::docker($this->policy(), 'Not/An/Image')->execute(['true']);

        self::assertSame(125, $result->exitCode());
        self::assertStringContainsString('invalid reference format', $result->stderr());
        self::assertSame([], DockerEngine::shared()->containers());
    }

    public function testAnEngineThatDoesNotAnswerIsAResultThatSaysSo(): void
    {
        $this->useEngine();
        $this->setVariable('DOCKER_HOST', 'unix://' . $this->base->path('nobody'));
        $result = Sandbox::docker($this->policy(), DockerEngine::IMAGE)->execute(['true']);
        $this->setVariable('DOCKER_HOST', DockerEngine::shared()->host());

        self::assertSame(125, $result->exitCode());
        self::assertStringContainsString('Cannot connect to the Docker daemon', $result->stderr());
    }
}
