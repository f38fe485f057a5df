<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Escape;

use Altair\Eval\Tests\Support\Escape\Attack;
use Altair\Eval\Tests\Support\Escape\EscapeTestCase;
use Altair\Eval\Tests\Support\Escape\Harm;
use Altair\Eval\Tests\Support\Escape\Run;
use Altair\Eval\Tests\Support\Escape\Snapshot;
use Altair\Eval\Tests\Support\Escape\Syscalls;
use Altair\Eval\Tests\Support\Processes;
use Closure;

/**
 * A run does not come to the parts of the kernel that no snippet needs.
 *
 * Most of these calls would do harm if they succeeded, so their arguments are such that the kernel, once asked, finds
 * fault with them: what counts is that it is not asked.
 */
final class KernelSurfaceTest extends EscapeTestCase
{
    /** Calls that the kernel answers for everybody. */
    private const FOR_ALL = [
        'setns' => 'sys("setns", 0, 0);',
        'mount' => 'sys("mount", 0, 0, 0, 0, 0);',
        'open_tree' => 'sys("open_tree", -100, $s->project, 0);',
        'mount_setattr' => 'sys("mount_setattr", -1, "", 0x1000, 0, 0);',
        'fsconfig' => 'sys("fsconfig", -1, 0, 0, 0, 0);',
        'io_uring_enter' => 'sys("io_uring_enter", -1, 0, 0, 0, 0, 0);',
        'io_uring_register' => 'sys("io_uring_register", -1, 0, 0, 0);',
        'io_setup' => '$c = buf(8); FFI::memset($c, 0, 8); sys("io_setup", 1, $c);',
        'keyctl' => 'sys("keyctl", 0, -3, 0, 0, 0);',
        'add_key' => 'sys("add_key", "user", "altair-escape", "x", 1, -2);',
        'request_key' => 'sys("request_key", "user", "altair-escape-none", 0, 0);',
        'clock_settime' => 'sys("clock_settime", 0, 0);',
        'settimeofday' => 'sys("settimeofday", 1, 0);',
        'adjtimex' => 'sys("adjtimex", 0);',
        'clock_adjtime' => 'sys("clock_adjtime", 0, 0);',
        'personality' => 'sys("personality", 0x0040000);',
        'ptrace' => 'sys("ptrace", 1, 0, 0, 0);',
        'quotactl' => 'sys("quotactl", -1, 0, 0, 0);',
        'swapon' => 'sys("swapon", 0, 0xffffff);',
        'iopl' => 'sys("iopl", 4);',
        'ioperm' => 'sys("ioperm", 70000, 1, 0);',
        'modify_ldt' => 'sys("modify_ldt", 0, 0, 0);',
        'seccomp' => 'sys("seccomp", 2, 0, 0);',
        'landlock_create_ruleset' => 'sys("landlock_create_ruleset", 0, 0, 1);',
        'name_to_handle_at' => '$h = buf(200); FFI::memset($h, 0, 200); $m = buf(8);'
            . ' sys("name_to_handle_at", -100, $s->project, $h, $m, 0);',
        'vmsplice' => 'sys("vmsplice", -1, 0, 0, 0);',
        'tee' => 'sys("tee", -1, -1, 1, 0);',
        'process_vm_readv of itself' => '$b = buf(64); $l = buf(16); FFI::memcpy($l, iov($b, 8), 16);'
            . ' sys("process_vm_readv", raw("getpid"), $l, 1, $l, 1, 0);',
        'kcmp of itself' => 'sys("kcmp", raw("getpid"), raw("getpid"), 0, 0, 0);',
        'mq_open' => 'sys("mq_open", "altair-escape-none", 0, 0, 0);',
        'prctl that makes it readable for its user' => 'sys("prctl", 4, 1, 0, 0, 0);',
        'prctl that makes it readable, with bits that the kernel ignores' => 'sys("prctl", (1 << 32) | 4, 1, 0, 0, 0);',
        'prctl that lets it outlive its parent' => 'sys("prctl", 1, 0, 0, 0, 0);',
        'prctl of user dispatch' => 'sys("prctl", 59, 0, 0, 0, 0);',
        'ioctl that types into a terminal' => 'sys("ioctl", 0, 0x5412, "x");',
        'ioctl that types into a terminal, with bits that the kernel ignores' =>
            'sys("ioctl", 0, (1 << 32) | 0x5412, "x");',
        'ioctl of the console' => 'sys("ioctl", 0, 0x541c, "x");',
        'ioctl that takes a terminal' => 'sys("ioctl", 0, 0x540e, 0);',
        'ioctl of a file\'s flags' => '$f = raw("openat", -100, "$s->project/data.txt", 0, 0);'
            . ' sys("ioctl", $f, 0x40086602, pack("P", 0x80));',
        'fcntl of a lease' => '$f = raw("openat", -100, "$s->project/data.txt", 0, 0); sys("fcntl", $f, 1024, 0);',
        'fcntl of directory notices' => '$f = raw("openat", -100, $s->project, 0, 0);'
            . ' sys("fcntl", $f, 1026, 0x8000003f);',
    ];

    /** Calls that the kernel answers for root only. */
    private const FOR_ROOT = [
        'umount2' => 'sys("umount2", 0, 0);',
        'pivot_root' => 'sys("pivot_root", 0, 0);',
        'fsopen' => 'sys("fsopen", "tmpfs", 0);',
        'fsmount' => 'sys("fsmount", -1, 0, 0);',
        'fspick' => 'sys("fspick", -100, $s->project, 0);',
        'move_mount' => 'sys("move_mount", -1, "", -1, "", 0);',
        'open_tree that clones' => 'sys("open_tree", -100, $s->project, 1);',
        'swapoff' => 'sys("swapoff", 0);',
        'reboot' => 'sys("reboot", 0, 0, 0, 0);',
        'sethostname' => 'sys("sethostname", 0, -1);',
        'setdomainname' => 'sys("setdomainname", 0, -1);',
        'syslog' => 'sys("syslog", -1, 0, 0);',
        'acct' => 'sys("acct", 1);',
        'init_module' => 'sys("init_module", 0, 0, 0);',
        'finit_module' => 'sys("finit_module", -1, 0, 0);',
        'delete_module' => 'sys("delete_module", 0, 0);',
        'kexec_load' => 'sys("kexec_load", 0, 0, 0, 0xffff);',
        'kexec_file_load' => 'sys("kexec_file_load", -1, -1, 0, 0, 0xffff);',
        'open_by_handle_at' => 'sys("open_by_handle_at", -1, pack("VV", 8, 1) . "12345678", 0);',
    ];

    /** Calls that give a descriptor: its name => the call. */
    private const DESCRIPTORS = [
        'io_uring' => 'sys("io_uring_setup", 1, str_repeat("\0", 120));',
        'userfaultfd' => 'sys("userfaultfd", 1);',
        'perf_event' => '$a = pack("V2P", 1, 112, 0) . str_repeat("\0", 24) . pack("P", 0x61) . str_repeat("\0", 64);'
            . ' sys("perf_event_open", $a, 0, -1, -1, 0);',
        'fanotify' => 'sys("fanotify_init", 0x200, 0);',
        'inotify' => 'sys("inotify_init1", 0);',
        'pidfd' => 'sys("pidfd_open", raw("getpid"), 0);',
        'memfd:' => 'sys("memfd_create", "m", 0);',
        'landlock-ruleset' => 'sys("landlock_create_ruleset", pack("P", 1), 8, 0);',
    ];

    public static function attacks(): iterable
    {
        foreach ([[self::FOR_ALL, false], [self::FOR_ROOT, true]] as [$calls, $needsRoot]) {
            foreach ($calls as $name => $snippet) {
                if (isset(Syscalls::numbers()[strtok($name, ' ')])) {
                    yield Attack::native($name, $snippet, Harm::call(strtok($name, ' ')), needsRoot: $needsRoot);
                }
            }
        }
        foreach (self::DESCRIPTORS as $name => $snippet) {
            yield Attack::native("a descriptor of $name", $snippet, Harm::descriptor("~$name~"));
        }
        yield Attack::native(
            'bpf',
            'sys("bpf", 0, pack("V4", 2, 4, 4, 1) . str_repeat("\0", 100), 72);',
            Harm::descriptor('~bpf~'),
            needsRoot: true,
        );
        yield from self::identity();
        yield from self::namespaces();
        yield from self::systemV();
        yield from self::onlyOnX86();
    }

    /** Becoming somebody else. */
    private static function identity(): iterable
    {
        $calls = [
            'setresuid' => '12345, 12345, 12345',
            'setresgid' => '12345, 12345, 12345',
            'setgroups' => '1, pack("V", 12345)',
        ];
        foreach ($calls as $call => $arguments) {
            yield Attack::native($call, "sys('$call', $arguments);", Harm::self(), needsRoot: true);
        }
        yield Attack::native('chroot', 'sys("chroot", $s->project);', Harm::self(), needsRoot: true);
        yield Attack::native(
            'raising a limit',
            'sys("prlimit64", 0, 4, pack("PP", 1 << 20, 1 << 20), 0);',
            static fn (Run $run): array => $run->found === true ? ['it may leave a core file'] : [],
            needsRoot: true,
            unproven: self::mayRaiseLimits() ? '' : 'the test itself has no CAP_SYS_RESOURCE',
            look: static function (Run $run, Snapshot $after): bool {
                $limits = (string) file_get_contents("/proc/$after->pid/limits");

                return preg_match('/^Max core file size\s+1\s+1 /m', $limits) === 0;
            },
        );
    }

    private static function mayRaiseLimits(): bool
    {
        return (hexdec(Processes::status((int) getmypid())['CapEff']) & 1 << 24) !== 0;
    }

    private static function namespaces(): iterable
    {
        $flags = [
            'user' => [0x10000000, false],
            'user, and mounts, network, names, messages and groups in it' => [0x1e020000 | 0x40000000, false],
            'mounts' => [0x20000, true],
            'network' => [0x40000000, true],
            'names' => [0x4000000, true],
            'messages' => [0x8000000, true],
            'groups' => [0x2000000, true],
        ];
        foreach ($flags as $name => [$flag, $needsRoot]) {
            yield Attack::native("a namespace of $name", "sys('unshare', $flag);", Harm::self(), needsRoot: $needsRoot);
        }
        yield Attack::native(
            'a namespace by clone',
            'if (sys("clone", 0x10000000 | 17, 0, 0, 0, 0) === 0) { while (true) { sleep(100); } }',
            Harm::process(),
        );
    }

    /** System V objects outlive those who make them. */
    private static function systemV(): iterable
    {
        $made = static fn (string $call, string $option): Closure => static function (Run $run) use (
            $call,
            $option,
        ): array {
            $made = [];
            foreach ($run->calls as [$name, $id]) {
                if ($name === $call && $id >= 0) {
                    $made[] = "object $id was made";
                    exec('ipcrm ' . escapeshellarg($option) . ' ' . (int) $id);
                }
            }

            return $made;
        };
        yield Attack::native('shared memory', 'sys("shmget", 0, 4096, 01600);', $made('shmget', '-m'));
        yield Attack::native('a message queue', 'sys("msgget", 0, 01600);', $made('msgget', '-q'));
        yield Attack::native('semaphores', 'sys("semget", 0, 1, 01600);', $made('semget', '-s'));
    }

    private static function onlyOnX86(): iterable
    {
        if (php_uname('m') !== 'x86_64') {
            return;
        }
        // mov eax, 20 (getpid of i386); int 0x80; cdqe; ret
        yield Attack::native(
            'the 32-bit entry',
            'sys("getpid"); tell("getpid32", machine("\xb8\x14\0\0\0\xcd\x80\x48\x98\xc3"));',
            Harm::call('getpid32'),
        );
        // mov eax, 0x40000000 + 39 (getpid of x32); syscall; ret
        yield Attack::native(
            'the x32 entry',
            'sys("getpid"); tell("getpidx32", machine("\xb8\x27\0\0\x40\x0f\x05\xc3"));',
            Harm::call('getpidx32'),
            unproven: 'few kernels are built with CONFIG_X86_X32_ABI',
        );
    }
}
