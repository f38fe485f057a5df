<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\Tests\Support\EvaluationTestCase;

/**
 * A snippet that is one expression and nothing else gives its value; any other needs a `return`.
 */
final class ExpressionTest extends EvaluationTestCase
{
    /**
     * @dataProvider expressions
     */
    public function testOneExpressionGivesItsValue(string $snippet, mixed $value): void
    {
        self::assertSame($value, $this->value($snippet));
    }

    public static function expressions(): iterable
    {
        yield 'with semicolon' => ['1 + 1;', 2];
        yield 'without semicolon' => ['1 + 1', 2];
        yield 'with two semicolons' => ['1 + 1;;', 2];
        yield 'after a semicolon' => ['; 1 + 1', 2];
        yield 'line comment' => ['1 + 1 // two', 2];
        yield 'line comment after the semicolon' => ['1 + 1; // two', 2];
        yield 'hash comment' => ["1 + 1 # two", 2];
        yield 'block comment' => ['/* a */ 1 + 1 /* two */', 2];
        yield 'doc comment' => ["/** A sum. */\n1 + 1", 2];
        yield 'comment with a semicolon' => ['1 + 1 // a; b;', 2];
        yield 'opening tag' => ['<?php 1 + 1', 2];
        yield 'opening and closing tag' => ['<?php 1 + 1 ?>', 2];
        yield 'closing tag for a semicolon' => ['1 + 1 ?>', 2];
        yield 'blank lines' => ["\n\n  1 + 1\n\n", 2];
        yield 'Windows line ends' => ["1 +\r\n1\r\n", 2];
        yield 'byte order mark' => ["\xEF\xBB\xBF1 + 1", 2];
        yield 'static call' => ['DateTimeImmutable::createFromFormat("Y", "2001")->format("Y")', '2001'];
        yield 'assignment' => ['$x = 5', 5];
        yield 'new' => ['(new ArrayObject([1, 2]))->count()', 2];
        yield 'string with a semicolon' => ["'a; b'", 'a; b'];
        yield 'string with a tag' => ["'?>'", '?>'];
        yield 'heredoc' => ["<<<X\na;\nX", 'a;'];
        yield 'match' => ['match (true) { default => 3 }', 3];
        yield 'called closure' => ['(function () { $x = 1; return $x + 1; })()', 2];
        yield 'arrow function' => ['(fn () => 2)()', 2];
        yield 'ternary' => ['true ? 1 : 2', 1];
        yield 'array' => ['[1, 2]', [1, 2]];
        yield 'constant' => ['PHP_EOL', "\n"];
        yield 'print' => ['print ""', 1];
        yield 'isset' => ['isset($x)', false];
        yield 'static closure' => ['(static fn () => isset($this))()', false];
        yield 'spread over lines' => ["array_sum(\n    [1,\n    2],\n)", 3];
    }

    /**
     * @dataProvider statements
     */
    public function testAnythingElseGivesNullWithoutAReturn(string $snippet, string $stdout = ''): void
    {
        $result = $this->evaluate($snippet);

        self::assertOutcome('returned', $result, 0, value: true);
        self::assertSame(['type' => 'null', 'value' => null], $result->result);
        self::assertSame($stdout, $result->stdout);
    }

    public static function statements(): iterable
    {
        yield 'two expressions' => ['print "a"; print "b";', 'ab'];
        yield 'three' => ['1; 2; 3;'];
        yield 'echo' => ['echo "a";', 'a'];
        yield 'a block' => ['{ 1; }'];
        yield 'a condition' => ['if (true) 1;'];
        yield 'a function' => ['function f() { return 1; }'];
        yield 'a class' => ['class A {}'];
        yield 'an import and an expression' => ['use DateTime as D; D::class;'];
        yield 'an expression and text' => ['1 ?>text', 'text'];
        yield 'unset' => ['unset($x);'];
        yield 'only a comment' => ['// nothing'];
        yield 'only a semicolon' => [';'];
    }

    /**
     * @dataProvider errors
     */
    public function testWhatOnlyLacksASemicolonElsewhereIsAParseError(string $snippet): void
    {
        $result = $this->evaluate("echo 'ran';\n" . $snippet);
        self::assertOutcome('threw', $result, 1, exception: true);
        self::assertSame('ParseError', $result->exception['class']);
        self::assertSame('', $result->stdout);

        self::assertSame('ParseError', $this->evaluate($snippet)->exception['class']);
    }

    public static function errors(): iterable
    {
        yield 'statement without semicolon' => ['echo 1'];
        yield 'return without semicolon' => ['return 1'];
        yield 'open bracket' => ['f('];
        yield 'open string' => ["'abc"];
        yield 'closed too often' => ['1)'];
        yield 'would only close the wrapper' => ['} echo 1; {'];
    }

    public function testAThrowExpressionThrows(): void
    {
        foreach (['throw new DomainException("x")', 'throw new DomainException("x");'] as $snippet) {
            self::assertSame('DomainException', $this->evaluate($snippet)->exception['class']);
        }
    }

    public function testAYieldOutsideOfAFunctionIsAFatalErrorThatSaysSo(): void
    {
        $result = $this->evaluate("\nyield 1;");

        self::assertOutcome('fatal', $result, 255);
        self::assertStringContainsString('"yield"', $result->diagnostics['message']);
        self::assertSame(2, $result->diagnostics['location']['line']);
    }
}
