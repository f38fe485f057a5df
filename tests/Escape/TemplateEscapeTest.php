<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Escape;

use Altair\Eval\Tests\Support\Escape\Attack;
use Altair\Eval\Tests\Support\Escape\EscapeTestCase;
use Altair\Eval\Tests\Support\Escape\Harm;
use Altair\Eval\Tests\Support\Escape\Place;
use Altair\Eval\Tests\Support\Escape\Run;
use Altair\Eval\Tests\Support\Escape\Snapshot;
use Closure;

/**
 * A run reaches neither the template that it is a fork of nor another one of its host, and cannot do what the template
 * and its forks do before they run anybody's code.
 *
 * Every signal is blocked in a template, so that one that arrives stays pending and is seen.
 */
final class TemplateEscapeTest extends EscapeTestCase
{
    private const EACH = 'foreach ($s->templates as $p) { %s }';

    /** On every template of the host. */
    private const TOUCHING = [
        'kill' => 'sys("kill", $p, 23);',
        'tkill' => 'sys("tkill", $p, 23);',
        'tgkill' => 'sys("tgkill", $p, $p, 23);',
        'rt_sigqueueinfo' =>
            'sys("rt_sigqueueinfo", $p, 23, pack("V4", 23, 0, 0xffffffff, 0) . str_repeat("\0", 112));',
        'rt_tgsigqueueinfo' => 'sys("rt_tgsigqueueinfo", $p, $p, 23,'
            . ' pack("V4", 23, 0, 0xffffffff, 0) . str_repeat("\0", 112));',
        'pidfd_send_signal' => '$f = sys("pidfd_open", $p, 0); sys("pidfd_send_signal", $f, 23, 0, 0);',
        'ptrace seize' => 'sys("ptrace", 0x4206, $p, 0, 0);',
        'sched_setaffinity' => 'sys("sched_setaffinity", $p, 8, pack("P", 1));',
        'setpriority' => 'sys("setpriority", 0, $p, 15);',
        'prlimit' => 'sys("prlimit64", $p, 12, pack("PP", 4096, 4096), 0);',
        // F_SETSIG 10, F_SETOWN 8, F_SETFL 4 with O_ASYNC, then something to read.
        'a signal for input' => '$b = buf(8); sys("socketpair", 1, 1, 0, $b);'
            . ' [1 => $a, 2 => $b] = unpack("V2", FFI::string($b, 8)); sys("fcntl", $a, 10, 23);'
            . ' sys("fcntl", $a, 8, $p); sys("fcntl", $a, 4, 020000); raw("write", $b, "x", 1);',
    ];

    /** What tells the snippet something, or does what cannot be seen: call => snippet. */
    private const LET_THROUGH = [
        'pidfd_open' => 'sys("pidfd_open", $p, 0);',
        'kcmp' => 'sys("kcmp", raw("getpid"), $p, 0, 0, 0);',
        'setpgid' => 'sys("setpgid", $p, $p);',
        'ioprio_set' => 'sys("ioprio_set", 1, $p, (2 << 13) | 7);',
        'move_pages' => 'sys("move_pages", $p, 0, 0, 0, 0, 0);',
    ];

    /** Files of a template's in /proc. */
    private const FILES = ['mem', 'maps', 'environ', 'root/dev/null', 'fd/0', 'stat'];

    /** Where it has mounts of its own. */
    private const MOUNTED = ['cwd/.lower0'];

    /**
     * What a fork does to set itself up, with arguments that the kernel itself answers otherwise than by EPERM: call =>
     * arguments, and whether it takes root for that.
     */
    private const SETTING_UP = [
        'mount' => ['1, 1, 1, 0, 1', false],
        'umount2' => ['1, 2', false],
        'unshare' => ['0x20000', true],
        'setns' => ['0, 0', false],
        'pivot_root' => ['1, 1', true],
        'capset' => ['pack("VV", 0x20080522, 0), str_repeat("\0", 24)', false],
        'seccomp' => ['1, 0, 0', false],
        'landlock_create_ruleset' => ['0, 0, 1', false],
        'landlock_add_rule' => ['-1, 1, 0, 0', false],
        'prctl' => ['1, 0', false],
    ];

    /** Those of them that are made with every word that may be the pass: it is the same one for all. */
    private const WITH_PASS = ['seccomp', 'capset', 'prctl'];

    public static function attacks(): iterable
    {
        foreach (self::TOUCHING as $name => $snippet) {
            yield self::on("a template: $name", sprintf(self::EACH, $snippet), Harm::bystander());
        }
        foreach (self::LET_THROUGH as $name => $snippet) {
            yield self::on("a template: $name", sprintf(self::EACH, $snippet), Harm::call($name));
        }
        foreach ([...self::FILES, ...(Place::hasMounts() ? self::MOUNTED : [])] as $file) {
            yield self::on(
                "a template: its file $file",
                'foreach ([...$s->templates, ...$s->keepers] as $p) {'
                    . ' sys("openat", -100, "/proc/$p/' . $file . '", 0, 0); }',
                static fn (Run $run): array => array_filter(
                    array_column($run->calls, 1),
                    static fn (int $result): bool => $result >= 0,
                ),
                needsRoot: true,
            );
        }
        yield from self::memory();
        yield from self::others();
        yield from self::settingUp();
        yield from self::whatItHolds();
    }

    private static function memory(): iterable
    {
        $vectors = '$b = buf(64); $l = buf(16); $r = buf(16); FFI::memcpy($l, iov($b, 14), 16);'
            . ' FFI::memcpy($r, pack("PP", $s->templateEnvironment, 14), 16); $p = end($s->templates);';
        yield self::on(
            'a template: process_vm_readv',
            $vectors . ' sys("process_vm_readv", $p, $l, 1, $r, 1, 0);',
            static fn (Run $run): array => in_array(['process_vm_readv', 14], $run->calls, true) ? ['it has read'] : [],
            needsRoot: true,
        );
        yield self::on(
            'a template: process_vm_writev',
            $vectors . ' FFI::memcpy($b, "ALTERED=change", 14); sys("process_vm_writev", $p, $l, 1, $r, 1, 0);',
            Harm::bystander(),
            needsRoot: true,
        );
        yield self::on(
            'a template: a descriptor of its own',
            sprintf(self::EACH, '$f = raw("pidfd_open", $p, 0); sys("pidfd_getfd", $f, 3, 0);'),
            Harm::call('pidfd_getfd'),
        );
    }

    /** Signal 0 tells only whether a signal might be sent. */
    private static function others(): iterable
    {
        yield self::on(
            'its keeper, and all keepers',
            'foreach ([raw("getppid"), ...$s->keepers] as $p) { sys("kill", $p, 0); }',
            Harm::call('kill'),
        );
        yield self::on(
            'whoever has an id near its own',
            '$own = raw("getpid"); foreach ([-3, -2, -1, 1, 2, 3] as $d) { sys("kill", $own + $d, 0);'
                . ' sys("tkill", $own + $d, 0); }',
            Harm::call('kill', 'tkill'),
        );
        yield self::on('whoever may be signalled', 'sys("kill", -1, 0);', Harm::call('kill'));
        yield self::on('its group', 'sys("kill", 0, 23);', Harm::call('kill'));
    }

    private static function settingUp(): iterable
    {
        foreach (self::SETTING_UP as $call => [$arguments, $needsRoot]) {
            yield self::on("setting up: $call", "sys('$call', $arguments);", Harm::call($call), needsRoot: $needsRoot);
        }
        // CLONE_PARENT, CLONE_PIDFD, CLONE_CHILD_SETTID, CLONE_CHILD_CLEARTID, as templates do.
        yield self::on(
            'setting up: clone',
            '$f = buf(8); if (sys("clone", 0x1209000, 0, $f, $f, $f) === 0) { while (true) { sleep(100); } }',
            Harm::process(),
        );
        yield self::on(
            'setting up: with every word of its memory as the pass',
            self::eachWord(self::WITH_PASS),
            Harm::call(...self::WITH_PASS),
        );
    }

    /**
     * Makes calls with each word of the writable memory that may be a random number, and tells the first answer of each
     * that is not EPERM.
     *
     * Where the memory is not told to the test, and in a process of its own, it is what lies before the heap's end.
     *
     * @param list<string> $calls
     */
    private static function eachWord(array $calls): string
    {
        $each = '';
        foreach ($calls as $call) {
            [$arguments] = self::SETTING_UP[$call];
            $each .= " if ((\$result = raw('$call', ...array_pad([$arguments], 5, 0), ...[\$word])) !== -1) {"
                . " tell('$call', \$result); break 3; }";
        }

        return '$end = raw("brk", 0); $c = FFI::new("size_t"); $seen = [];'
            . ' foreach ([...$s->writable, [$end - (12 << 20), $end]] as [$from, $to]) {'
            . ' for ($at = $from & ~4095; $at < $to; $at += 4096) {'
            // The kernel says whether it can be read.
            . ' if (raw("faccessat2", -100, $at, 0, 0) === -14) { continue; } $c->cdata = $at;'
            . ' foreach (unpack("q512", FFI::string(FFI::cast("char **", FFI::addr($c))[0], 4096)) as $word) {'
            . ' $top = ($word >> 47) & 0x1ffff;'
            . ' if ($top === 0 || $top === 0x1ffff || isset($seen[$word])) { continue; }'
            . ' $seen[$word] = true;' . $each . ' if (count($seen) === 60000) { break 3; } } } }'
            . ' tell("words", count($seen));';
    }

    /** What can be seen of it from outside. */
    private static function whatItHolds(): iterable
    {
        $inherited = 'in an unsafe run, too, the host closes what is not the run\'s';
        yield self::on(
            'its descriptors',
            'for ($f = ' . count(self::descriptors()) . '; $f < 1024; $f++) {'
                . ' $flags = raw("fcntl", $f, 1); if ($flags !== -9) { tell("descriptor", $f); } } sys("fcntl", 3, 1);',
            static fn (Run $run): array => [
                ...Harm::call('descriptor')($run),
                ...self::foreignDescriptors($run->before),
            ],
            unproven: $inherited,
        );
        yield self::on(
            'memory that it shares',
            'sys("getpid");',
            static fn (Run $run): array => $run->found,
            unproven: 'an unsafe run has a process of its own',
            look: static fn (Run $run, Snapshot $after): array => preg_grep(
                '/^\S+ .w.s/',
                explode("\n", (string) @file_get_contents("/proc/$after->pid/maps")),
            ),
        );
        yield self::on(
            'what is behind the cover',
            'foreach (["", "/.lower0", "/.run", "/.layer", "/.run/upper0", "/.sealed", "/.temp"] as $name) {'
                . ' tell("new", raw("openat", -100, "/.altair-backstage$name/new", 0102, 0600));'
                . ' tell("new", raw("mkdirat", -100, "/.altair-backstage$name/directory", 0700)); }',
            static fn (Run $run): array => [
                ...$run->found,
                ...array_filter(array_column($run->calls, 1), static fn (int $result): bool => $result >= 0),
            ],
            unproven: 'an unsafe run is in no private root, which is where the cover is',
            look: static fn (Run $run, Snapshot $after): array => array_values(array_diff(
                @scandir("/proc/$after->pid/root/.altair-backstage") ?: [],
                ['.', '..'],
            )),
        );
        yield self::on('its rights', 'sys("getpid");', static function (Run $run): array {
            $status = $run->before->status;
            $none = array_fill_keys(['CapInh', 'CapPrm', 'CapEff', 'CapAmb'], str_repeat('0', 16));
            $wanted = $none + ['NoNewPrivs' => '1', 'Seccomp' => '2', 'Uid' => self::ids($run), 'TracerPid' => '0'];

            return array_map(
                static fn (string $field): string => "$field is {$status[$field]}",
                array_keys(array_diff_assoc($wanted, array_intersect_key($status, $wanted))),
            );
        });
    }

    /** `Uid` of `/proc/<pid>/status`: real, effective, saved and of files. */
    private static function ids(Run $run): string
    {
        return implode("\t", array_fill(0, 4, $run->scene->setting->uid()));
    }

    /**
     * @return list<string> what the descriptors of a fork are. Where nothing can be mounted, its directory for
     *     temporary files is one
     */
    private static function descriptors(int $pid = 0): array
    {
        $own = Place::hasMounts() ? [] : ["~/run-$pid$~"];

        return ['~^/dev/null$~', '~^pipe:~', '~^pipe:~', '~^socket:~', ...$own];
    }

    /**
     * @return list<string> descriptors that are not a run's own
     */
    private static function foreignDescriptors(Snapshot $snapshot): array
    {
        $kinds = self::descriptors($snapshot->pid);
        $foreign = [];
        foreach ($snapshot->descriptors as $number => $what) {
            if (!isset($kinds[$number]) || preg_match($kinds[$number], $what) !== 1) {
                $foreign[] = "$number is $what";
            }
        }

        return $foreign;
    }

    private static function on(
        string $name,
        string $snippet,
        Closure $proof,
        bool $needsRoot = false,
        string $unproven = '',
        ?Closure $look = null,
    ): Attack {
        return Attack::native(
            $name,
            $snippet,
            $proof,
            needsRoot: $needsRoot,
            unproven: $unproven,
            look: $look,
            needsTemplate: true,
        );
    }
}
