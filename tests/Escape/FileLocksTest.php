<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Escape;

use Altair\Eval\Tests\Support\Escape\Setting;
use Altair\Eval\Tests\Support\Escape\Syscalls;
use Altair\Eval\Tests\Support\Escape\WarmHost;
use PHPUnit\Framework\TestCase;

/**
 * A run does not fill the kernel with locks on bytes of files, which no limit of the process counts: there were 1.8
 * million after 12 seconds, each of 200 bytes of the kernel's memory. It is ended when it has far more than any program
 * takes.
 */
final class FileLocksTest extends TestCase
{
    /** How it is named why a run was ended. */
    private const NAMED = 'file locks';

    /** What the attack goes for: more than a run can come to between two looks at it, and little to the machine. */
    private const GREED = 150000;

    /** Locks of the machine's that are counted at most. */
    private const SEEN = 20000;

    /** Milliseconds until its deadline, for which it holds what it has. */
    private const TIMEOUT_MS = 3000;

    /**
     * Locks single bytes of some files, with one between each and the next: the kernel looks through all of a file's.
     */
    private const ATTACK = <<<'PHP'
        $files = [];
        for ($i = 0; $i < 200; $i++) {
            $files[] = raw('openat', -100, sys_get_temp_dir() . "/locked$i", 0102, 0600);
        }
        $lock = buf(32);
        FFI::memcpy($lock, pack('vvx4PPVx4', %d, 0, 0, 1, 0), 32);
        [$call, $words] = [libc(), FFI::cast('long *', FFI::addr($lock))];
        foreach ($files as $f) {
            for ($i = 0; $i < %d / 200; $i++) {
                $words[1] = 2 * $i;
                $call->syscall(FCNTL, $f, %d, addr($lock), 0, 0, 0);
            }
        }
        echo 'It has them all.';
        while (true) {
            sleep(1000);
        }
        PHP;

    /** fcntl(2): the process's own. */
    private const F_SETLK = 6;

    /** Those of the open file, which are listed as nobody's, so that nobody could count them. */
    private const F_OFD_SETLK = 37;

    /** To write, to read (F_WRLCK, F_RDLCK). */
    private const KINDS = ['to write' => 1, 'to read' => 0];

    /** @var array<string, WarmHost> by setting */
    private static array $hosts = [];

    public static function tearDownAfterClass(): void
    {
        self::$hosts = [];
        gc_collect_cycles();
    }

    /**
     * @dataProvider attacks
     */
    public function testARunWithFarTooManyIsEnded(string $start, Setting $setting, int $kind): void
    {
        $host = self::$hosts[$setting->value] ??= new WarmHost($setting);
        $host->evaluateWarm('return 1;');
        $before = self::locks();
        $snippet = sprintf(self::ATTACK, $kind, self::GREED, self::F_SETLK);
        $snippet = strtr($snippet, ['FCNTL' => Syscalls::numbers()['fcntl']]);
        $host->ask(['start' => $start] + $host->request($snippet, ['timeoutMs' => self::TIMEOUT_MS]));
        $held = 0;
        $result = $host->answered('result', null, static function (array $answer) use ($before, &$held): void {
            if (isset($answer['out'])) {
                $held = self::locks() - $before;
            }
        });

        self::assertSame('', $result['stdout'], "It has come to hold them, $held at least.");
        self::assertSame(['signalled', $start], [$result['diagnostics']['outcome'], $result['diagnostics']['start']]);
        self::assertStringContainsString(self::NAMED, json_encode($result['diagnostics']['blocked'] ?? []));
        self::assertLessThan(1000, self::locks() - $before, 'They are gone with it.');
    }

    /**
     * @dataProvider starts
     */
    public function testLocksThatProgramsTakeAreNoReasonToEndIt(string $start, Setting $setting): void
    {
        $host = self::$hosts[$setting->value] ??= new WarmHost($setting);
        $snippet = <<<'PHP'
            $taken = [];
            $d = sys_get_temp_dir();
            for ($i = 0; $i < 100; $i++) {
                $taken[] = $f[] = fopen("$d/f$i", 'w');
                $taken[] = flock(end($f), LOCK_EX);
            }
            $db = new PDO("sqlite:$d/data.db");
            $db->exec('PRAGMA journal_mode = WAL; CREATE TABLE t (v)');
            for ($i = 0; $i < 200; $i++) {
                $db->exec("BEGIN IMMEDIATE; INSERT INTO t VALUES ($i); COMMIT");
            }
            $file = raw('openat', -100, "$d/some", 0102, 0600);
            for ($i = 0; $i < 500; $i++) {
                $taken[] = raw('fcntl', $file, 6, pack('vvx4PPVx4', 1, 0, 2 * $i, 1, 0)) === 0;
            }
            usleep(250000);
            return [count(array_filter($taken)), (int) $db->query('SELECT count(*) FROM t')->fetchColumn()];
            PHP;
        if ($start === 'warm') {
            $host->evaluateWarm('return 1;');
        }
        $host->ask(['start' => $start] + $host->request($snippet));
        $result = $host->answered('result');

        self::assertSame('returned', $result['diagnostics']['outcome'], json_encode($result));
        self::assertSame([700, 200], array_column($result['result']['value'], 'value'));
    }

    /**
     * @dataProvider starts
     */
    public function testThoseThatAreListedAsNobodysAreRefused(string $start, Setting $setting): void
    {
        $host = self::$hosts[$setting->value] ??= new WarmHost($setting);
        $snippet = '$f = raw("openat", -100, sys_get_temp_dir() . "/locked", 0102, 0600);'
            . ' return raw("fcntl", $f, ' . self::F_OFD_SETLK . ', pack("vvx4PPVx4", 1, 0, 0, 1, 0));';
        if ($start === 'warm') {
            $host->evaluateWarm('return 1;');
        }
        $host->ask(['start' => $start] + $host->request($snippet));
        $result = $host->answered('result');

        self::assertSame(-1, $result['result']['value'], json_encode($result));
    }

    public static function attacks(): iterable
    {
        foreach (self::starts() as $name => $start) {
            foreach (self::KINDS as $kind => $type) {
                yield "$kind: $name" => [...$start, $type];
            }
        }
    }

    public static function starts(): iterable
    {
        foreach ([Setting::KernelAsRoot, Setting::KernelAsUser] as $setting) {
            foreach ($setting->isPossible() ? ['cold', 'warm'] : [] as $start) {
                yield "$start: $setting->value" => [$start, $setting];
            }
        }
    }

    /**
     * How many the machine has, as far as they are counted here: the kernel begins anew for each page of its list, so
     * that the whole of it would take it many seconds.
     */
    private static function locks(): int
    {
        $file = fopen('/proc/locks', 'r');
        for ($count = 0; $count < self::SEEN && fgets($file) !== false; $count++) {
        }
        fclose($file);

        return $count;
    }
}
