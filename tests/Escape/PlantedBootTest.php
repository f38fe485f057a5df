<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Escape;

use Altair\Eval\Tests\Support\Escape\Bystander;
use Altair\Eval\Tests\Support\Escape\EscapedProgram;
use Altair\Eval\Tests\Support\Escape\Place;
use Altair\Eval\Tests\Support\Escape\Prelude;
use Altair\Eval\Tests\Support\Escape\Setting;
use Altair\Eval\Tests\Support\Escape\WarmHost;
use Altair\Eval\Tests\Support\Skip;
use Altair\Eval\Tests\Support\TemporaryApplication;
use PHPUnit\Framework\TestCase;

/**
 * A run that may write may change the application's code. The next run is of the new code, and what was planted there
 * boots behind a template's first filter: it does no more than in a process of its own.
 */
final class PlantedBootTest extends TestCase
{
    /** A container, and what it was made with. */
    private const CONTAINER = '<?php return new class { public function get(string $id): mixed { return %s; }'
        . ' public function has(string $id): bool { return true; } };';

    /** Native calls that the final filter refuses, too: name => what boot's code does. */
    private const CALLS = [
        'mount' => 'raw("mount", "x", "/tmp", "tmpfs", 0, 0)',
        'mount of nothing' => 'raw("mount", 1, 1, 1, 0, 1)',
        'umount2 of the project' => 'raw("umount2", $root, 2)',
        'umount2 of what is covered' => 'raw("umount2", "/.altair-backstage", 2)',
        'unshare' => 'raw("unshare", 0x20000)',
        'unshare of a user namespace' => 'raw("unshare", 0x10000000)',
        'setns' => 'raw("setns", 0, 0)',
        'pivot_root' => 'raw("pivot_root", 1, 1)',
        'chroot' => 'raw("chroot", "/")',
        'capset' => 'raw("capset", pack("VV", 0x20080522, 0), pack("V6", 0x8020001f, 0x8020001f, 0, 0, 0, 0))',
        'capset to nothing' => 'raw("capset", pack("VV", 0x20080522, 0), pack("V6", 0, 0, 0, 0, 0, 0))',
        'seccomp' => 'raw("seccomp", 1, 0, 0)',
        'a listener of its own' => 'raw("seccomp", 1, 8, 0)',
        'setsid' => 'raw("setsid")',
        'prctl' => 'raw("prctl", 1, 0)',
        'clone as fork does' => '$child("clone", 17, 0, 0, 0, 0)',
        'clone as templates do' => '$child("clone", 0x1209000, 0, $b, $b, $b)',
        'clone in a namespace' => '$child("clone", 0x10000011, 0, 0, 0, 0)',
        'execve' => 'raw("execve", "$root/escaped", $l, 0)',
        'execveat' => 'raw("execveat", -100, "$root/escaped", $l, 0, 0)',
        'kill of the host' => 'raw("kill", $host, 23)',
        'kill of a bystander' => 'raw("kill", $bystander, 23)',
        'kill of the keeper' => 'raw("kill", raw("getppid"), 0)',
        'kill of everybody' => 'raw("kill", -1, 0)',
        'tkill' => 'raw("tkill", $bystander, 23)',
        'rt_sigqueueinfo' =>
            'raw("rt_sigqueueinfo", $bystander, 23, pack("V4", 23, 0, 0xffffffff, 0) . str_repeat("\0", 112))',
        'ptrace' => 'raw("ptrace", 0x4206, $bystander, 0, 0)',
        'process_vm_readv' => 'raw("process_vm_readv", $bystander, $l, 1, $l, 1, 0)',
        'prlimit' => 'raw("prlimit64", $bystander, 12, pack("PP", 4096, 4096), 0)',
        'setpriority' => 'raw("setpriority", 0, $bystander, 15)',
        'an Internet socket' => 'raw("socket", 2, 1, 0)',
        'a Unix socket' => 'raw("socket", 1, 1, 0)',
        'bpf' => 'raw("bpf", 0, 0, 0)',
        'keyctl' => 'raw("keyctl", 0, -3, 0)',
        'open_tree' => 'raw("open_tree", -100, "/", 1)',
        'perf_event_open' => 'raw("perf_event_open", $l, 0, -1, -1, 0)',
    ];

    /** What is not there for boot. */
    private const ABSENT = [
        'what records its calls, to turn it off' => 'raw("prctl", 59, 0, 0, 0, 0)',
        'a file outside' => 'raw("openat", -100, $outside, 0, 0)',
        'a file outside, to write' => 'raw("openat", -100, $outside, 2, 0)',
        'a new file outside' => 'raw("openat", -100, dirname($outside) . "/new", 0102, 0600)',
        'the memory of a bystander' => 'raw("openat", -100, "/proc/$bystander/mem", 0, 0)',
        'its own process in /proc' => 'raw("openat", -100, "/proc/self/mem", 2, 0)',
        'the root of the host' => 'raw("openat", -100, "/proc/$host/root", 0x10000, 0)',
        'what is behind the cover' => 'raw("openat", -100, "/.altair-backstage/.lower0", 0x10000, 0)',
        'something new behind the cover' => 'raw("openat", -100, "/.altair-backstage/new", 0102, 0600)',
        'something new in the root' => 'raw("openat", -100, "/new", 0102, 0600)',
        'the tracing of the kernel' => 'raw("openat", -100, "/sys/kernel/tracing", 0x10000, 0)',
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
    public function testTheNextRunIsOfTheCodeThatARunHasWritten(Setting $setting): void
    {
        $host = $this->host($setting);
        $write = ['allowWrites' => true];
        if (!Place::hasMounts()) {
            $this->expectExceptionMessage(Place::NO_WRITES);
        }
        foreach ([$write, []] as $reading) {
            for ($round = 1; $round <= 3; $round++) {
                $said = uniqid('word-');
                $before = $host->evaluateWarm('return container()->get("x");', $reading);
                $code = var_export(sprintf(self::CONTAINER, "'$said'"), true);
                $host->evaluate("file_put_contents('config/container.php', $code);", $write);
                $next = $host->evaluate('return container()->get("x");', $reading);

                self::assertSame([$said, 'first'], [$next['result']['value'], $next['diagnostics']['start']]);
                self::assertNotSame($said, $before['result']['value']);
            }
        }
    }

    /**
     * @dataProvider settings
     */
    public function testWhatWasPlantedIsBehindTheFirstFilterWhileItBoots(Setting $setting): void
    {
        $host = $this->host($setting);
        $outside = new TemporaryApplication(['secret.txt' => 'outside']);
        chmod($outside->path('secret.txt'), 0666);
        chmod($outside->root, 0777);
        $bystander = new Bystander($setting, 'secret');
        $hostBefore = Bystander::fingerprint($host->pid());
        $planted = $this->attack($host, $bystander, $outside->path('secret.txt'));

        if (Place::hasMounts()) {
            $write = 'file_put_contents("config/container.php", ' . var_export($planted, true) . ');';
            $host->evaluate($write, ['allowWrites' => true]);
        } else {
            file_put_contents("$host->project/config/container.php", $planted);
        }
        $printed = '';
        $result = $host->evaluate('return 1;', whenPrinted: static function (string $text) use (&$printed): void {
            $printed .= $text;
        });

        // Where boot tries to start a process, what has booted is no template: it boots anew for the run.
        self::assertSame('booted', $result['diagnostics']['start'], json_encode($result));
        $boots = preg_grep('/^\{/', explode("\n", $printed));
        self::assertCount(2, $boots, $printed);
        foreach ($boots as $boot) {
            $got = json_decode($boot, true);
            self::assertSame([], self::letThrough($got));
            self::assertSame([], array_filter(array_intersect_key($got, self::ABSENT), static fn ($got) => $got >= 0));
        }
        self::assertSame($bystander->fingerprint, $bystander->seen());
        self::assertSame($hostBefore, Bystander::fingerprint($host->pid()));
        self::assertSame(['secret.txt', 'vendor', 'vendor/autoload.php'], $outside->tree());
        self::assertSame('outside', file_get_contents($outside->path('secret.txt')));
        self::assertNotContains('escaped', $host->processes());
    }

    /**
     * What is refused to it above does something where nothing refuses it: the same code in an unsafe run.
     */
    public function testInAnUnsafeRunItIsNotRefused(): void
    {
        $host = $this->host(Setting::KernelAsUser);
        $outside = new TemporaryApplication(['secret.txt' => 'outside']);
        chmod($outside->path('secret.txt'), 0666);
        chmod($outside->root, 0777);
        $bystander = new Bystander(Setting::KernelAsUser, 'secret');
        $attack = $this->attack($host, $bystander, $outside->path('secret.txt'), ['execve', 'execveat']);
        file_put_contents("$host->project/config/container.php", $attack);

        $result = $host->evaluate('return container()->get("x");', ['unsafe' => true]);
        $got = json_decode(trim($result['stdout']), true);

        // A container's profile refuses some of them to everybody.
        $most = Skip::RefusedToAll->holds() ? 3 : 2;
        self::assertGreaterThan(count(self::CALLS) / $most, count(self::letThrough($got)));
        self::assertGreaterThanOrEqual(0, $got['a file outside']);
        self::assertNotSame($bystander->fingerprint, $bystander->seen());
    }

    public static function settings(): iterable
    {
        foreach (Setting::NATIVE as $setting) {
            if ($setting->isPossible()) {
                yield $setting->value => [$setting];
            }
        }
    }

    private function host(Setting $setting): WarmHost
    {
        return self::$hosts[$setting->value] ??= new WarmHost($setting, [
            'config/container.php' => sprintf(self::CONTAINER, '"at first"'),
            'escaped' => EscapedProgram::bytes(),
        ]);
    }

    /**
     * A container that prints what the calls returned that were made when it was made.
     *
     * @param list<string> $without calls that are not made
     */
    private function attack(WarmHost $host, Bystander $bystander, string $outside, array $without = []): string
    {
        $calls = '';
        foreach (array_diff_key(self::CALLS + self::ABSENT, array_flip($without)) as $name => $call) {
            $calls .= var_export($name, true) . " => $call, ";
        }
        $values = ['host' => $host->pid(), 'bystander' => $bystander->pid, 'root' => $host->project];

        // Snippets have functions of these names, too.
        return "<?php\nnamespace Planted;\nuse FFI;\nuse LogicException;\n" . Prelude::functions()
            . 'extract(' . var_export($values + ['outside' => $outside], true) . ');'
            . ' $b = buf(64); $l = buf(16); FFI::memcpy($l, iov($b, 8), 16);'
            . ' $child = static function (mixed ...$call): int { if (($pid = raw(...$call)) === 0) {'
            . ' raw("exit_group", 0); } return $pid; };'
            . " echo json_encode([$calls]), \"\\n\";" . sprintf(substr(self::CONTAINER, strlen('<?php')), 1);
    }

    /**
     * @param array<string, int> $got
     * @return array<string, int> calls that were answered otherwise than by EPERM, or ENOSYS
     */
    private static function letThrough(array $got): array
    {
        return array_filter(
            array_intersect_key($got, self::CALLS),
            static fn (int $result): bool => !in_array($result, [-1, -38], true),
        );
    }
}
