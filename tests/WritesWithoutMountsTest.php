<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\Tests\Support\Command;
use Altair\Eval\Tests\Support\TemporaryApplication;
use Altair\Eval\Tests\Support\Without;
use PHPUnit\Framework\TestCase;

/**
 * Real writes where no mount can seal the directory of the audit log: Landlock grants them where no run is unsafe and
 * the project has no such directory, and only there.
 */
final class WritesWithoutMountsTest extends TestCase
{
    private const NOBODY = 65534;
    private const NO_UNSAFE_RUNS = ['altair_eval.unsafe' => '0'];
    /** The kernel's guards alone, so that nothing but them can refuse. */
    private const KERNEL_ONLY = self::NO_UNSAFE_RUNS + ['altair_eval.omit' => 'ini'];

    /** An audit line of an unsafe run that never was. */
    private const FORGED = '{"id":"01","status":"ok","extra":{"unsafe":true}}';

    private TemporaryApplication $application;

    private TemporaryApplication $outside;

    protected function setUp(): void
    {
        $this->application = new TemporaryApplication(['kept' => 'kept', 'old/one' => '1']);
        $this->outside = new TemporaryApplication(['secret' => 'the secret']);
        chmod($this->outside->path('secret'), 0666);
        chmod($this->outside->root, 0777);
    }

    /**
     * @return iterable<string, array{list<string>}>
     */
    public static function users(): iterable
    {
        yield 'as this user' => [[]];
        if (posix_geteuid() === 0) {
            yield 'as an ordinary user' => [['user=' . self::NOBODY]];
        }
    }

    /**
     * @param list<string> $user
     * @dataProvider users
     */
    public function testWhatIsWrittenIsThereAfterwards(array $user): void
    {
        $result = $this->write(
            'file_put_contents("new", "new"); file_put_contents("kept", "changed"); mkdir("made/below", 0777, true);
            rename("old/one", "made/below/one"); rmdir("old");',
            ['mounts', ...$user],
        );

        self::assertTrue($result['ok'] ?? false, (string) json_encode($result));
        self::assertStringStartsWith('missing: ', $result['diagnostics']['guards']['filesystem']);
        self::assertSame('in force', $result['diagnostics']['guards']['landlock']);
        self::assertArrayNotHasKey('message', $result['diagnostics']);
        self::assertStringEqualsFile($this->application->path('new'), 'new');
        self::assertStringEqualsFile($this->application->path('kept'), 'changed');
        self::assertStringEqualsFile($this->application->path('made/below/one'), '1');
        self::assertDirectoryDoesNotExist($this->application->path('old'));
        self::assertSame([], self::asidesOf($this->application));
    }

    /**
     * @param list<string> $user
     * @dataProvider users
     */
    public function testNothingElseCanBeWritten(array $user): void
    {
        $outside = var_export($this->outside->root, true);
        $attempts = <<<PHP
            return [
                @file_put_contents($outside . "/new", "x"), @file_put_contents($outside . "/secret", "x"),
                @symlink($outside, "link"), @fopen($outside . "/secret", "c"), @mkdir($outside . "/made"),
                @rename($outside . "/secret", "moved"), @rename("kept", $outside . "/kept"),
                @unlink($outside . "/secret"),
                @link($outside . "/secret", "hard"), @link("kept", $outside . "/hard"), @chmod("kept", 0600),
                @touch($outside . "/secret", 1), FFI::cdef("int truncate(const char *, long);")->truncate(
                    $outside . "/secret", 1) === 0,
            ];
            PHP;
        $before = filemtime($this->outside->path('secret'));
        $result = $this->write($attempts, ['mounts', ...$user], self::KERNEL_ONLY);

        self::assertTrue($result['ok'] ?? false, (string) json_encode($result));
        self::assertSame([false], array_unique(array_column($result['result']['value'], 'value')));
        clearstatcache();
        self::assertStringEqualsFile($this->outside->path('secret'), 'the secret');
        self::assertSame($before, filemtime($this->outside->path('secret')));
        self::assertSame(['secret', 'vendor', 'vendor/autoload.php'], $this->outside->tree());
        self::assertSame('0644', substr(sprintf('%o', fileperms($this->application->path('kept'))), -4));
        self::assertFileDoesNotExist($this->application->path('hard'));
    }

    /**
     * @return iterable<string, array{string}>
     */
    public static function forgeries(): iterable
    {
        $log = var_export(self::FORGED . "\n", true);
        yield 'a log' => ["mkdir('.altair'); file_put_contents('.altair/events.jsonl', $log);"];
        yield 'a pipe' => ["posix_mkfifo('.altair', 0600);"];
        yield 'a directory that it moved there' => [
            "file_put_contents('old/events.jsonl', $log); rename('old', '.altair');",
        ];
        yield 'a log, and then its own death' => [
            "mkdir('.altair'); file_put_contents('.altair/events.jsonl', $log); posix_kill(getmypid(), 9);",
        ];
    }

    /**
     * @dataProvider forgeries
     */
    public function testARunCannotForgeALog(string $forgery): void
    {
        $result = $this->write($forgery, ['mounts'], self::KERNEL_ONLY);

        $message = $result['diagnostics']['message'];
        self::assertStringContainsString('The run, or another program meanwhile, made .altair', $message);
        self::assertFalse(self::exists($this->application->path('.altair')));
        $asides = self::asidesOf($this->application);
        self::assertCount(1, $asides);
        self::assertStringContainsString(basename($asides[0]), $message);
        [$code, $events] = Without::command([], [
            Command::native(), 'events:tail', '--format=json', '--root=' . $this->application->root,
        ]);
        self::assertSame([0, ''], [$code, $events]);
        // The next run may write again.
        self::assertTrue($this->write('file_put_contents("new", "x");', ['mounts'])['ok'] ?? false);
    }

    public function testAnInterruptedRunLeavesNoLogEither(): void
    {
        $code = sprintf(
            'pcntl_async_signals(true); pcntl_signal(SIGALRM, function () { throw new Exception("enough"); });
            try {
                (new Altair\Eval\Evaluator())->evaluate(
                    new Altair\Eval\EvalRequest(%s, %s, allowWrites: true),
                    function () { posix_kill(getmypid(), SIGALRM); },
                );
            } catch (Exception $e) { echo $e->getMessage(); }',
            var_export('mkdir(".altair"); echo "made"; flush(); while (true) {}', true),
            var_export($this->application->root, true),
        );
        [, $output, $errors] = Without::php(['mounts'], $code, ['-d', 'altair_eval.unsafe=0']);

        self::assertSame('enough', $output, $errors);
        self::assertFalse(self::exists($this->application->path('.altair')));
        self::assertCount(1, self::asidesOf($this->application));
    }

    /**
     * @return iterable<string, array{array<string, string>, bool, list<string>, string}>
     */
    public static function refusals(): iterable
    {
        $off = self::NO_UNSAFE_RUNS;
        $setting = 'in PHP, the ini setting altair_eval.unsafe=0';
        yield 'unsafe runs are on' => [[], false, [], "Where no run is unsafe ($setting)"];
        yield 'there is a log' => [$off, true, [], '/.altair: move it to where the run cannot write.'];
        yield 'there is no Landlock' => [$off, false, ['landlock'], 'Landlock cannot grant them: the kernel has no'];
        yield 'Landlock knows no REFER' => [$off, false, ['landlock=1'], 'its version 1 does not govern truncate()'];
        yield 'Landlock knows no TRUNCATE' => [$off, false, ['landlock=2'], 'its version 2 does not govern truncate()'];
        $omitted = $off + ['altair_eval.omit' => 'landlock'];
        yield 'Landlock is left out' => [$omitted, false, [], 'but is left out (altair_eval.omit)'];
        $omitted = $off + ['altair_eval.omit' => 'seccomp'];
        yield 'seccomp is left out' => [$omitted, false, [], 'and it is left out (altair_eval.omit)'];
    }

    /**
     * @param array<string, string> $settings
     * @param list<string> $what to take away besides mounts
     * @dataProvider refusals
     */
    public function testElsewhereItIsRefused(array $settings, bool $hasLog, array $what, string $why): void
    {
        if ($hasLog) {
            $this->application->write('.altair/events.jsonl', self::FORGED . "\n");
        }
        $before = $this->application->tree();
        $result = $this->write('file_put_contents("new", "x");', ['mounts', ...$what], $settings);

        $thrown = $result['thrown'] ?? (string) json_encode($result);
        self::assertStringContainsString('Writes cannot be allowed here: only a private root protects', $thrown);
        self::assertStringContainsString('`altair doctor` says how to get it.', $thrown);
        self::assertStringContainsString($why, $thrown);
        self::assertSame($before, $this->application->tree(), 'Nor does the attempt leave anything in the project.');
    }

    public function testAnIsolatedPhpThatLivesOnIsRefused(): void
    {
        $code = sprintf(
            'Altair\Sandbox\Runtime::fromRequest(new Altair\Eval\EvalRequest("1", %s, allowWrites: true));',
            var_export($this->application->root, true),
        );
        [, , $errors] = Without::php(['mounts'], $code, ['-d', 'altair_eval.unsafe=0']);

        self::assertStringContainsString('can grant them to an evaluation, but not to an isolated PHP', $errors);
    }

    public function testAKeptTemplateIsNotUsed(): void
    {
        $code = sprintf(
            '$evaluator = new Altair\Eval\Evaluator(warm: true);
            foreach ([1, 2, 3] as $round) {
                $last = $evaluator->evaluate(new Altair\Eval\EvalRequest(%s, %s, 60000, allowWrites: true));
            }
            echo json_encode($last->toArray(true));',
            var_export('file_put_contents("new", "x", FILE_APPEND);', true),
            var_export($this->application->root, true),
        );
        [, $output, $errors] = Without::php(['mounts'], $code, ['-d', 'altair_eval.unsafe=0']);

        $diagnostics = json_decode($output, true)['diagnostics'] ?? self::fail($output . $errors);
        self::assertSame('cold', $diagnostics['start']);
        self::assertStringContainsString('runs whose writes are real start cold', $diagnostics['start_reason']);
        self::assertStringEqualsFile($this->application->path('new'), 'xxx');
    }

    public function testWhereNoRunIsUnsafeNoneIs(): void
    {
        $result = Without::evaluate(
            [],
            ['snippet' => 'touch("made");', 'projectRoot' => $this->application->root, 'unsafe' => true],
            self::NO_UNSAFE_RUNS,
        );

        self::assertSame('No run may be unsafe here (altair_eval.unsafe=0).', $result['thrown'] ?? '');
        self::assertFileDoesNotExist($this->application->path('made'));
        self::assertFalse(self::exists($this->application->path('.altair')), 'It is not announced either.');
    }

    public function testNothingIsNamedThatWouldBeRefused(): void
    {
        $lifts = [];
        $messages = [];
        foreach ([[], self::NO_UNSAFE_RUNS] as $settings) {
            $snippet = '@file_put_contents("new", "x"); shell_exec("true");';
            $request = ['snippet' => $snippet, 'projectRoot' => $this->application->root];
            $result = Without::evaluate(['mounts'], $request, $settings);
            $lifts[] = array_column($result['diagnostics']['blocked'], 'lift', 'what');
            $messages[] = $result['exception']['message'];
        }
        $write = 'write ' . $this->application->path('new');

        self::assertSame(['--unsafe', '--writes'], array_column($lifts, $write));
        self::assertSame(['--unsafe', null], array_column($lifts, 'shell_exec()'));
        $refused = 'shell_exec() is refused in a confined run';
        self::assertSame(["$refused; --unsafe allows it", $refused], $messages);
    }

    public function testNorIsItInAnIsolatedPhp(): void
    {
        $closure = 'static function () { try { exec("true"); } catch (Error $e) { return $e->getMessage(); } };';
        $this->application->write('closure.php', "<?php return $closure");
        $code = sprintf(
            '$runtime = new Altair\Sandbox\Runtime();
            echo $runtime->enter(require %s), " ";
            echo json_encode(array_column($runtime->blocked(), "lift"));',
            var_export($this->application->path('closure.php'), true),
        );
        [, $output, $errors] = Without::php([], $code, ['-d', 'altair_eval.unsafe=0']);

        self::assertSame('exec() is refused in a confined run [null]', $output, $errors);
    }

    /**
     * @param list<string> $what to take away
     * @param array<string, string> $settings
     * @return array<string, mixed>
     */
    private function write(string $snippet, array $what, array $settings = self::NO_UNSAFE_RUNS): array
    {
        if (array_filter($what, static fn (string $one): bool => str_starts_with($one, 'user='))) {
            $this->application->giveTo(self::NOBODY, self::NOBODY);
        }
        $request = ['snippet' => $snippet, 'projectRoot' => $this->application->root, 'allowWrites' => true];

        return Without::evaluate($what, $request, $settings);
    }

    /**
     * @return list<string>
     */
    private static function asidesOf(TemporaryApplication $application): array
    {
        return glob($application->path('.altair-of-a-run-*')) ?: [];
    }

    /** Also a link to nothing does. */
    private static function exists(string $path): bool
    {
        clearstatcache();

        return @lstat($path) !== false;
    }
}
