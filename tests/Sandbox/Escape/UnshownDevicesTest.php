<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Sandbox\Escape;

use Altair\Eval\Tests\Support\Sandbox\Caller;
use Altair\Eval\Tests\Support\Sandbox\Household;
use Altair\Eval\Tests\Support\Sandbox\Levels;
use Altair\Eval\Tests\Support\Terminal;
use PHPUnit\Framework\TestCase;

/**
 * Devices, other processes and the kernel's own file systems: what a private root leaves out is left out at every
 * level.
 */
final class UnshownDevicesTest extends TestCase
{
    /** Tries to open each path, for reading and for writing; neither waits. */
    private const OPEN = <<<'PHP'
        foreach (array_slice($argv, 1) as $path) {
            foreach (["r", "r+"] as $mode) {
                if (@fopen($path, $mode . "n") !== false || is_dir($path) && @scandir($path) !== false) {
                    echo $path, "\n";
                    break;
                }
            }
        }
        PHP;

    /** What every program may expect. */
    private const COMMON = ['/dev/null', '/dev/zero', '/dev/full', '/dev/random', '/dev/urandom'];

    /**
     * @return iterable<string, array{Caller}>
     */
    public static function everyone(): iterable
    {
        return Caller::everyone();
    }

    /**
     * @dataProvider everyone
     */
    public function testNoLevelShowsMoreThanThePrivateRoot(Caller $caller): void
    {
        $household = new Household($caller);
        $candidates = self::candidates();
        foreach ([[], ['--read=/'], ['--read=/dev'], ['--network']] as $options) {
            $opened = [];
            foreach ([[], ['mounts'], ['mounts', 'copies'], ['mounts', 'listener']] as $without) {
                $command = [PHP_BINARY, '-n', '-r', self::OPEN, ...$candidates];
                $ran = $household->run([...$options, '--', ...$command], $without);
                self::assertSame(0, $ran->exitCode, $ran->errors);
                $opened[] = explode("\n", trim($ran->output));
            }
            [$inRoot, $noMounts] = $opened;
            self::assertSame([], array_diff(self::COMMON, $inRoot));
            self::assertSame([], array_diff(self::COMMON, $noMounts));
            $devices = static fn (array $paths): array => array_values(array_filter(
                $paths,
                static fn (string $path): bool => !is_dir($path) && str_starts_with($path, '/dev/'),
            ));
            self::assertSame([], array_diff($devices($inRoot), self::COMMON), 'in a private root');
            foreach ($opened as $level => $paths) {
                self::assertSame([], array_diff($paths, $inRoot, ['']), "level $level: " . implode(' ', $options));
            }
            self::assertSame([], preg_grep('~^/proc/[1-9]~', $inRoot), 'other processes');
        }
        $unheld = $household->unheld([PHP_BINARY, '-n', '-r', self::OPEN, ...$candidates])->output;
        self::assertMatchesRegularExpression('~^/proc/\d+/cmdline$~m', $unheld);
        self::assertStringContainsString("/sys\n", $unheld);
    }

    /**
     * The access mode 3, for neither reading nor writing, needs no right of Landlock's (open(2)).
     *
     * @param list<string> $without
     *
     * @dataProvider everyoneWithAndWithoutMounts
     */
    public function testNoDeviceIsOpenedForRequestsAlone(Caller $caller, array $without): void
    {
        $household = new Household($caller);
        $open = 'for (@ARGV) { print "$_\n" if sysopen(my $device, $_, 3) }';
        $command = ['perl', '-e', $open, '--', '/dev/ptmx', '/dev/full', '/dev/null'];
        foreach ([[], ['--read=/']] as $options) {
            $ran = $household->run([...$options, '--', ...$command], $without);
            self::assertSame([0, ''], [$ran->exitCode, $ran->output], $ran->errors);
        }
        self::assertStringContainsString("/dev/ptmx\n", $household->unheld($command)->output);
    }

    /**
     * @return iterable<string, array{Caller, list<string>}>
     */
    public static function everyoneWithAndWithoutMounts(): iterable
    {
        return Levels::both();
    }

    /**
     * @return iterable<string, array{list<string>}>
     */
    public static function withAndWithoutMounts(): iterable
    {
        return ['with mounts' => [[]], 'without mounts' => [['mounts']]];
    }

    /**
     * Somebody types at a terminal while a command runs at another.
     *
     * @param list<string> $without
     *
     * @dataProvider withAndWithoutMounts
     */
    public function testWhatIsTypedAtAnotherTerminalIsNotRead(array $without): void
    {
        $household = new Household(Caller::Root);
        $typist = new Terminal(['sh', '-c', 'tty > tty; echo at; exec cat'], $household->project, 24, 80);
        $typist->waitFor("at\r\n");
        $terminal = trim((string) file_get_contents("$household->project/tty"));
        self::assertStringStartsWith('/dev/pts/', $terminal);

        $read = 'for t in "$@"; do if exec 3<"$t"; then echo "opened $t"; fi; done 2>/dev/null';
        foreach ([[], ['--read=/'], ['--read=/dev'], ["--read=$terminal"]] as $options) {
            $ran = $household->run([...$options, '--', 'sh', '-c', $read, 'sh', $terminal, '/dev/tty'], $without);
            self::assertSame('', $ran->output, $ran->errors);
        }
        self::assertSame("opened $terminal\n", $household->unheld(['sh', '-c', $read, 'sh', $terminal])->output);
        $typist->type("\x04");
        $typist->end();
    }

    /**
     * @return list<string> what there is, and other processes'
     */
    private static function candidates(): array
    {
        $own = (string) getmypid();
        $of = static fn (string $pid): array => [
            "/proc/$pid/cmdline", "/proc/$pid/environ", "/proc/$pid/status", "/proc/$pid/maps", "/proc/$pid/fd",
            "/proc/$pid/root/etc/passwd",
        ];

        return [
            ...self::COMMON,
            ...array_diff(glob('/dev/*') ?: [], ['/dev/fd', '/dev/stdin', '/dev/stdout', '/dev/stderr']),
            ...glob('/dev/{net,pts,mapper,disk,input,shm,mqueue,vfio}/*', GLOB_BRACE) ?: [],
            ...$of($own), ...$of('1'), '/proc/net/tcp', '/proc/net/unix', '/proc/self/net/tcp', '/proc/self/task',
            '/proc/thread-self/net/tcp', '/sys', '/sys/kernel', '/sys/fs/cgroup', '/sys/class/net', '/run',
            ...glob('/run/*') ?: [], '/var/run', '/proc', '/var', '/var/log', '/var/lib', '/srv', '/mnt', '/media',
            '/home', '/boot', '/root',
        ];
    }
}
