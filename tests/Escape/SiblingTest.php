<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Escape;

use Altair\Eval\Tests\Support\Escape\Bystander;
use Altair\Eval\Tests\Support\Escape\Place;
use Altair\Eval\Tests\Support\Escape\Setting;
use Altair\Eval\Tests\Support\Escape\Snapshot;
use Altair\Eval\Tests\Support\Escape\WarmHost;
use Altair\Eval\Tests\Support\Spare;
use PHPUnit\Framework\TestCase;

/**
 * Runs of one template know nothing of each other, and do not need it once they are there.
 */
final class SiblingTest extends TestCase
{
    /** What it runs until it is let go on: signals that reach it stay pending. Gives what has. */
    private const SIBLING = 'pcntl_sigprocmask(SIG_BLOCK, [SIGURG]); $shared = str_repeat("sibling", 9);'
        . ' $lock = fopen("data.txt", "r"); flock($lock, LOCK_EX); file_put_contents("mine", "sibling");'
        . ' file_put_contents(sys_get_temp_dir() . "/mine", "sibling"); posix_kill(getmypid(), SIGSTOP);'
        . ' return [pcntl_sigtimedwait([SIGURG], $i, 0, 1), file_get_contents("mine"), file_exists("other"),'
        . ' file_get_contents(sys_get_temp_dir() . "/mine"), $shared];';

    /** Native calls on the process `$p`, a name each. */
    private const CALLS = [
        'kill' => 'raw("kill", $p, 23)',
        'tkill' => 'raw("tkill", $p, 23)',
        'tgkill' => 'raw("tgkill", $p, $p, 23)',
        'rt_sigqueueinfo' =>
            'raw("rt_sigqueueinfo", $p, 23, pack("V4", 23, 0, 0xffffffff, 0) . str_repeat("\0", 112))',
        'kill of its group' => 'raw("kill", -$p, 23)',
        'kill of everybody\'s existence' => 'raw("kill", -1, 0)',
        'ptrace seize' => 'raw("ptrace", 0x4206, $p, 0, 0)',
        'process_vm_readv' => 'raw("process_vm_readv", $p, $l, 1, $l, 1, 0)',
        'process_vm_writev' => 'raw("process_vm_writev", $p, $l, 1, $l, 1, 0)',
        'prlimit' => 'raw("prlimit64", $p, 12, pack("PP", 4096, 4096), 0)',
        'setpriority' => 'raw("setpriority", 0, $p, 15)',
        'sched_setaffinity' => 'raw("sched_setaffinity", $p, 8, pack("P", 1))',
        'setpgid' => 'raw("setpgid", $p, $p)',
        'kcmp' => 'raw("kcmp", $p, $p, 0, 0, 0)',
    ];

    /** Of which there may be none here, or which this kernel may not have: what matters is that it is no success. */
    private const TAKING = [
        'pidfd_open' => 'raw("pidfd_open", $p, 0)',
        'its memory' => 'raw("openat", -100, "/proc/$p/mem", 2, 0)',
        'its descriptors' => 'raw("openat", -100, "/proc/$p/fd", 0x10000, 0)',
        'its root' => 'raw("openat", -100, "/proc/$p/root", 0x10000, 0)',
        'its file' => 'raw("openat", -100, "mine", 0, 0)',
        'its temporary file' => 'raw("openat", -100, sys_get_temp_dir() . "/mine", 0, 0)',
    ];

    /** @var array<string, WarmHost> by setting */
    private static array $hosts = [];

    public static function tearDownAfterClass(): void
    {
        self::$hosts = [];
        gc_collect_cycles();
    }

    /**
     * @dataProvider settings
     */
    public function testARunReachesNoSibling(Setting $setting): void
    {
        [$sibling, $attack, $before, $after] = $this->sideBySide($setting);

        $refused = array_fill_keys(array_keys(self::CALLS), -1);
        self::assertSame($refused, array_intersect_key($attack, self::CALLS));
        self::assertSame([], array_filter(array_intersect_key($attack, self::TAKING), static fn ($got) => $got >= 0));
        self::assertSame($before, $after);
        self::assertSame(
            [-1, Place::hasMounts() ? 'sibling' : false, false, 'sibling', str_repeat('sibling', 9)],
            $sibling,
        );
    }

    /**
     * What is refused above does something where nothing refuses it.
     */
    public function testAnUnsafeRunReachesThem(): void
    {
        [$sibling, $attack, $before, $after] = $this->sideBySide(Setting::KernelAsUser, ['unsafe' => true]);

        self::assertSame(0, $attack['kill']);
        self::assertGreaterThanOrEqual(0, $attack['its descriptors'] ?? 0);
        self::assertNotSame($before, $after);
        self::assertSame(SIGURG, $sibling[0]);
        $reaching = array_filter(array_intersect_key($attack, self::CALLS), static fn (int $got): bool => $got !== -1);
        self::assertGreaterThan(count(self::CALLS) / 2, count($reaching), json_encode($attack));
    }

    /**
     * @dataProvider settings
     */
    public function testARunGoesOnWithoutItsTemplateAndTheNextHasANewOne(Setting $setting): void
    {
        $host = new WarmHost($setting);
        $host->evaluateWarm('return 1;');
        $killed = [];
        $run = $host->evaluate(
            'posix_kill(getmypid(), SIGSTOP); file_put_contents("new", "x"); return [file_get_contents("new"), 6 * 7];',
            whileStopped: static function () use ($host, &$killed): void {
                foreach ($host->templates() as $template) {
                    // Forks have the same parent, and none but the one that stands still.
                    if ($template->pid !== $host->stopped()?->pid) {
                        posix_kill($template->pid, SIGKILL);
                        $killed[] = $template->pid;
                    }
                }
                // It would be the next run.
                foreach (Spare::of($host->pid()) as $spare) {
                    posix_kill($spare, SIGKILL);
                }
            },
        );
        $next = $host->evaluate('return getmypid() !== 0;');
        $last = $host->evaluateWarm('return 3;');

        self::assertCount(1, $killed);
        self::assertSame(['warm', 'returned'], [$run['diagnostics']['start'], $run['diagnostics']['outcome']]);
        self::assertSame([Place::hasMounts() ? 'x' : false, 42], self::plain($run['result']));
        self::assertSame(['first', true], [$next['diagnostics']['start'], $next['result']['value']]);
        self::assertSame(3, $last['result']['value']);
        self::assertNotContains($host->templates()[0]->pid, $killed);
        self::assertCount(1, $host->templates());
    }

    public static function settings(): iterable
    {
        foreach (Setting::NATIVE as $setting) {
            if ($setting->isPossible()) {
                yield $setting->value => [$setting];
            }
        }
    }

    /**
     * Makes the calls in a run while a sibling stands still.
     *
     * @param array<string, mixed> $options of the run that attacks
     * @return array{list<mixed>, array<string, int>, string, string} what the sibling gives, what the calls returned,
     *     and what was seen of the sibling before and after them
     */
    private function sideBySide(Setting $setting, array $options = []): array
    {
        $host = self::$hosts[$setting->value] ??= new WarmHost($setting);
        $host->evaluateWarm('return 1;');
        $host->ask(['many' => [$host->request(self::SIBLING)], 'more' => 1, 'atATime' => 2]);
        $sibling = $this->stopped($host);
        $before = Bystander::fingerprint($sibling->pid);
        $calls = '';
        foreach (self::CALLS + self::TAKING as $name => $call) {
            $calls .= var_export($name, true) . " => $call, ";
        }
        $host->ask($host->request(
            "\$p = $sibling->pid; \$b = buf(64); \$l = buf(16); FFI::memcpy(\$l, iov(\$b, 8), 16);"
                . " echo json_encode([$calls]); file_put_contents('other', 'x'); file_put_contents('mine', 'x');"
                . ' file_put_contents(sys_get_temp_dir() . "/mine", "x");',
            $options,
        ));
        $attack = $host->answered('key', null) === 1 ? $host->lastAnswer()['of'] : [];
        $after = Bystander::fingerprint($sibling->pid);
        $sibling->release();
        $of = [];
        $host->answered('result', null, static function (array $answer) use (&$of): void {
            $of = $answer['of'];
        });
        self::assertSame('warm', $of['diagnostics']['start']);
        self::assertSame($options === [] ? 'warm' : 'cold', $attack['diagnostics']['start'], json_encode($attack));
        self::assertSame('returned', $of['diagnostics']['outcome'], json_encode($of));

        return [self::plain($of['result']), json_decode($attack['stdout'], true), $before, $after];
    }

    private function stopped(WarmHost $host): Snapshot
    {
        $until = hrtime(true) + 20e9;
        while (($snapshot = $host->stopped()) === null) {
            self::assertLessThan($until, hrtime(true), 'It does not stop.');
            usleep(500);
        }

        return $snapshot;
    }

    /**
     * @param array<string, mixed> $value as encoded
     */
    private static function plain(array $value): mixed
    {
        return is_array($value['value'] ?? null) ? array_map(self::plain(...), $value['value']) : $value['value'];
    }
}
