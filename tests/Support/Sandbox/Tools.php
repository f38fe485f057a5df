<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Sandbox;

use RuntimeException;

/**
 * The programs that tests of confined commands need, where every user may execute them: the attacks of attack.c without
 * a library, and a copy of `altair`. They are gone with the tests.
 */
final class Tools
{
    private static ?self $shared = null;

    /** Not below /tmp, of which a command has its own. */
    public readonly string $directory;

    private function __construct()
    {
        $this->directory = '/var/tmp/altair-attacks-' . bin2hex(random_bytes(4));
        mkdir($this->directory) && chmod($this->directory, 0755);
        $maker = getmypid();
        register_shutdown_function(function () use ($maker): void {
            if ($maker === getmypid()) {
                self::run('rm -rf ' . escapeshellarg($this->directory));
            }
        });
        self::run(sprintf(
            'cc -static -O1 -pthread -o %s %s',
            escapeshellarg($this->attack()),
            escapeshellarg(__DIR__ . '/attack.c'),
        ));
        copy(self::built(), $this->altair()) && chmod($this->altair(), 0755);
    }

    public static function shared(): self
    {
        return self::$shared ??= new self();
    }

    public function attack(): string
    {
        return "$this->directory/attack";
    }

    public function altair(): string
    {
        return "$this->directory/altair";
    }

    /** Runs a shell command, which has to succeed. */
    public static function run(string $command): void
    {
        exec("$command 2>&1", $lines, $status);
        if ($status !== 0) {
            throw new RuntimeException("$command: " . implode("\n", $lines));
        }
    }

    private static function built(): string
    {
        $named = getenv('ALTAIR_NATIVE');

        return $named !== false ? $named : dirname(__DIR__, 3) . '/target/release/altair';
    }
}
