<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Escape;

use Altair\Eval\Tests\Support\Escape\Attack;
use Altair\Eval\Tests\Support\Escape\EscapeTestCase;
use Altair\Eval\Tests\Support\Escape\Harm;
use Altair\Eval\Tests\Support\Escape\Place;
use Altair\Eval\Tests\Support\Escape\Run;

/**
 * A run reads nothing that is not there for it, by native code either.
 */
final class NativeReadEscapeTest extends EscapeTestCase
{
    private const READ = ' if ($f >= 0) { $b = buf(200); raw("read", $f, $b, 100); echo FFI::string($b, 100); }';

    private const CALLS = [
        'openat' => '$f = sys("openat", -100, $s->file, 0, 0);' . self::READ,
        'openat beside the project' => '$f = sys("openat", -100, $s->sibling, 0, 0);' . self::READ,
        'openat from a directory of the project' => '$d = raw("openat", -100, $s->project, 0x10000, 0);'
            . ' $f = sys("openat", $d, str_repeat("../", 20) . $s->file, 0, 0);' . self::READ,
        'openat2' => '$how = pack("PPP", 0, 0, 0); $f = sys("openat2", -100, $s->file, $how, 24);' . self::READ,
        'openat2 through a link' => '$how = pack("PPP", 0, 0, 0);'
            . ' $f = sys("openat2", -100, "link", $how, 24);' . self::READ,
        'a descriptor of a path only' => '$p = sys("openat", -100, $s->file, 0x200000, 0);'
            . ' $f = raw("openat", -100, "/proc/self/fd/$p", 0, 0);' . self::READ,
        'chdir' => 'sys("chdir", $s->outside); $f = sys("openat", -100, "secret.txt", 0, 0);' . self::READ,
        'fchdir' => '$d = sys("openat", -100, $s->outside, 0x10000, 0); sys("fchdir", $d);'
            . ' $f = sys("openat", -100, "secret.txt", 0, 0);' . self::READ,
        'mmap' => '$f = sys("openat", -100, $s->file, 0, 0); $m = libc()->mmap(null, 4096, 1, 2, $f, 0);'
            . ' if ($f >= 0) { echo FFI::string($m, 40); }',
        'a hard link in the temporary directory' => '$p = sys_get_temp_dir() . "/hard";'
            . ' sys("linkat", -100, $s->sibling, -100, $p, 0); $f = sys("openat", -100, $p, 0, 0);' . self::READ
            . ' raw("unlinkat", -100, $p, 0);',
        'the memory of a bystander' => '$b = buf(4096); $l = buf(16); $r = buf(16); FFI::memcpy($l, iov($b, 4096), 16);'
            . ' FFI::memcpy($r, pack("PP", $s->environment, 64), 16);'
            . ' $n = sys("process_vm_readv", $s->bystander, $l, 1, $r, 1, 0);'
            . ' if ($n > 0) { echo FFI::string($b, $n); }',
        'the memory file of a bystander' => '$f = sys("openat", -100, "/proc/$s->bystander/mem", 0, 0); $b = buf(200);'
            . ' if ($f >= 0 && raw("pread64", $f, $b, 64, $s->environment) > 0) { echo FFI::string($b, 64); }',
        'the environment of a bystander' =>
            '$f = sys("openat", -100, "/proc/$s->bystander/environ", 0, 0);' . self::READ,
        'the root of a bystander' => '$f = sys("openat", -100, "/proc/$s->bystander/root$s->file", 0, 0);' . self::READ,
        'the working directory of a bystander' =>
            '$f = sys("openat", -100, "/proc/$s->bystander/cwd$s->file", 0, 0);' . self::READ,
        'the root of a bystander\'s thread' => '$f = sys("openat", -100,'
            . ' "/proc/$s->bystander/task/$s->bystander/root$s->file", 0, 0);' . self::READ,
        'the root of the host' => '$f = sys("openat", -100, "/proc/$s->host/root$s->file", 0, 0);' . self::READ,
        'the own root by /proc' => '$f = sys("openat", -100, "/proc/self/root$s->file", 0, 0);' . self::READ,
        'the parent of the root' => '$d = raw("openat", -100, "/", 0x10000, 0); sys("fchdir", $d);'
            . ' for ($i = 0; $i < 20; $i++) { raw("chdir", ".."); }'
            . ' $f = sys("openat", -100, ltrim($s->file, "/"), 0, 0);' . self::READ,
        'every descriptor that is there' => 'for ($d = 3; $d < 256; $d++) {'
            . ' $f = raw("openat", $d, str_repeat("../", 20) . $s->file, 0, 0); tell("openat", $f);' . self::READ
            . ' $f = raw("openat", $d, ltrim($s->file, "/"), 0, 0);' . self::READ . ' }'
            . ' $d = raw("openat", -100, "/", 0x10000, 0);'
            . ' $f = raw("openat", $d, ltrim($s->file, "/"), 0, 0);' . self::READ,
    ];

    /** What /proc says of a process. */
    private const OF_PROCESSES = ['cmdline', 'status', 'stat', 'comm', 'maps', 'fd', 'limits', 'cgroup', 'mounts'];

    /** What it says of the machine's processes together. */
    private const OF_ALL = ['/proc', '/proc/net/tcp', '/proc/net/unix', '/proc/locks', '/proc/1/cmdline'];

    public static function attacks(): iterable
    {
        foreach (self::CALLS as $name => $snippet) {
            yield Attack::native($name, $snippet, Harm::secret());
        }
        $opened = static fn (Run $run): array => array_filter(
            array_column($run->calls, 1),
            static fn (int $result): bool => $result >= 0,
        );
        yield Attack::native(
            'what /proc says of a bystander and the host',
            'foreach ([$s->bystander, $s->host] as $p) { foreach (' . var_export(self::OF_PROCESSES, true)
                . ' as $of) { sys("openat", -100, "/proc/$p/$of", 0, 0); } }',
            $opened,
        );
        if (!Place::hasMounts()) {
            // A private root has a /proc of its own, in which some of these are.
            yield Attack::native(
                'what /proc says of all processes',
                'foreach (' . var_export(self::OF_ALL, true) . ' as $f) { sys("openat", -100, $f, 0, 0); }',
                $opened,
            );
        }
        yield Attack::native(
            'a file handle',
            // What follows the handle's head is the file system's own; the mount is that of the project.
            '$h = buf(200); FFI::memcpy($h, pack("VV", 128, 0), 8); $m = buf(8);'
                . ' sys("name_to_handle_at", -100, $s->file, $h, $m, 0);'
                . ' $d = raw("openat", -100, $s->project, 0x10000, 0);'
                . ' $f = sys("open_by_handle_at", $d, $h, 0);' . self::READ,
            Harm::secret(),
            needsRoot: true,
        );
        yield from self::whatIsThere();
        // Landlock does not govern these, so that they are permitted where it stands alone (SECURITY.md).
        yield from Place::hasMounts() ? self::whatCanBeSeen() : [];
        yield from self::devices();
    }

    /** What may not even be known of a file that cannot be read. */
    private static function whatIsThere(): iterable
    {
        yield Attack::native(
            'the entries of a directory',
            // d_ino is the first field of struct linux_dirent64, d_reclen 16 bytes into it.
            '$f = sys("openat", -100, $s->outside, 0x10000, 0); $b = buf(4096); $n = raw("getdents64", $f, $b, 4096);'
                . ' for ($i = 0; $i < $n; $i += unpack("v", FFI::string($b + $i + 16, 2))[1]) {'
                . ' echo "inode=", unpack("P", FFI::string($b + $i, 8))[1], ";"; }',
            self::knows(...),
        );
        yield Attack::native(
            'watching a directory',
            '$i = sys("inotify_init1", 0); sys("inotify_add_watch", $i, $s->outside, 0xfff);',
            Harm::call('inotify_add_watch'),
        );
    }

    /** @return list<string> */
    private static function knows(Run $run): array
    {
        $inode = fileinode($run->scene->outside . '/secret.txt');

        return str_contains($run->stdout, "inode=$inode;") ? ['it knows the inode'] : [];
    }

    /** What a private root alone hides. */
    private static function whatCanBeSeen(): iterable
    {
        yield Attack::native(
            'statx',
            // stx_ino is 32 bytes into struct statx.
            '$b = buf(256); sys("statx", -100, $s->file, 0, 0x7ff, $b);'
                . ' echo "inode=", unpack("P", FFI::string($b + 32, 8))[1], ";";',
            self::knows(...),
        );
        yield Attack::native(
            'whether a file is there',
            'sys("faccessat2", -100, $s->file, 4, 0);',
            static fn (Run $run): array => in_array(['faccessat2', 0], $run->calls, true) ? ['it is there'] : [],
        );
        yield Attack::native(
            'the file system of a directory',
            '$b = buf(256); sys("statfs", $s->outside, $b);',
            static fn (Run $run): array => in_array(['statfs', 0], $run->calls, true) ? ['it is there'] : [],
        );
    }

    /** Devices that are no ordinary program's, opened by whatever name there is. */
    private static function devices(): iterable
    {
        $held = Harm::descriptor('~^/dev/(?!null|zero|random|urandom)|ptmx~');
        yield Attack::native(
            'any device',
            'foreach (["full", "fuse", "hwrng", "kmem", "kmsg", "kvm", "loop-control", "mem", "net/tun", "nvme0n1",'
                . ' "port", "ptmx", "sda", "snapshot", "uinput", "vda", "vhost-net", "vsock"] as $device) {'
                . ' tell("openat", raw("openat", -100, "/dev/$device", 0x80800, 0)); }',
            $held,
        );
        yield Attack::native(
            'a device that it makes',
            // Major 1, minor 5 is /dev/zero: harmless, and told from the one that is there by its path.
            'sys("mknodat", -100, "$s->project/device", 0020600, 0x105);'
                . ' tell("openat", raw("openat", -100, "$s->project/device", 0, 0));',
            Harm::descriptor('~/device$~'),
            needsRoot: true,
        );
        yield Attack::native(
            'a new pseudo-terminal',
            'tell("openat", raw("openat", -100, "/dev/ptmx", 2, 0));'
                . ' tell("openat", raw("openat", -100, "/dev/pts/ptmx", 2, 0));',
            Harm::descriptor('~ptmx~'),
        );
    }
}
