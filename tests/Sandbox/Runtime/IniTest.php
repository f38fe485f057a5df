<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Sandbox\Runtime;

use Altair\Eval\Tests\Support\AnyText;
use Altair\Eval\Tests\Support\RuntimeTestCase;
use Altair\Eval\Tests\Support\Script;
use Altair\Sandbox\Exception;
use Altair\Sandbox\Runtime;
use Exception as AnyException;
use LogicException;
use stdClass;

/**
 * The ini settings of an isolated PHP: as from its configuration file.
 */
final class IniTest extends RuntimeTestCase
{
    /**
     * @dataProvider functions
     */
    public function testFunctionsAreDisabledByAListOrAString(mixed $functions): void
    {
        $runtime = $this->runtime(['disable_functions' => $functions]);

        self::assertSame([false, false, true], $runtime->enter(static fn (): array => [
            function_exists('strrev'),
            function_exists('str_rot13'),
            function_exists('strtolower'),
        ]));
        self::assertStringContainsString(
            'Call to undefined function strrev()',
            self::failure(static fn (): mixed => $runtime->enter(static fn (): string => \strrev('ab'))),
        );
        self::assertSame('ba', strrev('ab'), 'The caller has them.');
    }

    public static function functions(): iterable
    {
        yield 'a list' => [['strrev', 'str_rot13']];
        yield 'a list with keys' => [['a' => 'strrev', 7 => 'str_rot13']];
        yield 'a string' => ['strrev,str_rot13'];
        yield 'a string with blanks' => ['strrev, str_rot13'];
    }

    public function testClassesAreDisabledWherePhpCanDoThat(): void
    {
        $runtime = $this->runtime(['disable_classes' => ['SplStack', 'SplQueue']]);
        $methods = $runtime->enter(static fn (): int => count((array) get_class_methods('SplQueue')));

        self::assertSame(PHP_VERSION_ID < 80500, $methods === 0);
    }

    /**
     * @dataProvider casts
     */
    public function testOtherValuesAreCastToString(mixed $value, string $expected): void
    {
        $runtime = $this->runtime(['user_agent' => $value]);

        self::assertSame($expected, $runtime->enter(static fn (): mixed => ini_get('user_agent')));
    }

    public static function casts(): iterable
    {
        yield 'true' => [true, '1'];
        yield 'false' => [false, ''];
        yield 'null' => [null, ''];
        yield 'an integer' => [-7, '-7'];
        yield 'a float' => [1.5, '1.5'];
        yield 'an object' => [new AnyText('as text'), 'as text'];
    }

    /**
     * What an ini file would take for syntax.
     *
     * @dataProvider texts
     */
    public function testAValueArrivesAsItIs(string $value): void
    {
        $runtime = $this->runtime(['user_agent' => $value, 'default_mimetype' => 'after/it']);

        self::assertSame([$value, 'after/it'], $runtime->enter(static fn (): array => [
            ini_get('user_agent'),
            ini_get('default_mimetype'),
        ]));
    }

    public static function texts(): iterable
    {
        $texts = [
            'empty' => '', 'double quotes' => 'a"b"', 'a quote' => "it's", 'both' => "\"'\"", 'a backslash' => 'a\\b',
            'one at the end' => 'a\\', 'before a quote' => 'a\\"b',
            'quotes before a line' => "a\\\"\nprecision=3\n;", 'two' => '\\\\', 'a variable' => '${PATH}',
            'a dollar' => '$a $', 'a comment' => 'a;b #c', 'an equals sign' => 'a=b', 'lines' => "a\nb\r\nc",
            'a section' => "x\n[PHP]\nprecision=3", 'an operator' => '1|2&3^4~5!(6)', 'on' => 'on', 'none' => 'none',
            'blanks' => '  a  ', 'a constant' => 'E_ALL', 'bytes' => "\x01\xff\x80", 'long' => str_repeat('x"$', 5000),
        ];
        foreach ($texts as $name => $text) {
            yield $name => [$text];
        }
    }

    public function testNothingBesideASettingIsSet(): void
    {
        $value = "x\\\"\nprecision=3\n;";
        $runtime = $this->runtime(['user_agent' => $value, "precision=3\nuser_agent" => 'y']);

        self::assertSame([$value, '14'], $runtime->enter(static fn (): array => [
            ini_get('user_agent'),
            ini_get('precision'),
        ]));
    }

    public function testWhatIsNoSettingIsIgnored(): void
    {
        $runtime = $this->runtime([
            'extension' => '/nowhere/nothing.so',
            'zend_extension' => '/nowhere/nothing.so',
            'Extension' => '/nowhere/nothing.so',
            'no.such_setting' => 1,
            '' => 1,
            'precision' => ['3'],
            7 => 'user_agent=x',
            'altair_eval.channel' => '0',
            'altair_eval.omit' => 'seccomp',
        ]);

        [$output, $seen] = self::printed(static fn (): mixed => $runtime->enter(static fn (): array => [
            ini_get('no.such_setting'),
            ini_get('precision'),
            ini_get('user_agent'),
        ]));
        self::assertSame(['', [false, '14', '']], [$output, $seen]);
    }

    public function testASettingHoldsBeforeTheFirstEntry(): void
    {
        // Neither can be set later.
        $runtime = $this->runtime(['variables_order' => 'C', 'precision' => 3, 'memory_limit' => '64M']);

        self::assertSame(['C', '3', '64M'], $runtime->enter(static fn (): array => [
            ini_get('variables_order'),
            ini_get('precision'),
            ini_get('memory_limit'),
        ]));
    }

    public function testItHasTheSwitchesOfItsHostAndNotWhatIsSetAtRunTime(): void
    {
        $script = new Script($this->inFile(<<<'PHP'
            ini_set('altair_eval.warm', '0');
            ini_set('user_agent', 'run time');
            $own = new Altair\Sandbox\Runtime(['serialize_precision' => 5]);
            say($own->enter(static fn () => [
                ini_get('precision'), ini_get('serialize_precision'), ini_get('user_agent'),
                ini_get('arg_separator.output'),
            ]));
            PHP), ['-d', 'precision=9', '-d', 'serialize_precision=9', '-d', 'arg_separator.output="a;b"']);

        self::assertSame([0, "[\"9\",\"5\",\"\",\"a;b\"]\n", ''], $script->end());
    }

    /**
     * @dataProvider wrongSettings
     */
    public function testAnythingButOneArrayIsRefused(mixed ...$arguments): void
    {
        $message = 'optional configuration array expected';

        self::assertSame($message, self::failure(static fn (): Runtime => new Runtime(...$arguments)));
        $thrown = self::thrown(static fn (): Runtime => new \sandbox\Runtime(...$arguments));
        self::assertInstanceOf(\sandbox\Exception::class, $thrown);
        self::assertSame($message, $thrown->getMessage());
    }

    public static function wrongSettings(): iterable
    {
        yield 'a string' => ['precision=3'];
        yield 'null' => [null];
        yield 'a number' => [1];
        yield 'an object' => [new stdClass()];
        yield 'what is no switch' => [[], 'yes'];
        yield 'what is no path' => [[], true, 7];
        yield 'what is no list' => [[], true, null, 'localhost'];
        yield 'more than there is' => [[], true, null, [], 1];
    }

    public function testANulByteIsRefused(): void
    {
        $message = self::failure(static fn (): Runtime => new Runtime(['user_agent' => "a\0b"]));

        self::assertStringStartsWith('optional configuration array expected', $message);
    }

    public function testAnExceptionOfACastIsTheCallers(): void
    {
        $thrown = self::thrown(static fn (): Runtime => new Runtime(['user_agent' => new AnyText(null)]));

        self::assertInstanceOf(LogicException::class, $thrown);
        self::assertNotInstanceOf(Exception::class, $thrown);
        self::assertInstanceOf(AnyException::class, $thrown);
    }
}
