<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Escape;

use Altair\Eval\Tests\Support\Escape\Attack;
use Altair\Eval\Tests\Support\Escape\EscapeTestCase;
use Altair\Eval\Tests\Support\Escape\Harm;
use Altair\Eval\Tests\Support\Escape\Run;

/**
 * A run neither signals nor traces nor changes another process: its host, its keeper, others of its user.
 *
 * The signal is one that nobody heeds (SIGURG, 23); the bystander and the host block it, so that it stays pending.
 */
final class SignalEscapeTest extends EscapeTestCase
{
    private const CALLS = [
        'posix_kill of a bystander' => 'posix_kill($s->bystander, SIGURG);',
        'posix_kill of the host' => 'posix_kill($s->host, SIGURG);',
        'posix_kill of a group' => 'posix_kill(-$s->group, SIGURG);',
        'posix_kill of everybody' => 'posix_kill(-1, SIGURG);',
        'a callback that is a name' => 'array_map("posix_kill", [$s->bystander], [SIGURG]);',
        'pcntl_setpriority' => 'pcntl_setpriority(15, $s->bystander);',
    ];

    private const NATIVE = [
        'kill of a bystander' => 'sys("kill", $s->bystander, 23);',
        'kill of the host' => 'sys("kill", $s->host, 23);',
        'kill with bits that the kernel ignores' => 'sys("kill", (1 << 32) | $s->bystander, 23);',
        'kill of a group' => 'sys("kill", -$s->group, 23);',
        'kill of everybody' => 'sys("kill", -1, 23);',
        'tkill' => 'sys("tkill", $s->bystander, 23);',
        'tgkill' => 'sys("tgkill", $s->bystander, $s->bystander, 23);',
        'tgkill with a group of its own' => 'sys("tgkill", raw("getpid"), $s->bystander, 23);'
            . ' sys("tgkill", $s->bystander, $s->bystander, 23);',
        'rt_sigqueueinfo' => 'sys("rt_sigqueueinfo", $s->bystander, 23,'
            . ' pack("V4", 23, 0, 0xffffffff, 0) . str_repeat("\0", 112));',
        'rt_tgsigqueueinfo' => 'sys("rt_tgsigqueueinfo", $s->bystander, $s->bystander, 23,'
            . ' pack("V4", 23, 0, 0xffffffff, 0) . str_repeat("\0", 112));',
        'pidfd_send_signal' => '$p = sys("pidfd_open", $s->bystander, 0); sys("pidfd_send_signal", $p, 23, 0, 0);',
        // F_SETSIG 10, F_SETOWN 8, F_SETFL 4 with O_ASYNC, then something to read.
        'a signal for input' => '$p = buf(8); sys("socketpair", 1, 1, 0, $p);'
            . ' [1 => $a, 2 => $b] = unpack("V2", FFI::string($p, 8));'
            . ' sys("fcntl", $a, 10, 23); sys("fcntl", $a, 8, $s->bystander); sys("fcntl", $a, 4, 020000);'
            . ' raw("write", $b, "x", 1);',
        'a signal for input, with bits that the kernel ignores' => '$p = buf(8); sys("socketpair", 1, 1, 0, $p);'
            . ' [1 => $a, 2 => $b] = unpack("V2", FFI::string($p, 8)); sys("fcntl", $a, (1 << 32) | 10, 23);'
            . ' sys("fcntl", $a, (1 << 32) | 8, $s->bystander); sys("fcntl", $a, 4, 020000); raw("write", $b, "x", 1);',
        // F_SETOWN_EX 15 for a process (1).
        'a signal for input to an extended owner' => '$p = buf(8); sys("socketpair", 1, 1, 0, $p);'
            . ' [1 => $a, 2 => $b] = unpack("V2", FFI::string($p, 8)); sys("fcntl", $a, 10, 23);'
            . ' sys("fcntl", $a, 15, pack("VV", 1, $s->bystander)); sys("fcntl", $a, 4, 020000);'
            . ' raw("write", $b, "x", 1);',
        // FIOSETOWN and FIOASYNC.
        'a signal for input by ioctl' => '$p = buf(8); sys("socketpair", 1, 1, 0, $p);'
            . ' [1 => $a, 2 => $b] = unpack("V2", FFI::string($p, 8));'
            . ' sys("ioctl", $a, 0x8901, pack("V", $s->bystander));'
            . ' sys("ioctl", $a, 0x5452, pack("V", 1)); raw("write", $b, "x", 1);',
        'a signal for urgent data' => '$p = buf(8); sys("socketpair", 1, 1, 0, $p);'
            . ' [1 => $a, 2 => $b] = unpack("V2", FFI::string($p, 8)); sys("fcntl", $a, 8, $s->bystander);'
            . ' raw("sendto", $b, "x", 1, 1, 0, 0);',
        'ptrace attach' => 'sys("ptrace", 16, $s->bystander, 0, 0);',
        'ptrace seize' => 'sys("ptrace", 0x4206, $s->bystander, 0, 0);',
        'process_vm_writev' => '$b = buf(64); FFI::memcpy($b, "SECRET=changed", 14); $l = buf(16); $r = buf(16);'
            . ' FFI::memcpy($l, iov($b, 14), 16); FFI::memcpy($r, pack("PP", $s->environment, 14), 16);'
            . ' sys("process_vm_writev", $s->bystander, $l, 1, $r, 1, 0);',
        'writing to the memory file' => '$f = sys("openat", -100, "/proc/$s->bystander/mem", 2, 0);'
            . ' raw("pwrite64", $f, "SECRET=changed", 14, $s->environment);',
        'sched_setaffinity' => 'sys("sched_setaffinity", $s->bystander, 8, pack("P", 1));',
        'setpriority' => 'sys("setpriority", 0, $s->bystander, 15);',
        'sched_setscheduler' => 'sys("sched_setscheduler", $s->bystander, 5, pack("V", 0));',
        'prlimit' => 'sys("prlimit64", $s->bystander, 1, pack("PP", 1 << 30, 1 << 30), 0);',
    ];

    /** What tells the snippet something, or does what cannot be seen: name of the call => snippet. */
    private const LET_THROUGH = [
        'pidfd_open' => 'sys("pidfd_open", $s->bystander, 0);',
        'pidfd_getfd' => '$p = raw("pidfd_open", $s->host, 0); sys("pidfd_getfd", $p, 0, 0);',
        'kcmp' => 'sys("kcmp", raw("getpid"), $s->bystander, 0, 0, 0);',
        'perf_event_open' => '$a = pack("V2P", 1, 112, 0) . str_repeat("\0", 24) . pack("P", 0x61)'
            . ' . str_repeat("\0", 64); sys("perf_event_open", $a, $s->bystander, -1, -1, 0);',
        'ioprio_set' => 'sys("ioprio_set", 1, $s->bystander, (2 << 13) | 7);',
        'get_robust_list' => '$h = buf(8); $l = buf(8); sys("get_robust_list", $s->bystander, $h, $l);',
        'process_madvise' => '$p = raw("pidfd_open", $s->bystander, 0); $v = buf(16);'
            . ' FFI::memcpy($v, pack("PP", $s->environment & ~4095, 4096), 16);'
            . ' sys("process_madvise", $p, $v, 1, 20, 0);',
        'process_mrelease' => '$p = raw("pidfd_open", $s->bystander, 0); sys("process_mrelease", $p, 0);',
        'move_pages' => 'sys("move_pages", $s->bystander, 0, 0, 0, 0, 0);',
        'sched_setattr' => 'sys("sched_setattr", $s->bystander, pack("V2Pl2P3", 48, 0, 0, 0, 0, 0, 0, 0), 0);',
    ];

    public static function attacks(): iterable
    {
        $group = static fn ($scene) => $scene->tell('group', posix_getpgid($scene->bystander->pid));
        foreach (self::CALLS as $name => $snippet) {
            yield new Attack($name, $snippet, Harm::bystander(), prepare: $group);
        }
        foreach (self::NATIVE as $name => $snippet) {
            yield Attack::native($name, $snippet, Harm::bystander(), prepare: $group);
        }
        foreach (self::LET_THROUGH as $name => $snippet) {
            yield Attack::native($name, $snippet, Harm::call($name), needsRoot: $name === 'process_madvise');
        }
        $killed = static fn (Run $run): array => $run->outcome() === 'returned' ? [] : ['the run did not return'];
        yield new Attack('killing the keeper', 'posix_kill(posix_getppid(), SIGKILL) && sleep(1);', $killed);
        yield Attack::native(
            'killing the keeper natively',
            'sys("kill", raw("getppid"), 9) === 0 && sleep(1);',
            $killed,
        );
        yield Attack::native(
            'stopping the keeper',
            // It is continued by nobody else: SIGKILL is its end in any case.
            'sys("kill", raw("getppid"), 19); raw("kill", raw("getppid"), 18);',
            Harm::call('kill'),
        );
    }
}
