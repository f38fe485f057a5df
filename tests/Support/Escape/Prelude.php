<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Escape;

/**
 * What stands around an attack's snippet: the two stops, and native calls for those that make them.
 */
final class Prelude
{
    /**
     * `sys()` makes a system call and tells the test what it returned (`-errno` where it failed); `raw()` tells
     * nothing.
     *
     * Strings are handed over as pointers to a copy, native data by its address, null as 0.
     */
    private const FUNCTIONS = <<<'PHP'
        function libc(): FFI
        {
            static $libc;
            return $libc ??= FFI::cdef(
                'long syscall(long, long, long, long, long, long, long); int *__errno_location(void);'
                . 'void *mmap(void *, size_t, int, int, int, long);'
            );
        }
        function buf(int $bytes): FFI\CData { return libc()->new("char[$bytes]", false); }
        function addr(FFI\CData $data): int { return FFI::cast('size_t', FFI::addr($data))->cdata; }
        function raw(string|int $call, mixed ...$args): int
        {
            static $numbers = __NUMBERS__;
            static $kept = [];
            $words = [];
            foreach ($args as $arg) {
                if (is_string($arg)) {
                    $copy = buf(strlen($arg) + 1);
                    FFI::memcpy($copy, $arg . "\0", strlen($arg) + 1);
                    $arg = $kept[] = $copy;
                }
                $words[] = $arg instanceof FFI\CData ? addr($arg) : (int) $arg;
            }
            $number = is_int($call) ? $call : $numbers[$call] ?? throw new LogicException("This machine has no $call.");
            $result = libc()->syscall($number, ...array_pad($words, 6, 0));
            return $result === -1 ? -libc()->__errno_location()[0] : $result;
        }
        function tell(string $call, int $result): int
        {
            fwrite(STDOUT, "\x01call $call $result\x02");
            return $result;
        }
        function sys(string $call, mixed ...$args): int { return tell($call, raw($call, ...$args)); }
        /** Runs machine code as `long code(void)`. */
        function machine(string $code): int
        {
            $page = libc()->mmap(null, 4096, 7, 0x22, -1, 0);
            FFI::memcpy($page, $code, strlen($code));
            return FFI::cast('long (*)(void)', $page)();
        }
        /** The structures of which an iovec and a message header are made. */
        function iov(FFI\CData $data, int $bytes): string { return pack('PP', addr($data), $bytes); }
        function ip4(int $port): string { return pack('vna4x8', 2, $port, "\x7f\0\0\1"); }
        function ip6(int $port): string { return pack('vnVa16V', 10, $port, 0, inet_pton('::1'), 0); }
        function un(string $path): string { return pack('va*', 1, $path) . "\0"; }
        function stop_here(string $where): void
        {
            fwrite(STDOUT, "\x01$where\x02");
            posix_kill(getmypid(), SIGSTOP);
        }
        PHP;

    /** The functions alone. */
    public static function functions(): string
    {
        return strtr(self::FUNCTIONS, ['__NUMBERS__' => var_export(Syscalls::numbers(), true)]) . "\n";
    }

    /** The attack as a snippet for these targets. */
    public static function wrap(string $attack, object $targets): string
    {
        $targets = var_export((array) $targets, true);

        return self::functions() . <<<PHP

            \$s = (object) $targets;
            stop_here('ready');
            try {
                \$returned = (static function () use (\$s) {
            $attack
                })();
            } catch (Throwable \$thrown) {
                fwrite(STDOUT, "\\x01threw " . strtr(\$thrown->getMessage(), "\\1\\2", '..') . "\\x02");
            }
            stop_here('done');
            return \$returned ?? null;
            PHP;
    }
}
