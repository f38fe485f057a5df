<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Shell;

use Altair\Eval\Tests\Support\Command;
use Altair\Eval\Tests\Support\ShellTestCase;

/**
 * `altair shell`: what ends a line, and what that costs.
 */
final class LineEndsTest extends ShellTestCase
{
    /** The line that finds a session as it was. */
    private const KEPT = ['$kept = [1]; ' => '✓ array(1)'];

    /** Seconds after its deadline in which a line has to have ended. */
    private const GRACE = 2.0;

    /**
     * @dataProvider cutShort
     */
    public function testWhatCutsALineShortKeepsTheSession(string $before, string $line, string $headline): void
    {
        $this->assertAnswers(self::KEPT + [
            'function fatal() { trigger_error("bad", E_USER_ERROR); }' => '✓ null',
            "$before 1" => '✓ int = 1',
            $line => $headline,
            'count($kept)' => '✓ int = 1',
        ]);
    }

    /** @return array<string, array{string, string, string}> */
    public static function cutShort(): array
    {
        $own = ' (previously declared in snippet:1)';

        return [
            'an exception' => ['', 'throw new DomainException("no");', '✗ DomainException: no'],
            'an error' => ['', 'null_()', '✗ Error: Call to undefined function null_()'],
            'a function declared twice' => [
                'function f() {}', 'function f() {}', "✗ Fatal: Cannot redeclare f()$own",
            ],
            "a function of PHP's declared" => ['', 'function strlen() {}', '✗ Fatal: Cannot redeclare strlen()'],
            'a class declared twice' => [
                'class K {}', 'class K {}', '✗ Fatal: Cannot declare class K, because the name is already in use',
            ],
            'an interface that is not implemented' => [
                '', 'class L implements Countable {}',
                '✗ Fatal: Class L contains 1 abstract method and must therefore be declared abstract or implement the '
                    . 'remaining methods (Countable::count)',
            ],
            'an error of its own' => ['', 'trigger_error("bad", E_USER_ERROR);', '✗ Fatal: bad'],
            'a fatal error deep in calls' => [
                'function deep($n) { return $n > 0 ? deep($n - 1) : fatal(); }', 'deep(20000)', '✗ Fatal: bad',
            ],
            'a fatal error within a generator' => [
                '$g = (function () { yield 1; fatal(); })();', 'foreach ($g as $n);', '✗ Fatal: bad',
            ],
            'a fatal error within a callback' => [
                '', 'array_map(fn ($n) => fatal(), [1, 2])', '✗ Fatal: bad',
            ],
            'a fatal error within a destructor' => [
                'class D { function __destruct() { fatal(); } } $d = new D();', '$d = null;', '✗ Fatal: bad',
            ],
        ];
    }

    public function testManyFatalErrorsInOneSessionLeaveNothingBehind(): void
    {
        $shell = $this->shell();
        $shell->ask('function deep($n) { return $n > 0 ? deep($n - 1) : trigger_error("bad", E_USER_ERROR); } $a = 1;');
        for ($i = 0; $i < 100; $i++) {
            self::assertStringStartsWith('✗ Fatal: bad', $shell->ask('deep(1000)'));
        }

        self::assertSame("✓ int = 2\n", $shell->ask('array_sum(array_map(fn ($n) => $n + $a, [0, 0]))'));
    }

    /**
     * @dataProvider endings
     */
    public function testTheExitCodeIsThatOfTheLastSnippet(string $input, int $code, string $output): void
    {
        $shell = Command::run(['shell', '--root=' . $this->application()->root], input: $input);

        $figures = '/^  duration=.*\n/m';
        self::assertSame([$code, $output], [$shell->exitCode, preg_replace($figures, '', $shell->output)]);
        self::assertSame('', $shell->errors);
    }

    /** @return array<string, array{string, int, string}> */
    public static function endings(): array
    {
        return [
            'nothing' => ['', 0, ''],
            'a value' => ["1\n", 0, "✓ int = 1\n"],
            'an exception' => ["throw new Exception('no');\n", 1, "✗ Exception: no\n  at snippet:1\n"],
            'a value after an exception' => ["f()\n1", 0, "✗ Error: Call to undefined function f()\n"
                . "  at snippet:1\n✓ int = 1\n"],
            'exit, and no line after it' => ["exit(3);\n1\n", 1, "✗ Exited 3.\n"],
            'exit with a text' => ["exit('bye');\n1\n", 0, "✓ Exited 0.\n— stdout —\nbye\n"],
            'exit in a function' => ["function f() { exit(0); }\nf();\n1\n", 0, "✓ null\n✓ Exited 0.\n"],
            'the word exit' => ["1\nexit\n2\n", 0, "✓ int = 1\n"],
            'the word quit' => ["1\n quit;\n2\n", 0, "✓ int = 1\n"],
            'the command' => ["1\n:quit\n2\n", 0, "✓ int = 1\n"],
        ];
    }

    public function testACommandThatDoesNotExistIsWrongUsage(): void
    {
        $shell = Command::run(['shell', '--root=' . $this->application()->root], input: "1\n:nope\n2\n");

        self::assertSame([2, 1], [$shell->exitCode, substr_count($shell->output, '✓')]);
        self::assertStringStartsWith('altair: there is no :nope; there are :help, ', $shell->errors);
    }

    /**
     * @dataProvider endless
     */
    public function testADeadlineUnwindsALineAndKeepsTheSession(string $line): void
    {
        $answers = $this->withinADeadline($line);

        self::assertMatchesRegularExpression('/^✗ Timed out after \d+ms\.\n(.*\n)*?  at snippet:1\n/u', $answers[0]);
        self::assertStringNotContainsString('the session', $answers[0]);
        self::assertSame("✓ int = 1\n", $answers[1]);
    }

    /** @return array<string, array{string}> */
    public static function endless(): array
    {
        return [
            'a loop' => ['while (true);'],
            'a wait' => ['sleep(60);'],
            'a short wait again and again' => ['while (true) { usleep(100); }'],
            'a callback' => ['usort($numbers, fn ($a, $b) => $a <=> $b) && usort($numbers, fn ($a, $b) => sleep(1));'],
            'a pattern that backtracks' => [
                'while (true) { preg_match("/(x+x+)+y/", str_repeat("x", 28)); }',
            ],
            'a loop that catches everything' => [
                'while (true) { try { while (true) { usleep(1); } } catch (Throwable) { } }',
            ],
            'finally' => ['try { while (true); } finally { while (true); }'],
            'a shutdown function' => ['register_shutdown_function(fn () => sleep(60)); while (true);'],
            'an output buffer with a callback' => [
                'ob_start(fn ($text) => $text); while (true) { echo "x"; usleep(999); }',
            ],
        ];
    }

    public function testUnwindingRunsDestructorsAndNeitherCatchNorFinally(): void
    {
        $shell = $this->shell(self::SOON);
        $shell->ask('class D { static $ran = []; function __destruct() { self::$ran[] = "destructor"; } }');
        $shell->ask('function f() { $d = new D(); while (true); }');
        $line = 'try { f(); } catch (Throwable) { D::$ran[] = "catch"; }'
            . ' finally { D::$ran[] = "finally"; } D::$ran = [];';
        self::assertStringStartsWith('✗ Timed out after ', $shell->ask($line));

        self::assertSame("✓ string = 'destructor'\n", $shell->ask('implode(" ", D::$ran)'));
    }

    /**
     * @dataProvider stuck
     */
    public function testALineThatDoesNotUnwindCostsTheSession(string $line): void
    {
        $answers = $this->withinADeadline($line);

        $deadline = self::SHORT_MS;
        self::assertMatchesRegularExpression(
            "/^✗ Timed out after \d+ms\.\n(.*\n)*altair: the session began anew: the deadline of $deadline ms passed "
                . 'in snippet:1; \$kept, \$numbers, \$_ are lost\n$/u',
            $answers[0],
        );
        self::assertSame("✓ int = 0\n", $answers[1]);
    }

    /** @return array<string, array{string}> */
    public static function stuck(): array
    {
        return [
            'a call that computes' => ['$s = str_repeat("ab", 5000000); similar_text($s, $s);'],
            'a read that waits' => [
                '$ends = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0); fread($ends[0], 1);',
            ],
            'finally of a generator that is left' => [
                'foreach ((function () { try { yield 1; } finally { sleep(60); } })() as $n) { while (true); }',
            ],
            'a destructor of what unwinds' => [
                '(function () { $d = new class { function __destruct() { while (true); } }; while (true); })();',
            ],
        ];
    }

    /** @return array{string, string} the answers to a line that meets its deadline, and to one after it */
    private function withinADeadline(string $line): array
    {
        $shell = $this->shell(self::SOON);
        $shell->ask('$kept = 1; $numbers = range(1, 1000);');
        $began = microtime(true);
        $answer = $shell->ask($line);
        self::assertLessThan(self::SHORT_MS / 1000 + self::GRACE, microtime(true) - $began);

        return [$answer, $shell->ask('(int) isset($kept)')];
    }

    public function testRecursionWithoutEndIsOutOfMemoryAndCostsTheSession(): void
    {
        $shell = $this->shell('--memory-mb=32');
        $shell->ask('$kept = 1; function r($n) { return r($n + 1) + 1; }');

        $answer = $shell->ask('r(0)');
        self::assertStringStartsWith('✗ Out of memory: Allowed memory size of 33554432 bytes exhausted', $answer);
        self::assertMatchesRegularExpression(
            '/\naltair: the session began anew: Allowed memory size of .* in snippet:1; \$kept is lost\n$/',
            $answer,
        );
        self::assertSame("✓ bool = false\n", $shell->ask('isset($kept) || function_exists("r")'));
    }

    public function testACrashCostsTheSessionAndNotTheShell(): void
    {
        $shell = $this->shell();
        $shell->ask('$kept = 1; $other = 2;');
        $child = $shell->child();
        exec("kill -SEGV $child");

        $answer = $shell->ask('file_put_contents("run", 1)');
        self::assertSame(
            "✗ The line did not run to its end.\naltair: the session began anew: it was ended by signal 11 (SIGSEGV); "
                . "\$kept, \$other, \$_ are lost\n",
            $answer,
        );
        self::assertSame("✓ bool = false\n", $shell->ask('isset($kept) || file_exists("run")'));
    }

    public function testALineThatKillsItsProcessIsTold(): void
    {
        $shell = $this->shell();

        self::assertSame(
            "✗ Killed by signal 9 (SIGKILL).\naltair: the session began anew: it was ended by signal 9 (SIGKILL); "
                . "nothing was lost\n",
            $shell->ask('posix_kill(getmypid(), SIGKILL);'),
        );
        self::assertSame("✓ int = 1\n", $shell->ask('1'));
    }
}
