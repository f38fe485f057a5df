<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Escape;

use Altair\Eval\Tests\Support\Escape\Attack;
use Altair\Eval\Tests\Support\Escape\EscapeTestCase;
use Altair\Eval\Tests\Support\Escape\Place;
use Altair\Eval\Tests\Support\Escape\Run;
use Altair\Eval\Tests\Support\Escape\Setting;
use Altair\Eval\Tests\Support\Escape\Snapshot;
use Closure;

/**
 * A run does not use up the machine: memory, files, descriptors, threads, time.
 */
final class ExhaustionTest extends EscapeTestCase
{
    /** What the request allows PHP, in MiB. */
    private const MEMORY_MB = 32;

    /** The hard cap for that (`memory_limit` + 128 MiB) and what the interpreter's own files take, in bytes. */
    private const MOST_BYTES = (self::MEMORY_MB + 128 + 48) << 20;

    /** What an attack goes for, in MiB: well beyond the cap, and harmless. */
    private const GREED_MB = 400;

    private const OPTIONS = ['memoryLimitMb' => self::MEMORY_MB];

    /** What libraries with threads of their own get by with, and a run may have. */
    private const MOST_THREADS = 64;

    /** Memory in PHP's own ways. */
    private const MEMORY = [
        'a long string' => '$x = str_repeat("x", %d << 20);',
        'many strings' => '$x = []; for ($i = 0; $i < %d; $i++) { $x[] = str_repeat(chr($i & 127), 1 << 20); }',
        'an array' => '$x = range(1, %d << 16);',
        'recursion' => '$f = static function (int $n) use (&$f) { return $n > 0 ? 1 + $f($n - 1) : 0; }; $f(%d << 13);',
        'an output buffer' => 'ob_start(); for ($i = 0; $i < %d; $i++) { echo str_repeat("x", 1 << 20); } ob_clean();',
        'a file in memory' => '$x = fopen("php://memory", "w+"); for ($i = 0; $i < %d; $i++) {'
            . ' fwrite($x, str_repeat("x", 1 << 20)); }',
    ];

    /** Native memory: %d MiB of it, each page touched. */
    private const NATIVE_MEMORY = [
        'malloc' => '$c = FFI::cdef("void *malloc(size_t); void *memset(void *, int, size_t);"); sys("getpid");'
            . ' for ($i = 0; $i < %1$d; $i += 20) { ($p = $c->malloc(20 << 20)) && $c->memset($p, 1, 20 << 20); }',
        'private memory' => self::MAP . '$map(0x22, -1, %1$d);',
        'private memory in many pieces' => self::MAP . 'for ($i = 0; $i < %1$d; $i += 4) { $map(0x22, -1, 4); }',
        'memory that is not accounted' => self::MAP . '$map(0x4022, -1, %1$d);',
        'memory that grows down' => self::MAP . 'for ($i = 0; $i < %1$d; $i += 20) { $map(0x122, -1, 20); }',
        'memory that is locked' => self::MAP . 'for ($i = 0; $i < %1$d; $i += 20) { $map(0x2022, -1, 20); }'
            . ' for ($i = 0; $i < %1$d; $i += 20) { $map(0x22, -1, 20); }',
        'memory that becomes writable' => '$m = sys("mmap", 0, %1$d << 20, 0, 0x22, -1, 0); for ($i = 0;'
            . ' $i < %1$d; $i++) {'
            . ' if (raw("mprotect", $m + ($i << 20), 1 << 20, 3) === 0) {'
            . ' FFI::memset(FFI::cast("char *", libc()->cast("void *", $m + ($i << 20))), 1, 1 << 20); } }',
        'memory that becomes larger' => self::MAP . '$map(0x22, -1, 1); $c = FFI::cdef("void *realloc(void *, size_t);'
            . ' void *memset(void *, int, size_t);"); $p = null; for ($i = 20; $i <= %1$d; $i += 20) {'
            . ' $n = $c->realloc($p, $i << 20); if ($n !== null) { $c->memset($p = $n, 1, $i << 20); } }',
        'shared memory' => self::MAP . '$map(0x21, -1, %1$d);',
        'shared memory that is validated' => self::MAP . '$map(0x23, -1, %1$d); $map(0x21, -1, %1$d);',
        'shared memory with bits that the kernel ignores' => self::MAP . '$map((1 << 40) | 0x21, -1, %1$d);',
        'shared memory of a device' => self::MAP . '$map(0x01, raw("openat", -100, "/dev/zero", 2, 0), %1$d);',
        'a file in memory' => self::MAP . '$f = sys("memfd_create", "m", 0); raw("ftruncate", $f, %1$d << 20);'
            . ' $map(0x01, $f, %1$d);',
    ];

    /** Maps and touches, where it is let. */
    private const MAP = '$map = static function (int $flags, int $fd, int $mb): void {'
        . ' $at = sys("mmap", 0, $mb << 20, 3, $flags, $fd, 0); if ($at > 0) {'
        . ' $c = FFI::cdef("void *memset(size_t, int, size_t);"); $c->memset($at, 1, $mb << 20); } }; ';

    /** Milliseconds of a run that is to meet its deadline. */
    private const DEADLINE_MS = 500;

    /** Seconds after which a run that has met it must have ended, on a busy machine, too. */
    private const END_SECONDS = 6;

    public static function attacks(): iterable
    {
        $peak = static fn (Run $run): array =>
            $run->peakBytes > self::MOST_BYTES ? ["it used $run->peakBytes bytes"] : [];
        foreach (self::MEMORY as $name => $snippet) {
            $snippet = sprintf($snippet, self::GREED_MB) . ' usleep(20000);';
            yield new Attack("$name", $snippet, $peak, options: self::OPTIONS, measuresMemory: true);
        }
        foreach (self::NATIVE_MEMORY as $name => $snippet) {
            $snippet = sprintf($snippet, self::GREED_MB) . ' usleep(20000);';
            yield Attack::native("native: $name", $snippet, $peak, options: self::OPTIONS, measuresMemory: true);
        }
        yield from self::files();
        yield from self::handles();
        yield from self::time();
    }

    private static function files(): iterable
    {
        $most = static fn (int $bytes): Closure => static fn (Run $run): array =>
            $run->found > $bytes ? ["$run->found bytes were written"] : [];
        $used = static fn (string $where): Closure => static function (Run $run, Snapshot $after) use ($where): int {
            $directory = $where === 'project'
                ? self::root($after) . $run->scene->project
                : self::root($after) . self::temp($run, $after);

            return 1024 * (int) shell_exec('du -xsk -- ' . escapeshellarg($directory) . '/. 2>/dev/null');
        };
        $fill = 'for ($i = 0; $i < 8; $i++) { $f = @fopen("$d/fill$i", "w"); for ($j = 0; $f && $j < 40; $j++) {'
            . ' if (@fwrite($f, str_repeat("x", 1 << 20)) !== 1 << 20) { break 2; } } }';
        yield new Attack(
            'the disk by way of the project',
            '$d = $s->project; ' . $fill,
            $most(257 << 20),
            options: ['memoryLimitMb' => 64],
            look: $used('project'),
        );
        yield new Attack(
            'one large file',
            '$f = fopen("large", "w"); ftruncate($f, 300 << 20);',
            $most(256 << 20),
            look: static fn (Run $run, Snapshot $after): int =>
                (int) @filesize(self::root($after) . "{$run->scene->project}/large"),
        );
        yield Attack::native(
            'native: one large file by fallocate',
            '$f = raw("openat", -100, "$s->project/large", 0102, 0600); sys("fallocate", $f, 0, 0, 300 << 20);',
            $most(256 << 20),
            look: static fn (Run $run, Snapshot $after): int =>
                (int) @filesize(self::root($after) . "{$run->scene->project}/large"),
        );
        if (!Place::hasMounts()) {
            // The directory for temporary files is the disk's, without a limit of its own (SECURITY.md).
            return;
        }
        yield new Attack(
            'the disk by way of the directory for temporary files',
            '$d = sys_get_temp_dir(); ' . $fill,
            $most(65 << 20),
            look: $used('temp'),
        );
        yield new Attack(
            'files without content',
            'for ($d = 0; $d < 20; $d++) { @mkdir(sys_get_temp_dir() . "/d$d"); for ($i = 0; $i < 1000; $i++) {'
                . ' if (!@touch(sys_get_temp_dir() . "/d$d/f$i")) { break 2; } } }',
            static fn (Run $run): array => $run->found > 17000 ? ["$run->found files were made"] : [],
            look: static fn (Run $run, Snapshot $after): int => (int) shell_exec(
                'find ' . escapeshellarg(self::root($after) . self::temp($run, $after)) . '/ -name "f*" | wc -l',
            ),
        );
    }

    /** The root of a run: of its own, or the host's, which a root without capabilities may not find by the process. */
    private static function root(Snapshot $after): string
    {
        return Place::hasMounts() ? "/proc/$after->pid/root" : '';
    }

    /** Where the directory for temporary files is: in a private root, or the host's. */
    private static function temp(Run $run, Snapshot $after): string
    {
        return is_dir("/proc/$after->pid/root{$run->scene->hostTemp}") ? $run->scene->hostTemp : '/tmp';
    }

    private static function handles(): iterable
    {
        $descriptors = static fn (Run $run): array =>
            count((end($run->after) ?: null)?->descriptors ?? []) > 256 ? ['it holds more than 256 descriptors'] : [];
        yield new Attack(
            'descriptors',
            'for ($i = 0; $i < 400; $i++) { $GLOBALS["files"][] = @fopen("/dev/null", "r"); }',
            $descriptors,
        );
        yield Attack::native(
            'native: descriptors beyond the limit',
            'sys("prlimit64", 0, 7, pack("PP", 4096, 4096), 0); for ($i = 0; $i < 400;'
                . ' $i++) { raw("dup3", 0, 100 + $i, 0); }',
            $descriptors,
        );
        yield Attack::native(
            'native: threads',
            '$c = FFI::cdef("typedef struct { long w[8]; } attr; int pthread_attr_init(attr *);'
                . ' int pthread_attr_setstacksize(attr *, size_t); void *dlsym(void *, const char *);'
                . ' int pthread_create(unsigned long *, attr *, void *, void *);"); $a = $c->new("attr");'
                . ' $c->pthread_attr_init(FFI::addr($a)); $c->pthread_attr_setstacksize(FFI::addr($a), 16384);'
                . ' $t = FFI::new("unsigned long"); $pause = $c->dlsym(null, "pause"); sys("getpid");'
                . ' for ($i = 0; $i < 500; $i++) {'
                . ' if ($c->pthread_create(FFI::addr($t), FFI::addr($a), $pause, null) !== 0) { break; } }',
            static function (Run $run): array {
                $threads = (int) (end($run->after) ?: null)?->status['Threads'];

                return $threads > self::MOST_THREADS ? ["it has $threads threads"] : [];
            },
        );
        yield new Attack(
            'a flood of output',
            'for ($i = 0; $i < 2; $i++) { echo str_repeat("x", 1 << 20); }',
            static fn (Run $run): array =>
                strlen($run->result['stdout'] ?? '') > 17000 ? ['the answer holds the flood'] : [],
            unproven: 'the host keeps only the head of what is printed, whatever the guards are',
        );
    }

    /** The deadline is no guard that an unsafe run lifts, so that these succeed nowhere. */
    private static function time(): iterable
    {
        $late = static fn (Run $run): array => $run->outcome() === 'timed_out' && $run->seconds < self::END_SECONDS
            ? []
            : ["it was {$run->outcome()} after $run->seconds seconds"];
        $block = 'pcntl_async_signals(false); $all = array_diff(range(1, 64), [9, 19, 32, 33]);'
            . ' foreach ($all as $n) { pcntl_signal($n, SIG_IGN); } pcntl_sigprocmask(SIG_BLOCK, $all); ';
        $calls = [
            'a loop' => 'while (true) { }',
            'a loop that heeds no signal' => $block . 'while (true) { }',
            'sleeping' => 'while (true) { sleep(1000); }',
            'sleeping with every signal blocked' => $block . 'while (true) { sleep(1000); }',
            'waiting for a pipe' => '$p = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0); fread($p[0], 1);',
            'a shutdown function that never ends' =>
                'register_shutdown_function(static function () { while (true) { } }); throw new Error("x");',
            'a long native call' => 'preg_match("/(a+)+$/", str_repeat("a", 64) . "b"); while (true) { hash("sha512",'
                . ' str_repeat("x", 1 << 20)); }',
        ];
        foreach ($calls as $name => $snippet) {
            yield new Attack(
                "time: $name",
                $snippet,
                $late,
                settings: [Setting::AllAsUser, Setting::KernelAsRoot],
                options: ['timeoutMs' => self::DEADLINE_MS],
                unproven: 'the deadline holds in unsafe runs, too',
            );
        }
    }
}
