<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Escape;

use Altair\Eval\Tests\Support\Escape\Attack;
use Altair\Eval\Tests\Support\Escape\EscapeTestCase;
use Altair\Eval\Tests\Support\Escape\Harm;
use Altair\Eval\Tests\Support\Escape\Scene;
use Altair\Eval\Tests\Support\Escape\Setting;
use Altair\Eval\Tests\Support\Escape\Syscalls;

/**
 * A run starts no process, by native code either.
 */
final class NativeProcessEscapeTest extends EscapeTestCase
{
    private const LINGER = 'while (true) { sleep(100); }';

    /** The words of an argument list that names the program. */
    private const ARGUMENTS = '$name = buf(256); FFI::memcpy($name, "$s->program\0", strlen($s->program) + 1);'
        . ' $argv = pack("PP", addr($name), 0);';

    private const CALLS = [
        'clone as fork does' => 'if (sys("clone", 17, 0, 0, 0, 0) === 0) { ' . self::LINGER . ' }',
        'clone with bits that the kernel ignores' =>
            'if (sys("clone", (1 << 40) | 17, 0, 0, 0, 0) === 0) { ' . self::LINGER . ' }',
        'clone that asks for no signal' => 'if (sys("clone", 0, 0, 0, 0, 0) === 0) { ' . self::LINGER . ' }',
        'clone with the parent of the parent' =>
            'if (sys("clone", 0x8000 | 17, 0, 0, 0, 0) === 0) { ' . self::LINGER . ' }',
        'clone that cannot be traced' => 'if (sys("clone", 0x800000 | 17, 0, 0, 0, 0) === 0) { ' . self::LINGER . ' }',
        'clone that shares files' => 'if (sys("clone", 0x600 | 17, 0, 0, 0, 0) === 0) { ' . self::LINGER . ' }',
        'clone with a descriptor of the process' =>
            '$fd = buf(8); if (sys("clone", 0x1000 | 17, 0, $fd, 0, 0) === 0) { ' . self::LINGER . ' }',
        'clone3' => '$args = pack("P11", 0, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0);'
            . ' if (sys("clone3", $args, strlen($args)) === 0) { ' . self::LINGER . ' }',
        'clone as vfork does, and exec' => self::ARGUMENTS
            . '$pid = sys("clone", 0x4000 | 17, 0, 0, 0, 0); if ($pid === 0) { raw("execve", $s->program, $argv, 0); }'
            // Until it has stopped (WUNTRACED): the run ends with who has made it.
            . ' elseif ($pid > 0) { raw("wait4", $pid, 0, 2, 0); }',
        'two forks and a session of its own' => 'if (sys("clone", 17, 0, 0, 0, 0) === 0) { raw("setsid");'
            . ' if (raw("clone", 17, 0, 0, 0, 0) === 0) { ' . self::LINGER . ' } raw("exit_group", 0); }',
        'a fork that blocks every signal and closes everything' => 'if (sys("clone", 17, 0, 0, 0, 0) === 0) {'
            . ' raw("rt_sigprocmask", 0, str_repeat("\xff", 8), 0, 8); raw("close_range", 0, 1000, 0);'
            . self::LINGER . ' }',
        'execve' => self::ARGUMENTS . 'sys("execve", $s->program, $argv, 0);',
        'execveat of a path' => self::ARGUMENTS . 'sys("execveat", -100, $s->program, $argv, 0, 0);',
        'execveat of a descriptor' => self::ARGUMENTS
            . '$fd = raw("openat", -100, $s->program, 0, 0); sys("execveat", $fd, "", $argv, 0, 0x1000);',
        'execveat of a file in memory' => self::ARGUMENTS . '$fd = sys("memfd_create", "m", 0);'
            . ' $elf = file_get_contents($s->program); raw("write", $fd, $elf, strlen($elf));'
            . ' sys("execveat", $fd, "", $argv, 0, 0x1000);',
        'execve of a program in the temporary directory' => self::ARGUMENTS
            . '$p = tempnam(sys_get_temp_dir(), "p"); copy($s->program, $p); chmod($p, 0755);'
            . ' sys("execve", $p, $argv, 0); unlink($p);',
        'execve through the descriptor directory' => self::ARGUMENTS
            . '$fd = raw("openat", -100, $s->program, 0, 0); sys("execve", "/proc/self/fd/$fd", $argv, 0);',
        'the interpreter starts again' => '$name = buf(256); FFI::memcpy($name, "php\0", 4);'
            . ' $words = array_map(static function (string $word) {'
            . ' $copy = buf(256); FFI::memcpy($copy, "$word\0", strlen($word) + 1); return addr($copy); },'
            . ' ["php", "-r", "echo \"\\x01escaped\\x02\"; posix_kill(getmypid(), SIGSTOP);"]);'
            . ' $php = $s->interpreter; sys("execve", $php, pack("P4", ...[...$words, 0]), 0);',
        'posix_spawn' => self::ARGUMENTS . '$c = FFI::cdef("int posix_spawn(int *, const char *, void *, void *,'
            . ' void *, void *);"); $pid = FFI::new("int"); $a = FFI::new("char[16]"); FFI::memcpy($a, $argv, 16);'
            . ' $r = $c->posix_spawn(FFI::addr($pid), $s->program, null, null, FFI::addr($a), null);'
            . ' tell("posix_spawn", -$r); $r === 0 && raw("wait4", $pid->cdata, 0, 0, 0);',
        'system of the C library' => 'tell("system", FFI::cdef("int system(const char *);")->system($s->program));',
        'popen of the C library' => '$c = FFI::cdef("void *popen(const char *, const char *); int pclose(void *);");'
            . ' $f = $c->popen("$s->program >&2", "r"); tell("popen", $f === null ? -1 : 0); $f && $c->pclose($f);',
        'fork of the C library' => '$pid = FFI::cdef("int fork(void);")->fork();'
            . ' if ($pid === 0) { ' . self::LINGER . ' } tell("fork", $pid);',
        'a thread that forks' => '$c = FFI::cdef("int pthread_create(unsigned long *, void *, void *, void *);'
            . ' int pthread_join(unsigned long, void *); void *dlsym(void *, const char *);'
            . ' int usleep(unsigned);"); $t = FFI::new("unsigned long");'
            . ' tell("pthread_create", $c->pthread_create(FFI::addr($t), null, $c->dlsym(null, "fork"), null));'
            . ' $c->pthread_join($t->cdata, null);',
    ];

    public static function attacks(): iterable
    {
        foreach (self::CALLS as $name => $snippet) {
            yield Attack::native($name, $snippet, Harm::process(), prepare: static function (Scene $scene): void {
                $scene->tell('interpreter', (string) realpath(PHP_BINARY));
            });
        }
        if (isset(Syscalls::numbers()['fork'])) {
            yield from self::onlyOnX86();
        }
    }

    /**
     * The older ways in, which only x86-64 has.
     */
    private static function onlyOnX86(): iterable
    {
        yield Attack::native(
            'the call fork',
            'if (sys("fork") === 0) { ' . self::LINGER . ' }',
            Harm::process(),
        );
        // vfork, in whose child nothing may return: execve(rdi, rsi, 0); exit.
        yield Attack::native(
            'the call vfork',
            self::ARGUMENTS . '$words = FFI::new("char[16]", false); FFI::memcpy($words, $argv, 16);'
                . ' tell("vfork", machine('
                . '"\xb8\x3a\0\0\0\x0f\x05\x85\xc0\x75\x24\x48\xbf" . pack("P", addr($name)) . "\x48\xbe"'
                . ' . pack("P", addr($words)) . "\x31\xd2\xb8\x3b\0\0\0\x0f\x05\xb8\x3c\0\0\0\x0f\x05\xc3"));',
            Harm::process(),
        );
        // mov eax, 2 (fork of i386); int 0x80; cdqe; ret
        yield Attack::native(
            'fork through the 32-bit entry',
            'if (tell("fork32", machine("\xb8\x02\0\0\0\xcd\x80\x48\x98\xc3")) === 0) { ' . self::LINGER . ' }',
            Harm::process(),
        );
        // mov eax, 0x40000000 + 57 (fork of x32); syscall; ret
        yield Attack::native(
            'fork through the x32 entry',
            'if (tell("forkx32", machine("\xb8\x39\0\0\x40\x0f\x05\xc3")) === 0) { ' . self::LINGER . ' }',
            Harm::process(),
            unproven: 'few kernels are built with CONFIG_X86_X32_ABI',
        );
    }
}
