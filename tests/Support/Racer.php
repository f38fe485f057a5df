<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support;

use RuntimeException;

/**
 * An ordinary user of the machine, in a process of its own, that changes what is its own while a host looks at it.
 *
 * Its code has `swap()`, which gives two names to each other's files in one step, and runs until the racer is stopped.
 */
final class Racer
{
    /** The calls by number: not every C library has a function for renameat2(2). */
    private const PRELUDE = <<<'PHP'
        $ffi = FFI::cdef('long syscall(long, ...); int setgroups(unsigned long, void *);');
        $renameat2 = ['x86_64' => 316, 'aarch64' => 276][php_uname('m')];
        [, $uid, $directory] = $argv;
        $ffi->setgroups(0, null) === 0 && posix_setgid((int) $uid) && posix_setuid((int) $uid) && chdir($directory)
            || exit(1);
        $swap = static fn (string $one, string $other): bool
            => $ffi->syscall($renameat2, -100, $one, -100, $other, 2) === 0;
        $swapOnce = static function (string $one, string $other) use ($swap): never {
            $ours = lstat($other)['ino'];
            while (true) {
                while (!$swap($one, $other)) {
                }
                do {
                    clearstatcache();
                } while ((@lstat($one)['ino'] ?? null) === $ours);
            }
        };
        fwrite(STDOUT, "ready\n");

        PHP;

    /** For ever one, then the other. */
    public static function to(string $one, string $other): string
    {
        return sprintf('while (true) { $swap(%s, %s); }', var_export($one, true), var_export($other, true));
    }

    /** As soon as the first is there; once more when the other is in its own place again. */
    public static function once(string $one, string $other): string
    {
        return sprintf('$swapOnce(%s, %s);', var_export($one, true), var_export($other, true));
    }

    /** @var ?resource */
    private $process;

    /**
     * @param string $directory that it works in
     */
    public function __construct(int $uid, string $directory, string $code)
    {
        $process = proc_open(
            [PHP_BINARY, '-d', 'ffi.enable=1', '-r', self::PRELUDE . $code, '--', (string) $uid, $directory],
            [['file', '/dev/null', 'r'], ['pipe', 'w'], ['file', '/dev/null', 'w']],
            $pipes,
            '/',
        );
        $this->process = $process ?: throw new RuntimeException('No process.');
        if (fgets($pipes[1]) !== "ready\n") {
            throw new RuntimeException('No racer.');
        }
    }

    public function __destruct()
    {
        $this->stop();
    }

    /** Whether it is at work still: an error in its code ends it. */
    public function isAtWork(): bool
    {
        return $this->process !== null && proc_get_status($this->process)['running'];
    }

    public function stop(): void
    {
        if ($this->process !== null) {
            proc_terminate($this->process, SIGKILL);
            proc_close($this->process);
            $this->process = null;
        }
    }
}
