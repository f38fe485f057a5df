<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Database;

use Altair\Eval\Tests\Support\Processes;
use RuntimeException;

/**
 * The process of a server and the directory with everything of it. Both end with the process that made them, however
 * that ends, and it has neither a child nor a descriptor of them: a test may look at its own. See serve.sh.
 */
final class ServerProcess
{
    /** How long the end may take, in seconds. */
    private const PATIENCE = 30;

    /** Not below /tmp, which a confined run has of its own. Every user may look into it. */
    public readonly string $directory;

    /** A fork of the process that has made this has a copy of it, and no right to end the server. */
    private readonly int $maker;

    /** @var array{uid: int, gid: int}|null who the server runs as; null where that is who runs the tests */
    private readonly ?array $user;

    /**
     * @param list<string> $users as which root starts the server, the first that there is
     */
    public function __construct(array $users)
    {
        $this->maker = (int) getmypid();
        $known = posix_geteuid() === 0 ? array_filter(array_map(posix_getpwnam(...), [...$users, 'nobody'])) : [];
        $this->user = reset($known) ?: null;
        $this->directory = '/var/tmp/altair-db-' . bin2hex(random_bytes(4));
        register_shutdown_function($this->end(...));
        mkdir($this->directory) && chmod($this->directory, 0755);
        mkdir($this->path()) && chmod($this->path(), 0755);
        $this->giveAway($this->path());
    }

    /** A path where the server may write. */
    public function path(string $name = ''): string
    {
        return rtrim("$this->directory/own/$name", '/');
    }

    /** Writes a file that only the server may read, and gives its path. */
    public function write(string $name, string $contents): string
    {
        $file = $this->path($name);
        touch($file);
        chmod($file, 0600);
        file_put_contents($file, $contents);
        $this->giveAway($file);

        return $file;
    }

    /**
     * @param list<non-empty-list<string>> $commands those that prepare the server, and at last that which it is
     * @param string $signal that ends it and all of its processes
     */
    public function start(array $commands, string $signal): void
    {
        $lines = array_map(
            static fn (array $command): string => implode(' ', array_map(escapeshellarg(...), $command)),
            $commands,
        );
        $lines[] = 'exec ' . array_pop($lines);
        $user = $this->user === null ? []
            : ["--reuid={$this->user['uid']}", "--regid={$this->user['gid']}", '--clear-groups'];
        $log = ['file', "$this->directory/log", 'a'];
        $process = proc_open(
            [
                'setsid', '--fork', __DIR__ . '/serve.sh', (string) $this->maker, $this->directory, $signal,
                ...$user, 'sh', '-c', implode(' && ', $lines),
            ],
            [['file', '/dev/null', 'r'], $log, $log],
            $pipes,
            '/',
            // What a test has set is not the server's.
            ['PATH' => getenv('PATH') . ':/usr/sbin:/sbin', 'LC_ALL' => 'C', 'TMPDIR' => $this->path()],
        );
        proc_close($process ?: throw new RuntimeException('No process.'));
    }

    /** The id of the server's first process; 0 while it has none. */
    public function pid(): int
    {
        return $this->pids()[1];
    }

    public function runs(): bool
    {
        return (Processes::stat($this->pid())[0] ?? 'Z') !== 'Z';
    }

    /** What it has said. */
    public function log(): string
    {
        return (string) @file_get_contents("$this->directory/log");
    }

    public function end(): void
    {
        if ($this->maker !== getmypid()) {
            return;
        }
        $deadline = microtime(true) + self::PATIENCE;
        while (is_dir($this->directory) && microtime(true) < $deadline) {
            $keeper = $this->pids()[0];
            if ($keeper !== 0) {
                // It takes the directory with it.
                posix_kill($keeper, SIGTERM);
            }
            usleep(5000);
            clearstatcache();
        }
    }

    /**
     * @return array{int, int} that which keeps the server, and the server; 0 before they have been started
     */
    private function pids(): array
    {
        return array_map(intval(...), explode(' ', @file_get_contents("$this->directory/pids") ?: '0 0'));
    }

    private function giveAway(string $path): void
    {
        if ($this->user !== null) {
            chgrp($path, $this->user['gid']);
            chown($path, $this->user['uid']);
        }
    }
}
