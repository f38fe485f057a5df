<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Fuzz;

use Altair\Eval\Tests\Support\Database\SqlServer;
use PDO;
use PDOException;
use RuntimeException;
use Throwable;

/**
 * A server and all that can be seen of it from outside, as its administrator: what a sequence must not change.
 */
abstract class Place
{
    /** What a server is like that is not there any more. */
    public const ENDED = ['the server' => 'has ended'];

    protected SqlServer $server;

    /** How much there is that an application does not have as a rule. */
    protected int $oddness = 0;

    /** A session that nobody uses, whose end would be seen. */
    protected ?PDO $victim = null;

    /** @var array<string, string> what was there at first of what a reset does not bring back */
    private array $first = [];

    public function __construct()
    {
        $this->begin();
    }

    /** What PDO calls its driver. */
    abstract public function kind(): string;

    /** Makes everything what it is at the beginning of each sequence. */
    final public function restore(int $oddness = 0): void
    {
        $this->oddness = $oddness;
        try {
            $this->make();
            if ($this->lasting() === $this->first) {
                return;
            }
        } catch (Throwable) {
            // Whatever has come of it, there is another one.
        }
        $this->victim = null;
        posix_kill($this->server->pid(), SIGKILL);
        while ($this->server->runs()) {
            usleep(1000);
        }
        $this->begin();
    }

    /**
     * What is there, by what it is.
     *
     * @return array<string, string>
     */
    final public function look(): array
    {
        try {
            return $this->files() + $this->seen();
        } catch (Throwable $e) {
            if ($this->server->runs()) {
                try {
                    usleep(500_000);

                    return $this->files() + $this->seen() + ['the server' => 'was not there: ' . $e->getMessage()];
                } catch (Throwable $e) {
                    return self::ENDED + ['why' => $e->getMessage()];
                }
            }

            return self::ENDED;
        }
    }

    /** Waits until no session of the application is there any more. */
    final public function quieten(): void
    {
        try {
            for ($tries = 800; $tries > 0 && $this->sessions() > 0; $tries--) {
                usleep(5000);
            }
        } catch (Throwable) {
            // It has ended, which will be seen.
        }
    }

    /**
     * What is told of it to who plays.
     *
     * @return array{kind: string, port: int, password: string, words: array<string, string>}
     */
    final public function toPlay(string $localFile): array
    {
        return [
            'kind' => $this->kind(),
            'port' => $this->server->port(),
            'password' => $this->server->password(),
            'words' => [
                'FILE_OUT' => $this->directory('out') . '/written',
                'FILE_IN' => $this->directory('in') . '/lines',
                'FILE_LOCAL' => $localFile,
                'VICTIM_ID' => $this->victimId(),
            ],
        ];
    }

    final public function address(): string
    {
        return $this->server->address();
    }

    abstract protected function shared(): SqlServer;

    /** What a reset makes, and more of it. */
    abstract protected function make(): void;

    /**
     * What a reset does not bring back, as it is now.
     *
     * @return array<string, string>
     */
    abstract protected function lasting(): array;

    /**
     * @return array<string, string>
     */
    abstract protected function seen(): array;

    /** How many sessions of the application there are. */
    abstract protected function sessions(): int;

    abstract protected function victimId(): string;

    /**
     * Names of files of the server's own that come and go.
     */
    abstract protected function isOfTheServer(string $path): bool;

    /** Makes the directories for files that statements read and write. */
    final protected function makeDirectories(): void
    {
        foreach (['in', 'out'] as $name) {
            $directory = $this->directory($name);
            is_dir($directory) || (mkdir($directory) && chmod($directory, 0777));
            array_map(unlink(...), glob("$directory/*") ?: []);
        }
        $lines = $this->directory('in') . '/lines';
        file_put_contents($lines, $this->kind() === 'mysql' ? "70,l@x,L\n" : "70\tl@x\tL\n");
        chmod($lines, 0666);
    }

    /**
     * Rows of a query as text.
     */
    final protected static function rows(PDO $administrator, string $query): string
    {
        try {
            $rows = $administrator->query($query)->fetchAll(PDO::FETCH_NUM);
        } catch (PDOException $e) {
            return "cannot be read: {$e->getMessage()}";
        }

        return implode("\n", array_map(static fn (array $row): string => (string) json_encode(
            $row,
            JSON_INVALID_UTF8_SUBSTITUTE | JSON_UNESCAPED_UNICODE,
        ), $rows));
    }

    final protected static function isThere(?PDO $session): string
    {
        try {
            return $session?->query('SELECT 1')->fetchColumn() == 1 ? 'is there' : 'is gone';
        } catch (PDOException) {
            return 'is gone';
        }
    }

    private function begin(): void
    {
        for ($tries = 3; $tries > 0; $tries--) {
            try {
                $this->server = $this->shared();
                $this->make();
                $this->first = $this->lasting();

                return;
            } catch (Throwable $e) {
                fwrite(STDERR, "begins anew: {$e->getMessage()}\n");
            }
        }

        throw new RuntimeException('No server: ' . $e->getMessage());
    }

    private function directory(string $name): string
    {
        return $this->server->directory() . "/own/$name";
    }

    /**
     * @return array<string, string>
     */
    private function files(): array
    {
        clearstatcache();
        $files = [];
        $own = $this->server->directory() . '/own';
        foreach ([...glob("$own/*"), ...glob("$own/{in,out,data}/*", GLOB_BRACE), ...glob("$own/data/*/*")] as $path) {
            $name = substr($path, strlen($own) + 1);
            if (!$this->isOfTheServer($name)) {
                $files["file $name"] = str_starts_with($name, 'data/') && !str_ends_with($name, '.conf') ? 'there'
                    : 'there, ' . (is_file($path) ? md5((string) file_get_contents($path)) : 'a directory');
            }
        }

        return $files;
    }
}
