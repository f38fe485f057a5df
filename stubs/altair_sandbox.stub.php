<?php

/**
 * Signatures of the native classes of `Altair\Sandbox`: any command under a policy, and an isolated PHP. The latter is
 * also in the namespace `sandbox`.
 *
 * This file is never loaded, since the extension altair_eval provides the classes. tests/StubTest.php compares the two.
 *
 * Each method that is named like a readonly property returns that property.
 */

declare(strict_types=1);

namespace Altair\Sandbox {

    use Altair\Sandbox\Config\ExecutionPolicy;
    use Altair\Sandbox\Contracts\CanExecuteCommand;
    use Altair\Sandbox\Enums\SandboxDriver;

    /**
     * Makes what runs commands under a policy.
     */
    final readonly class Sandbox
    {
        /** The policy of every command. */
        private ExecutionPolicy $policy;

        public function __construct(ExecutionPolicy $policy)
        {
        }

        /**
         * The same as `new Sandbox($policy)`.
         */
        public static function fromPolicy(ExecutionPolicy $policy): Sandbox
        {
        }

        /**
         * Runs commands with a driver, of which everything but the policy is as usual.
         *
         * @param SandboxDriver|string $driver a case, or its value
         * @throws \InvalidArgumentException if there is no such driver; the message lists those that there are
         */
        public function using(SandboxDriver|string $driver): CanExecuteCommand
        {
        }

        /**
         * Runs commands with this process's rights: {@see Drivers\HostSandbox}.
         */
        public static function host(ExecutionPolicy $policy): CanExecuteCommand
        {
        }

        /**
         * Runs commands in containers of Docker's: {@see Drivers\DockerSandbox}.
         *
         * @param string|null $image null: `alpine:3`
         * @param string|null $dockerBin a path or a name, looked for in the `PATH` of PHP's start
         */
        public static function docker(
            ExecutionPolicy $policy,
            ?string $image = null,
            ?string $dockerBin = null,
        ): CanExecuteCommand {
        }

        /**
         * Runs commands in containers of Podman's: {@see Drivers\PodmanSandbox}.
         *
         * @param string|null $image null: `alpine:3`
         * @param string|null $podmanBin a path or a name, looked for in the `PATH` of PHP's start
         */
        public static function podman(
            ExecutionPolicy $policy,
            ?string $image = null,
            ?string $podmanBin = null,
        ): CanExecuteCommand {
        }

        /**
         * Runs commands with Firejail: {@see Drivers\FirejailSandbox}.
         *
         * @param string|null $firejailBin a path or a name, looked for in the `PATH` of PHP's start
         */
        public static function firejail(ExecutionPolicy $policy, ?string $firejailBin = null): CanExecuteCommand
        {
        }

        /**
         * Runs commands with bubblewrap: {@see Drivers\BubblewrapSandbox}.
         *
         * @param string|null $bubblewrapBin a path or a name, looked for in the `PATH` of PHP's start
         */
        public static function bubblewrap(ExecutionPolicy $policy, ?string $bubblewrapBin = null): CanExecuteCommand
        {
        }

        /**
         * Runs commands without another program: {@see Drivers\NativeSandbox}.
         */
        public static function native(ExecutionPolicy $policy): CanExecuteCommand
        {
        }
    }

    /**
     * A PHP of its own, in another process, that closures are entered in. It keeps its state (constants, globals,
     * included files) from one entry to the next. Whatever happens in it, the caller goes on.
     *
     * Guarded, which it is by default, it reads PHP's own files and the files below `$root`, writes to a layer that is
     * thrown away, connects to `$services` and nothing else, and starts no process. docs/runtimes.md has the rules for
     * closures, what travels, and what ends a runtime.
     *
     * An object that is freed ends its process, and so does the end of the caller. It belongs to the process that made
     * it: a fork of that process cannot use it. It cannot be cloned or serialised.
     */
    final class Runtime
    {
        /**
         * Starts the process. It has the ini files and the `-d` switches of the caller, not what `ini_set()` changed.
         * Starting it, and each entry, may take 5000 ms.
         *
         * @param array<string, mixed> $ini ini settings. `disable_functions` and `disable_classes` take a list of names
         *     or a text with commas; what PHP loads at its start (`extension`, `extension_dir`, `opcache.preload`,
         *     `ffi.preload`) is ignored, and so are names that PHP does not know and other arrays. Other values are
         *     cast to string
         * @param bool $guarded false: with the rights of the caller
         * @param string|null $root the directory that it may read, and write to a layer, and in which it starts; null:
         *     the working directory if that holds a `composer.json`, otherwise an empty directory; unguarded, always
         *     the working directory
         * @param list<string> $services what it may connect to: `host:port`, `address:port`, `[address]:port` or the
         *     absolute path of a Unix socket
         * @throws Exception `optional configuration array expected`; `sandboxes cannot create sandboxes` inside an
         *     isolated PHP or an evaluation; `sandbox unusable: …` if it cannot be started
         * @throws \Altair\Eval\Exception\InvalidRequestException if `$root` or `$services` cannot be used
         * @throws \Altair\Eval\Exception\LaunchException if `altair_eval.programs` forbids an unguarded one
         */
        public function __construct(
            array $ini = [],
            bool $guarded = true,
            ?string $root = null,
            array $services = [],
        ) {
        }

        /**
         * Starts a process in which the application of a request has booted, with what the request allows: guards,
         * services, database sessions, paths, memory and time. Its snippet runs first; it may be empty, here only. In
         * closures, `container()` is the application's container, as in a snippet. The request's `timeoutMs` is for the
         * start, and again for each entry.
         *
         * @throws Exception `sandboxes cannot create sandboxes`; `sandbox unusable: …` if the application does not
         *     boot, or the snippet does not return
         * @throws \Altair\Eval\Exception\InvalidRequestException if the request cannot be used
         */
        public static function fromRequest(\Altair\Eval\EvalRequest $request): Runtime
        {
        }

        /**
         * Runs a closure in the isolated PHP and returns its value. What it prints is printed here, as it prints it.
         *
         * The closure is sent as the source of its file, so it has to be written in a file that has not changed since.
         * It must not take or return objects or references, capture variables or `$this`, or declare functions or
         * classes; files that it includes may do anything.
         *
         * Null, booleans, numbers, strings and arrays travel by value, in both directions. An object or a resource that
         * comes back is `true`.
         *
         * @param array<mixed> $argv its arguments, in order; keys are ignored. No objects and no resources
         * @param int|null $timeoutMs deadline in milliseconds, at least 1; null: 5000, or that of the request. A
         *     deadline that passes ends the runtime
         * @param int|null $memoryLimitMb `memory_limit` in MiB; less than 16 is 16; null: that of `$ini`, otherwise
         *     128, or that of the request
         * @return mixed null, bool, int, float, string, or an array of these
         * @throws \Error if closure or arguments are against the rules; nothing has run
         * @throws \ValueError if a limit is less than 1
         * @throws Exception `Closure, or Closure and args expected`; `The closure on … cannot be sent: …`; `sandbox
         *     bailed out: …` if an exception, a fatal error or `exit` ended the entry, after which the runtime can be
         *     used; `sandbox unusable: …` if the runtime has ended, or is being entered further up
         */
        public function enter(
            \Closure $closure,
            array $argv = [],
            ?int $timeoutMs = null,
            ?int $memoryLimitMb = null,
        ): mixed {
        }

        /**
         * Ends the process, after the shutdown functions and destructors there, which have the time of an entry. What
         * they print is printed here; nothing is printed where the object is freed instead.
         *
         * @throws Exception `sandbox unusable: it was closed`
         */
        public function close(): void
        {
        }

        /**
         * The files that it has changed so far in its layer, as `diagnostics.file_changes` of an
         * {@see \Altair\Eval\EvalResult} has them: path relative to the root, and bytes. Empty if there are none or no
         * layer. It also tells them of a runtime whose process has ended, until it is closed.
         *
         * @return array{
         *     created?: list<array{path: string, size: int}>,
         *     modified?: list<array{path: string, size: int}>,
         *     deleted?: list<array{path: string, size: int}>,
         * }
         * @throws Exception `sandbox unusable: it was closed`
         */
        public function fileChanges(): array
        {
        }

        /**
         * What was refused so far, as `diagnostics.blocked` of an {@see \Altair\Eval\EvalResult} has it. `lift` is
         * the argument that allows it, of the constructor or of the {@see \Altair\Eval\EvalRequest}.
         *
         * @return list<array{what: string, guard: string, lift?: string}>
         * @throws Exception `sandbox unusable: it was closed`
         */
        public function blocked(): array
        {
        }

        /** It cannot be cloned; the class has no such method. */
        private function __clone()
        {
        }
    }

    /**
     * What became of a {@see Runtime} or of an entry. The message begins with `sandbox bailed out` where the runtime
     * can be entered again, with `sandbox unusable` where a new one is needed; the cause follows.
     */
    class Exception extends \ErrorException
    {
    }
}

namespace Altair\Sandbox\Config {

    /**
     * What a command may read, write, connect to and use up. Immutable: each `with…()` returns another policy.
     *
     * A policy is a plain value, which can be written before its directories are there. Paths are looked at when a
     * command is run, and so is the base directory: one that is missing or cannot be written is an
     * `InvalidArgumentException` then, `Base directory is invalid or not writable: …`.
     */
    final readonly class ExecutionPolicy
    {
        /** The directory below which a command's own directory is made. */
        public string $baseDir;

        /** Seconds until the command is ended; at least 1. */
        public int $timeoutSeconds;

        /** Seconds without output until the command is ended, at least 1; null: however long it is silent. */
        public ?int $idleTimeoutSeconds;

        /** The memory of each process, in whole megabytes: `1M` to `1024M`. */
        public string $memoryLimit;

        /**
         * Files and directories that may be read.
         *
         * @var list<string>
         */
        public array $readablePaths;

        /**
         * Files and directories that may be read and written.
         *
         * @var list<string>
         */
        public array $writablePaths;

        /**
         * The command's variables. They win over inherited ones.
         *
         * @var array<string, string>
         */
        public array $env;

        /** Whether the command has this process's variables, too, but for those that are always stripped. */
        public bool $inheritEnv;

        /** Whether the command may use the network. */
        public bool $networkEnabled;

        /** Bytes that are kept of the end of standard output; at least 1024. */
        public int $stdoutLimitBytes;

        /** Bytes that are kept of the end of standard error; at least 1024. */
        public int $stderrLimitBytes;

        /**
         * Directories that may be written, whose writes go to a layer.
         *
         * @var list<string>
         */
        public array $layers;

        /**
         * What may be connected to while the network is off.
         *
         * @var list<string>
         */
        public array $services;

        /** Whether nobody chose the memory limit. The driver `host` enforces only one that was chosen. */
        private bool $memoryIsDefault;

        private function __construct()
        {
        }

        /**
         * The defaults with a base directory: 5 seconds, 128 MiB of memory, 1 MiB kept of each stream, no paths, an
         * empty environment, no network.
         *
         * @throws \InvalidArgumentException if the path holds a NUL byte
         */
        public static function in(string $baseDir): ExecutionPolicy
        {
        }

        /**
         * The defaults with the base directory `/tmp`.
         */
        public static function default(): ExecutionPolicy
        {
        }

        /** The directory below which a command's own directory is made. */
        public function baseDir(): string
        {
        }

        /** Seconds until the command is ended. */
        public function timeoutSeconds(): int
        {
        }

        /** Seconds without output until the command is ended; null: however long it is silent. */
        public function idleTimeoutSeconds(): ?int
        {
        }

        /** The memory of each process, in whole megabytes: `128M`. */
        public function memoryLimit(): string
        {
        }

        /**
         * Files and directories that may be read.
         *
         * @return list<string>
         */
        public function readablePaths(): array
        {
        }

        /**
         * Files and directories that may be read and written.
         *
         * @return list<string>
         */
        public function writablePaths(): array
        {
        }

        /**
         * The command's variables.
         *
         * @return array<string, string>
         */
        public function env(): array
        {
        }

        /** Whether the command has this process's variables, too. */
        public function inheritEnv(): bool
        {
        }

        /** Whether the command may use the network. */
        public function networkEnabled(): bool
        {
        }

        /** Bytes that are kept of the end of standard output. */
        public function stdoutLimitBytes(): int
        {
        }

        /** Bytes that are kept of the end of standard error. */
        public function stderrLimitBytes(): int
        {
        }

        /**
         * Directories that may be written, whose writes go to a layer.
         *
         * @return list<string>
         */
        public function layers(): array
        {
        }

        /**
         * What may be connected to while the network is off.
         *
         * @return list<string>
         */
        public function services(): array
        {
        }

        /**
         * The same policy with other values; null keeps what there is. Only {@see withIdleTimeout()} turns the idle
         * timeout off.
         *
         * @param list<string>|null $readablePaths
         * @param list<string>|null $writablePaths
         * @param array<string, string|int|float|bool>|null $env
         * @throws \InvalidArgumentException as the method for each value throws it
         */
        public function with(
            ?string $baseDir = null,
            ?int $timeoutSeconds = null,
            ?int $idleTimeoutSeconds = null,
            ?string $memoryLimit = null,
            ?array $readablePaths = null,
            ?array $writablePaths = null,
            ?array $env = null,
            ?bool $inheritEnv = null,
            ?bool $networkEnabled = null,
            ?int $stdoutLimitBytes = null,
            ?int $stderrLimitBytes = null,
        ): ExecutionPolicy {
        }

        /**
         * Ends the command after this many seconds. Less than 1 is 1.
         */
        public function withTimeout(int $seconds): ExecutionPolicy
        {
        }

        /**
         * Ends the command after this many seconds without output. Less than 1 is 1; null: never.
         */
        public function withIdleTimeout(?int $seconds): ExecutionPolicy
        {
        }

        /**
         * Limits the memory of each process.
         *
         * @param string $limit digits with an optional K, M or G, in any case; without one they are bytes. Rounded up
         *     to whole megabytes, and clamped to 1M…1024M
         * @throws \InvalidArgumentException if it has another form, or is -1
         */
        public function withMemory(string $limit): ExecutionPolicy
        {
        }

        /**
         * Allows to read these files and directories, and no others. Symlinks are resolved, and paths that do not exist
         * are skipped.
         *
         * @throws \InvalidArgumentException if a path holds a NUL byte
         */
        public function withReadablePaths(string ...$paths): ExecutionPolicy
        {
        }

        /**
         * Allows to read and write these files and directories, and no others. Symlinks are resolved, and paths that do
         * not exist are skipped.
         *
         * @throws \InvalidArgumentException if a path holds a NUL byte
         */
        public function withWritablePaths(string ...$paths): ExecutionPolicy
        {
        }

        /**
         * Gives the command these variables, and no others.
         *
         * @param array<string, string|int|float|bool> $env values by name; numbers and booleans become strings
         * @param bool|null $inherit whether it has this process's variables, too; null keeps what there is
         * @throws \InvalidArgumentException if a name is empty or holds `=` or a NUL byte, or a value is of another
         *     type or holds a NUL byte
         */
        public function withEnv(array $env, ?bool $inherit = null): ExecutionPolicy
        {
        }

        /**
         * Gives the command this process's variables, too, or not.
         */
        public function inheritEnvironment(bool $inherit = true): ExecutionPolicy
        {
        }

        /**
         * Opens the network, or closes it.
         */
        public function withNetwork(bool $enabled): ExecutionPolicy
        {
        }

        /**
         * Keeps this many bytes of the end of each stream. Less than 1024 is 1024.
         */
        public function withOutputCaps(int $stdoutBytes, int $stderrBytes): ExecutionPolicy
        {
        }

        /**
         * Allows to write these existing directories, and no others. What is written goes to a layer, and into the
         * directories with {@see \Altair\Sandbox\Data\ExecResult::apply()}. Only the driver `native` can do that.
         *
         * @throws \InvalidArgumentException if a path holds a NUL byte
         */
        public function withLayer(string ...$paths): ExecutionPolicy
        {
        }

        /**
         * Allows to connect to these addresses, and no others, while the network is off: `host:port` or absolute paths
         * of Unix sockets. Only the driver `native` can do that.
         *
         * @throws \InvalidArgumentException if an address is not UTF-8 or holds a NUL byte
         */
        public function withServices(string ...$addresses): ExecutionPolicy
        {
        }
    }
}

namespace Altair\Sandbox\Contracts {

    use Altair\Sandbox\Config\ExecutionPolicy;
    use Altair\Sandbox\Data\ExecResult;

    /**
     * Runs commands under a policy.
     */
    interface CanExecuteCommand
    {
        /**
         * The policy of every command.
         */
        public function policy(): ExecutionPolicy;

        /**
         * Runs a command and waits for its end.
         *
         * @param list<string> $argv the program and its arguments; no shell reads them
         * @param string|null $stdin what it reads from standard input; null: nothing
         * @param (callable('out'|'err', string): mixed)|null $onOutput called with each chunk of output as it comes,
         *     also with what the caps drop
         * @throws \InvalidArgumentException if command or policy are wrong
         * @throws \RuntimeException if the command cannot be started
         */
        public function execute(array $argv, ?string $stdin = null, ?callable $onOutput = null): ExecResult;
    }
}

namespace Altair\Sandbox\Data {

    use Altair\Sandbox\Enums\TimeoutReason;

    /**
     * How a command ended.
     */
    final readonly class ExecResult
    {
        /** The last bytes of standard output. */
        public string $stdout;

        /** The last bytes of standard error. */
        public string $stderr;

        /** The program's own exit code, 128 + signal, or one of {@see ExitCodes}. */
        public int $exitCode;

        /** Seconds from start to end. */
        public float $duration;

        /** Whether a deadline ended the command. */
        public bool $timedOut;

        /** Whether standard output was longer. */
        public bool $truncatedStdout;

        /** Whether standard error was longer. */
        public bool $truncatedStderr;

        /** Which deadline ended the command; null if none did. */
        public ?TimeoutReason $timeoutReason;

        /**
         * What was refused, as `diagnostics.blocked` of an {@see \Altair\Eval\EvalResult} has it; empty if the driver
         * cannot tell.
         *
         * @var list<array<string, mixed>>
         */
        public array $blocked;

        /**
         * What {@see self::apply()} would make real of what the command wrote into its layer, as
         * `diagnostics.file_changes` of an {@see \Altair\Eval\EvalResult} has it; null without a layer. Entries also
         * have `mode` (`755 → 777`) and `notes`, where there is something to say.
         *
         * @var array<string, mixed>|null
         */
        public ?array $fileChanges;

        /**
         * A result that no command has: without a layer.
         *
         * @param float $duration seconds
         * @param list<array<string, mixed>> $blocked
         */
        public function __construct(
            string $stdout,
            string $stderr,
            int $exitCode,
            float $duration,
            bool $timedOut = false,
            bool $truncatedStdout = false,
            bool $truncatedStderr = false,
            ?TimeoutReason $timeoutReason = null,
            array $blocked = [],
        ) {
        }

        /** The last bytes of standard output. */
        public function stdout(): string
        {
        }

        /** The last bytes of standard error. */
        public function stderr(): string
        {
        }

        /** The program's own exit code, 128 + signal, or one of {@see ExitCodes}. */
        public function exitCode(): int
        {
        }

        /** Seconds from start to end. */
        public function duration(): float
        {
        }

        /** Whether a deadline ended the command. */
        public function timedOut(): bool
        {
        }

        /** Whether standard output was longer. */
        public function truncatedStdout(): bool
        {
        }

        /** Whether standard error was longer. */
        public function truncatedStderr(): bool
        {
        }

        /** Which deadline ended the command; null if none did. */
        public function timeoutReason(): ?TimeoutReason
        {
        }

        /**
         * What was refused; empty if the driver cannot tell.
         *
         * @return list<array<string, mixed>>
         */
        public function blocked(): array
        {
        }

        /**
         * What {@see self::apply()} would make real of what the command wrote into its layer; null without a layer.
         *
         * @return array<string, mixed>|null
         */
        public function fileChanges(): ?array
        {
        }

        /**
         * Whether the exit code is 0 and no deadline ended the command.
         */
        public function success(): bool
        {
        }

        /**
         * Standard output, then standard error, which begins on a line of its own.
         */
        public function combinedOutput(): string
        {
        }

        /**
         * The result as plain values.
         *
         * @return array{
         *     stdout: string, stderr: string, exit_code: int, duration: float, timed_out: bool,
         *     truncated_stdout: bool, truncated_stderr: bool, success: bool
         * }
         */
        public function toArray(): array
        {
        }

        /**
         * Makes real what {@see self::fileChanges()} lists: all of it or, if anything is in the way or has changed
         * since, nothing. Clones share the layer.
         *
         * @throws \LogicException without a layer, and once it was applied or discarded
         * @throws \RuntimeException if it cannot be applied. The layer is as before
         */
        public function apply(): void
        {
        }

        /**
         * Throws away what is in the layer, as happens with the last clone of the result, too.
         *
         * @throws \LogicException without a layer, and once it was applied or discarded
         */
        public function discard(): void
        {
        }

        /**
         * The properties, for `serialize()`.
         *
         * @return array<string, mixed>
         * @throws \Exception while there is a layer that was neither applied nor discarded
         */
        public function __serialize(): array
        {
        }
    }

    /**
     * Exit codes with a meaning of their own.
     */
    final class ExitCodes
    {
        /** A deadline ended the command. */
        public const TIMEOUT = 124;
        /** There is no such command. */
        public const COMMAND_NOT_FOUND = 127;

        private function __construct()
        {
        }
    }

    /**
     * A directory or file of the host's inside a container.
     */
    final readonly class Mount
    {
        /** Its path on the host. */
        public string $host;

        /** Its path in the container. */
        public string $container;

        /** Options, separated by commas: `ro`. */
        public string $options;

        public function __construct(string $host, string $container, string $options)
        {
        }

        /** Its path on the host. */
        public function host(): string
        {
        }

        /** Its path in the container. */
        public function container(): string
        {
        }

        /** Options, separated by commas. */
        public function options(): string
        {
        }

        /**
         * What `docker run --volume` takes: `host:container:options`.
         */
        public function toVolumeArg(): string
        {
        }
    }
}

namespace Altair\Sandbox\Drivers {

    use Altair\Sandbox\Config\ExecutionPolicy;
    use Altair\Sandbox\Contracts\CanExecuteCommand;
    use Altair\Sandbox\Data\ExecResult;

    /**
     * Runs commands with bubblewrap: the host's files read-only but for the policy's writable paths, its own
     * `/proc`, `/dev`, `/tmp` and `/run`, and no capabilities. The program is `$bubblewrapBin`, otherwise what
     * `BWRAP_BIN` names, otherwise `bwrap` in `PATH`.
     */
    final readonly class BubblewrapSandbox implements CanExecuteCommand
    {
        /** The policy of every command. */
        public ExecutionPolicy $policy;

        /** The program; null: the usual one. */
        private ?string $binary;

        /**
         * @param string|null $bubblewrapBin a path or a name, looked for in the `PATH` of PHP's start
         */
        public function __construct(ExecutionPolicy $policy, ?string $bubblewrapBin = null)
        {
        }

        /** The policy of every command. */
        public function policy(): ExecutionPolicy
        {
        }

        /**
         * Runs a command in a fresh directory below the base directory, and waits for its end. The directory is
         * gone afterwards.
         *
         * @param list<string> $argv the program and its arguments; no shell reads them
         * @param string|resource|null $stdin what it reads from standard input: text, or what is left of a stream,
         *     read as fast as the command reads; null: nothing
         * @param (callable('out'|'err', string): mixed)|null $onOutput called with each chunk of output as it comes,
         *     also with what the caps drop. An exception of it ends the command, and is this method's
         * @throws \InvalidArgumentException if command or policy are wrong, or the policy has layers or services
         * @throws \RuntimeException `Failed to start bwrap`
         * @throws \RuntimeException if `altair_eval.programs` forbids this driver
         */
        public function execute(array $argv, mixed $stdin = null, ?callable $onOutput = null): ExecResult
        {
        }
    }

    /**
     * Runs commands in containers of Docker's, which are removed afterwards. The client is `$dockerBin`, otherwise what
     * `DOCKER_BIN` names, otherwise `docker` in `PATH`.
     *
     * The root is read-only. Readable paths are at `/mnt/ro0`, `/mnt/ro1`…, writable ones at `/mnt/rw0`…, sorted by
     * their names after symlinks are resolved.
     */
    final readonly class DockerSandbox implements CanExecuteCommand
    {
        /** The policy of every command. */
        public ExecutionPolicy $policy;

        /** The image of the containers; null: `alpine:3`. */
        private ?string $image;

        /** The program; null: the usual one. */
        private ?string $binary;

        /**
         * @param string|null $image null: `alpine:3`
         * @param string|null $dockerBin a path or a name, looked for in the `PATH` of PHP's start
         */
        public function __construct(ExecutionPolicy $policy, ?string $image = null, ?string $dockerBin = null)
        {
        }

        /** The policy of every command. */
        public function policy(): ExecutionPolicy
        {
        }

        /**
         * Runs a command in a fresh directory below the base directory, and waits for its end. The directory is
         * gone afterwards.
         *
         * @param list<string> $argv the program and its arguments; no shell reads them
         * @param string|resource|null $stdin what it reads from standard input: text, or what is left of a stream,
         *     read as fast as the command reads; null: nothing
         * @param (callable('out'|'err', string): mixed)|null $onOutput called with each chunk of output as it comes,
         *     also with what the caps drop. An exception of it ends the command, and is this method's
         * @throws \InvalidArgumentException if command or policy are wrong, or the policy has layers or services
         * @throws \RuntimeException `Failed to start docker`
         * @throws \RuntimeException if `altair_eval.programs` forbids this driver
         */
        public function execute(array $argv, mixed $stdin = null, ?callable $onOutput = null): ExecResult
        {
        }
    }

    /**
     * Runs commands with Firejail: the host's files read-only but for the policy's writable paths, without those of
     * its home, `/tmp` and `/run`. The program is `$firejailBin`, otherwise what `FIREJAIL_BIN` names, otherwise
     * `firejail` in `PATH`.
     *
     * The work directory is at its own place, and the command's `HOME`.
     */
    final readonly class FirejailSandbox implements CanExecuteCommand
    {
        /** The policy of every command. */
        public ExecutionPolicy $policy;

        /** The program; null: the usual one. */
        private ?string $binary;

        /**
         * @param string|null $firejailBin a path or a name, looked for in the `PATH` of PHP's start
         */
        public function __construct(ExecutionPolicy $policy, ?string $firejailBin = null)
        {
        }

        /** The policy of every command. */
        public function policy(): ExecutionPolicy
        {
        }

        /**
         * Runs a command in a fresh directory below the base directory, and waits for its end. The directory is
         * gone afterwards.
         *
         * @param list<string> $argv the program and its arguments; no shell reads them
         * @param string|resource|null $stdin what it reads from standard input: text, or what is left of a stream,
         *     read as fast as the command reads; null: nothing
         * @param (callable('out'|'err', string): mixed)|null $onOutput called with each chunk of output as it comes,
         *     also with what the caps drop. An exception of it ends the command, and is this method's
         * @throws \InvalidArgumentException if command or policy are wrong, or the policy has layers or services
         * @throws \RuntimeException `Failed to start firejail`
         * @throws \RuntimeException if `altair_eval.programs` forbids this driver
         */
        public function execute(array $argv, mixed $stdin = null, ?callable $onOutput = null): ExecResult
        {
        }
    }

    /**
     * Runs commands in the base directory, with this process's rights. Enforces the deadlines, the environment, the
     * caps on output, and a memory limit that was chosen; nothing else of the policy.
     *
     * A command that cannot be started is a result with the exit code 127 and `Failed to start host process` in its
     * standard error.
     */
    final readonly class HostSandbox implements CanExecuteCommand
    {
        /** The policy of every command. */
        public ExecutionPolicy $policy;

        public function __construct(ExecutionPolicy $policy)
        {
        }

        /** The policy of every command. */
        public function policy(): ExecutionPolicy
        {
        }

        /**
         * Runs a command in the base directory, and waits for its end.
         *
         * @param list<string> $argv the program and its arguments; no shell reads them
         * @param string|resource|null $stdin what it reads from standard input: text, or what is left of a stream,
         *     read as fast as the command reads; null: nothing
         * @param (callable('out'|'err', string): mixed)|null $onOutput called with each chunk of output as it comes,
         *     also with what the caps drop. An exception of it ends the command, and is this method's
         * @throws \InvalidArgumentException if command or policy are wrong, or the policy has layers or services
         * @throws \RuntimeException if the system refuses what every command needs: a pipe, a thread
         * @throws \RuntimeException if `altair_eval.programs` forbids this driver
         */
        public function execute(array $argv, mixed $stdin = null, ?callable $onOutput = null): ExecResult
        {
        }
    }

    /**
     * Runs commands without another program: in a private root and namespaces of their own, behind Landlock and a
     * filter of system calls. The only driver with layers and services. What the kernel does not support is in
     * {@see ExecResult::blocked()}.
     *
     * A command of root's runs as the owner of the first directory that it may write, otherwise as nobody.
     */
    final readonly class NativeSandbox implements CanExecuteCommand
    {
        /** The policy of every command. */
        public ExecutionPolicy $policy;

        public function __construct(ExecutionPolicy $policy)
        {
        }

        /** The policy of every command. */
        public function policy(): ExecutionPolicy
        {
        }

        /**
         * Runs a command in a fresh directory below the base directory, and waits for its end. The directory is
         * gone afterwards.
         *
         * @param list<string> $argv the program and its arguments; no shell reads them
         * @param string|resource|null $stdin what it reads from standard input: text, or what is left of a stream,
         *     read as fast as the command reads; null: nothing
         * @param (callable('out'|'err', string): mixed)|null $onOutput called with each chunk of output as it comes,
         *     also with what the caps drop. An exception of it ends the command, and is this method's
         * @throws \InvalidArgumentException if command or policy are wrong
         * @throws \RuntimeException if the command cannot be confined, or a service has no address
         */
        public function execute(array $argv, mixed $stdin = null, ?callable $onOutput = null): ExecResult
        {
        }
    }

    /**
     * Runs commands in containers of Podman's, as {@see DockerSandbox} does with Docker's. The program is `$podmanBin`,
     * otherwise what `PODMAN_BIN` names, otherwise `podman` in `PATH`.
     */
    final readonly class PodmanSandbox implements CanExecuteCommand
    {
        /** The policy of every command. */
        public ExecutionPolicy $policy;

        /** The image of the containers; null: `alpine:3`. */
        private ?string $image;

        /** The program; null: the usual one. */
        private ?string $binary;

        /**
         * @param string|null $image null: `alpine:3`
         * @param string|null $podmanBin a path or a name, looked for in the `PATH` of PHP's start
         */
        public function __construct(ExecutionPolicy $policy, ?string $image = null, ?string $podmanBin = null)
        {
        }

        /** The policy of every command. */
        public function policy(): ExecutionPolicy
        {
        }

        /**
         * Runs a command in a fresh directory below the base directory, and waits for its end. The directory is
         * gone afterwards.
         *
         * @param list<string> $argv the program and its arguments; no shell reads them
         * @param string|resource|null $stdin what it reads from standard input: text, or what is left of a stream,
         *     read as fast as the command reads; null: nothing
         * @param (callable('out'|'err', string): mixed)|null $onOutput called with each chunk of output as it comes,
         *     also with what the caps drop. An exception of it ends the command, and is this method's
         * @throws \InvalidArgumentException if command or policy are wrong, or the policy has layers or services
         * @throws \RuntimeException `Failed to start podman`
         * @throws \RuntimeException if `altair_eval.programs` forbids this driver
         */
        public function execute(array $argv, mixed $stdin = null, ?callable $onOutput = null): ExecResult
        {
        }
    }
}

namespace Altair\Sandbox\Enums {

    /**
     * What enforces a policy.
     */
    enum SandboxDriver: string
    {
        /** Nothing but the deadlines, the environment, the caps on output, and a memory limit that was chosen. */
        case Host = 'host';
        /** `docker run`. */
        case Docker = 'docker';
        /** `podman run`. */
        case Podman = 'podman';
        /** `firejail`. */
        case Firejail = 'firejail';
        /** `bwrap`. */
        case Bubblewrap = 'bubblewrap';
        /** This extension, without another program. */
        case Native = 'native';
    }

    /**
     * Which deadline ended a command.
     */
    enum TimeoutReason: string
    {
        /** It ran too long. */
        case WALL = 'wall';
        /** It was silent too long. */
        case IDLE = 'idle';
    }
}

namespace Altair\Sandbox\Value {

    /**
     * A command: its program and its arguments. Immutable.
     */
    final readonly class Argv
    {
        /**
         * The program, then its arguments.
         *
         * @var non-empty-list<string>
         */
        public array $arguments;

        private function __construct()
        {
        }

        /**
         * The command of an array; its keys do not matter.
         *
         * @param non-empty-array<string> $argv
         * @throws \InvalidArgumentException if it is empty, or holds anything but strings without NUL bytes
         */
        public static function of(array $argv): Argv
        {
        }

        /**
         * The same command with one more argument.
         *
         * @throws \InvalidArgumentException if it holds a NUL byte
         */
        public function with(string $argument): Argv
        {
        }

        /**
         * The program, then its arguments.
         *
         * @return non-empty-list<string>
         */
        public function toArray(): array
        {
        }
    }

    /**
     * A command and what it reads.
     */
    final readonly class CommandSpec
    {
        /** The command. */
        public Argv $argv;

        /** What it reads from standard input; null: nothing. */
        public ?string $stdin;

        public function __construct(Argv $argv, ?string $stdin = null)
        {
        }

        /** The command. */
        public function argv(): Argv
        {
        }

        /** What it reads from standard input; null: nothing. */
        public function stdin(): ?string
        {
        }
    }
}

namespace sandbox {

    /**
     * {@see \Altair\Sandbox\Runtime} by another name. It is a class of its own, so that traces show the name that was
     * used, and it throws this namespace's {@see Exception}.
     */
    final class Runtime
    {
        /**
         * Starts the process. It has the ini files and the `-d` switches of the caller, not what `ini_set()` changed.
         * Starting it, and each entry, may take 5000 ms.
         *
         * @param array<string, mixed> $ini ini settings. `disable_functions` and `disable_classes` take a list of names
         *     or a text with commas; what PHP loads at its start (`extension`, `extension_dir`, `opcache.preload`,
         *     `ffi.preload`) is ignored, and so are names that PHP does not know and other arrays. Other values are
         *     cast to string
         * @param bool $guarded false: with the rights of the caller
         * @param string|null $root the directory that it may read, and write to a layer, and in which it starts; null:
         *     the working directory if that holds a `composer.json`, otherwise an empty directory; unguarded, always
         *     the working directory
         * @param list<string> $services what it may connect to: `host:port`, `address:port`, `[address]:port` or the
         *     absolute path of a Unix socket
         * @throws Exception `optional configuration array expected`; `sandboxes cannot create sandboxes` inside an
         *     isolated PHP or an evaluation; `sandbox unusable: …` if it cannot be started
         * @throws \Altair\Eval\Exception\InvalidRequestException if `$root` or `$services` cannot be used
         * @throws \Altair\Eval\Exception\LaunchException if `altair_eval.programs` forbids an unguarded one
         */
        public function __construct(
            array $ini = [],
            bool $guarded = true,
            ?string $root = null,
            array $services = [],
        ) {
        }

        /**
         * Starts a process in which the application of a request has booted, with what the request allows: guards,
         * services, database sessions, paths, memory and time. Its snippet runs first; it may be empty, here only. In
         * closures, `container()` is the application's container, as in a snippet. The request's `timeoutMs` is for the
         * start, and again for each entry.
         *
         * @throws Exception `sandboxes cannot create sandboxes`; `sandbox unusable: …` if the application does not
         *     boot, or the snippet does not return
         * @throws \Altair\Eval\Exception\InvalidRequestException if the request cannot be used
         */
        public static function fromRequest(\Altair\Eval\EvalRequest $request): Runtime
        {
        }

        /**
         * Runs a closure in the isolated PHP and returns its value. What it prints is printed here, as it prints it.
         *
         * The closure is sent as the source of its file, so it has to be written in a file that has not changed since.
         * It must not take or return objects or references, capture variables or `$this`, or declare functions or
         * classes; files that it includes may do anything.
         *
         * Null, booleans, numbers, strings and arrays travel by value, in both directions. An object or a resource that
         * comes back is `true`.
         *
         * @param array<mixed> $argv its arguments, in order; keys are ignored. No objects and no resources
         * @param int|null $timeoutMs deadline in milliseconds, at least 1; null: 5000, or that of the request. A
         *     deadline that passes ends the runtime
         * @param int|null $memoryLimitMb `memory_limit` in MiB; less than 16 is 16; null: that of `$ini`, otherwise
         *     128, or that of the request
         * @return mixed null, bool, int, float, string, or an array of these
         * @throws \Error if closure or arguments are against the rules; nothing has run
         * @throws \ValueError if a limit is less than 1
         * @throws Exception `Closure, or Closure and args expected`; `The closure on … cannot be sent: …`; `sandbox
         *     bailed out: …` if an exception, a fatal error or `exit` ended the entry, after which the runtime can be
         *     used; `sandbox unusable: …` if the runtime has ended, or is being entered further up
         */
        public function enter(
            \Closure $closure,
            array $argv = [],
            ?int $timeoutMs = null,
            ?int $memoryLimitMb = null,
        ): mixed {
        }

        /**
         * Ends the process, after the shutdown functions and destructors there, which have the time of an entry. What
         * they print is printed here; nothing is printed where the object is freed instead.
         *
         * @throws Exception `sandbox unusable: it was closed`
         */
        public function close(): void
        {
        }

        /**
         * The files that it has changed so far in its layer, as `diagnostics.file_changes` of an
         * {@see \Altair\Eval\EvalResult} has them: path relative to the root, and bytes. Empty if there are none or no
         * layer. It also tells them of a runtime whose process has ended, until it is closed.
         *
         * @return array{
         *     created?: list<array{path: string, size: int}>,
         *     modified?: list<array{path: string, size: int}>,
         *     deleted?: list<array{path: string, size: int}>,
         * }
         * @throws Exception `sandbox unusable: it was closed`
         */
        public function fileChanges(): array
        {
        }

        /**
         * What was refused so far, as `diagnostics.blocked` of an {@see \Altair\Eval\EvalResult} has it. `lift` is
         * the argument that allows it, of the constructor or of the {@see \Altair\Eval\EvalRequest}.
         *
         * @return list<array{what: string, guard: string, lift?: string}>
         * @throws Exception `sandbox unusable: it was closed`
         */
        public function blocked(): array
        {
        }

        /** It cannot be cloned; the class has no such method. */
        private function __clone()
        {
        }
    }

    /**
     * {@see \Altair\Sandbox\Exception} of a {@see Runtime} of this namespace.
     */
    class Exception extends \Altair\Sandbox\Exception
    {
    }
}
