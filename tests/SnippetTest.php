<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\Tests\Support\EvaluationTestCase;

/**
 * How a snippet is compiled and in which surroundings it runs.
 */
final class SnippetTest extends EvaluationTestCase
{
    public function testItIsCompiledUnderItsNameFromTheCallersFirstLine(): void
    {
        self::assertSame(['snippet', 1], $this->value('return [__FILE__, __LINE__];'));
        self::assertSame(['snippet', 3], $this->value("<?php\n\nreturn [__FILE__, __LINE__];"));
        self::assertSame(['snippet', 2], $this->value("#!/usr/bin/env php\n<?php return [__FILE__, __LINE__];"));
        self::assertSame(['snippet', 2], $this->value("\r\nreturn [__FILE__, __LINE__];"));
    }

    public function testVariablesOfTheWrapperAreNotVisible(): void
    {
        self::assertSame([], $this->value('return get_defined_vars();'));
        self::assertSame(['x'], $this->value('$x = 1; return array_keys(get_defined_vars());'));
    }

    public function testItRunsInsideAFunctionScope(): void
    {
        $this->application(['vendor/autoload.php' => '<?php $seen = 1; $GLOBALS["booted"] = 2;']);

        self::assertSame([false, 2], $this->value('return [isset($seen), $GLOBALS["booted"]];'));
        self::assertSame([false, 2], $this->value(
            '$own = 1; global $booted; return [isset($GLOBALS["own"]), $booted];',
        ));
        self::assertSame(3, $this->value('static $n = 2; return ++$n;'));
    }

    public function testThisIsNotSet(): void
    {
        self::assertFalse($this->value('return isset($this);'));
        $result = $this->evaluate('return $this;');
        self::assertOutcome('threw', $result, 1, exception: true);
        self::assertSame('Using $this when not in object context', $result->exception['message']);
    }

    public function testStrictTypesAreOffUnlessTheSnippetSaysSo(): void
    {
        self::assertSame(2, $this->value('return strlen(12);'));
        $result = $this->evaluate("declare(strict_types=1);\nreturn strlen(12);");
        self::assertOutcome('threw', $result, 1, exception: true);
        self::assertSame('TypeError', $result->exception['class']);
        self::assertSame(2, $result->exception['line']);
        $result = $this->evaluate('<?php declare(strict_types=1); return strlen(12);');
        self::assertSame('TypeError', $result->exception['class']);
    }

    public function testTheLastReturnIsTheResultAndNoneIsNull(): void
    {
        self::assertSame(1, $this->value('if (true) { return 1; } return 2;'));
        self::assertNull($this->value('$x = 1; unset($x);'));
        self::assertNull($this->value('return;'));
        self::assertNull($this->value('if (true) { 5; }'));
    }

    /**
     * @dataProvider wholeFiles
     */
    public function testItTakesWhatAFileMayHold(string $snippet, mixed $value, string $stdout = ''): void
    {
        $result = $this->evaluate($snippet);

        self::assertOutcome('returned', $result, 0, value: true);
        self::assertSame($value, self::plain($result->result));
        self::assertSame($stdout, $result->stdout);
        self::assertSame('', $result->stderr);
    }

    public static function wholeFiles(): iterable
    {
        yield 'opening tag' => ['<?php return 1;', 1];
        yield 'opening tag in capitals' => ['<?PHP return 1;', 1];
        yield 'opening tag and nothing on its line' => ["<?php\nreturn __LINE__;", 2];
        yield 'opening tag after blank lines' => ["\n\n  <?php\nreturn __LINE__;", 4];
        yield 'opening and closing tag' => ['<?php return 1; ?>', 1];
        yield 'byte order mark' => ["\xEF\xBB\xBFreturn 1;", 1];
        yield 'byte order mark and tag' => ["\xEF\xBB\xBF<?php return 1;", 1];
        yield 'shebang' => ["#!/usr/bin/php\n<?php\nreturn __LINE__;", 3];
        yield 'Windows line ends' => ["<?php\r\n\$x = 1;\r\nreturn \$x + __LINE__;\r\n", 4];
        yield 'old Mac line ends' => ["\$x = 1;\rreturn \$x;\r", 1];
        yield 'text after a closing tag' => ['$x = 1; ?>text <?= $x ?> more<?php return 2;', 2, 'text 1 more'];
        yield 'text at the end' => ["echo 1; ?>\ntext", null, "1text"];
        yield 'namespace' => ["namespace My\\Own;\nfunction f() { return __FUNCTION__; }\nreturn f();", 'My\Own\f'];
        yield 'namespace block' => ['namespace A { const X = 3; } namespace { return \A\X; }', 3];
        yield 'tag and namespace' => ["<?php\ndeclare(strict_types=1);\nnamespace A;\nreturn __NAMESPACE__;", 'A'];
        yield 'imports' => ["use ArrayObject as A;\nuse function strlen as len;\nreturn len(A::class);", 11];
        yield 'class used before it is declared' => [
            'return (new B())->x(); class B { function x() { return 4; } }',
            4,
        ];
        yield 'constant' => ['const FOUR = 4; return FOUR;', 4];
        yield 'goto' => ['$i = 0; a: if (++$i < 3) goto a; return $i;', 3];
        yield 'invalid UTF-8' => ["return strlen('a\xFF\xFE');", 3];
        yield 'invalid UTF-8 in a comment and a name' => ["/* \xC3\x28 */ \$\xFF = 2; return \$\xFF;", 2];
        yield 'NUL byte' => ["return strlen('a\0b');", 3];
        yield 'comment at the end' => ['return 1; // and that is all', 1];
        yield 'heredoc at the end' => ["return <<<X\n  a\n  X;", 'a'];
        yield 'halted compiler' => ["return 1; __halt_compiler(); \0 anything <?", 1];
    }

    public function testInvalidUtf8InAValueIsEncodedAsBase64(): void
    {
        $result = $this->evaluate("return 'a\xFF';");

        self::assertSame(
            ['type' => 'string', 'encoding' => 'base64', 'value' => base64_encode("a\xFF"), 'length' => 2],
            $result->result,
        );
    }

    public function testASnippetOfFiveMegabytesRuns(): void
    {
        $snippet = '$all = [' . str_repeat("'0123456789abcdef',\n", 250000) . ']; return [count($all), __LINE__];';
        self::assertGreaterThan(5000000, strlen($snippet));

        self::assertSame([250000, 250001], $this->value($snippet, memoryLimitMb: 512));
    }

    public function testASnippetOfFiveMegabytesThatIsOneStringComesThroughUnchanged(): void
    {
        $text = str_repeat('0123456789abcde' . "\n", 327680);

        self::assertSame(md5($text), $this->value("md5('$text')"));
    }

    /**
     * @dataProvider warnings
     */
    public function testItsWarningsReachStandardErrorAsPhpPrintsThem(string $snippet, string $stderr): void
    {
        foreach ([false, true] as $unsafe) {
            $result = $this->evaluate($snippet, unsafe: $unsafe);

            self::assertOutcome('returned', $result, 0, value: true);
            self::assertSame('', $result->stdout);
            self::assertSame($stderr, trim($result->stderr));
        }
    }

    public static function warnings(): iterable
    {
        yield 'warning' => ["\nreturn \$nothing;", 'Warning: Undefined variable $nothing in snippet on line 2'];
        yield 'notice' => ['trigger_error("<b>"); return 1;', 'Notice: <b> in snippet on line 1'];
        yield 'deprecation' => [
            'error_reporting(-1); return strlen(null);',
            'Deprecated: strlen(): Passing null to parameter #1 ($string) of type string is deprecated'
                . ' in snippet on line 1',
        ];
    }

    public function testAnExceptionsTraceShowsNoFrameOfTheWrapper(): void
    {
        $result = $this->evaluate("function f(\$x) { throw new Exception('x'); }\nf('secret');");

        self::assertSame(['f (snippet:2)'], $result->exception['stack_trace']);
        self::assertSame(1, $this->value('return count(debug_backtrace()) + 1;'));
    }

    public function testEvaluationsShareNoState(): void
    {
        $snippet = 'define("ONCE", 1); function once() {} $GLOBALS["x"] = ($GLOBALS["x"] ?? 0) + 1;'
            . ' return $GLOBALS["x"];';

        self::assertSame([1, 1], [$this->value($snippet), $this->value($snippet)]);
    }
}
