<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Escape;

use FFI;
use RuntimeException;

/**
 * A process of nobody's that waits for a word of a file that it shares with whoever maps it, too (futex(2)).
 */
final class FutexWaiter
{
    private const WAKE = 1;

    /** Seconds in which it waits, and after which it ends by itself. */
    private const PATIENCE = 20;

    private const LIBC = 'void *mmap(void *, size_t, int, int, int, long); int munmap(void *, size_t);'
        . ' int open(const char *, int); int close(int);'
        . ' long syscall(long, void *, long, long, void *, void *, long);';

    /** Maps the file's first page, shared and to be read only, and waits while its first word is what it is. */
    private const PROGRAM = '$c = FFI::cdef(%s); $p = $c->mmap(null, 4096, 1, 1, $c->open($argv[1], 0), 0);'
        . ' $t = FFI::new("long[2]"); $t[0] = %d; echo "up\n";'
        . ' $c->syscall(%d, $p, 0, FFI::cast("int *", $p)[0], FFI::addr($t), null, 0);';

    private readonly int $pid;

    /** @var resource */
    private $process;

    /** @var array<int, resource> */
    private array $pipes;

    public function __construct(private readonly string $file)
    {
        $program = sprintf(
            self::PROGRAM,
            var_export(self::LIBC, true),
            self::PATIENCE,
            Syscalls::numbers()['futex'],
        );
        $process = proc_open(
            [PHP_BINARY, '-d', 'ffi.enable=1', '-r', $program, '--', $file],
            [['file', '/dev/null', 'r'], ['pipe', 'w'], STDERR],
            $pipes,
        );
        $this->process = $process ?: throw new RuntimeException('No waiter.');
        $this->pipes = $pipes;
        fgets($pipes[1]);
        $this->pid = proc_get_status($process)['pid'];
        $until = hrtime(true) + self::PATIENCE * 1e9;
        while (!$this->waits()) {
            if (hrtime(true) > $until) {
                throw new RuntimeException('It does not wait.');
            }
            usleep(200);
        }
    }

    public function __destruct()
    {
        proc_terminate($this->process, SIGKILL);
        proc_close($this->process);
    }

    /** Whether it is in its call. */
    public function waits(): bool
    {
        $call = (string) @file_get_contents("/proc/$this->pid/syscall");

        return str_starts_with($call, Syscalls::numbers()['futex'] . ' ');
    }

    /** Wakes it as the one would that it waits for, and tells how many there were that waited. */
    public function wake(): int
    {
        $libc = FFI::cdef(self::LIBC);
        $file = $libc->open($this->file, 0);
        $page = $libc->mmap(null, 4096, 1, 1, $file, 0);
        $libc->close($file);
        $woken = $libc->syscall(Syscalls::numbers()['futex'], $page, self::WAKE, PHP_INT_MAX >> 32, null, null, 0);
        $libc->munmap($page, 4096);

        return $woken;
    }
}
