<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\Exception\InvalidRequestException;
use Altair\Eval\Tests\Support\Command;
use Altair\Eval\Tests\Support\EvaluationTestCase;

/**
 * Arguments of a request are variables of the snippet's function.
 */
final class ArgumentsTest extends EvaluationTestCase
{
    /** What a value is, in a text that tells any two apart. */
    private const EXACT = 'static $exact = null; $exact ??= function ($v) use (&$exact) { return match (true) {'
        . ' is_float($v) => "float " . bin2hex(pack("E", $v)), is_string($v) => "string " . bin2hex($v),'
        . ' is_array($v) => "[" . implode(", ", array_map(fn ($k, $i) => $exact($k) . " => " . $exact($i),'
        . ' array_keys($v), $v)) . "]", default => gettype($v) . " " . json_encode($v) }; };';

    /**
     * @dataProvider values
     */
    public function testTheyComeThroughExactly(mixed $value): void
    {
        eval(self::EXACT);
        $expected = $exact($value);

        self::assertSame($expected, $this->value(self::EXACT . ' return $exact($v);', arguments: ['v' => $value]));
    }

    public static function values(): iterable
    {
        yield 'null' => [null];
        yield 'booleans' => [[true, false]];
        yield 'integers' => [[0, -1, PHP_INT_MAX, PHP_INT_MIN]];
        yield 'floats' => [[0.1, -0.0, 1e308, 5e-324, 2.0, NAN, INF, -INF]];
        yield 'a NaN of its own' => [unpack('E', "\x7f\xf8\x00\x00\x00\x00\x12\x34")[1]];
        yield 'texts' => [['', 'a', "quotes ' \" \\ \$x {\$y}", "\0", "\xFF\xFE", "?> <?php\nX;"]];
        yield 'keys' => [['7' => 1, '07' => 2, '-3' => 3, '-0' => 4, '' => 5, "\xFF" => 6, 1 => 7, 'a' => 8]];
        yield 'large keys' => [[PHP_INT_MAX => 1, PHP_INT_MIN => 2, '9223372036854775808' => 3]];
        yield 'nested' => [[[], [[]], ['a' => ['b' => [1.5, null]]]]];
        yield 'deep' => [array_reduce(range(1, 63), static fn ($inner) => [$inner])];
    }

    public function testTheyAreVariablesLikeAnyOther(): void
    {
        $arguments = ['a' => 1, 'été' => 'x', 'list' => [1]];

        self::assertSame($arguments, $this->value('return get_defined_vars();', arguments: $arguments));
        self::assertSame($arguments, $this->value('return compact("a", "été", "list");', arguments: $arguments));
        self::assertSame([2, 1], $this->value(
            '$before = $a; $r = &$a; $r++; return [$a, $before];',
            arguments: $arguments,
        ));
        self::assertSame([[1, 2], [1]], $this->value(
            '$copy = $list; $list[] = 2; return [$list, $copy];',
            arguments: $arguments,
        ));
        self::assertSame('x', $this->value('$name = "été"; return $$name;', arguments: $arguments));
        self::assertSame([false, false], $this->value(
            'return [isset($GLOBALS["a"]), (function () { return isset($a); })()];',
            arguments: $arguments,
        ));
        self::assertSame(3, $this->value('namespace A; $n = 2; $a + $n', arguments: $arguments));
        self::assertSame([], $this->value('unset($a); return get_defined_vars();', arguments: ['a' => 1]));
    }

    public function testTheCommandLineGivesTextsAndJson(): void
    {
        $snippet = self::EXACT . ' return $exact([$text, $bytes, $json]);';
        $command = Command::run([
            'eval', '--format=json', '--arg', 'text=7=8', '--arg', "bytes=\xFF'", '--arg-json',
            'json={"7":[1.0,-0.0,18446744073709551616,null],"":"\u0000"}', $snippet,
        ], $this->application()->root);

        eval(self::EXACT);
        $expected = $exact(['7=8', "\xFF'", ['7' => [1.0, -0.0, 1.8446744073709551616E19, null], '' => "\0"]]);
        self::assertSame($expected, json_decode($command->output, true)['result']['value'] ?? $command->errors);
    }

    public function testTheyAreNotCode(): void
    {
        $text = '\'; throw new Exception("ran"); "${x}';

        self::assertSame($text, $this->value('$v', arguments: ['v' => $text]));
    }

    /**
     * @dataProvider wrong
     */
    public function testWhatCannotBeAVariableIsRefused(array $arguments, string $why): void
    {
        $this->expectException(InvalidRequestException::class);
        $this->expectExceptionMessage($why);

        $this->evaluate('1', arguments: $arguments);
    }

    public static function wrong(): iterable
    {
        yield 'this' => [['this' => 1], '$this'];
        $superglobals = ['GLOBALS', '_GET', '_POST', '_COOKIE', '_FILES', '_SERVER', '_REQUEST', '_ENV', '_SESSION'];
        foreach ($superglobals as $name) {
            yield $name => [[$name => 1], "\"$name\" cannot be an argument's name"];
        }
        yield 'digit' => [['1x' => 1], '1x'];
        yield 'empty' => [['' => 1], 'name'];
        yield 'list' => [[1, 2], 'name'];
        yield 'not UTF-8' => [["\xFF" => 1], 'not UTF-8'];
        yield 'object' => [['o' => (object) []], 'o'];
        yield 'object inside' => [['o' => [[new \ArrayObject()]]], 'o'];
        yield 'closure' => [['f' => static fn () => 1], 'f'];
        yield 'ten megabytes' => [['text' => str_repeat('x', 10 << 20)], '1024 KiB'];
        yield 'many' => [['list' => range(1, 100000)], '65536 values'];
        yield 'deep' => [['deep' => array_reduce(range(1, 70), static fn ($inner) => [$inner])], 'nested'];
    }

    public function testArraysThatShareTheirItemsAreRefusedInTime(): void
    {
        $shared = [1];
        for ($i = 0; $i < 60; $i++) {
            $shared = [$shared, $shared];
        }
        $this->expectException(InvalidRequestException::class);
        $this->expectExceptionMessage('values');

        $this->evaluate('1', arguments: ['v' => $shared]);
    }

    public function testAnArrayThatContainsItselfIsRefused(): void
    {
        $loop = [];
        $loop['own'] = &$loop;
        $this->expectException(InvalidRequestException::class);

        $this->evaluate('1', arguments: ['loop' => $loop]);
    }

    public function testTheMemoryLimitHoldsForThem(): void
    {
        $arguments = ['text' => str_repeat('x', 1 << 19)];

        $whole = '$all = []; for (;;) { $all[] = $text . count($all); }';
        $result = $this->evaluate($whole, arguments: $arguments, memoryLimitMb: 16);

        self::assertOutcome('out_of_memory', $result, 255);
    }

    public function testTheSameSnippetWithOthersGivesOthers(): void
    {
        foreach ([1, 2] as $n) {
            self::assertSame($n, $this->value('$n', arguments: ['n' => $n]));
        }
        self::assertStringContainsString('Undefined variable $n', $this->evaluate('$n')->stderr);
    }
}
