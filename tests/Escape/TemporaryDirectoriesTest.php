<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Escape;

use Altair\Eval\Tests\Support\Escape\Place;
use Altair\Eval\Tests\Support\Escape\Setting;
use Altair\Eval\Tests\Support\Escape\Start;
use Altair\Eval\Tests\Support\Escape\WrappedHost;
use Altair\Eval\Tests\Support\Spare;
use Altair\Eval\Tests\Support\TemporaryApplication;
use Altair\Eval\Tests\Support\Without;
use PHPUnit\Framework\TestCase;

/**
 * Where nothing can be mounted, a run's directory for temporary files is one of the host's. Whatever a run makes of it,
 * the host removes it, and nothing else.
 */
final class TemporaryDirectoriesTest extends TestCase
{
    /** Native calls in the directory `$d`, whose real path is `$real`. `$victim` is a directory of the same user's. */
    private const ATTACKS = [
        'a deep tree' => 'for ($i = 0; $i < 1000; $i++) { raw("mkdirat", -100, "d", 0700); raw("chdir", "d");'
            . ' $i % 100 > 0 || raw("close", raw("openat", -100, "f", 0101, 0600)); }',
        'directories that nobody may enter' => 'for ($i = 0; $i < 50; $i++) { raw("mkdirat", -100, "d", 0700);'
            . ' raw("mkdirat", -100, "d/e", 0); raw("mkdirat", -100, "d/e$i", 0300); raw("chdir", "d/e$i"); }'
            . ' raw("mkdirat", -100, "$d/none", 0);',
        'names that the removal gives' => 'for ($i = 0; $i < 300; $i++) {'
            . ' raw("mkdirat", -100, ".altair-removed-$i", 0700);'
            . ' raw("mkdirat", -100, ".altair-removed-$i/a", 0700);'
            . ' raw("mkdirat", -100, ".altair-removed-$i/a/b", 0); }',
        'many files' => 'for ($i = 0; $i < 5000; $i++) { raw("close", raw("openat", -100, "f$i", 0101, 0)); }',
        'pipes' => 'for ($i = 0; $i < 50; $i++) { raw("mknodat", -100, "p$i", 010600, 0); }',
        'links' => 'raw("symlinkat", $victim, -100, "$d/link");'
            . ' raw("linkat", -100, "$victim/kept", -100, "$d/hard", 0);'
            . ' raw("linkat", -100, "data.txt", -100, "$d/hard2", 0);',
        'another place' => 'raw("renameat2", -100, $real, -100, "$real-moved", 0);'
            . ' raw("renameat2", -100, $real, -100, "$victim/moved", 0);'
            . ' raw("renameat2", -100, $victim, -100, "$d/victim", 0);'
            . ' raw("renameat2", -100, $victim, -100, $real, 2);',
        'another descriptor' => '$v = raw("openat", -100, $victim, 0x200000, 0); raw("dup3", $v, 4, 0);'
            . ' raw("openat", -100, "$d/new", 0101, 0600);',
        'a mode' => 'raw("mkdirat", -100, "kept", 0700);'
            . ' raw("fchmodat", -100, $real, 0); raw("fchmodat", -100, $d, 0);',
        'nothing' => 'raw("unlinkat", -100, $real, 0x200); raw("unlinkat", -100, dirname($real), 0x200);',
        'its end by a signal' => 'raw("openat", -100, "f", 0101, 0600); posix_kill(getmypid(), SIGKILL);',
    ];

    /** Seconds within which a fork is made. */
    private const PATIENCE = 10;

    /** @var array<string, WrappedHost> by setting */
    private static array $hosts = [];

    public static function tearDownAfterClass(): void
    {
        self::$hosts = [];
        gc_collect_cycles();
    }

    /**
     * @dataProvider attacks
     */
    public function testEverythingInItIsRemovedAndNothingElse(string $attack, Setting $setting, Start $start): void
    {
        $host = self::host($setting);
        $victim = $this->victim($setting);
        $before = $this->before($host, $start);
        $result = $host->evaluate($this->snippet($attack, $victim), $start);

        self::assertSame($start->value, $result['diagnostics']['start'], json_encode($result));
        self::assertStringStartsWith('began', $result['stdout']);
        self::assertSame($before, self::tree($host->temp), json_encode($result));
        self::assertSame(['kept' => 'kept'], self::contents($victim->root));
        $next = $host->evaluate('return [file_get_contents("data.txt"), scandir(sys_get_temp_dir())];', $start);
        self::assertSame($start->value, $next['diagnostics']['start']);
        self::assertStringContainsString('"value":"data"', json_encode($next['result']));
        self::assertStringContainsString('"count":2', json_encode($next['result']));
    }

    /**
     * Without the filter there are links. They are removed, not followed.
     *
     * @dataProvider settings
     */
    public function testALinkInItIsNotFollowed(Setting $setting): void
    {
        $host = new WrappedHost($setting, self::wrapper(), ['ini', 'seccomp']);
        $victim = $this->victim($setting);
        $snippet = 'raw("symlinkat", $victim, -100, "link"); raw("mkdirat", -100, "d", 0700);'
            . ' raw("symlinkat", "$victim/kept", -100, "d/link"); raw("symlinkat", $victim, -100, "d/directory");'
            . ' print(implode(" ", scandir("d")) . " " . readlink("link"));';
        $result = $host->evaluate($this->snippet($snippet, $victim), Start::Cold);

        self::assertSame("began. .. directory link $victim->root", $result['stdout'], json_encode($result));
        self::assertSame([], self::tree($host->temp));
        self::assertSame(['kept' => 'kept'], self::contents($victim->root));
    }

    /** What clears a machine's /tmp of old files clears it of a template's directory, too. */
    public function testATemplateWhoseDirectoryIsGoneIsMadeAnew(): void
    {
        $host = new WrappedHost(Setting::KernelAsUser, self::wrapper());
        $host->evaluate('return 1;', Start::Warm);
        exec('rm -rf -- ' . escapeshellarg($host->temp) . '/altair-*');
        $next = $host->ask('return 6 * 7;', Start::Warm);

        self::assertSame(['first', 42], [$next['diagnostics']['start'], $next['result']['value']]);
        self::assertSame('warm', $host->evaluate('return 1;', Start::Warm)['diagnostics']['start']);
    }

    public static function attacks(): iterable
    {
        foreach (self::ATTACKS as $name => $attack) {
            foreach (self::settings() as $key => [$setting]) {
                foreach ($setting === Setting::KernelAsUser ? [Start::Cold, Start::Warm] : [Start::Warm] as $start) {
                    yield "$name: $key, $start->value" => [$attack, $setting, $start];
                }
            }
        }
    }

    public static function settings(): iterable
    {
        foreach (Setting::NATIVE as $setting) {
            if ($setting->isPossible()) {
                yield $setting->value => [$setting];
            }
        }
    }

    private static function host(Setting $setting): WrappedHost
    {
        return self::$hosts[$setting->value] ??= new WrappedHost($setting, self::wrapper());
    }

    /** @return list<string> what takes the mounts away, where there are any */
    private static function wrapper(): array
    {
        return Place::hasMounts() ? Without::under(['mounts', 'copies']) : [];
    }

    /** A directory of the user's that the run is, with a file in it. */
    private function victim(Setting $setting): TemporaryApplication
    {
        $victim = new TemporaryApplication();
        $victim->remove('vendor');
        $victim->write('kept', 'kept');
        if (posix_geteuid() === 0) {
            $victim->giveTo($setting->uid(), $setting->gid());
        }

        return $victim;
    }

    private function snippet(string $attack, TemporaryApplication $victim): string
    {
        return '$d = sys_get_temp_dir(); $real = realpath($d); $victim = ' . var_export($victim->root, true) . ';'
            . ' chdir($d); echo "began"; fflush(STDOUT); ' . $attack;
    }

    /** @return list<string> the host's temporary files, once there is a template or none is needed */
    private function before(WrappedHost $host, Start $start): array
    {
        $host->evaluate('return 1;', $start);

        return self::tree($host->temp);
    }

    /**
     * @return list<string> every path below a directory, with its mode, but those of forks that wait for their task;
     *     the next one is made in the background
     */
    private static function tree(string $directory): array
    {
        $until = microtime(true) + self::PATIENCE;
        do {
            $lines = [];
            exec('find ' . escapeshellarg($directory) . ' -mindepth 1 -printf "%P %m %l\n" 2>&1', $lines);
            $isOfARun = static fn (string $line): bool => !Spare::isDirectory("$directory/" . strtok($line, ' '));
            $lines = array_values(array_filter($lines, $isOfARun));
        } while (preg_grep('~/run-~', $lines) !== [] && microtime(true) < $until);
        sort($lines);

        return $lines;
    }

    /** @return array<string, string> the files of a directory */
    private static function contents(string $directory): array
    {
        $contents = [];
        foreach (array_diff(scandir($directory), ['.', '..']) as $name) {
            $contents[$name] = is_file("$directory/$name") ? (string) file_get_contents("$directory/$name") : 'other';
        }

        return $contents;
    }
}
