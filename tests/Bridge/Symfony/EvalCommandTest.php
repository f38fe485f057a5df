<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Bridge\Symfony;

use Altair\Eval\Bridge\Symfony\EvalCommand;
use Altair\Eval\Tests\Support\Command;
use Altair\Eval\Tests\Support\Library;
use Altair\Eval\Tests\Support\Script;
use Altair\Eval\Tests\Support\TemporaryApplication;
use PHPUnit\Framework\TestCase;
use Symfony\Component\Console\Application;
use Symfony\Component\Console\Output\OutputInterface;
use Symfony\Component\Console\Tester\ApplicationTester;
use Symfony\Component\Console\Tester\CommandCompletionTester;

/**
 * `eval` in Symfony's own Console, by itself and as the command of a kernel.
 */
final class EvalCommandTest extends TestCase
{
    private TemporaryApplication $application;

    public static function setUpBeforeClass(): void
    {
        require_once Library::autoloader('Symfony/Component/Console');
    }

    protected function setUp(): void
    {
        $this->application = new TemporaryApplication();
    }

    public function testItPrintsWhatTheNativeCommandPrints(): void
    {
        $snippet = 'echo "<info>no tag</info>"; throw new LogicException("<error>no\x1b</error>");';
        $native = Command::run(['eval', $snippet], $this->application->root);

        $tester = $this->console(['snippet' => $snippet]);

        $same = static fn (string $output) => preg_replace('/duration=\d+ms  memory=\d+ KB/', 'figures', $output);
        self::assertSame($same($native->output), $same($tester->getDisplay()));
        self::assertSame([1, ''], [$tester->getStatusCode(), $tester->getErrorOutput()]);
    }

    public function testWithoutTheExtensionItSaysHowToGetIt(): void
    {
        $console = sprintf(
            'require %s; require %s; $console = new Symfony\Component\Console\Application();'
                . '$console->add(new Altair\Eval\Bridge\Symfony\EvalCommand()); $console->run();',
            var_export(Library::autoloader('Symfony/Component/Console'), true),
            var_export(dirname(__DIR__, 3) . '/php-src/Bridge/Symfony/EvalCommand.php', true),
        );
        $run = static function (string $arguments) use ($console): array {
            $command = escapeshellarg(PHP_BINARY) . ' -r ' . escapeshellarg($console) . " -- $arguments 2>&1";
            exec($command, $lines, $status);

            return [$status, implode("\n", $lines)];
        };

        [$status, $help] = $run('help eval');
        [$refused, $error] = $run("eval 'return 1;' --format=json --depth=2");
        [$listed, $list] = $run('list');

        self::assertSame([0, 2, 0], [$status, $refused, $listed], "$help\n$error\n$list");
        foreach ([$help, $error] as $text) {
            self::assertStringContainsString('does not load the extension altair_eval', $text);
            self::assertStringContainsString('make install', $text);
        }
        self::assertStringStartsWith('altair: ', $error);
        self::assertStringContainsString('Evaluate a PHP snippet', $list);
    }

    public function testItIsColouredWhereTheConsoleIs(): void
    {
        $tester = $this->console(['snippet' => '1'], ['decorated' => true]);

        self::assertMatchesRegularExpression('/^\e\[[0-9;]+m✓\e\[0m int = 1$/m', $tester->getDisplay());
        self::assertStringNotContainsString("\e", $this->console(['snippet' => '1'])->getDisplay());
    }

    public function testJsonIsTheWholeAnswer(): void
    {
        $tester = $this->console(['snippet' => 'echo "x"; return 1;', '--format' => 'json'], ['decorated' => true]);

        $answer = json_decode($tester->getDisplay(), true, flags: JSON_THROW_ON_ERROR);
        self::assertSame([0, true, 'x'], [$tester->getStatusCode(), $answer['ok'], $answer['stdout']]);
        self::assertSame(['outcome' => 'returned'], $answer['diagnostics']);
        self::assertSame(1, substr_count($tester->getDisplay(), "\n"));
    }

    public function testWhatIsVerboseIsComplete(): void
    {
        $loud = ['verbosity' => OutputInterface::VERBOSITY_VERBOSE];
        $tester = $this->console(['snippet' => 'return 1;', '--format' => 'json'], $loud);

        $answer = json_decode($tester->getDisplay(), true, flags: JSON_THROW_ON_ERROR);
        self::assertArrayHasKey('start', $answer['diagnostics']);
        self::assertArrayHasKey('timings_ms', $answer['diagnostics']);
    }

    public function testCompactIsWhatAnAgentIsAnswered(): void
    {
        $tester = $this->console(['snippet' => 'return ["a" => 0.5];', '--format' => 'compact']);

        self::assertMatchesRegularExpression(
            '/^\{"ok":true,"result":\{"a":0\.5\},"duration_ms":\d+\}\n$/',
            $tester->getDisplay(),
        );
    }

    public function testOptionsReachTheRun(): void
    {
        $file = $this->application->write('snippet.php', '<?php file_put_contents("kept", "1"); return [
            ini_get("memory_limit"), getenv("ALTAIR_EVAL_ALLOW_NETWORK"), container()->name];');
        $this->application->write('other/boot.php', '<?php return new class {
            public $name = "other"; function get($id) { } function has($id) { } };');

        $tester = $this->console([
            '--file' => $file,
            '--memory-mb' => '64',
            '--writes' => true,
            '--network' => true,
            '--bootstrap' => 'other/boot.php',
            '--format' => 'json',
        ]);

        $answer = json_decode($tester->getDisplay(), true, flags: JSON_THROW_ON_ERROR);
        self::assertSame(['64M', '1', 'other'], array_column($answer['result']['value'], 'value'));
        self::assertFileExists($this->application->path('kept'));
        self::assertSame(1, $this->console(['snippet' => 'sleep(9)', '--timeout-ms' => '300'])->getStatusCode());
        self::assertStringContainsString('by ini', $this->console(['snippet' => '@shell_exec("id")'])->getDisplay());
        self::assertSame(0, $this->console(['snippet' => 'shell_exec("id")', '--unsafe' => true])->getStatusCode());
        self::assertFileExists($this->application->path('.altair/events.jsonl'));
    }

    public function testServicesReachTheRun(): void
    {
        $listener = stream_socket_server('tcp://127.0.0.1:0') ?: self::fail('No listener.');
        $address = stream_socket_get_name($listener, false);
        $snippet = "@stream_socket_client('tcp://$address', \$code, \$why, 5) !== false";

        $said = fn (array $services): string
            => $this->console(['snippet' => $snippet, '--service' => $services])->getDisplay();
        self::assertStringContainsString('bool = true', $said(['127.0.0.1:1', $address]));
        self::assertStringContainsString("--service=$address allows it", $said(['127.0.0.1:1']));
        self::assertStringContainsString('is refused', $said(['none']));
    }

    public function testReadablePathsAndSecretsReachTheRun(): void
    {
        $outside = new TemporaryApplication();
        $file = $outside->write('kept.txt', 'kept');
        $read = '(string) @file_get_contents(' . var_export($file, true) . ')';
        $said = fn (array $arguments): string => $this->console($arguments)->getDisplay();
        self::assertStringContainsString("--read=$file allows it", $said(['snippet' => $read]));
        self::assertStringContainsString("= 'kept'", $said(['snippet' => $read, '--read' => ['/usr/lib', $file]]));
        putenv('APP_TOKEN=s3cr3t-of-tests');
        try {
            $snippet = ['snippet' => 'getenv("APP_TOKEN")'];
            self::assertStringContainsString('[redacted:APP_TOKEN]', $said($snippet));
            self::assertStringContainsString('s3cr3t-of-tests', $said([...$snippet, '--no-redact' => true]));
        } finally {
            putenv('APP_TOKEN');
        }
    }

    /**
     * @dataProvider wrongUsage
     *
     * @param array<string, mixed> $arguments
     */
    public function testWrongUsageIsOneLineOnStandardError(array $arguments, string $said): void
    {
        $tester = $this->console($arguments);

        self::assertSame([2, ''], [$tester->getStatusCode(), $tester->getDisplay()]);
        self::assertSame(1, substr_count($tester->getErrorOutput(), "\n"));
        self::assertStringStartsWith('altair: ', $tester->getErrorOutput());
        self::assertStringContainsString($said, $tester->getErrorOutput());
    }

    /**
     * @return iterable<string, array{array<string, mixed>, string}>
     */
    public static function wrongUsage(): iterable
    {
        yield 'nothing to run' => [[], 'nothing to run'];
        yield 'an empty snippet' => [['snippet' => ''], 'snippet'];
        yield 'two snippets' => [['snippet' => '1', '--file' => 'x'], 'both a snippet and --file'];
        yield 'no file' => [['--file' => ''], '--file needs a path'];
        yield 'a URL' => [['--file' => 'data://text/plain,1'], 'no such file or directory'];
        yield 'no text' => [['snippet' => '1', '--bootstrap' => ['a']], 'for --bootstrap: a text is needed'];
        yield 'no such file' => [['--file' => '/nowhere'], 'from --file=/nowhere: no such file or directory'];
        yield 'a directory' => [['--file' => '/'], 'from --file=/: is a directory'];
        yield 'no such format' => [['snippet' => '1', '--format' => "xml\x1b"], 'is no format xml\x1b; there are'];
        yield 'no number' => [['snippet' => '1', '--timeout-ms' => 'soon'], "'soon' for --timeout-ms: a whole number"];
        yield 'a fraction' => [['snippet' => '1', '--memory-mb' => '1.5'], "'1.5' for --memory-mb: a whole number"];
        yield 'a bootstrap outside' => [['snippet' => '1', '--bootstrap' => '/etc/passwd'], '/etc/passwd'];
    }

    public function testAProjectThatIsNoneIsRefused(): void
    {
        $tester = $this->console(['snippet' => '1'], [], '/no/such/project');

        self::assertSame([2, ''], [$tester->getStatusCode(), $tester->getDisplay()]);
        self::assertStringContainsString('/no/such/project cannot be used', $tester->getErrorOutput());
    }

    public function testWrongUsageIsSaidQuietlyToo(): void
    {
        $tester = $this->console(['snippet' => '1', '--format' => 'xml', '--quiet' => true]);

        self::assertSame(2, $tester->getStatusCode());
        self::assertStringContainsString('there is no format xml', $tester->getErrorOutput());
        self::assertSame('', $this->console(['snippet' => 'exit(3);', '--quiet' => true])->getDisplay());
    }

    public function testAProgramMayGiveValuesOfOtherTypes(): void
    {
        $tester = $this->console(['snippet' => 5, '--writes' => 1, '--timeout-ms' => 5000]);

        self::assertStringStartsWith("✓ int = 5\n", $tester->getDisplay());
    }

    public function testItsFormatsAreCompleted(): void
    {
        $suggested = (new CommandCompletionTester(new EvalCommand()))->complete(['--format=']);
        self::assertSame(['human', 'json', 'compact'], $suggested);
    }

    public function testTheConsoleOfAKernelHasItAndItEvaluatesInTheProjectOfTheKernel(): void
    {
        $application = new TemporaryApplication(Library::symfony());
        $console = static fn (string $environment, string ...$arguments): Script => new Script(
            'chdir("/"); require "$root/../../tests/bootstrap.php"; chdir("/tmp");
            require ' . var_export($application->path('vendor/autoload.php'), true) . ';
            $_SERVER["argv"] = ' . var_export(['console', ...$arguments], true) . ';
            putenv("GITHUB_TOKEN=of the caller");
            $kernel = new App\Kernel("' . $environment . '", true);
            (new Symfony\Bundle\FrameworkBundle\Console\Application($kernel))->run();',
        );

        [$exitCode, $output, $errors] = $console('dev', 'eval', 'container(App\Greeter::class)->hello()')->end();
        self::assertSame([0, ''], [$exitCode, $errors], $output);
        self::assertStringStartsWith("✓ string = 'hello'\n", $output);

        // In the kernel's own environment, wherever that is from.
        [$exitCode, $output] = $console('test', 'eval', 'container(App\Clock::class)->in')->end();
        self::assertStringStartsWith("✓ string = 'test'\n", $output);

        // Its own option env names an environment: that of the command has another name, also where it is told.
        $snippet = 'getenv("GITHUB_TOKEN") === "of the caller"';
        [, $output] = $console('dev', 'eval', $snippet)->end();
        self::assertStringContainsString('--pass-env=GITHUB_TOKEN', $output);
        [, $output] = $console('dev', 'eval', '--pass-env=GITHUB_TOKEN', $snippet)->end();
        self::assertStringStartsWith("✓ bool = true\n", $output);

        [, $output] = $console('dev', 'list', '--raw')->end();
        self::assertMatchesRegularExpression('/^eval +Evaluate a PHP snippet in the application/m', $output);

        [$exitCode, $output] = $console('dev', 'help', 'eval')->end();
        self::assertSame(0, $exitCode);
        self::assertStringContainsString('--timeout-ms=TIMEOUT-MS', $output);
        self::assertStringContainsString('container(App\Repository\UserRepository::class)', $output);
    }

    /**
     * @param array<string, mixed> $arguments
     * @param array<string, mixed> $options of the tester
     */
    private function console(array $arguments, array $options = [], ?string $root = null): ApplicationTester
    {
        $console = new Application();
        $console->setAutoExit(false);
        $console->add(new EvalCommand(projectRoot: $root ?? $this->application->root));
        $tester = new ApplicationTester($console);
        $tester->run(['command' => 'eval', ...$arguments], ['capture_stderr_separately' => true, ...$options]);

        return $tester;
    }
}
