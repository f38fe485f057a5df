<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\Tests\Support\Escape\Setting;
use Altair\Eval\Tests\Support\Escape\WarmHost;
use PHPUnit\Framework\TestCase;

/**
 * What C libraries and PHP's extensions call natively goes on as ever, where the same calls with other arguments are
 * refused.
 */
final class KernelArgumentsKeptTest extends TestCase
{
    /** Numbers that are not in the list of those that attacks make: x86-64, aarch64. */
    private const NUMBERS = [
        'fadvise64' => [221, 223],
        'madvise' => [28, 233],
        'preadv2' => [327, 286],
        'pwritev2' => [328, 287],
    ];

    /** Is there for each: a word, a file of four bytes, a vector of one byte, a page of its own memory. */
    private const BEFORE = '$b = buf(128); FFI::memset($b, 0, 128); $w = addr($b);'
        . ' $f = raw("openat", -100, sys_get_temp_dir() . "/some", 0102, 0600); raw("pwrite64", $f, "data", 4, 0);'
        . ' $v = buf(16); FFI::memcpy($v, iov(buf(1), 1), 16); $m = raw("mmap", 0, 4096, 3, 0x22, -1, 0);';

    private const EAGAIN = -11;
    private const EINVAL = -22;

    /** What it is => the call, and what it returns. */
    private const CALLS = [
        'close_range' => ['raw("close_range", 4000, 4001, 0)', 0],
        'close_range for later' => ['raw("close_range", 4000, 4001, 4)', 0],

        'FUTEX_WAIT' => ['raw("futex", $w, 0, 1, 0)', self::EAGAIN],
        'FUTEX_WAKE' => ['raw("futex", $w, 1, 1)', 0],
        'FUTEX_WAIT_BITSET' => ['raw("futex", $w, 9, 1, 0, 0, -1)', self::EAGAIN],
        'FUTEX_WAIT_BITSET by the clock' => ['raw("futex", $w, 9 | 256, 1, 0, 0, -1)', self::EAGAIN],
        'FUTEX_WAKE_BITSET' => ['raw("futex", $w, 10, 1, 0, 0, -1)', 0],
        'private FUTEX_WAIT' => ['raw("futex", $w, 0 | 128, 1, 0)', self::EAGAIN],
        'private FUTEX_WAKE' => ['raw("futex", $w, 1 | 128, 1)', 0],
        'private FUTEX_REQUEUE' => ['raw("futex", $w, 3 | 128, 0, 1, $w + 64)', 0],
        'private FUTEX_CMP_REQUEUE' => ['raw("futex", $w, 4 | 128, 0, 1, $w + 64, 0)', 0],
        'private FUTEX_WAKE_OP' => ['raw("futex", $w, 5 | 128, 1, 1, $w + 64, 0)', 0],
        'private FUTEX_LOCK_PI' => ['raw("futex", $w, 6 | 128, 0, 0)', 0],
        'private FUTEX_UNLOCK_PI' => ['[FFI::memcpy($b, pack("V", raw("gettid")), 4),'
            . ' raw("futex", $w, 7 | 128, 0, 0)][1]', 0],
        'private FUTEX_TRYLOCK_PI' => ['raw("futex", $w, 8 | 128, 0, 0)', 0],
        'private FUTEX_WAIT_BITSET by the clock' => ['raw("futex", $w, 9 | 128 | 256, 1, 0, 0, -1)', self::EAGAIN],
        'private FUTEX_WAKE_BITSET' => ['raw("futex", $w, 10 | 128, 1, 0, 0, -1)', 0],
        'private FUTEX_WAIT_REQUEUE_PI' => ['raw("futex", $w, 11 | 128, 0, 0, $w)', self::EINVAL],
        'private FUTEX_CMP_REQUEUE_PI' => ['raw("futex", $w, 12 | 128, 1, 0, $w, 0)', self::EINVAL],

        'preadv2' => ['raw(PREADV2, $f, $v, 1, 0, 0, 0)', 1],
        'pwritev2' => ['raw(PWRITEV2, $f, $v, 1, 0, 0, 0)', 1],
        'fadvise64 NORMAL' => ['raw(FADVISE64, $f, 0, 0, 0)', 0],
        'fadvise64 RANDOM' => ['raw(FADVISE64, $f, 0, 0, 1)', 0],
        'fadvise64 SEQUENTIAL' => ['raw(FADVISE64, $f, 0, 0, 2)', 0],
        'fadvise64 WILLNEED' => ['raw(FADVISE64, $f, 0, 0, 3)', 0],
        'fadvise64 NOREUSE' => ['raw(FADVISE64, $f, 0, 0, 5)', 0],
        'madvise WILLNEED' => ['raw(MADVISE, $m, 4096, 3)', 0],
        'madvise DONTNEED' => ['raw(MADVISE, $m, 4096, 4)', 0],
        'madvise FREE' => ['raw(MADVISE, $m, 4096, 8)', 0],
        'madvise DONTFORK' => ['raw(MADVISE, $m, 4096, 10)', 0],
        'madvise NOHUGEPAGE' => ['raw(MADVISE, $m, 4096, 15)', 0],
        'madvise DONTDUMP' => ['raw(MADVISE, $m, 4096, 16)', 0],

        'fcntl F_SETLK' => ['raw("fcntl", $f, 6, pack("vvx4PPVx4", 1, 0, 0, 1, 0))', 0],
        'flock' => ['raw("flock", $f, 6)', 0],

        'a hundred timers' => ['[$made = array_map(static fn (): int => raw("timer_create", 1, 0, $b), range(1, 100)),'
            . ' array_sum($made)][1]', 0],
        'a hundred signals that wait' => ['[raw("rt_sigprocmask", 0, pack("P", 1 << 39), 0, 8),'
            . ' array_sum(array_map(static fn (): int => raw("tgkill", raw("getpid"), raw("gettid"), 40),'
            . ' range(1, 100)))][1]', 0],
        'a lower limit for files' => ['raw("prlimit64", 0, 1, pack("PP", 1 << 20, 1 << 20), 0)', 0],
        'its limit for cores' => ['raw("prlimit64", 0, 4, 0, $b)', 0],
        'reading an attribute that is not there' => ['raw("getxattr", "data.txt", "user.none", 0, 0)', -61],
    ];

    /**
     * @dataProvider settings
     */
    public function testTheyAreAnsweredAsEver(string $start, Setting $setting): void
    {
        $host = new WarmHost($setting);
        if ($start === 'warm') {
            $host->evaluateWarm('return 1;');
        }
        $calls = '';
        foreach (self::CALLS as $name => [$call]) {
            $calls .= '$got[' . var_export($name, true) . '] = (static function () {' . self::BEFORE
                . " return $call; })();\n";
        }
        $numbers = [];
        foreach (self::NUMBERS as $name => $of) {
            $numbers[strtoupper($name)] = $of[php_uname('m') === 'x86_64' ? 0 : 1];
        }
        $host->ask(['start' => $start] + $host->request(strtr($calls, $numbers) . ' return json_encode($got);'));
        $result = $host->answered('result');

        self::assertSame('returned', $result['diagnostics']['outcome'], json_encode($result));
        self::assertSame($start, $result['diagnostics']['start']);
        self::assertSame(array_map(static fn (array $call): int => $call[1], self::CALLS), json_decode(
            $result['result']['value'],
            true,
        ));
    }

    public static function settings(): iterable
    {
        foreach (Setting::NATIVE as $setting) {
            foreach ($setting->isPossible() ? ['cold', 'warm'] : [] as $start) {
                yield "$start: $setting->value" => [$start, $setting];
            }
        }
    }
}
