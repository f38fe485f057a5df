<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\Tests\Support\Command;
use Altair\Eval\Tests\Support\Processes;
use Altair\Eval\Tests\Support\TemporaryApplication;
use PHPUnit\Framework\TestCase;

/**
 * Every option of `altair eval`, and what it changes in the real child.
 */
final class CliOptionsTest extends TestCase
{
    private const LIMIT_IN_MIB = 'return ini_parse_quantity(ini_get("memory_limit")) >> 20;';

    private TemporaryApplication $application;

    private TemporaryApplication $elsewhere;

    protected function setUp(): void
    {
        $this->application = new TemporaryApplication();
        $this->elsewhere = new TemporaryApplication();
    }

    public function testFileNamesASnippetAnywhere(): void
    {
        $file = $this->elsewhere->write('my snippet.php', "<?php\n\nreturn [__LINE__, 'x'];\n");

        self::assertSame([3, 'x'], $this->value("--file=$file"));
        self::assertSame([3, 'x'], $this->value('--file', $file));
        $relative = $this->application->write('here.php', 'return __FILE__;');
        self::assertSame('snippet', $this->value('--file=' . basename($relative)));
    }

    public function testADashIsStandardInput(): void
    {
        self::assertSame(5, $this->valueOf($this->eval(['--file=-'], 'return 5;')));
    }

    public function testASnippetMayStartWithADash(): void
    {
        self::assertSame(1, $this->value('--', '-1 + 2'));
    }

    public function testTimeoutIsTheDeadline(): void
    {
        $command = $this->eval(['--timeout-ms=300', 'while (true);']);

        self::assertTrue($command->json()['timed_out']);
        self::assertSame([124, 1], [$command->json()['exit_code'], $command->exitCode]);
        self::assertGreaterThanOrEqual(300, $command->json()['duration_ms']);
        self::assertLessThan(30000, $command->json()['duration_ms']);
    }

    public function testSecretsAreShownWhereThatIsAskedFor(): void
    {
        $snippet = 'getenv("SHOP_TOKEN")';
        $run = fn (string ...$options): Command => Command::run(
            ['eval', ...$options, $snippet],
            $this->application->root,
            environment: ['SHOP_TOKEN' => 'abc/def/ghi'],
        );

        $command = $run();
        self::assertSame("✓ string = '[redacted:SHOP_TOKEN]'", $command->headline());
        self::assertStringContainsString("\n  redacted: SHOP_TOKEN; --no-redact shows them\n", $command->output);
        self::assertStringNotContainsString('abc/def', $command->output);
        $json = $run('--format=json')->json();
        self::assertSame(['SHOP_TOKEN'], $json['diagnostics']['redacted']);

        $command = $run('--no-redact');
        self::assertSame("✓ string = 'abc/def/ghi'", $command->headline());
        self::assertStringNotContainsString('redacted', $command->output);
    }

    public function testTimeoutsAndMemoryAreClamped(): void
    {
        self::assertSame(16, $this->value('--memory-mb=-7', self::LIMIT_IN_MIB));
        self::assertSame(512, $this->value('--memory-mb=99999999999999999999', self::LIMIT_IN_MIB));
        $short = $this->eval(['--timeout-ms=-1', '--verbose', 'while (true);'])->json();
        self::assertTrue($short['timed_out']);
        self::assertGreaterThanOrEqual(100, $short['diagnostics']['timings_ms']['total']);
    }

    public function testMemoryIsTheLimitOfTheSnippet(): void
    {
        self::assertSame(64, $this->value('--memory-mb=64', self::LIMIT_IN_MIB));
        self::assertSame(128, $this->value(self::LIMIT_IN_MIB));
        $command = $this->eval(['--memory-mb=16', 'return strlen(str_repeat("x", 32 << 20));']);
        self::assertSame('out_of_memory', $command->json()['diagnostics']['outcome']);
        self::assertSame(1, $command->exitCode);
    }

    public function testWritesNetworkAndUnsafeReachTheSnippet(): void
    {
        $tell = 'return array_map("getenv", ["ALTAIR_EVAL_ALLOW_WRITES", "ALTAIR_EVAL_ALLOW_NETWORK", '
            . '"ALTAIR_EVAL_UNSAFE"]);';

        self::assertSame(['0', '0', '0'], $this->value($tell));
        self::assertSame(['1', '0', '0'], $this->value('--writes', $tell));
        self::assertSame(['0', '1', '0'], $this->value('--network', $tell));
        self::assertSame(['0', '0', '1'], $this->value('--unsafe', $tell));
        self::assertSame(['1', '1', '1'], $this->value('--unsafe', '--network', '--writes', $tell));
    }

    public function testNetworkGivesTheFunctionsThatConnect(): void
    {
        $has = 'return [function_exists("fsockopen"), function_exists("exec")];';

        self::assertSame([false, false], $this->value($has));
        self::assertSame([true, false], $this->value('--network', $has));
        self::assertSame([true, true], $this->value('--unsafe', $has));
    }

    public function testBootstrapReturnsTheContainer(): void
    {
        $container = '<?php return new class {
            function get($id) { return "%s:$id"; }
            function has($id) { return true; }
        };';
        $this->application->write('config/container.php', sprintf($container, 'usual'));
        $other = $this->application->write('boot/other.php', sprintf($container, 'other'));

        self::assertSame('usual:x', $this->value('container("x")'));
        self::assertSame('other:x', $this->value('--bootstrap=boot/other.php', 'container("x")'));
        self::assertSame('other:x', $this->value("--bootstrap=$other", 'container("x")'));
    }

    public function testRootIsTheProject(): void
    {
        $root = $this->elsewhere->root;

        self::assertSame($this->application->root, $this->value('getcwd()'));
        self::assertSame($root, $this->value("--root=$root", 'getcwd()'));
        self::assertSame($root, $this->value('--root=../' . basename($root), 'getcwd()'));
    }

    public function testPhpIsTheInterpreterOfTheChild(): void
    {
        $php = $this->elsewhere->write('my-php', "#!/bin/sh\nMY_PHP=yes exec " . PHP_BINARY . ' "$@"', 0755);
        $tell = 'return getenv("MY_PHP");';

        // A script needs what it starts, which is not there of itself.
        $read = ['--read=/bin/sh', '--read=' . PHP_BINARY];
        self::assertSame('yes', $this->value("--php=$php", ...[...$read, $tell]));
        self::assertSame('yes', $this->value("--php=$php", '--unsafe', $tell));
        self::assertFalse($this->value($tell));
    }

    public function testReadNamesWhatElseMayBeRead(): void
    {
        $first = $this->elsewhere->write('first.txt', 'first');
        $second = $this->elsewhere->write('data/second.txt', 'second');
        $read = "return [@file_get_contents('$first'), @file_get_contents('$second')];";

        self::assertSame([false, false], $this->value($read));
        self::assertSame(['first', false], $this->value("--read=$first", $read));
        self::assertSame(['first', 'second'], $this->value("--read=$first", '--read', dirname($second), $read));
        $relative = '../' . basename($this->elsewhere->root) . '/data';
        self::assertSame([false, 'second'], $this->value("--read=$relative", $read));
    }

    public function testPeopleReadWhatWouldHaveChanged(): void
    {
        $this->application->write('old.txt', 'old');
        $snippet = 'file_put_contents("new.txt", "new!"); unlink("old.txt"); mkdir("made"); return 1;';

        $command = Command::run(['eval', $snippet], $this->application->root);
        $written = Command::run(['eval', '--writes', $snippet], $this->application->root);

        self::assertSame([0, '', '✓ int = 1'], [$command->exitCode, $command->errors, $command->headline()]);
        self::assertStringContainsString(
            "  not kept: 3 changes to the project; --writes keeps them\n"
            . "    deleted  old.txt (3 bytes)\n    created  made/\n    created  new.txt (4 bytes)\n",
            $command->output,
        );
        self::assertStringNotContainsString('not kept', $written->output);
        self::assertFileExists($this->application->path('new.txt'));
    }

    public function testWithoutAPoolEachRunOfTheCommandStartsAPhpOfItsOwn(): void
    {
        foreach ([[], ['--cold']] as $options) {
            $command = $this->eval(['--verbose', ...$options, 'return 1;']);
            self::assertSame('cold', $command->json()['diagnostics']['start']);
        }
    }

    public function testRequireRefusesToRunWithoutTheGuard(): void
    {
        self::assertSame(1, $this->value('--require=process', '--require=limits', 'return 1;'));

        $mark = $this->application->path('it-ran');
        $missing = array_keys(array_filter(
            $this->eval(['--verbose', 'return 1;'])->json()['diagnostics']['guards'],
            static fn (string $state): bool => $state !== 'in force',
        ));
        foreach ($missing as $guard) {
            $command = $this->eval(['--require=process', "--require=$guard", "touch('$mark');"]);

            self::assertSame([2, ''], [$command->exitCode, $command->output]);
            self::assertMatchesRegularExpression("/^altair: .*`$guard`.*\n$/", $command->errors);
        }
        self::assertFileDoesNotExist($mark);
    }

    public function testFormatIsHumanUnlessItIsJson(): void
    {
        $json = Command::run(['eval', '--format=json', 'return 1;'], $this->application->root);
        $human = Command::run(['eval', '--format=human', 'return 1;'], $this->application->root);
        $default = Command::run(['eval', 'return 1;'], $this->application->root);

        self::assertSame(1, $json->json()['result']['value']);
        self::assertSame(['✓ int = 1', '✓ int = 1'], [$human->headline(), $default->headline()]);
    }

    public function testInterruptingTheCommandEndsTheChild(): void
    {
        $mark = 'ALTAIR_TEST_MARK=' . bin2hex(random_bytes(12));
        [$name, $value] = explode('=', $mark);
        foreach ([SIGINT, SIGTERM, SIGKILL] as $signal) {
            $process = proc_open(
                [dirname(__DIR__) . '/bin/altair', 'eval', '--timeout-ms=60000', 'while (true) { sleep(1); }'],
                [['file', '/dev/null', 'r'], ['file', '/dev/null', 'w'], ['file', '/dev/null', 'w']],
                $pipes,
                $this->application->root,
                [$name => $value] + getenv(),
            );
            self::assertIsResource($process);
            // The command itself and, in time, its child.
            $this->waitUntil(static fn (): bool => count(Processes::startedWith($mark)) > 1);

            proc_terminate($process, $signal);

            $this->waitUntil(static fn (): bool => Processes::startedWith($mark) === []
                || !array_filter(Processes::startedWith($mark), static fn ($one) => !str_ends_with($one, ' Z')));
            proc_close($process);
            self::assertSame([], Processes::startedWith($mark));
        }
    }

    private function waitUntil(callable $condition): void
    {
        $deadline = microtime(true) + 30;
        while (!$condition() && microtime(true) < $deadline) {
            usleep(1000);
        }
        self::assertTrue($condition());
    }

    /** The plain value of a clean run. */
    private function value(string ...$arguments): mixed
    {
        return $this->valueOf($this->eval(array_values($arguments)));
    }

    private function valueOf(Command $command): mixed
    {
        self::assertSame([0, ''], [$command->exitCode, $command->errors], $command->output);
        $value = $command->json()['result']['value'];

        return is_array($value) ? array_column($value, 'value') : $value;
    }

    /**
     * @param list<string> $arguments
     */
    private function eval(array $arguments, string $input = ''): Command
    {
        return Command::run(['eval', '--format=json', ...$arguments], $this->application->root, $input);
    }
}
