<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\EvalResult;
use Altair\Eval\Support\HumanOutput;
use Error;
use PHPUnit\Framework\TestCase;
use ReflectionClass;
use TypeError;

/**
 * `Altair\Eval\Support\HumanOutput`, on results of any making. What it prints of real ones, tests/Cli compares with the
 * command's.
 */
final class HumanOutputTest extends TestCase
{
    /**
     * @dataProvider results
     */
    public function testItSaysHowItEnded(EvalResult $result, string $headline): void
    {
        self::assertSame($headline, HumanOutput::headline($result));
        self::assertStringContainsString(" $headline\n", HumanOutput::render($result));
    }

    /**
     * @return iterable<string, array{EvalResult, string}>
     */
    public static function results(): iterable
    {
        $int = ['type' => 'int', 'value' => 2];
        $thrown = ['class' => 'App\Bad', 'message' => "a\nb"];
        yield 'nothing' => [self::resultWith(), 'null'];
        yield 'a value' => [self::resultWith(result: $int), 'int = 2'];
        yield 'an exception' => [self::resultWith(exception: $thrown, exitCode: 1), 'App\Bad: a\nb'];
        yield 'a deadline' => [self::resultWith(exitCode: 124, timedOut: true), 'Timed out after 3ms.'];
        yield 'another exit code' => [self::resultWith(exitCode: 9), 'Exited 9.'];
        $told = ['outcome' => 'signalled', 'signal' => 11];
        yield 'what is told' => [self::resultWith(exitCode: 139, diagnostics: $told), 'Killed by signal 11 (SIGSEGV).'];
        yield 'a code that is none' => [self::resultWith(exitCode: 1 << 32), 'Exited ' . 0x7fffffff . '.'];
        yield 'an exception without anything' => [self::resultWith(exception: []), 'Threw.'];
        $told = ['outcome' => 'fatal', 'message' => 'boom', 'timings_ms' => [], 'guards' => [], 'signal' => '9'];
        yield 'what is told oddly' => [self::resultWith(diagnostics: $told), 'Fatal: boom'];
        $deep = array_reduce(range(1, 200), static fn (mixed $inner): array => [$inner], 1);
        yield 'too deep' => [self::resultWith($deep, exitCode: 3, diagnostics: ['outcome' => 'fatal']), 'Fatal.'];
        yield 'a deep value' => [self::resultWith($deep), '"(result is nested too deep)"'];
        $odd = ['outcome' => 'unheard of', 'blocked' => 7];
        yield 'what nobody tells' => [self::resultWith(exitCode: 2, diagnostics: $odd), 'Exited 2.'];
        yield 'odd shapes' => [self::resultWith(['x' => [1, 2.5, null]]), '{"x":[1,2.5,null]}'];
        $float = ['type' => 'float', 'value' => -1.0];
        yield 'a whole float' => [self::resultWith(result: $float), 'float = -1.0'];
    }

    public function testNothingOfASnippetReachesATerminalRaw(): void
    {
        $result = self::resultWith(
            ['type' => 'string', 'value' => "\e]0;x\x07\u{202e}"],
            stdout: "out\e[2J\xff",
            exception: ['class' => "C\e", 'message' => "\x9b", 'file' => "\e", 'line' => "\e"],
            diagnostics: ['outcome' => 'threw', 'message' => "\e", 'guards' => ["\e" => "\e"]],
        );

        self::assertDoesNotMatchRegularExpression('/[\x00-\x09\x0b-\x1f\x7f]|\x{202e}/u', HumanOutput::render($result));
        self::assertSame('a\n\x1b\u{202e}\u{fffd}b', str_replace(
            "\u{fffd}",
            '\u{fffd}',
            HumanOutput::line("a\n\e\u{202e}\xffb"),
        ));
    }

    public function testColourIsAskedFor(): void
    {
        self::assertStringNotContainsString("\e", HumanOutput::render(self::resultWith()));
        self::assertStringContainsString("\e[", HumanOutput::render(self::resultWith(), color: true));
        self::assertStringNotContainsString("\e", HumanOutput::headline(self::resultWith()));
    }

    public function testAResultWithoutItsConstructorIsNone(): void
    {
        $result = (new ReflectionClass(EvalResult::class))->newInstanceWithoutConstructor();

        $this->expectException(Error::class);
        $this->expectExceptionMessage('never constructed');
        HumanOutput::render($result);
    }

    public function testWhatIsNoResultIsATypeError(): void
    {
        $this->expectException(TypeError::class);
        HumanOutput::headline((object) []);
    }

    private static function resultWith(mixed ...$values): EvalResult
    {
        $values += [
            0 => null, 'stdout' => '', 'stderr' => '', 'exception' => null, 'durationMs' => 3,
            'memoryPeakBytes' => 2048, 'exitCode' => 0, 'timedOut' => false,
        ];
        $values = ['result' => $values['result'] ?? $values[0]] + $values;
        unset($values[0]);

        return new EvalResult(...$values);
    }
}
