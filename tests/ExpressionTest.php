<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\Tests\Support\EvaluationTestCase;

/**
 * A snippet gives the value of its last statement, if that is an expression; else it needs a `return`.
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
     * @dataProvider lastExpressions
     */
    public function testTheLastOfSeveralStatementsGivesItsValueIfItIsAnExpression(string $snippet, mixed $value): void
    {
        $result = $this->evaluate($snippet);

        self::assertOutcome('returned', $result, 0, value: true);
        self::assertSame($value, self::plain($result->result));
    }

    public static function lastExpressions(): iterable
    {
        yield 'two expressions' => ['print "a"; print "b";', 1];
        yield 'three' => ['1; 2; 3;', 3];
        yield 'the last without semicolon' => ["\$x = 2;\n\$x * 3", 6];
        yield 'assignment' => ['$x = 1; $y = [$x];', [1]];
        yield 'assignment by reference' => ['$x = 1; $y = &$x;', 1];
        yield 'assignment to a list' => ['$x = [1, 2]; [$a, $b] = $x;', [1, 2]];
        yield 'increment' => ['$x = 1; $x++;', 1];
        yield 'after a block' => ['foreach ([1, 2] as $n) { $sum = ($sum ?? 0) + $n; } $sum', 3];
        yield 'after an import' => ['use DateTime as D; D::class;', 'DateTime'];
        yield 'after a namespace' => ['namespace A; f(); function f() {} 5', 5];
        yield 'in a namespace with braces' => ['namespace A { const X = 3; } namespace { 1; \A\X; }', 3];
        yield 'after a label' => ['$i = 0; a: $i++; if ($i < 3) goto a; $i', 3];
        yield 'a return before it' => ['if (true) { return "first"; } "last"', 'first'];
        yield 'no return before it' => ['if (false) { return "first"; } "last"', 'last'];
        yield 'strict types' => ['declare(strict_types=1); strlen("abc")', 3];
        yield 'a closing tag' => ['$x = 1; $x + 1 ?>', 2];
        yield 'called by its own function' => ['function f($n) { return $n * 2; } f(4)', 8];
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
        yield 'echo' => ['echo "a";', 'a'];
        yield 'echo at the end' => ['1; echo "a", "b";', 'ab'];
        yield 'a loop at the end' => ['foreach ([1] as $x) { $x; }'];
        yield 'a block' => ['{ 1; }'];
        yield 'a condition' => ['if (true) 1;'];
        yield 'a function' => ['function f() { return 1; }'];
        yield 'a class' => ['class A {}'];
        yield 'a constant' => ['1; const A = 1;'];
        yield 'an expression and text' => ['1 ?>text', 'text'];
        yield 'unset' => ['unset($x);'];
        yield 'only a comment' => ['// nothing'];
        yield 'only a semicolon' => [';'];
    }

    /**
     * @dataProvider forgiven
     */
    public function testOneSemicolonAtTheVeryEndMayBeMissing(string $snippet, mixed $value, string $stdout = ''): void
    {
        $result = $this->evaluate("\$n = 2;\n" . $snippet);

        self::assertOutcome('returned', $result, 0, value: true);
        self::assertSame($value, self::plain($result->result));
        self::assertSame([$stdout, ''], [$result->stdout, $result->stderr]);
    }

    public static function forgiven(): iterable
    {
        yield 'expression' => ['$n + 1', 3];
        yield 'return' => ['return $n', 2];
        yield 'return of nothing' => ['return', null];
        yield 'echo' => ['echo $n', null, '2'];
        yield 'echo of several' => ['echo $n, $n', null, '22'];
        yield 'line comment' => ['return $n // that is all', 2];
        yield 'hash comment' => ["return \$n\n# that is all", 2];
        yield 'block comment' => ['return $n /* that; is all */', 2];
        yield 'heredoc' => ["return <<<X\n  a;\n  X", 'a;'];
        yield 'nowdoc and blank lines' => ["<<<'X'\na\nX\n\n", 'a'];
        yield 'body of a condition' => ['if ($n) echo "a"', null, 'a'];
        yield 'body of an else' => ['if (!$n) echo "a"; else echo "b"', null, 'b'];
        yield 'body of an elseif' => ['if (!$n) echo "a"; elseif ($n) return "b"', 'b'];
        yield 'body of a loop' => ['while ($n--) echo $n', null, '10'];
        yield 'body of a foreach' => ['foreach ([1, 2] as $x) echo $x', null, '12'];
        yield 'body of a for' => ['for (; $n; $n--) echo $n', null, '21'];
    }

    /**
     * @dataProvider errors
     */
    public function testWhatLacksAnythingElseIsAParseError(string $snippet): void
    {
        $result = $this->evaluate("echo 'ran';\n" . $snippet);
        self::assertOutcome('threw', $result, 1, exception: true);
        self::assertSame('ParseError', $result->exception['class']);
        self::assertSame('', $result->stdout);

        self::assertSame('ParseError', $this->evaluate($snippet)->exception['class']);
    }

    public static function errors(): iterable
    {
        yield 'while' => ['while (rand(0, 1))'];
        yield 'for' => ['for (;;)'];
        yield 'foreach' => ['foreach ([] as $x)'];
        yield 'if' => ['if (true)'];
        yield 'else' => ['if (true) { echo 1; } else'];
        yield 'else of an inner condition' => ['while (true) if (true) { break; } else'];
        yield 'do and while' => ['do { echo 1; } while (false)'];
        yield 'unset' => ['unset($x)'];
        yield 'constant' => ['const A = 1'];
        yield 'import' => ['use DateTime as D'];
        yield 'endif' => ['if (true): echo 1; endif'];
        yield 'statement in a block' => ['if (true) { echo 1 }'];
        yield 'open bracket' => ['f('];
        yield 'open comment' => ['1 /* two'];
        yield 'closed too often' => ['1)'];
        yield 'would only close the wrapper' => ['} echo 1; {'];
        yield 'two are missing' => ["echo 1\necho 2"];
    }

    /**
     * @dataProvider unterminated
     */
    public function testWhatIsNotTerminatedKeepsItsOwnMessageAndLine(string $snippet, int $line): void
    {
        $plain = null;
        try {
            token_get_all("<?php $snippet", TOKEN_PARSE);
        } catch (\ParseError $plain) {
        }
        $result = $this->evaluate($snippet);

        self::assertSame('ParseError', $result->exception['class']);
        self::assertSame($plain?->getMessage(), $result->exception['message']);
        self::assertSame($line, $result->exception['line']);
    }

    public static function unterminated(): iterable
    {
        yield 'text' => ["\n'abc", 2];
        yield 'text with variables' => ["\$x = 1;\n\n\"abc \$x", 3];
        yield 'heredoc' => ["\$x = 1;\necho <<<X\n  abc", 3];
        yield 'bracket' => ["\nf(\n[1", 3];
    }

    public function testWhatTheScannerWarnsOfIsToldOnce(): void
    {
        $warnings = static fn (string $stderr): int => substr_count($stderr, 'Octal escape sequence overflow');

        self::assertSame(1, $warnings($this->evaluate('echo "\400"')->stderr));
        self::assertSame(1, $warnings($this->evaluate('echo "\400"; NoSuchClass::class')->stderr));
        // What is compiled afterwards warns as ever.
        self::assertStringContainsString('Undefined variable $x', $this->evaluate('echo "\400"; $x')->stderr);
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
