<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Escape;

use Altair\Eval\Tests\Support\Escape\Setting;
use Altair\Eval\Tests\Support\Escape\WarmHost;
use PHPUnit\Framework\TestCase;

/**
 * A run blocks neither its host nor its template: whatever it does to itself or says over its channel, it ends at its
 * deadline, and the next one is as before.
 */
final class BlockedTemplateTest extends TestCase
{
    /** Milliseconds until the deadline of a run that is to meet it. */
    private const DEADLINE_MS = 300;

    /** Milliseconds that any other may take. */
    private const LONG_MS = 20000;

    /** Blocks and ignores what can be blocked and ignored, natively, too. */
    private const DEAF = 'for ($n = 1; $n <= 64; $n++) { raw("rt_sigaction", $n, pack("P4", 1, 0, 0, 0), 0, 8); }'
        . ' raw("rt_sigprocmask", 0, str_repeat("\xff", 8), 0, 8); ';

    private const THREADS = '$c = FFI::cdef("int pthread_create(unsigned long *, void *, void *, void *);'
        . ' void *dlsym(void *, const char *);"); $t = FFI::new("unsigned long"); $p = $c->dlsym(null, "pause");'
        . ' for ($i = 0; $i < 64; $i++) { $c->pthread_create(FFI::addr($t), null, $p, null); } ';

    /** Those that are to meet their deadline. */
    private const ENDLESS = [
        'a stop' => 'posix_kill(getmypid(), SIGSTOP); sleep(1000);',
        'a stop again and again' => 'while (true) { posix_kill(getmypid(), SIGSTOP); }',
        'a stop by the terminal\'s signals' => 'posix_kill(getmypid(), SIGTSTP); posix_kill(getmypid(), SIGTTIN);'
            . ' sleep(1000);',
        'a stop with all signals blocked' => self::DEAF . 'posix_kill(getmypid(), SIGSTOP); sleep(1000);',
        'deafness' => self::DEAF . 'while (true) { }',
        'deafness of 64 threads' => self::DEAF . self::THREADS . 'while (true) { sleep(1000); }',
        'no descriptors' => 'raw("close_range", 0, 4095, 0); sleep(1000);',
        'a main thread that ends' => self::THREADS . 'raw("exit", 0);',
    ];

    /** Those that end, somehow. */
    private const ENDING = [
        'a child that stops itself' => 'if (raw("clone", 17, 0, 0, 0, 0) === 0) { posix_kill(getmypid(), SIGSTOP); }',
        '64 threads' => self::THREADS,
        'no descriptors' => 'raw("close_range", 0, 4095, 0);',
        'no channel' => 'raw("close", 3);',
        'a channel that is shut down' => 'raw("shutdown", 3, 2);',
        'a full channel' => '$p = str_repeat("x", 30000);'
            . ' for ($i = 0; $i < 2000; $i++) { raw("sendto", 3, $p, 30000, 0x40, 0, 0); }',
        'empty packets' => 'for ($i = 0; $i < 2000; $i++) { raw("sendto", 3, "", 0, 0x40, 0, 0); }',
        'garbage on the channel' => 'for ($i = 0; $i < 500; $i++) { $g = random_bytes(1 + $i * 7 % 4000);'
            . ' raw("sendto", 3, $g, strlen($g), 0x40, 0, 0); }',
        'descriptors 0 to 3 in other places' => 'raw("dup3", 3, 1, 0); raw("dup3", 3, 2, 0); echo "x";',
        'the host\'s signal to stop' => 'posix_kill(getmypid(), 49);',
        'its end by a signal' => 'posix_kill(getmypid(), SIGKILL);',
        'its end by a fault' => 'FFI::string(FFI::cast("char *", 16), 1);',
        'its end without a report' => 'raw("exit_group", 0);',
    ];

    /** The packets with which a fork of a template hands something over before it runs a snippet. */
    private const PACKETS = [
        'altair-sandbox: the directory of my layer',
        'altair-sandbox: the listener of my filter',
    ];

    /** Sends `$packet` over the channel, with `$fds`. */
    private const SEND = <<<'PHP'
        $send = static function (string $packet, array $fds): int {
            $data = buf(strlen($packet));
            FFI::memcpy($data, $packet, strlen($packet));
            $vector = buf(16);
            FFI::memcpy($vector, iov($data, strlen($packet)), 16);
            $length = 16 + 4 * count($fds);
            $control = buf($length + 8);
            FFI::memcpy($control, pack('PVV', $length, 1, 1) . pack('V*', ...$fds), $length);
            $message = pack('P7', 0, 0, addr($vector), 1, addr($control), $fds === [] ? 0 : $length, 0);
            return raw('sendmsg', 3, $message, 0x40);
        };

        PHP;

    /** Descriptors to send with them. */
    private const DESCRIPTORS = [
        'nothing' => '$fds = [];',
        'a pipe' => 'posix_mkfifo(sys_get_temp_dir() . "/f", 0600);'
            . ' $fds = [raw("openat", -100, sys_get_temp_dir() . "/f", 04002, 0)];',
        'a directory that is elsewhere' => '$fds = [raw("openat", -100, "/usr/share/zoneinfo", 0x10000, 0)];',
        'the root' => '$fds = [raw("openat", -100, "/", 0x10000, 0)];',
        'a path to a directory' => '$fds = [raw("openat", -100, "/dev", 0x210000, 0)];',
        '250 descriptors' => '$fds = []; for ($i = 0; $i < 250; $i++) { $fds[] = raw("fcntl", 0, 0, 4); }',
        'the channel itself' => '$fds = [3, 3, 3];',
    ];

    /** @var array<string, WarmHost> by setting */
    private static array $hosts = [];

    public static function tearDownAfterClass(): void
    {
        self::$hosts = [];
        gc_collect_cycles();
    }

    /**
     * @dataProvider endless
     */
    public function testItMeetsItsDeadline(string $snippet, Setting $setting): void
    {
        $result = $this->between($snippet, $setting, self::DEADLINE_MS);

        self::assertSame(['timed_out', true], [$result['diagnostics']['outcome'], $result['timed_out']]);
    }

    /**
     * @dataProvider ending
     */
    public function testItEnds(string $snippet, Setting $setting): void
    {
        $result = $this->between($snippet, $setting, self::LONG_MS);

        self::assertNotSame('timed_out', $result['diagnostics']['outcome']);
        self::assertArrayNotHasKey('file_changes', $result['diagnostics']);
    }

    /**
     * @dataProvider forged
     */
    public function testWhatIsHandedOverByTheSnippetIsNotTaken(string $packet, string $fds, Setting $setting): void
    {
        $snippet = self::SEND . $fds . " for (\$i = 0; \$i < 30; \$i++) { \$send('$packet', \$fds); }"
            . ' file_put_contents("its-own", "x"); return "done";';
        $result = $this->between($snippet, $setting, self::LONG_MS);
        $honest = $this->between('file_put_contents("its-own", "x"); return "done";', $setting, self::LONG_MS);

        $said = static fn (array $result): array => [
            $result['result'],
            $result['stdout'],
            $result['diagnostics']['outcome'],
            // Where there is no layer, nothing is written.
            $result['diagnostics']['file_changes'] ?? [],
        ];
        self::assertSame($said($honest), $said($result));
    }

    public function testAStormOfRunsThatStopThemselvesHoldsNobodyUp(): void
    {
        $host = self::host(Setting::KernelAsUser);
        $before = $this->state($host);
        $requests = [];
        for ($i = 0; $i < 200; $i++) {
            $requests[] = $i % 2 === 0
                ? $host->request("return $i;", ['timeoutMs' => self::LONG_MS])
                : $host->request('posix_kill(getmypid(), SIGSTOP); sleep(1000);', ['timeoutMs' => self::DEADLINE_MS]);
        }
        $host->ask(['many' => $requests, 'atATime' => 25]);
        $outcomes = [];
        $host->answered('result', null, static function (array $answer) use (&$outcomes): void {
            $key = $answer['key'];
            $outcomes[$key] = [
                $answer['of']['diagnostics']['start'],
                $answer['of']['diagnostics']['outcome'],
                $answer['of']['result']['value'] ?? null,
            ];
        });
        ksort($outcomes);

        $expected = [];
        for ($i = 0; $i < 200; $i++) {
            $expected[] = $i % 2 === 0 ? ['warm', 'returned', $i] : ['warm', 'timed_out', null];
        }
        self::assertSame($expected, $outcomes);
        self::assertSame($before, $this->state($host));
    }

    public static function endless(): iterable
    {
        return self::inEachSetting(self::ENDLESS);
    }

    public static function ending(): iterable
    {
        return self::inEachSetting(self::ENDING);
    }

    public static function forged(): iterable
    {
        foreach (self::PACKETS as $packet) {
            foreach (self::DESCRIPTORS as $name => $fds) {
                foreach (self::inEachSetting([strrchr($packet, ' ') . " with $name" => $fds]) as $key => [, $setting]) {
                    yield $key => [$packet, $fds, $setting];
                }
            }
        }
    }

    /**
     * @param array<string, string> $snippets
     */
    private static function inEachSetting(array $snippets): iterable
    {
        foreach ($snippets as $name => $snippet) {
            foreach ([Setting::KernelAsRoot, Setting::KernelAsUser] as $setting) {
                if ($setting->isPossible()) {
                    yield "$name: $setting->value" => [$snippet, $setting];
                }
            }
        }
    }

    private static function host(Setting $setting): WarmHost
    {
        $host = self::$hosts[$setting->value] ??= new WarmHost($setting);
        $host->evaluateWarm('return "warm";');

        return $host;
    }

    /**
     * Runs it between two runs that must not know of it, on the template that is there.
     *
     * @return array<string, mixed> its answer
     */
    private function between(string $snippet, Setting $setting, int $timeoutMs): array
    {
        $host = self::host($setting);
        $before = $this->state($host);
        $result = $host->evaluate($snippet, ['timeoutMs' => $timeoutMs]);
        self::assertSame('warm', $result['diagnostics']['start'], json_encode($result));
        self::assertSame($before, $this->state($host));

        return $result;
    }

    /**
     * @return array<string, mixed> what a run finds, and what there is of the host
     */
    private function state(WarmHost $host): array
    {
        $result = $host->evaluate('return [scandir("."), scandir("/tmp"), file_get_contents("data.txt"), 6 * 7];');

        return [
            $result['diagnostics']['start'],
            $result['diagnostics']['outcome'],
            json_encode($result['result']),
            $host->processes(),
            $host->descriptors(),
        ];
    }
}
