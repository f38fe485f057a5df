<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\EvalRequest;
use Altair\Eval\Evaluator;
use Altair\Eval\Exception\LaunchException;
use Altair\Eval\Support\CommandLine;
use Altair\Eval\Tests\Support\TemporaryApplication;
use PHPUnit\Framework\TestCase;
use TypeError;

/**
 * bin/altair where no native command is built: a PHP with the extension runs the same command line.
 */
final class BinFallbackTest extends TestCase
{
    /** Takes the place of the native command: tells its name. */
    private const NATIVE = "#!/bin/sh\nprintf native\nexit 7\n";

    /** All that is on PATH beside PHP: the system's own directories may hold an installed `altair`. */
    private const TOOLS = ['sh', 'timeout'];

    private TemporaryApplication $clone;

    protected function setUp(): void
    {
        $this->clone = new TemporaryApplication();
        $this->clone->write('bin/altair', (string) file_get_contents(dirname(__DIR__) . '/bin/altair'), 0755);
        mkdir($this->clone->path('tools'));
        foreach (self::TOOLS as $tool) {
            symlink(trim((string) shell_exec("command -v $tool")), $this->clone->path("tools/$tool"));
        }
    }

    public function testThePhpOnPathRunsWithTheExtensionThatTheCloneBuilt(): void
    {
        $this->phpIs(PHP_BINARY);
        $this->buildTheExtension();

        [$exitCode, $output, $errors] = $this->eval('return 1 + 1;');

        self::assertSame([0, "✓ int = 2", ''], [$exitCode, strtok($output, "\n"), $errors]);
    }

    public function testAPhpThatHasTheExtensionNeedsNoneFromTheClone(): void
    {
        $this->phpHasTheExtension();

        [$exitCode, $output, $errors] = $this->eval('return 1 + 1;');

        self::assertSame([0, "✓ int = 2", ''], [$exitCode, strtok($output, "\n"), $errors]);
    }

    public function testTheServerForAgentsNeedsTheNativeCommand(): void
    {
        $this->phpHasTheExtension();

        [$exitCode, $output, $errors] = $this->launch(['mcp:serve']);

        self::assertSame([2, ''], [$exitCode, $output]);
        self::assertMatchesRegularExpression('/^altair: mcp:serve needs the native command.*make build.*\n$/', $errors);
    }

    public function testTheExtensionIsNotLoadedTwice(): void
    {
        $this->phpHasTheExtension();
        $this->buildTheExtension();

        [$exitCode, $output, $errors] = $this->launch(['--version']);

        self::assertSame([0, ''], [$exitCode, $errors]);
        self::assertStringStartsWith('altair ', $output);
    }

    public function testWhatPhpComplainsAboutWhenItStartsIsNotOutput(): void
    {
        $this->phpHasTheExtension('-d display_errors=1 -d display_startup_errors=1 -d extension=/nowhere.so');

        [$exitCode, $output, $errors] = $this->launch(['--version']);

        self::assertSame([0, 1], [$exitCode, substr_count($output, "\n")], $output);
        self::assertStringStartsWith('altair ', $output);
        self::assertStringContainsString('/nowhere.so', $errors);
    }

    public function testANativeCommandGoesBeforeIt(): void
    {
        $this->phpHasTheExtension();
        $this->buildTheExtension();

        $this->clone->write('tools/altair', self::NATIVE, 0755);
        self::assertSame([7, 'native', ''], $this->launch(['--help']), 'on PATH');

        $this->clone->remove('tools/altair');
        $this->clone->write('target/release/altair', self::NATIVE, 0755);
        self::assertSame([7, 'native', ''], $this->launch(['--help']), 'of the clone');

        $this->clone->remove('target/release/altair');
        self::assertStringContainsString('Usage: altair', $this->launch(['--help'])[1], 'none');
    }

    public function testAPhpWithoutTheExtensionIsTheMessageThatNothingIsBuilt(): void
    {
        $this->phpIs(PHP_BINARY);

        self::assertSame([2, '', $this->notBuilt()], $this->launch(['eval', 'return 1;']));
    }

    public function testAPhpThatIsALauncherOfThisOneDoesNotRunItForEver(): void
    {
        $launcher = $this->clone->path('bin/altair');
        $this->clone->write('tools/php', "#!/bin/sh\n'$launcher' \"\$@\"\n", 0755);
        self::assertSame([2, '', $this->notBuilt()], $this->launch(['--help']), 'not built');

        $this->buildTheExtension();
        self::assertSame([2, '', $this->notBuilt()], $this->launch(['--help']), 'with the extension');
    }

    /**
     * @dataProvider commandLines
     * @param list<string> $arguments
     */
    public function testItSaysWhatTheNativeCommandSays(int $exitCode, array $arguments): void
    {
        $this->phpIs(PHP_BINARY);
        $this->buildTheExtension();

        $ended = $this->launch($arguments);

        self::assertSame($exitCode, $ended[0], $ended[2]);
        self::assertSame($this->execute([self::native(), ...$arguments]), $ended);
    }

    /**
     * @return iterable<string, array{int, list<string>}>
     */
    public static function commandLines(): iterable
    {
        yield 'help' => [0, ['--help']];
        yield 'help of a command' => [0, ['eval', '--help']];
        yield 'version' => [0, ['--version']];
        yield 'completions' => [0, ['completions', 'bash']];
        yield 'nothing at all' => [2, []];
        yield 'nothing to run' => [2, ['eval']];
        yield 'a slip' => [2, ['eval', '--wirtes', 'x']];
        yield 'an option of PHP' => [2, ['-v']];
        yield 'the end of options first' => [2, ['--', '--version']];
        yield 'spaces, line feeds and quotes' => [2, ["two  words\n'\"\$HOME\\", '', "\xff"]];
        yield 'a missing root' => [2, ['eval', '--root=/nowhere', '--', '-1 + 2']];
        yield 'no log' => [0, ['events:tail', '--root=/']];
    }

    public function testTheSnippetArrivesAsItIs(): void
    {
        $this->phpIs(PHP_BINARY);
        $this->buildTheExtension();

        foreach (["-1 + 2", "'two  words'", "\"line\nfeed \$argc\"", "'--help'"] as $snippet) {
            $result = json_decode($this->eval($snippet, '--format=json')[1], true);
            self::assertSame(eval("return @$snippet;"), $result['result']['value'] ?? $result, $snippet);
        }
    }

    public function testAnAnswerAsJsonHasTheShapeOfTheNativeOne(): void
    {
        $this->phpIs(PHP_BINARY);
        $this->buildTheExtension();

        $arguments = $this->arguments('throw new LogicException("no");', '--format=json');
        $fallback = $this->launch($arguments);
        $native = $this->execute([self::native(), ...$arguments]);

        self::assertSame([1, ''], [$fallback[0], $fallback[2]]);
        self::assertSame([1, ''], [$native[0], $native[2]]);
        self::assertSame(self::keys($native[1]), self::keys($fallback[1]));
    }

    public function testStandardInputIsReadToItsEnd(): void
    {
        $this->phpIs(PHP_BINARY);
        $this->buildTheExtension();
        $input = $this->clone->write('snippet.php', '<?php return "' . str_repeat('x', 100_000) . '" === "" ? 0 : 5;');

        [, $output] = $this->launch(['eval', '--root=' . $this->clone->root, '--file=-'], $input);

        self::assertSame('✓ int = 5', strtok($output, "\n"));
    }

    public function testASnippetCannotRunTheCommandLine(): void
    {
        $code = 'return Altair\Eval\Support\CommandLine::run(["--version"]);';

        $result = (new Evaluator())->evaluate(new EvalRequest($code, $this->clone->root));

        self::assertSame(LaunchException::class, $result->exception['class'] ?? $result->diagnostics);
        self::assertSame('', $result->stdout);
    }

    public function testAnArgumentThatIsNoStringIsRefused(): void
    {
        $this->expectException(TypeError::class);
        $this->expectExceptionMessage('Argument #1 ($arguments) must be a list of strings');

        CommandLine::run(['eval', 1]);
    }

    private function phpIs(string $binary): void
    {
        symlink($binary, $this->clone->path('tools/php'));
    }

    /** As an ini file of the system has it. */
    private function phpHasTheExtension(string $more = ''): void
    {
        $php = sprintf("exec '%s' -d 'extension=%s' %s \"\$@\"", PHP_BINARY, getenv('EXTENSION'), $more);
        $this->clone->write('tools/php', "#!/bin/sh\n$php\n", 0755);
    }

    private function buildTheExtension(): void
    {
        mkdir($this->clone->path('target/release'), recursive: true);
        copy((string) getenv('EXTENSION'), $this->clone->path('target/release/libaltair_eval.so'));
    }

    private function notBuilt(): string
    {
        return "altair: the native command is not built: run `make build` in {$this->clone->root}, or `make install` "
            . "there.\n";
    }

    private static function native(): string
    {
        return dirname((string) getenv('EXTENSION')) . '/altair';
    }

    /**
     * @return list<string>
     */
    private function arguments(string $snippet, string ...$options): array
    {
        return ['eval', '--timeout-ms=60000', '--root=' . $this->clone->root, ...$options, '--', $snippet];
    }

    /**
     * @return array{int, string, string}
     */
    private function eval(string $snippet, string ...$options): array
    {
        return $this->launch($this->arguments($snippet, ...$options));
    }

    /**
     * @param list<string> $arguments
     * @return array{int, string, string}
     */
    private function launch(array $arguments, string $input = '/dev/null'): array
    {
        return $this->execute([$this->clone->path('bin/altair'), ...$arguments], $input);
    }

    /**
     * @param list<string> $command
     * @return array{int, string, string} exit code, output, errors
     */
    private function execute(array $command, string $input = '/dev/null'): array
    {
        [$out, $err] = [$this->clone->path('out'), $this->clone->path('err')];
        $environment = getenv();
        unset($environment['ALTAIR_NATIVE'], $environment['ALTAIR_LAUNCHER']);
        // A launcher that runs itself for ever must fail the test, not hang it.
        $process = proc_open(
            ['timeout', '--kill-after=1', '60', ...$command],
            [['file', $input, 'r'], ['file', $out, 'w'], ['file', $err, 'w']],
            $pipes,
            '/',
            ['PATH' => $this->clone->path('tools')] + $environment,
        );
        self::assertIsResource($process);

        return [proc_close($process), (string) file_get_contents($out), (string) file_get_contents($err)];
    }

    /**
     * @return array<string, mixed> the names in an answer, without those in lists and what they stand for
     */
    private static function keys(string $json): array
    {
        $keys = static fn (array $of): array => array_map(
            static fn (mixed $value): mixed => is_array($value) && !array_is_list($value) ? array_keys($value) : null,
            $of,
        );

        return $keys(json_decode($json, true, flags: JSON_THROW_ON_ERROR));
    }
}
