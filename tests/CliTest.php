<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\EvalRequest;
use Altair\Eval\Evaluator;
use Altair\Eval\Tests\Support\Command;
use Altair\Eval\Tests\Support\TemporaryApplication;
use PHPUnit\Framework\TestCase;

/**
 * `altair eval` with a real child: what it prints, and what it exits with. Its options are in CliOptionsTest, wrong
 * usage is in CliUsageTest.
 */
final class CliTest extends TestCase
{
    private TemporaryApplication $application;

    protected function setUp(): void
    {
        $this->application = new TemporaryApplication();
    }

    /**
     * @dataProvider headlines
     */
    public function testTheFirstLineSaysHowItEnded(string $snippet, string $headline, int $exitCode): void
    {
        $command = $this->eval($snippet);

        self::assertSame([$headline, $exitCode, ''], [$command->headline(), $command->exitCode, $command->errors]);
    }

    /**
     * @return iterable<array{string, string, int}>
     */
    public static function headlines(): iterable
    {
        yield ['$a = 1; unset($a);', '✓ null', 0];
        yield ['1 + 1', '✓ int = 2', 0];
        yield ['return 1.5;', '✓ float = 1.5', 0];
        yield ['return true;', '✓ bool = true', 0];
        yield ['return "x";', "✓ string = 'x'", 0];
        yield ['return [1, 2];', '✓ array(2)', 0];
        yield ['return new ArrayIterator([]);', '✓ iterable ArrayIterator (0)', 0];
        yield ['return new stdClass();', '✓ object stdClass', 0];
        yield ['throw new RuntimeException("boom");', '✗ RuntimeException: boom', 1];
        yield ['trigger_error("bad", E_USER_ERROR);', '✗ Fatal: bad', 1];
        yield ['exit(3);', '✗ Exited 3.', 1];
        yield ['exit(0);', '✓ Exited 0.', 0];
    }

    public function testATimeoutSaysAfterHowLong(): void
    {
        $command = $this->eval('while (true);', '--timeout-ms=400');

        self::assertMatchesRegularExpression('/^✗ Timed out after \d+ms\.$/u', $command->headline());
        self::assertSame(1, $command->exitCode);
    }

    public function testNestedValuesFollowAsATree(): void
    {
        $command = $this->eval('return ["a" => [1, "x"], "b" => null];');

        self::assertStringStartsWith(
            "✓ array(2)\n  a: array(2)\n    0: int = 1\n    1: string = 'x'\n  b: null\n",
            $command->output,
        );
    }

    public function testTheFiguresFollowTheValue(): void
    {
        $lines = explode("\n", $this->eval('return 1;')->output);

        self::assertMatchesRegularExpression('/^  duration=\d+ms  memory=[1-9]\d+ KB  exit=0$/', $lines[1]);
    }

    public function testThePlaceAndTheTraceOfAnExceptionFollow(): void
    {
        $command = $this->eval("function f(\$secret) {\n    throw new LogicException('no');\n}\nf('hunter2');");

        self::assertStringContainsString("  at snippet:2\n", $command->output);
        self::assertStringContainsString('f (snippet:4)', $command->output);
        self::assertStringNotContainsString('hunter2', $command->output);
    }

    public function testOutputAndErrorsOfTheSnippetFollowUnderTheirHeadings(): void
    {
        $command = $this->eval('echo "hello\n"; fwrite(STDERR, "oops\n"); return 1;');

        self::assertStringContainsString("\n— stdout —\nhello\n— stderr —\noops\n", $command->output);
        self::assertSame('', $command->errors);
        self::assertStringNotContainsString('—', $this->eval('return 1;')->output);
    }

    public function testJsonIsTheResultsArrayAndNothingElse(): void
    {
        $snippet = 'echo "o"; fwrite(STDERR, "e"); return ["k" => new stdClass(), "l" => []];';
        $array = (new Evaluator())->evaluate(new EvalRequest($snippet, $this->application->root, 60000))->toArray();

        $command = $this->eval($snippet, '--format=json');
        $json = $command->json();

        self::assertSame(array_keys($array), array_keys($json));
        $same = ['ok' => 1, 'result' => 1, 'stdout' => 1, 'stderr' => 1, 'exception' => 1, 'exit_code' => 1];
        self::assertSame(
            json_decode((string) json_encode(array_intersect_key($array, $same)), true),
            array_intersect_key($json, $same),
        );
        self::assertSame(array_keys($array['diagnostics']), array_keys($json['diagnostics']));
        self::assertStringContainsString('"properties":{}', $command->output);
        self::assertStringContainsString('"value":[]', $command->output);
        self::assertStringStartsWith('{"ok":true,', $command->output);
        self::assertSame(1, substr_count($command->output, "\n"));
        self::assertStringEndsWith("}\n", $command->output);
        self::assertSame([0, ''], [$command->exitCode, $command->errors]);
    }

    public function testJsonIsPrintedHoweverItEnds(): void
    {
        foreach (
            [
                'threw' => 'throw new Exception("x");',
                'exited' => 'exit(3);',
                'fatal' => 'trigger_error("x", E_USER_ERROR);',
                'signalled' => 'posix_kill(getmypid(), SIGKILL);',
            ] as $outcome => $snippet
        ) {
            $command = $this->eval($snippet, '--format=json');

            self::assertSame($outcome, $command->json()['diagnostics']['outcome']);
            self::assertFalse($command->json()['ok']);
            self::assertSame([1, ''], [$command->exitCode, $command->errors]);
        }
    }

    public function testControlCharactersAreNeverPrintedRaw(): void
    {
        $controls = implode('', array_map(chr(...), [...range(0, 8), ...range(11, 31), 127]))
            . "\u{80}\u{9b}\u{9f}\r\x1b]0;title\x07\x1b[31m";
        $code = var_export($controls, true);
        foreach (
            [
                "return $code;",
                "return [$code => $code];",
                "return (object) [\"a\" . $code => 1];",
                "echo $code; fwrite(STDERR, $code);",
                "throw new Exception($code);",
                "trigger_error($code, E_USER_ERROR);",
                "eval($code);",
                "yield_$code",
            ] as $snippet
        ) {
            $command = $this->eval('--file=-', input: $snippet);

            self::assertDoesNotMatchRegularExpression(
                '/[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]/',
                $command->output . $command->errors,
            );
        }
    }

    public function testThereIsColourOnATerminalOnly(): void
    {
        $snippet = 'throw new Exception("x\x07");';

        self::assertStringContainsString("\x1b[", $this->onATerminal($snippet, []));
        self::assertStringNotContainsString("\x1b", $this->onATerminal($snippet, ['NO_COLOR' => '1']));
        self::assertStringNotContainsString("\x1b", $this->onATerminal($snippet, ['TERM' => 'dumb']));
        self::assertStringNotContainsString("\x1b", $this->eval($snippet)->output);
        self::assertStringNotContainsString("\x07", $this->onATerminal($snippet, []));
    }

    public function testItEvaluatesTheApplicationOfTheWorkingDirectory(): void
    {
        $command = Command::run(
            ['eval', 'container(Shop\UserRepository::class)->findByEmail("ada@shop.example")'],
            dirname(__DIR__) . '/examples/shop',
        );

        self::assertSame('✓ object Shop\User', $command->headline());
        self::assertStringContainsString("  name: string = 'Ada'\n", $command->output);
        self::assertSame(0, $command->exitCode);
    }

    public function testBootThatFailsIsNotWrongUsage(): void
    {
        $this->application->remove('vendor');

        $command = $this->eval('return 1;');

        self::assertStringStartsWith('✗ Boot failed: ', $command->output);
        self::assertStringContainsString('vendor/autoload.php', $command->headline());
        self::assertSame([1, ''], [$command->exitCode, $command->errors]);
    }

    private function eval(string $argument, string $option = '--', string $input = ''): Command
    {
        // An option goes before, and `--` keeps a snippet from being taken for one.
        $arguments = str_starts_with($argument, '--') ? [$argument] : [$option, $argument];

        return Command::run(['eval', ...$arguments], $this->application->root, $input);
    }

    /**
     * @param array<string, string> $environment
     */
    private function onATerminal(string $snippet, array $environment): string
    {
        $environment += ['TERM' => 'xterm'] + getenv();
        $terminal = proc_open(
            [dirname(__DIR__) . '/bin/altair', 'eval', $snippet],
            [['file', '/dev/null', 'r'], ['pty'], ['file', '/dev/null', 'w']],
            $pipes,
            $this->application->root,
            $environment,
        );
        self::assertIsResource($terminal);
        $output = '';
        // A terminal without a program on it cannot be read: that is an error, and its end.
        while (($more = @fread($pipes[1], 65536)) !== false && $more !== '') {
            $output .= $more;
        }
        self::assertSame(1, proc_close($terminal));

        return $output;
    }
}
