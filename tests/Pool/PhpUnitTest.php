<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Pool;

use Altair\Eval\Tests\Support\PoolTestCase;
use Altair\Eval\Tests\Support\TemporaryApplication;

/**
 * Two processes of PHPUnit side by side, as parallel runners start them, with the assertions on snippets.
 */
final class PhpUnitTest extends PoolTestCase
{
    /** Tests of each process. */
    private const TESTS = 8;

    /**
     * `%s` is the name of one of both. Each test waits until the same one of the other process has begun.
     */
    private const CASE = <<<'PHP'
        <?php
        final class %1$sTest extends PHPUnit\Framework\TestCase
        {
            use Altair\Eval\Testing\EvaluatesSnippets;

            /** @dataProvider numbers */
            public function testItsSnippet(int $number): void
            {
                touch(getenv('PLACE') . "/$number-%1$s");
                $until = hrtime(true) + 20e9;
                while (!file_exists(getenv('PLACE') . "/$number-%2$s") && hrtime(true) < $until) {
                    usleep(1000);
                }
                $word = require getenv('PLACE') . '/word.php';
                $this->assertSnippetReturns([$word, '%1$s', $number], "[\$GLOBALS['seen'], '%1$s', $number]");
                $told = $this->evaluateSnippet('return 1;')->diagnostics;
                $told = [$told['start'], $told['pool'] ?? false];
                file_put_contents(getenv('PLACE') . '/told', json_encode($told) . "\n", FILE_APPEND);
            }

            public static function numbers(): array
            {
                return array_map(fn (int $number): array => [$number], range(1, %3$d));
            }
        }
        PHP;

    private const BOOTSTRAP = <<<'PHP'
        <?php
        spl_autoload_register(static function (string $class): void {
            $file = %s . strtr(substr($class, strlen('Altair\Eval\\')), '\\', '/') . '.php';
            if (str_starts_with($class, 'Altair\Eval\\') && is_file($file)) {
                require $file;
            }
        });
        PHP;

    /** What both share. Another one would be another environment, and so another boot. */
    private TemporaryApplication $place;

    protected function setUp(): void
    {
        parent::setUp();
        $this->place = new TemporaryApplication();
        foreach (['One' => 'Other', 'Other' => 'One'] as $name => $other) {
            $this->shop->write("tests/{$name}Test.php", sprintf(self::CASE, $name, $other, self::TESTS));
        }
        $package = var_export(dirname(__DIR__, 2) . '/php-src/', true);
        $this->shop->write('tests/bootstrap.php', sprintf(self::BOOTSTRAP, $package));
    }

    public function testTwoSideBySideShareABootUntilAnEdit(): void
    {
        $pid = $this->pool->start();
        $runs = 2 * 2 * self::TESTS;

        $this->twoProcesses('old');
        $template = $this->assertOneTemplate(runs: $runs);
        $this->twoProcesses('old');
        self::assertSame($template, $this->assertOneTemplate(runs: 2 * $runs));
        $this->edit('new');
        $this->twoProcesses('new');
        self::assertSame($pid, $this->pool->pid());
        self::assertSame(3 * $runs, $this->pool->told()['served']);
    }

    /** Both expect that a boot has seen this word. */
    private function twoProcesses(string $word): void
    {
        $this->place->write('shared/word.php', "<?php return '$word';");
        foreach (['One', 'Other'] as $name) {
            $said[$name] = $this->place->path($name);
            $tests = $this->shop->path("tests/{$name}Test.php");
            $bootstrap = '--bootstrap=' . $this->shop->path('tests/bootstrap.php');
            $processes[$name] = proc_open(
                [
                    PHP_BINARY, '-d', 'extension=' . getenv('EXTENSION'), $_SERVER['SCRIPT_FILENAME'],
                    '--no-configuration', '--do-not-cache-result', $bootstrap, $tests,
                ],
                [['file', '/dev/null', 'r'], ['file', $said[$name], 'w'], ['file', $said[$name], 'a']],
                $pipes,
                $this->shop->root,
                ['PLACE' => $this->place->path('shared')] + $this->environment(),
            );
        }
        foreach ($processes as $name => $process) {
            self::assertSame(0, proc_close($process), (string) file_get_contents($said[$name]));
        }
        $told = file($this->place->path('shared/told'), FILE_IGNORE_NEW_LINES);
        self::assertSame(array_fill(0, 2 * self::TESTS, '["warm",true]'), $told);
        $this->place->remove('shared');
    }
}
