<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Escape;

use Altair\Eval\Tests\Support\Escape\Attack;
use Altair\Eval\Tests\Support\Escape\EscapeTestCase;
use Altair\Eval\Tests\Support\Escape\FutexWaiter;
use Altair\Eval\Tests\Support\Escape\Harm;
use Altair\Eval\Tests\Support\Escape\PageCache;
use Altair\Eval\Tests\Support\Escape\Run;
use Altair\Eval\Tests\Support\Escape\Scene;
use Altair\Eval\Tests\Support\Escape\Snapshot;
use ArrayObject;
use Closure;

/**
 * A run reaches nobody by way of calls that PHP needs, with arguments that it does not: kernel memory without a bound,
 * other processes that wait for a word of a shared file, what is in the machine's memory of a file.
 */
final class KernelArgumentsTest extends EscapeTestCase
{
    /** Numbers that are not in the list of those that attacks make otherwise: x86-64, aarch64. */
    private const NUMBERS = [
        'fadvise64' => [221, 223],
        'madvise' => [28, 233],
        'mincore' => [27, 232],
        'preadv2' => [327, 286],
        'pwritev2' => [328, 287],
    ];

    /** What is refused by a filter as if a file could not do it is refused, too (RWF_NOWAIT). */
    private const EOPNOTSUPP = -95;

    private const EAGAIN = -11;

    /** Signals of one run that may be on their way; queued before it was 96,365, all that its user may have. */
    private const MOST_SIGNALS = 1100;

    /**
     * Operations on words that others wait for, too: FUTEX_… => what is there before, and the other arguments, such
     * that the kernel, once asked, answers otherwise than by EPERM.
     */
    private const FUTEX = [
        'REQUEUE' => ['', 3, '0, 1, $w + 64'],
        'CMP_REQUEUE' => ['', 4, '0, 1, $w + 64, 0'],
        'WAKE_OP' => ['', 5, '1, 1, $w + 64, 0'],
        'LOCK_PI' => ['', 6, '0, 0'],
        'UNLOCK_PI' => ['FFI::memcpy($b, pack("V", raw("gettid")), 4);', 7, '0, 0'],
        'TRYLOCK_PI' => ['', 8, '0, 0'],
        'WAIT_REQUEUE_PI' => ['', 11, '0, 0, $w'],
        'CMP_REQUEUE_PI' => ['', 12, '1, 0, $w, 0'],
        'LOCK_PI2' => ['', 13, '0, 0'],
        'REQUEUE, with bits that the kernel ignores' => ['', (1 << 32) | 3, '0, 1, $w + 64'],
        'REQUEUE, with bits of a private one that the kernel ignores' => ['', (128 << 32) | 3, '0, 1, $w + 64'],
    ];

    /** MADV_COLD, MADV_PAGEOUT. */
    private const ADVICE = [
        'cold' => 20,
        'paged out' => 21,
        'paged out, with bits that the kernel ignores' => (1 << 32) | 21,
    ];

    /** Pages of the files of which it is asked what is in memory. */
    private const PAGES = 512;

    /** Flags with CLOSE_RANGE_UNSHARE. */
    private const UNSHARE = ['' => 2, ', to close later' => 6, ', with bits that the kernel ignores' => (1 << 32) | 2];

    public static function attacks(): iterable
    {
        foreach (self::UNSHARE as $name => $flags) {
            yield Attack::native(
                "a table of descriptors of a thread's own$name",
                "sys('close_range', 4000, 4001, $flags);",
                Harm::call('close_range'),
            );
        }
        yield from self::futexes();
        yield from self::signals();
        yield from self::cache();
    }

    private static function futexes(): iterable
    {
        foreach (self::FUTEX as $name => [$before, $operation, $arguments]) {
            yield Attack::native(
                "a word that is shared: $name",
                '$b = buf(128); FFI::memset($b, 0, 128); $w = addr($b);' . " $before"
                    . " sys('futex', \$w, $operation, $arguments);",
                Harm::call('futex'),
            );
        }
        $file = static fn (Scene $scene): string => "$scene->project/data.txt";
        yield self::requeue('a file of the project', $file);
        yield self::requeue('a file that may be read', static function (Scene $scene): string {
            $scene->request('readablePaths', [$scene->outside]);

            return "$scene->outside/secret.txt";
        });
    }

    /**
     * Has who waits for one word wait for another one, which nobody wakes.
     *
     * It was requeued by a mapping that is read-only, through the layer, too; who woke it later woke nobody.
     *
     * @param Closure(Scene): string $file
     */
    private static function requeue(string $name, Closure $file): Attack
    {
        $waiters = new ArrayObject();

        return Attack::native(
            "a process that waits for a word of $name",
            '$f = raw("openat", -100, $s->waited, 0, 0); $m = raw("mmap", 0, 4096, 1, 1, $f, 0);'
                . ' sys("futex", $m, 3, 0, 1000, $m + 1024);',
            static fn (Run $run): array => $run->found === 1 ? [] : ["$run->found were woken that waited"],
            prepare: static function (Scene $scene) use ($file, $waiters): void {
                $scene->tell('waited', $file($scene));
                $waiters['now'] = new FutexWaiter($file($scene));
            },
            look: static function (Run $run, Snapshot $after) use ($waiters): int {
                $woken = $waiters['now']->wake();
                unset($waiters['now']);

                return $woken;
            },
        );
    }

    /** Signals that wait are counted for their user, so that what one run has queued no other process can. */
    private static function signals(): iterable
    {
        $pending = static function (Run $run): array {
            [$pending, $another] = $run->found;

            return [
                ...($pending > self::MOST_SIGNALS ? ["$pending signals wait"] : []),
                ...($another === '' ? [] : ["another process: $another"]),
            ];
        };
        $look = static fn (Run $run, Snapshot $after): array => [
            (int) strtok($after->status['SigQ'], '/'),
            self::timerOfAnother($run),
        ];
        $info = 'pack("V4", 40, 0, 0xffffffff, 0) . str_repeat("\0", 112)';
        $block = 'raw("rt_sigprocmask", 0, str_repeat("\xff", 8), 0, 8); $p = raw("getpid"); $t = raw("gettid");'
            . ' $i = buf(128); FFI::memcpy($i, ' . $info . ', 128); ';
        // The host is asked about each in a fork of a template: some thousands are proof enough.
        $calls = [
            'rt_sigqueueinfo' => '$p, 40, $i',
            'rt_tgsigqueueinfo' => '$p, $t, 40, $i',
            'tgkill' => '$p, $t, 40',
            'tkill' => '$t, 40',
        ];
        foreach ($calls as $call => $arguments) {
            yield Attack::native(
                "signals to itself by $call",
                $block . "for (\$n = 0; \$n < 4000 && raw('$call', $arguments) === 0; \$n++) { } sys('getpid');",
                $pending,
                look: $look,
            );
        }
        yield Attack::native(
            'signals of timers, all that its user may have',
            'for ($n = 0, $b = buf(8); $n < 200000 && ($e = raw("timer_create", 1, 0, $b)) === 0; $n++) { }'
                . ' tell("timer_create", $e); sys("getpid");',
            $pending,
            look: $look,
        );
    }

    /** What keeps another process of the same user from a timer; empty: nothing. */
    private static function timerOfAnother(Run $run): string
    {
        $libc = 'int timer_create(int, void *, void **); int *__errno_location(void);';
        $program = "\$c = FFI::cdef('$libc'); \$t = FFI::new('void *');"
            . ' echo $c->timer_create(1, null, FFI::addr($t)) === 0 ? "" : "errno " . $c->__errno_location()[0];';
        $command = $run->scene->setting->command([PHP_BINARY, '-d', 'ffi.enable=1', '-r', $program]);
        exec(implode(' ', array_map(escapeshellarg(...), $command)) . ' 2>&1', $output);

        return implode("\n", $output);
    }

    /** What of a file is in memory tells what others have read of it. */
    private static function cache(): iterable
    {
        [$fadvise, $madvise, $mincore, $preadv2, $pwritev2] = array_map(
            static fn (array $row): int => $row[php_uname('m') === 'x86_64' ? 0 : 1],
            array_values(self::NUMBERS),
        );
        $native = static fn (string $name, string $snippet, Closure $proof, bool $all = true): Attack => Attack::native(
            "what is in memory: $name",
            "sys('getpid'); \$f = raw('openat', -100, \$s->asked, 0, 0); \$b = buf(512);"
                . ' $v = buf(16); FFI::memcpy($v, iov($b, 1), 16); ' . $snippet,
            $proof,
            prepare: static function (Scene $scene) use ($all): void {
                $scene->request('readablePaths', [$scene->outside]);
                $scene->tell('asked', "$scene->outside/asked");
                PageCache::make("$scene->outside/asked", self::PAGES, $all);
                PageCache::make("$scene->outside/spared", self::PAGES, true);
                chown("$scene->outside/asked", $scene->setting->uid());
            },
            // The machine may need the memory of both.
            look: static fn (Run $run, Snapshot $after): int => PageCache::pages("{$run->scene->outside}/asked")
                + self::PAGES - PageCache::pages("{$run->scene->outside}/spared"),
        );
        $last = (self::PAGES - 1) * 4096;
        // One page of it was just read, and the last one was not.
        yield $native(
            'told by reading without waiting',
            "foreach ([0, $last] as \$at) { tell('preadv2', raw($preadv2, \$f, \$v, 1, \$at, 0, 8)); }",
            static fn (Run $run): array => array_column(array_slice($run->calls, 1), 1) === [1, self::EAGAIN]
                ? ['it was told which page is in memory']
                : self::answered($run, 'preadv2'),
            all: false,
        );
        yield $native(
            'told by mincore',
            "FFI::memset(\$b, 1, 512); \$m = raw('mmap', 0, $last, 1, 1, \$f, 0);"
                . " tell('mincore', raw($mincore, \$m, $last, \$b));"
                . " tell('pages', array_sum(unpack('C*', FFI::string(\$b, 511)) ?: []));",
            static fn (Run $run): array => [
                ...Harm::call('mincore')($run),
                ...($run->calls[2][1] < self::PAGES - 1 ? ['it was told which pages are in memory'] : []),
            ],
            all: false,
        );
        $gone = static fn (string $call): Closure => static fn (Run $run): array => [
            ...($run->found < self::PAGES ? ["$run->found pages of " . self::PAGES . ' are left in memory'] : []),
            ...Harm::call($call)($run),
        ];
        yield $native(
            'changed by fadvise',
            "tell('fadvise64', raw($fadvise, \$f, 0, 0, 4));",
            $gone('fadvise64'),
        );
        foreach (self::ADVICE as $name => $advice) {
            yield $native(
                "advised to be $name",
                "\$m = raw('mmap', 0, $last, 1, 1, \$f, 0); tell('madvise', raw($madvise, \$m, $last, $advice));",
                $gone('madvise'),
            );
        }
        foreach (['not to wait' => 8, 'to keep nothing' => 128] as $name => $flag) {
            yield $native(
                "reading $name",
                "tell('preadv2', raw($preadv2, \$f, \$v, 1, 0, 0, $flag));",
                static fn (Run $run): array => self::answered($run, 'preadv2'),
            );
        }
        yield $native(
            'writing not to wait',
            "\$p = buf(8); raw('pipe2', \$p, 0); \$w = unpack('V2', FFI::string(\$p, 8))[2];"
                . " tell('pwritev2', raw($pwritev2, \$w, \$v, 1, -1, -1, 8));",
            static fn (Run $run): array => self::answered($run, 'pwritev2'),
        );
    }

    /**
     * @return list<string> answers to a call that a filter does not give
     */
    private static function answered(Run $run, string $call): array
    {
        $calls = array_filter($run->calls, static fn (array $made): bool => $made[1] !== self::EOPNOTSUPP);
        $answered = clone $run;
        $answered->calls = array_values($calls);

        return Harm::call($call)($answered);
    }
}
