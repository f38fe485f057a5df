<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Escape;

use Altair\Eval\Tests\Support\Escape\Setting;
use Altair\Eval\Tests\Support\Escape\Start;
use Altair\Eval\Tests\Support\Escape\WarmHost;
use Altair\Eval\Tests\Support\Escape\WrappedHost;
use Altair\Eval\Tests\Support\Skip;
use Altair\Eval\Tests\Support\TemporaryApplication;
use PHPUnit\Framework\TestCase;

/**
 * What a run has in its memory is left nowhere when it crashes: in no file, and with no program that the machine has
 * for that (`|` in core(5)).
 *
 * Such a program gets it also where the limit is 0, and did: 13 MB of each run that sent itself SIGSEGV. A limit of 1
 * is the one with which the kernel does not start it (fs/coredump.c), so that none may be lowered from there to 0.
 */
final class CoreFileTest extends TestCase
{
    /** Bytes, soft and hard: none would be sent to a program. */
    private const LIMIT = '1';

    /** Bytes of what has no memory in it: headers, registers, names of files. */
    private const NO_MEMORY = 262144;

    private const PATTERN = '/proc/sys/kernel/core_pattern';
    /** How many of them the end of a process waits for. */
    private const WAITING = '/proc/sys/kernel/core_pipe_limit';

    /** Ways to crash; what is refused to them is refused quietly. */
    private const CRASHES = [
        'a signal' => 'posix_kill(getmypid(), SIGSEGV);',
        'a native fault' => 'FFI::string(FFI::cast("char *", 16), 1);',
        'a signal behind a lower limit' => 'raw("prlimit64", 0, 4, pack("PP", 0, 0), 0);'
            . ' posix_kill(getmypid(), SIGSEGV);',
        'a signal behind a lower limit of old' => 'raw("setrlimit", 4, pack("PP", 0, 0));'
            . ' posix_kill(getmypid(), SIGSEGV);',
        'a signal behind a lower soft limit' => 'raw("prlimit64", 0, 4, pack("PP", 0, 1), 0);'
            . ' posix_kill(getmypid(), SIGSEGV);',
        'a signal to one that may be looked into' => 'raw("prctl", 4, 1, 0, 0, 0);'
            . ' posix_kill(getmypid(), SIGSEGV);',
    ];

    /** @var array<string, WarmHost> by setting */
    private static array $hosts = [];

    /** @var array<string, string> files of the kernel's as they were, while they are otherwise */
    private array $settings = [];

    protected function tearDown(): void
    {
        foreach (array_keys($this->settings) as $file) {
            file_put_contents($file, $this->settings[$file]);
        }
        $this->settings = [];
    }

    public static function tearDownAfterClass(): void
    {
        self::$hosts = [];
        gc_collect_cycles();
    }

    /**
     * @dataProvider starts
     */
    public function testTheLimitOfARunIsTheOneWithWhichNothingIsSent(string $start, Setting $setting): void
    {
        $limits = [];
        $host = self::host($setting);
        $this->evaluate($host, $start, 'posix_kill(getmypid(), SIGSTOP); return 1;', function () use ($host, &$limits) {
            $snapshot = $host->stopped();
            if ($snapshot !== null) {
                $limits[] = self::coreLimit($snapshot->pid);
                $snapshot->release();
            }
        });

        self::assertSame([[self::LIMIT, self::LIMIT]], $limits);
    }

    /**
     * @dataProvider settings
     */
    public function testTheLimitOfATemplateIsTheSame(Setting $setting): void
    {
        $host = self::host($setting);
        $host->evaluateWarm('return 1;');
        $templates = $host->templates();

        self::assertNotSame([], $templates);
        foreach ($templates as $template) {
            self::assertSame([self::LIMIT, self::LIMIT], self::coreLimit($template->pid));
        }
    }

    /**
     * @dataProvider crashes
     */
    public function testNoProgramGetsWhatARunHadInItsMemory(string $crash, string $start, Setting $setting): void
    {
        $directory = $this->collect();
        $host = self::host($setting);
        $printed = '';
        $result = $this->evaluate(
            $host,
            $start,
            "echo getmypid(), \"\\n\"; $crash return 1;",
            printed: static function (string $text) use (&$printed): void {
                $printed .= $text;
            },
        );
        $pid = (int) $printed;
        $gone = $this->crashOfAnother();

        self::assertSame(['signalled', $start], [$result['diagnostics']['outcome'], $result['diagnostics']['start']]);
        self::assertGreaterThan(0, $pid);
        self::assertGreaterThan(4096, (int) file_get_contents($directory->path("$gone")), 'The program works.');
        self::assertFileDoesNotExist(
            $directory->path("$pid"),
            (string) @file_get_contents($directory->path("$pid")) . ' bytes were sent',
        );
    }

    /**
     * An ordinary user's host that may have no core at all cannot give its runs a limit of 1.
     * The program got 13 MB.
     *
     * @dataProvider withoutCores
     */
    public function testNoProgramGetsItWhereTheHostsOwnLimitIsZero(Start $start): void
    {
        $directory = $this->collect();
        $host = new WrappedHost(Setting::KernelAsUser, ['prlimit', '--core=0:0', '--']);
        $result = $host->evaluate('echo getmypid(); posix_kill(getmypid(), SIGSEGV); return 1;', $start);
        $gone = $this->crashOfAnother();
        $pid = (int) $result['stdout'];

        self::assertSame('signalled', $result['diagnostics']['outcome'], json_encode($result));
        self::assertSame($start->value, $result['diagnostics']['start'], json_encode($result));
        self::assertGreaterThan(0, $pid);
        self::assertGreaterThan(4096, (int) file_get_contents($directory->path("$gone")), 'The program works.');
        // It is started, and there is no memory for it to take: headers, registers, names of files.
        self::assertLessThan(self::NO_MEMORY, (int) file_get_contents($directory->path("$pid")));
    }

    public static function withoutCores(): iterable
    {
        foreach ([Start::Cold, Start::Warm] as $start) {
            yield $start->value => [$start];
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

    public static function starts(): iterable
    {
        foreach (self::settings() as $name => [$setting]) {
            foreach (['cold', 'warm'] as $start) {
                yield "$start: $name" => [$start, $setting];
            }
        }
    }

    public static function crashes(): iterable
    {
        foreach (self::CRASHES as $name => $crash) {
            foreach (self::starts() as $key => $start) {
                yield "$name: $key" => [$crash, ...$start];
            }
        }
    }

    /** Has every core go to a program, which keeps how many bytes there were in a file that is the process's id. */
    private function collect(): TemporaryApplication
    {
        if (!is_writable(self::PATTERN) || !is_writable(self::WAITING)) {
            Skip::NeedsRoot->because('What becomes of cores can be set by root only.');
        }
        if (getenv('CI') === false && getenv('ALTAIR_TEST_MACHINE') === false) {
            Skip::ChangesMachine->because('It sets where cores of the machine go: ALTAIR_TEST_MACHINE=1 allows it.');
        }
        $directory = new TemporaryApplication();
        chmod($directory->root, 0700);
        $program = $directory->write('count', "#!/bin/sh\nexec wc -c > '$directory->root'/\$1\n", 0700);
        $settings = [self::WAITING => '16', self::PATTERN => "|$program %P"];
        // The kernel has room for so many bytes.
        self::assertLessThan(128, strlen($settings[self::PATTERN]));
        foreach ($settings as $file => $value) {
            $before = trim((string) file_get_contents($file));
            if (@file_put_contents($file, $value) !== strlen($value)) {
                Skip::LacksKernel->because("$file cannot be written here.");
            }
            $this->settings[$file] = $before;
        }

        return $directory;
    }

    /** A process that is none of a run's, and leaves a core. */
    private function crashOfAnother(): int
    {
        // No limit is needed for a program.
        exec('sh -c \'echo $$; kill -s SEGV $$\' 2>/dev/null', $output);

        return (int) ($output[0] ?? 0);
    }

    /**
     * @return array{string, string} soft and hard
     */
    private static function coreLimit(int $pid): array
    {
        preg_match('/^Max core file size\s+(\S+)\s+(\S+)/m', (string) file_get_contents("/proc/$pid/limits"), $limits);

        return [$limits[1], $limits[2]];
    }

    private static function host(Setting $setting): WarmHost
    {
        return self::$hosts[$setting->value] ??= new WarmHost($setting);
    }

    /**
     * @param (callable(): void)|null $meanwhile
     * @param (callable(string): void)|null $printed
     * @return array<string, mixed>
     */
    private function evaluate(
        WarmHost $host,
        string $start,
        string $snippet,
        ?callable $meanwhile = null,
        ?callable $printed = null,
    ): array {
        if ($start === 'warm') {
            $host->evaluateWarm('return 1;');
        }
        $host->ask(['start' => $start] + $host->request($snippet));

        return $host->answered('result', $meanwhile, static function (array $answer) use ($printed): void {
            if ($printed !== null && isset($answer['out'])) {
                $printed(base64_decode($answer['out'], true));
            }
        });
    }
}
