<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Shell;

use Altair\Eval\Tests\Support\EvaluationTestCase;
use Altair\Eval\Tests\Support\TemporaryApplication;
use Altair\Eval\Tests\Support\Terminal;

/**
 * `altair shell` at a terminal, with a real session.
 */
final class TerminalTest extends EvaluationTestCase
{
    private const PROMPT = 'php> ';
    private const ENTER = "\r";
    private const TAB = "\t";
    private const CTRL_C = "\x03";
    private const CTRL_D = "\x04";

    private TemporaryApplication $home;

    protected function setUp(): void
    {
        parent::setUp();
        $this->home = new TemporaryApplication();
        $this->setVariable('XDG_STATE_HOME', $this->home->path('state'));
        $this->setVariable('TERM', 'xterm');
        $this->setVariable('NO_COLOR', '1');
    }

    /** A shell whose first prompt is shown. */
    private function terminal(string ...$options): Terminal
    {
        $root = $this->application()->root;
        $program = [dirname(__DIR__, 2) . '/bin/altair', 'shell', "--root=$root"];
        $command = ['setsid', '--ctty', ...$program, ...array_values($options)];
        $terminal = new Terminal($command, $root, 40, 160);
        $terminal->waitFor(self::PROMPT);

        return $terminal;
    }

    private function line(Terminal $terminal, string $line, string $answer): void
    {
        $terminal->type($line . self::ENTER);
        $terminal->waitFor($answer);
        $terminal->waitFor(self::PROMPT);
    }

    private function leave(Terminal $terminal): void
    {
        $terminal->type(self::CTRL_D);
        self::assertSame(0, $terminal->end()[1]);
    }

    public function testAPersonIsGreetedAndLeavesWithCtrlD(): void
    {
        $root = $this->application()->root;
        $command = ['setsid', '--ctty', dirname(__DIR__, 2) . '/bin/altair', 'shell', "--root=$root"];
        $terminal = new Terminal($command, $root, 40, 160);
        $terminal->waitFor("a session in $root; what it writes is not kept; :help lists what there is");
        $terminal->waitFor(self::PROMPT);

        $this->leave($terminal);
    }

    public function testLinesAreAnsweredAndVariablesStay(): void
    {
        $terminal = $this->terminal();
        $this->line($terminal, '$ids = [1, 2];', '✓ array(2)');
        $this->line($terminal, 'count($ids) + 40', '✓ int = 42');
        $this->line($terminal, 'throw new LogicException("no");', '✗ LogicException: no');
        $this->line($terminal, 'get_class($_e)', "✓ string = 'LogicException'");

        $this->leave($terminal);
    }

    public function testALineThatIsNotWholeGoesOn(): void
    {
        $terminal = $this->terminal();
        $terminal->type('foreach ([1, 2] as $n)' . self::ENTER);
        $terminal->type('{ $last = $n;' . self::ENTER);
        $this->line($terminal, '}', '✓ null');
        $this->line($terminal, '$last', '✓ int = 2');

        $this->leave($terminal);
    }

    public function testTheWordExitAndTheCallEndTheShell(): void
    {
        $terminal = $this->terminal();
        $terminal->type('exit' . self::ENTER);
        self::assertSame(0, $terminal->end()[1]);

        $terminal = $this->terminal();
        $terminal->type('exit(3);' . self::ENTER);
        [$shown, $code] = $terminal->end();
        self::assertStringContainsString('✗ Exited 3.', $shown);
        self::assertSame(1, $code);
    }

    /**
     * @dataProvider names
     */
    public function testTabCompletesNamesOfTheSession(string $before, string $begun, string $end, string $answer): void
    {
        $this->application([
            'config/container.php' => '<?php return new Illuminate\Container\Container();',
            'vendor/autoload.php' => <<<'PHP'
                <?php
                namespace Illuminate\Container {
                    class Container {
                        protected $bindings = ['mailer.transport' => 1, 'mailer.queue' => 1];
                        public function has(string $id): bool { return isset($this->bindings[$id]); }
                        public function get(string $id): mixed { return "the $id"; }
                    }
                }
                namespace {
                    class InvoiceOfTheShop { const KIND = "paper"; function totalOfAll() { return 99; } }
                }
                PHP,
        ]);
        $terminal = $this->terminal();
        $this->line($terminal, $before, '✓');
        $terminal->type($begun . self::TAB . $end . self::ENTER);
        $terminal->waitFor($answer);
        $terminal->waitFor(self::PROMPT);

        $this->leave($terminal);
    }

    /** @return array<string, array{string, string, string, string}> */
    public static function names(): array
    {
        return [
            'a variable' => ['$numberOfOrders = 41;', '$numberOf', ' + 1', '✓ int = 42'],
            'a method' => ['$invoice = new InvoiceOfTheShop();', '$invoice->total', '()', '✓ int = 99'],
            'a class' => ['1', 'InvoiceOf', '::class', "✓ string = 'InvoiceOfTheShop'"],
            'a constant of a class' => ['1', 'InvoiceOfTheShop::KI', '', "✓ string = 'paper'"],
            'a function' => ['function uniqueFunction() { return 7; }', 'uniqueF', '()', '✓ int = 7'],
            "PHP's own function" => ['1', 'array_key_fir', '([5 => 1])', '✓ int = 5'],
            'an entry of the container' => ['1', 'container("mailer.tr', '")', "✓ string = 'the mailer.transport'"],
        ];
    }

    public function testCtrlCEndsTheLineAndKeepsTheSession(): void
    {
        $terminal = $this->terminal();
        $this->line($terminal, '$kept = 5;', '✓ int = 5');
        $terminal->type('echo "it ", "runs\n"; while (true);' . self::ENTER);
        $terminal->waitFor('running: ');
        $terminal->type(self::CTRL_C);
        $terminal->waitFor('✗ The line was ended.');
        $terminal->waitFor(self::PROMPT);
        $this->line($terminal, '$kept + 1', '✓ int = 6');

        $this->leave($terminal);
    }

    public function testCtrlCEndsALineThatDoesNotUnwindAndBeginsAnew(): void
    {
        $terminal = $this->terminal();
        $this->line($terminal, '$kept = 5;', '✓ int = 5');
        $terminal->type('$s = str_repeat("ab", 9000000); similar_text($s, $s);' . self::ENTER);
        $terminal->waitFor('running: ');
        $terminal->type(self::CTRL_C);
        $terminal->waitFor('✗ The line did not run to its end.');
        $terminal->waitFor('the session began anew: ');
        $terminal->waitFor('$kept, $_ are lost');
        $terminal->waitFor(self::PROMPT);
        $this->line($terminal, 'isset($kept)', '✓ bool = false');

        $this->leave($terminal);
    }

    public function testCtrlCAtThePromptForgetsWhatWasTyped(): void
    {
        $terminal = $this->terminal();
        $terminal->type('exit(5' . self::CTRL_C);
        $terminal->waitFor(self::PROMPT);
        $this->line($terminal, '6', '✓ int = 6');

        $this->leave($terminal);
    }

    public function testALineMeetsItsDeadlineAtATerminalToo(): void
    {
        $terminal = $this->terminal('--timeout-ms=' . self::SHORT_MS);
        $this->line($terminal, '$kept = 5;', '✓ int = 5');
        $this->line($terminal, 'while (true);', '✗ Timed out after ');
        $this->line($terminal, '$kept + 1', '✓ int = 6');

        $this->leave($terminal);
    }

    public function testLinesAreKeptForTheNextShellInAFileOfTheUsersOwn(): void
    {
        $terminal = $this->terminal();
        $this->line($terminal, '1200 + 34', '✓ int = 1234');
        $this->line($terminal, ' 5600 + 78', '✓ int = 5678');
        $this->line($terminal, '$password = "hunter2secret";', "✓ string = 'hunter2secret'");
        $this->leave($terminal);

        $file = $this->home->path('state/altair/shell_history');
        self::assertSame(0100600, fileperms($file));
        self::assertSame(040700, fileperms(dirname($file)));
        $kept = (string) file_get_contents($file);
        self::assertStringStartsWith("1200 + 34\n", $kept);
        self::assertStringNotContainsString('5600', $kept);
        self::assertStringNotContainsString('hunter2secret', $kept);

        $terminal = $this->terminal();
        $terminal->type("\x1b[A\x1b[A" . self::ENTER);
        $terminal->waitFor('✓ int = 1234');
        $terminal->waitFor(self::PROMPT);
        $this->leave($terminal);
    }

    public function testWithoutAPlaceForItNoHistoryIsKept(): void
    {
        $this->setVariable('XDG_STATE_HOME', '/proc/nowhere');
        $root = $this->application()->root;
        $program = [dirname(__DIR__, 2) . '/bin/altair', 'shell', "--root=$root"];
        $terminal = new Terminal(['setsid', '--ctty', ...$program], $root, 40, 160);
        $terminal->waitFor('lines are not kept: /proc/nowhere/altair/shell_history: ');
        $terminal->waitFor(self::PROMPT);
        $this->line($terminal, '1 + 1', '✓ int = 2');

        $this->leave($terminal);
    }
}
