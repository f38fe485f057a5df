<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Shell;

use Altair\Eval\Tests\Support\Command;
use Altair\Eval\Tests\Support\ShellTestCase;

/**
 * `altair shell`: what stays from line to line, and where a line ends.
 */
final class LinesTest extends ShellTestCase
{
    public function testVariablesStay(): void
    {
        $this->assertAnswers([
            '$ids = [1, 2]' => '✓ array(2)',
            '$ids[] = 3;' => '✓ int = 3',
            'count($ids)' => '✓ int = 3',
            '$same = &$ids[0]; $same = 9;' => '✓ int = 9',
            '$ids[0]' => '✓ int = 9',
            'unset($ids);' => '✓ null',
            'isset($ids)' => '✓ bool = false',
        ]);
    }

    public function testTheLastValueIsKeptUntilThereIsAnother(): void
    {
        $this->assertAnswers([
            '40' => '✓ int = 40',
            '$_ + 2' => '✓ int = 42',
            '$nothing = null;' => '✓ null',
            '$_' => '✓ int = 42',
            'throw new LogicException("no");' => '✗ LogicException: no',
            '$_ . " yet"' => "✓ string = '42 yet'",
        ]);
    }

    public function testTheLastExceptionIsKeptUntilThereIsAnother(): void
    {
        $this->assertAnswers([
            'throw new LogicException("first");' => '✗ LogicException: first',
            '$_e->getMessage()' => "✓ string = 'first'",
            'intdiv(1, 0)' => '✗ DivisionByZeroError: Division by zero',
            'get_class($_e)' => "✓ string = 'DivisionByZeroError'",
        ]);
    }

    public function testImportsHoldForTheLinesAfterThem(): void
    {
        $this->assertAnswers([
            'use ArrayObject as Objects;' => '✓ null',
            'count(new Objects([1, 2]))' => '✓ int = 2',
            'use function strtoupper as up;' => '✓ null',
            'up("a")' => "✓ string = 'A'",
            'use const PHP_INT_SIZE as SIZE;' => '✓ null',
            'SIZE' => '✓ int = ' . PHP_INT_SIZE,
            'use App\{A, Deep\B as C, function f, const K};' => '✓ null',
            'A::class . " " . C::class' => "✓ string = 'App\\\\A App\\\\Deep\\\\B'",
            'f()' => '✗ Error: Call to undefined function App\\f()',
            'K' => '✗ Error: Undefined constant "App\\K"',
        ]);
    }

    public function testALaterImportReplacesAnEarlierOne(): void
    {
        $this->assertAnswers([
            'use First\Thing;' => '✓ null',
            'use Second\Thing;' => '✓ null',
            'Thing::class' => "✓ string = 'Second\\\\Thing'",
            'use Third\thing; Thing::class' => "✓ string = 'Third\\\\thing'",
        ]);
    }

    public function testALineThatDoesNotCompileImportsNothing(): void
    {
        $this->assertAnswers([
            'use First\Thing;' => '✓ null',
            'use Second\Thing; use Third\Thing;' => '✗ Fatal: Cannot use Third\\Thing as Thing because the name '
                . 'is already in use',
            'Thing::class' => "✓ string = 'First\\\\Thing'",
        ]);
    }

    public function testANamespaceHoldsForTheLinesAfterItAndEndsImports(): void
    {
        $this->assertAnswers([
            'use First\Thing;' => '✓ null',
            'namespace App;' => '✓ null',
            '__NAMESPACE__ . " " . Thing::class' => "✓ string = 'App App\\\\Thing'",
            'function here() { return __FUNCTION__; }' => '✓ null',
            'here()' => "✓ string = 'App\\\\here'",
            'use Second\Thing;' => '✓ null',
            'Thing::class ' => "✓ string = 'Second\\\\Thing'",
            'namespace {}' => '✓ null',
            '__NAMESPACE__' => "✓ string = ''",
        ]);
    }

    public function testStrictTypesHoldForTheirLineOnly(): void
    {
        $this->assertAnswers([
            'use ArrayObject as Objects;' => '✓ null',
            'declare(strict_types=1); count(new Objects([])) . strlen(5)' => '✗ TypeError: strlen(): Argument #1 '
                . '($string) must be of type string, int given',
            'strlen(5)' => '✓ int = 1',
        ]);
    }

    public function testWhatALineDeclaresIsThereForTheNext(): void
    {
        $this->assertAnswers([
            'function twice(int $n) { return 2 * $n; }' => '✓ null',
            'interface Named { const PREFIX = "<"; }' => '✓ null',
            'abstract class Base { static int $made = 0; }' => '✓ null',
            'final class Thing extends Base implements Named { function n() { return ++self::$made; } }' => '✓ null',
            'enum Suit { case Hearts; }' => '✓ null',
            'const LIMIT = 5;' => '✓ null',
            '(new Thing())->n();' => '✓ int = 1',
            'twice((new Thing())->n()) . Thing::PREFIX . Suit::Hearts->name . LIMIT' => "✓ string = '4<Hearts5'",
            '$f = fn ($n) => twice($n) + 1;' => '✓ object Closure (fn ($n) snippet:1)',
            '$f(4)' => '✓ int = 9',
        ]);
    }

    /**
     * @dataProvider unfinished
     * @param list<string> $headlines
     */
    public function testALineThatIsNotWholeGoesOnInTheNext(string $text, array $headlines): void
    {
        $shell = Command::run(['shell', '--root=' . $this->application()->root], input: $text);

        preg_match_all('/^[✓✗].*/mu', $shell->output, $matches);
        self::assertSame([$headlines, ''], [$matches[0], $shell->errors]);
    }

    /** @return array<string, array{string, list<string>}> */
    public static function unfinished(): array
    {
        return [
            'braces' => ["if (true) {\n  \$a = 1;\n\n}\n\$a\n", ['✓ null', '✓ int = 1']],
            'brackets and a missing semicolon' => ["[\n1,\n2\n]\n3", ['✓ array(2)', '✓ int = 3']],
            'a string' => [
                "\$a = 'x\n  exit\n:help'\nstrlen(\$a)\n",
                ["✓ string = 'x\\n  exit\\n:help'", '✓ int = 14'],
            ],
            'a string with a variable' => [
                "\$a = 1;\n\"x\n\$a\"\n2",
                ['✓ int = 1', "✓ string = 'x\\n1'", '✓ int = 2'],
            ],
            'a heredoc' => ["<<<X\n  quit\n  X\n1\n", ["✓ string = 'quit'", '✓ int = 1']],
            'a nowdoc' => ["\$a = <<<'X'\n\$a\nX;\n1\n", ["✓ string = '\$a'", '✓ int = 1']],
            'a comment' => ["/* one\n*/ 5\n6\n", ['✓ int = 5', '✓ int = 6']],
            'a loop without a body' => ["foreach ([1, 2] as \$n)\n\$a = \$n;\n\$a\n", ['✓ null', '✓ int = 2']],
            'an operator at the end' => ["1 +\n2\n3\n", ['✓ int = 3', '✓ int = 3']],
            'an arrow at the end' => ["(new ArrayObject([1]))->\ncount()\n", ['✓ int = 1']],
            'a class' => ["class A\n{\n  const B = 4;\n}\nA::B\n", ['✓ null', '✓ int = 4']],
            'the end of the input' => ["1\nif (true) {\n", ['✓ int = 1', "✗ ParseError: Unclosed '{' on line 1"]],
            'no last line feed' => ["1\n2", ['✓ int = 1', '✓ int = 2']],
            'nothing' => ["\n  \n\n", []],
            'a comment alone' => ["// none\n# none\n1\n", ['✓ null', '✓ null', '✓ int = 1']],
        ];
    }

    public function testAParseErrorThatNoMoreTextWouldMendEndsItsLine(): void
    {
        $shell = $this->shell();

        self::assertSame(
            "✗ ParseError: syntax error, unexpected token \"*\"\n  line 1, column 4:\n    1 +* 2\n       ^\n"
                . "  at snippet:1\n",
            $shell->ask('1 +* 2'),
        );
        self::assertSame("✓ int = 3\n", $shell->ask('1 + 2'));
    }
}
