<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\EvalRequest;
use Altair\Eval\EvalResult;
use Altair\Eval\Evaluator;
use Altair\Eval\Tests\Support\Asked;
use Altair\Eval\Tests\Support\EvaluationTestCase;

/**
 * What a run changed in text files, and that what boot changed is told apart from it.
 */
final class FileDiffsTest extends EvaluationTestCase
{
    private const FILES = [
        'vendor/autoload.php' => <<<'PHP'
            <?php
            @mkdir('var');
            for ($i = 0; $i < 142; $i++) {
                file_put_contents("var/$i", "cached $i\n");
            }
            file_put_contents('booted.txt', "by boot\n");
            PHP,
        'kept.txt' => "one\ntwo\nthree\n",
        'old.txt' => "old\n",
        'binary' => "a\0b",
    ];

    /**
     * @dataProvider starts
     */
    public function testChangedTextFilesHaveAUnifiedDiff(bool $isWarm): void
    {
        $result = $this->changed(
            'file_put_contents("kept.txt", "one\n2\nthree\n"); file_put_contents("new.txt", "new"); unlink("old.txt");'
                . ' file_put_contents("binary", "a\0c"); file_put_contents("booted.txt", "by the run\n");',
            $isWarm,
            diff: true,
        );

        self::assertSame(
            [
                'binary' => null,
                'booted.txt' => "--- /dev/null\n+++ b/booted.txt\n@@ -0,0 +1 @@\n+by the run\n",
                'kept.txt' => "--- a/kept.txt\n+++ b/kept.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n",
                'new.txt' => "--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1 @@\n+new\n\\ No newline at end of file\n",
                'old.txt' => "--- a/old.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-old\n",
            ],
            self::diffs($result),
        );
        $changes = $result->diagnostics['file_changes'];
        self::assertSame(143, $changes['boot']);
        self::assertContains(['path' => 'var/100', 'size' => 11], $changes['boot_changes']['created']);
        $lean = $result->toArray()['diagnostics']['file_changes'];
        self::assertSame(143, $lean['boot']);
        self::assertArrayNotHasKey('boot_changes', $lean);
        self::assertArrayHasKey('boot_changes', $result->toArray(verbose: true)['diagnostics']['file_changes']);
    }

    /**
     * @dataProvider starts
     */
    public function testARunThatOnlyBootsHasNoChangesOfItsOwn(bool $isWarm): void
    {
        $changes = $this->changed('return 1;', $isWarm, diff: true)->diagnostics['file_changes'];

        self::assertSame([[], [], [], 144], [
            $changes['created'],
            $changes['modified'],
            $changes['deleted'],
            $changes['boot'],
        ]);
    }

    /**
     * @dataProvider starts
     */
    public function testNothingIsComparedUnlessAskedFor(bool $isWarm): void
    {
        $result = $this->changed('file_put_contents("kept.txt", "x");', $isWarm);

        self::assertSame(['kept.txt' => null], self::diffs($result));
    }

    public function testARunCannotPassItsChangesOffAsThoseOfBoot(): void
    {
        $result = $this->changed('file_put_contents("kept.txt", "x"); touch("kept.txt", 1, 1);', false);

        self::assertSame(['kept.txt'], array_keys(self::diffs($result)));
    }

    public function testDiffsAreBounded(): void
    {
        $result = $this->changed(
            'foreach (range("a", "e") as $name) { file_put_contents("$name.txt", str_repeat("0123456789\n", 1000)); }'
                . ' file_put_contents("large.txt", str_repeat("x\n", 32769));',
            false,
            diff: true,
        );
        $diffs = self::diffs($result);

        self::assertNull($diffs['large.txt']);
        self::assertCount(2, array_filter($diffs));
        self::assertLessThanOrEqual(32768, strlen(implode('', $diffs)));
        self::assertSame(4, $result->diagnostics['file_changes']['diffs_left_out']);
    }

    public function testASecretInADiffIsRedacted(): void
    {
        $this->setVariable('SHOP_API_KEY', 'k7f-93hsk-22xx-secret');

        $diffs = self::diffs($this->changed('file_put_contents("a.txt", getenv("SHOP_API_KEY"));', false, diff: true));

        self::assertStringContainsString('+[redacted:SHOP_API_KEY]', $diffs['a.txt']);
    }

    public function testAFileThatIsALinkOutOfTheProjectIsNotRead(): void
    {
        $this->application(self::FILES);
        symlink('/etc/hostname', $this->application()->path('link'));

        $diffs = self::diffs($this->changed('unlink("link"); file_put_contents("link", "x");', false, diff: true));

        self::assertSame(['link' => null], $diffs);
    }

    /**
     * @return array<string, array{bool}>
     */
    public static function starts(): array
    {
        return ['cold' => [false], 'warm' => [true]];
    }

    private function changed(string $snippet, bool $isWarm, mixed ...$options): EvalResult
    {
        if (!is_dir($this->application()->path('vendor')) || !is_file($this->application()->path('kept.txt'))) {
            $this->application(self::FILES);
        }
        $evaluator = new Evaluator(warm: $isWarm);
        $request = new EvalRequest($snippet, $this->application()->root, self::LONG_MS, ...$options);
        if ($isWarm) {
            Asked::before($evaluator, ['projectRoot' => $this->application()->root] + $options);
            $evaluator->evaluate($request);
        }
        $result = $evaluator->evaluate($request);
        self::assertSame($isWarm ? 'warm' : 'cold', $result->diagnostics['start']);

        return $result;
    }

    /**
     * @return array<string, string|null>
     */
    private static function diffs(EvalResult $result): array
    {
        $changes = $result->diagnostics['file_changes'];
        $diffs = [];
        foreach ([...$changes['created'], ...$changes['modified'], ...$changes['deleted']] as $change) {
            $diffs[$change['path']] = $change['diff'] ?? null;
        }
        ksort($diffs);

        return $diffs;
    }
}
