<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Database;

/**
 * Redis, with a password. What it would refuse for its own safety is allowed: nothing but the guards is to stand
 * before an attack.
 */
final class Redis extends Server
{
    /** What is in it at the start of every test. */
    public const ENTRIES = ['greeting' => 'hello'];

    /** From Redis 7 on what they name is refused unless they are said. */
    private const ALLOWED = ['enable-debug-command', 'enable-module-command', 'enable-protected-configs'];

    private ?string $password = null;

    public function socket(): string
    {
        return $this->process->path('redis.sock');
    }

    public function user(): string
    {
        return 'default';
    }

    public function password(): string
    {
        return $this->password ??= bin2hex(random_bytes(12));
    }

    /** Connects from the test itself. */
    public function connect(bool $socket = true): \Redis
    {
        $redis = new \Redis();
        $socket ? $redis->connect($this->socket()) : $redis->connect('127.0.0.1', $this->port());
        $redis->auth($this->password());

        return $redis;
    }

    public function reset(): void
    {
        $redis = $this->connect();
        $redis->flushAll();
        $redis->mSet(self::ENTRIES);
    }

    protected static function extensions(): array
    {
        return ['redis'];
    }

    protected static function programs(): array
    {
        // Debian's package of the second is that of a service, too; the first is the same program, by its other name.
        return [self::find('redis-server') === null ? 'redis-check-rdb' : 'redis-server'];
    }

    protected static function users(): array
    {
        return ['redis'];
    }

    protected function commands(): array
    {
        $settings = [
            'bind 127.0.0.1',
            "port {$this->port()}",
            "unixsocket {$this->socket()}",
            'unixsocketperm 777',
            "requirepass {$this->password()}",
            "dir {$this->process->path()}",
            'save ""',
            'databases 4',
        ];
        $program = $this->process->path('redis-server');
        symlink((string) self::find(self::programs()[0]), $program);
        foreach (self::major($program) < 7 ? [] : self::ALLOWED as $name) {
            $settings[] = "$name yes";
        }

        return [[$program, $this->process->write('redis.conf', implode("\n", $settings) . "\n")]];
    }

    protected function greet(): void
    {
        $this->connect()->ping();
        $this->connect(false)->ping();
    }

    private static function major(string $program): int
    {
        preg_match('/v=(\d+)/', (string) shell_exec(escapeshellarg($program) . ' --version'), $version);

        return (int) ($version[1] ?? 0);
    }
}
