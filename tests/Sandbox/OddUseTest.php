<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Sandbox;

use Altair\Eval\Tests\Support\SandboxTestCase;
use Altair\Eval\Tests\Support\Script;
use Altair\Sandbox\Config\ExecutionPolicy;
use Altair\Sandbox\Contracts\CanExecuteCommand;
use Altair\Sandbox\Drivers\DockerSandbox;
use Altair\Sandbox\Drivers\HostSandbox;
use Altair\Sandbox\Drivers\NativeSandbox;
use Altair\Sandbox\Enums\SandboxDriver;
use Altair\Sandbox\Sandbox;
use Error;
use InvalidArgumentException;
use ReflectionClass;
use RuntimeException;
use TypeError;

/**
 * The classes that run commands, used in ways that nobody had in mind: no crash, nothing left, and a clear error.
 */
final class OddUseTest extends SandboxTestCase
{
    public function testAnUnknownDriverIsRefusedWithTheKnownOnes(): void
    {
        $known = 'Allowed: host, docker, podman, firejail, bubblewrap, native';
        foreach (['', 'lxc', 'Host', 'HOST', ' host', "host\0", "h\xffst"] as $name) {
            $this->assertRefused(
                InvalidArgumentException::class,
                $known,
                fn () => Sandbox::fromPolicy($this->policy())->using($name),
            );
        }
        foreach ([7, null, [], (object) []] as $driver) {
            $this->assertRefused(TypeError::class, 'using()', fn () => (new Sandbox($this->policy()))->using($driver));
        }
    }

    public function testEachWayToADriverGivesTheSame(): void
    {
        $policy = $this->policy();
        foreach (SandboxDriver::cases() as $case) {
            $class = "Altair\\Sandbox\\Drivers\\{$case->name}Sandbox";
            $made = [
                Sandbox::fromPolicy($policy)->using($case),
                (new Sandbox($policy))->using($case->value),
                Sandbox::{$case->value}($policy),
                new $class($policy),
            ];
            foreach ($made as $driver) {
                self::assertSame($class, $driver::class);
                self::assertInstanceOf(CanExecuteCommand::class, $driver);
                self::assertSame($policy, $driver->policy());
            }
        }
    }

    public function testArgumentsMayBeNamed(): void
    {
        $seen = '';
        $result = $this->sandbox('host')->execute(
            onOutput: static function (string $type, string $chunk) use (&$seen): void {
                $seen .= $chunk;
            },
            stdin: 'in',
            argv: ['cat'],
        );

        self::assertSame(['in', 'in'], [$result->stdout(), $seen]);
    }

    public function testAPolicyOfADriverDoesNotChangeWithAnother(): void
    {
        $policy = $this->policy();
        $driver = Sandbox::host($policy);
        $policy->withEnv(['A' => 'x']);

        self::assertStringNotContainsString('A=x', $driver->execute(['env'])->stdout());
    }

    public function testDriversAreCopiedAndSerialized(): void
    {
        $driver = new HostSandbox($this->policy());

        foreach ([clone $driver, unserialize(serialize($driver))] as $copy) {
            self::assertSame('x', $copy->execute(['printf', 'x'])->stdout());
        }
        $docker = new DockerSandbox($this->policy(), 'image', '/nowhere/docker');
        $this->assertRefused(
            RuntimeException::class,
            'Failed to start docker',
            static fn () => unserialize(serialize($docker))->execute(['true']),
        );
    }

    public function testWhatWasNeverConstructedRunsNothing(): void
    {
        foreach ([HostSandbox::class, NativeSandbox::class, DockerSandbox::class] as $class) {
            $empty = (new ReflectionClass($class))->newInstanceWithoutConstructor();
            self::assertInstanceOf(Error::class, self::thrownBy(static fn () => $empty->execute(['true'])));
            self::assertInstanceOf(Error::class, self::thrownBy(static fn () => $empty->policy()));
            $name = strlen($class) . ":\"$class\"";
            foreach (['N;', 'i:7;', 'O:8:"stdClass":0:{}'] as $policy) {
                $driver = "O:$name:1:{s:6:\"policy\";$policy}";
                $thrown = self::thrownBy(static fn () => unserialize($driver)->execute(['true']));
                self::assertNotNull($thrown, $policy);
            }
        }
        $policy = (new ReflectionClass(ExecutionPolicy::class))->newInstanceWithoutConstructor();
        self::assertInstanceOf(Error::class, self::thrownBy(static fn () => Sandbox::host($policy)->execute(['true'])));
    }

    public function testNothingIsConstructedTwice(): void
    {
        $driver = new HostSandbox($this->policy());
        $other = ExecutionPolicy::in('/nowhere');

        $this->assertRefused(Error::class, 'readonly', static fn () => $driver->__construct($other));
        self::assertSame($this->base->root, $driver->policy()->baseDir());
    }

    /**
     * @return iterable<string, array{string, string, int, string}> driver, code, exit code, what standard error holds
     */
    public static function fatalErrors(): iterable
    {
        foreach (['host', 'native'] as $driver) {
            yield "$driver: memory, in a callback" => [
                $driver,
                '$sandbox->execute($argv, null, static function () { str_repeat("x", 100 << 20); });',
                255,
                'Allowed memory size',
            ];
            yield "$driver: memory, in a stream" => [
                $driver,
                self::stream('return str_repeat("x", 100 << 20);'),
                255,
                'Allowed memory size',
            ];
            yield "$driver: exit in a stream" => [
                $driver,
                self::stream('exit(5);'),
                5,
                '',
            ];
            yield "$driver: an error in a callback" => [
                $driver,
                '$sandbox->execute($argv, null, static function () { no_such_function(); });',
                255,
                'undefined function no_such_function',
            ];
            yield "$driver: exit in a shutdown function's callback" => [
                $driver,
                'register_shutdown_function(static fn () => $sandbox->execute($argv, null, static fn () => exit(6)));',
                6,
                '',
            ];
            yield "$driver: in a destructor at the end" => [
                $driver,
                'class D { function __construct(public $sandbox, public $argv) {} function __destruct() {
                    try { $this->sandbox->execute($this->argv, null, static fn () => throw new Exception("mine")); }
                    catch (Exception $e) { say($e->getMessage()); } } }
                    $GLOBALS["d"] = new D($sandbox, $argv);',
                0,
                '',
            ];
        }
    }

    /** Code that runs a command with a stream, whose reading is this code. */
    private static function stream(string $read): string
    {
        return 'class Stream {
                public $context;
                function stream_open() { return true; }
                function stream_eof() { return false; }
                function stream_read($bytes) { ' . $read . ' }
            }
            stream_wrapper_register("test", "Stream");
            $sandbox->execute($argv, fopen("test://", "r"));';
    }

    /**
     * @dataProvider fatalErrors
     */
    public function testAFatalErrorDuringACommandEndsIt(string $driver, string $code, int $status, string $error): void
    {
        $setUp = sprintf(
            '$sandbox = Altair\Sandbox\Sandbox::fromPolicy(Altair\Sandbox\Config\ExecutionPolicy::in(%s)'
                . '->withTimeout(%d))->using(%s); $argv = %s;',
            var_export($this->base->root, true),
            self::PATIENCE,
            var_export($driver, true),
            var_export($this->shell('echo x; cat; while :; do sleep 1000; done'), true),
        );

        [$ended, , $errors] = (new Script($setUp . $code, ['-d', 'memory_limit=32M']))->end();

        self::assertSame($status, $ended, $errors);
        self::assertStringContainsString($error, $errors);
        self::assertSame([], $this->commandProcesses());
        self::assertSame([], self::workDirectories($this->base->root));
    }

    public function testAHostWithoutDescriptorsSaysSoAndGoesOn(): void
    {
        $script = new Script(sprintf(
            <<<'PHP'
                $policy = Altair\Sandbox\Config\ExecutionPolicy::in(%s);
                $run = static function (string $driver, mixed ...$more) use ($policy): string {
                    try {
                        $sandbox = Altair\Sandbox\Sandbox::fromPolicy($policy)->using($driver);
                        $result = $sandbox->execute(['printf', 'x'], ...$more);
                        return $result->stdout() !== '' ? $result->stdout() : $result->stderr();
                    } catch (RuntimeException | InvalidArgumentException $e) {
                        return $e::class . ': ' . $e->getMessage();
                    }
                };
                // What it has inherited stays open.
                $most = max(array_map(intval(...), scandir('/proc/self/fd'))) + 32;
                posix_setrlimit(POSIX_RLIMIT_NOFILE, $most, $most);
                $held = [];
                while (($file = @fopen('/dev/null', 'r')) !== false) { $held[] = $file; }
                for ($free = 0; $free < 16; $free++) {
                    foreach (['host', 'native'] as $driver) {
                        foreach ([[], ['in'], [null, static fn () => null]] as $more) {
                            $said = $run($driver, ...$more);
                            $said === '' && say("nothing with $free, $driver");
                        }
                    }
                    array_pop($held);
                }
                $held = [];
                say($run('host', null, static fn () => null) . $run('native', 'in'));
                PHP,
            var_export($this->base->root, true),
        ));

        self::assertSame([0, "xx\n", ''], $script->end());
        self::assertSame([], self::workDirectories($this->base->root));
    }

    public function testCommandsRunInOutputBuffersErrorHandlersAndGenerators(): void
    {
        $printed = fn (): string => $this->printed('native', 'printf x');
        ob_start(static fn (string $text): string => $text);
        set_error_handler(static fn (): bool => $printed() === 'x');
        $generator = (static function () use ($printed) {
            try {
                yield $printed();
            } finally {
                $printed();
            }
        })();
        try {
            trigger_error('a warning', E_USER_WARNING);
            self::assertSame('x', $generator->current());
            unset($generator);
        } finally {
            restore_error_handler();
            ob_end_clean();
        }
    }
}
