<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Database;

use RuntimeException;
use Throwable;

/**
 * A real database server for the tests, one of each kind for a test process. It is started at first use, listens on
 * one port of 127.0.0.1 and on a Unix socket, and ends with the tests.
 *
 * `scripts/setup.sh databases` installs what it needs; where a distribution has no package, its tests are skipped.
 */
abstract class Server
{
    /** How long the server may take to answer for the first time, in seconds. */
    private const PATIENCE = 30;

    /** Another program may take the port between its choice and the server's start. */
    private const TRIES = 3;

    /** @var array<class-string<self>, self> */
    private static array $shared = [];

    protected readonly ServerProcess $process;

    private readonly int $port;

    final private function __construct()
    {
        $this->port = self::freePort();
        $this->process = new ServerProcess(static::users());
        try {
            $this->process->start($this->commands(), $this->signal());
            $this->awaitAnswer();
            $this->reset();
        } catch (Throwable $e) {
            $log = $this->process->log();
            $this->process->end();

            throw new RuntimeException(static::class . " has not started: {$e->getMessage()}\n$log", 0, $e);
        }
    }

    /** The server of this process, started where there is none, or none any longer. */
    final public static function shared(): static
    {
        $server = self::$shared[static::class] ?? null;
        for ($try = 1; $server === null || !$server->runs(); $try++) {
            $server?->process->end();
            try {
                $server = new static();
            } catch (RuntimeException $e) {
                if ($try === self::TRIES) {
                    throw $e;
                }
            }
        }

        return self::$shared[static::class] = $server;
    }

    /** What is not there that the server or a test of it needs; null where everything is. */
    final public static function whyMissing(): ?string
    {
        $programs = [...static::programs(), 'bash', 'setpriv', 'setsid', 'tail'];
        $missing = [
            ...array_filter($programs, static fn (string $program): bool => self::find($program) === null),
            ...array_map(
                static fn (string $extension): string => "PHP's extension $extension",
                array_filter(static::extensions(), static fn (string $name): bool => !extension_loaded($name)),
            ),
        ];

        return $missing === [] ? null
            : 'Not installed: ' . implode(', ', $missing) . '. `scripts/setup.sh databases` would.';
    }

    final public function port(): int
    {
        return $this->port;
    }

    final public function address(): string
    {
        return '127.0.0.1:' . $this->port;
    }

    /** The path of its Unix socket, which every user may connect to. */
    abstract public function socket(): string;

    /** The name of the application's account, which may do everything. */
    abstract public function user(): string;

    /** The password of the application's account, another for every server. */
    abstract public function password(): string;

    /** Makes what is in it what it is at the start of every test. */
    abstract public function reset(): void;

    final public function runs(): bool
    {
        return $this->process->runs();
    }

    /** The id of its first process. */
    final public function pid(): int
    {
        return $this->process->pid();
    }

    /** Where everything of it is, as long as it runs. */
    final public function directory(): string
    {
        return $this->process->directory;
    }

    /**
     * @return list<string> those of PHP that connect to it
     */
    abstract protected static function extensions(): array;

    /**
     * @return list<string>
     */
    abstract protected static function programs(): array;

    /**
     * @return list<string> users as which root starts it, the first that there is
     */
    abstract protected static function users(): array;

    /**
     * @return list<non-empty-list<string>> the commands that prepare it, and at last that which is the server
     */
    abstract protected function commands(): array;

    /** Connects to it, by its port and by its socket. Throws while it does not answer. */
    abstract protected function greet(): void;

    /** Ends it and all of its processes. */
    protected function signal(): string
    {
        return 'KILL';
    }

    /** The path of a program, wherever a distribution keeps it; where there are more versions, the latest. */
    final protected static function find(string $program): ?string
    {
        $versions = glob('/usr/lib/postgresql/*/bin') ?: [];
        rsort($versions, SORT_NATURAL);
        $path = explode(':', (string) getenv('PATH'));
        foreach ([...$path, '/usr/local/sbin', '/usr/sbin', '/sbin', ...$versions] as $directory) {
            if (is_file("$directory/$program") && is_executable("$directory/$program")) {
                return "$directory/$program";
            }
        }

        return null;
    }

    private function awaitAnswer(): void
    {
        $deadline = microtime(true) + self::PATIENCE;
        $answer = '';
        while (microtime(true) < $deadline) {
            try {
                // What PHP's drivers warn of is in their exceptions.
                @$this->greet();

                return;
            } catch (Throwable $e) {
                $answer = $e->getMessage();
            }
            if ($this->pid() !== 0 && !$this->runs()) {
                throw new RuntimeException('it has ended.');
            }
            usleep(5000);
        }

        throw new RuntimeException("the last answer was: $answer");
    }

    private static function freePort(): int
    {
        $socket = stream_socket_server('tcp://127.0.0.1:0');

        return (int) substr(strrchr((string) stream_socket_get_name($socket, false), ':'), 1);
    }
}
