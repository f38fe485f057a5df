<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\Exception\EvalException;
use Altair\Eval\Exception\InvalidRequestException;
use Altair\Eval\Tests\Support\EvaluationTestCase;

/**
 * A request that cannot be carried out is refused before anything starts, with a message that says what is wrong.
 */
final class BadRequestTest extends EvaluationTestCase
{
    /**
     * @dataProvider emptySnippets
     */
    public function testAnEmptySnippetIsRefused(string $snippet): void
    {
        $this->assertRefused(['snippet is empty'], $snippet);
    }

    public static function emptySnippets(): iterable
    {
        yield 'nothing' => [''];
        yield 'white space' => [" \n\t\r\n"];
        yield 'opening tag' => ['<?php'];
        yield 'opening tag and white space' => ["\n<?PHP \n"];
        yield 'byte order mark' => ["\xEF\xBB\xBF"];
        yield 'byte order mark and tag' => ["\xEF\xBB\xBF<?php "];
    }

    public function testARootThatDoesNotExistIsRefused(): void
    {
        $root = $this->application()->path('nowhere');

        $this->assertRefused(["project root $root", 'no such file or directory'], projectRoot: $root);
    }

    public function testARootThatIsAFileIsRefused(): void
    {
        $root = $this->application()->path('vendor/autoload.php');

        $this->assertRefused(["project root $root", 'not a directory'], projectRoot: $root);
    }

    public function testARootThatIsALinkToNothingIsRefused(): void
    {
        $root = $this->application()->path('link');
        symlink('nowhere', $root);

        $this->assertRefused([$root], projectRoot: $root);
    }

    public function testAnEmptyRootIsRefused(): void
    {
        $this->assertRefused(['project root is empty'], projectRoot: '');
    }

    public function testANulByteInAPathIsRefused(): void
    {
        $root = $this->application()->root;
        $this->assertRefused(['project root', 'NUL byte'], projectRoot: $root . "\0");
        $this->assertRefused(['project root', 'NUL byte'], projectRoot: "\0");
        $this->assertRefused(['bootstrap', 'NUL byte'], bootstrap: "config\0.php");
    }

    public function testABootstrapThatIsMissingIsRefusedAndSaysWhereItWasLookedUp(): void
    {
        $root = $this->application()->root;

        $this->assertRefused(['bootstrap none.php', 'no such file or directory', $root], bootstrap: 'none.php');
        $this->assertRefused(['bootstrap /none.php'], bootstrap: '/none.php');
    }

    public function testABootstrapThatIsADirectoryIsRefused(): void
    {
        $this->assertRefused(['bootstrap vendor', 'not a file'], bootstrap: 'vendor');
        $this->assertRefused(['bootstrap'], bootstrap: '');
    }

    public function testABootstrapOutsideTheRootIsRefused(): void
    {
        $outside = $this->application()->write('outside.php', '<?php');
        $root = dirname($this->application()->write('app/vendor/autoload.php', '<?php'), 2);
        symlink('../outside.php', "$root/link.php");

        foreach ([$outside, '../outside.php', 'vendor/../../outside.php', 'link.php'] as $bootstrap) {
            $parts = [$bootstrap, 'outside the project root', $root];
            $this->assertRefused($parts, projectRoot: $root, bootstrap: $bootstrap);
        }
    }

    public function testTheBootstrapOfTheEnvironmentIsCheckedAlikeAndNamed(): void
    {
        $this->setVariable('ALTAIR_EVAL_BOOTSTRAP', 'none.php');
        $this->assertRefused(['none.php', 'ALTAIR_EVAL_BOOTSTRAP']);

        $this->setVariable('ALTAIR_EVAL_BOOTSTRAP', '/etc/passwd');
        $this->assertRefused(['/etc/passwd', 'ALTAIR_EVAL_BOOTSTRAP', 'outside']);
    }

    public function testAnEmptyVariableNamesNoBootstrap(): void
    {
        $this->setVariable('ALTAIR_EVAL_BOOTSTRAP', '');

        self::assertSame(2, $this->value('1 + 1'));
    }

    public function testARefusedUnsafeRequestLeavesNoLog(): void
    {
        $this->assertRefused(['snippet is empty'], '', unsafe: true);

        self::assertFileDoesNotExist($this->application()->path('.altair'));
    }

    /**
     * @param list<string> $parts what the message has to hold
     */
    private function assertRefused(array $parts, string $snippet = 'echo "ran";', mixed ...$options): void
    {
        $output = '';
        try {
            $this->evaluateWatching(function (string $type, string $chunk) use (&$output): void {
                $output .= $chunk;
            }, $snippet, ...$options);
            self::fail('It ran.');
        } catch (EvalException $refusal) {
            self::assertInstanceOf(InvalidRequestException::class, $refusal);
            self::assertInstanceOf(\InvalidArgumentException::class, $refusal);
            foreach ($parts as $part) {
                self::assertStringContainsString($part, $refusal->getMessage());
            }
            self::assertStringNotContainsString("\n", $refusal->getMessage());
            self::assertStringNotContainsString('os error', $refusal->getMessage());
        }
        self::assertSame('', $output);
    }
}
