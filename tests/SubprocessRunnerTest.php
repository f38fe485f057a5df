<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\Runner\SubprocessResult;
use Altair\Eval\Runner\SubprocessRunner;
use Altair\Eval\Tests\Support\Processes;
use Altair\Eval\Tests\Support\Refusals;
use ArrayObject;
use Error;
use PHPUnit\Framework\TestCase;
use TypeError;
use ValueError;

/**
 * SubprocessRunner: any command, to its end, with a deadline and bounded output.
 */
final class SubprocessRunnerTest extends TestCase
{
    use Refusals;

    private const LONG_MS = 60000;

    public function testItTellsHowACommandEnded(): void
    {
        $result = $this->shell('echo out; echo err >&2; exit 3');

        self::assertInstanceOf(SubprocessResult::class, $result);
        self::assertSame(3, $result->exitCode);
        self::assertSame("out\n", $result->stdout);
        self::assertSame("err\n", $result->stderr);
        self::assertFalse($result->timedOut);
        self::assertGreaterThanOrEqual(0, $result->durationMs);
    }

    public function testACommandThatASignalEndsExitsWith128AndItsNumber(): void
    {
        self::assertSame(128 + SIGKILL, $this->shell('kill -KILL $$')->exitCode);
        self::assertSame(128 + SIGTERM, $this->shell('kill -TERM $$')->exitCode);
    }

    public function testThereIsNoShellBetween(): void
    {
        $words = ['$HOME', '; exit 1', '*', "a\nb", "it's", '"', '', '-n', "\xff"];

        $result = $this->execute(['printf', '%s|', ...$words]);

        self::assertSame(str_replace("\xff", "\u{FFFD}", implode('|', $words) . '|'), $result->stdout);
    }

    public function testNumbersAndBooleansAreWordsAndKeysDoNotMatter(): void
    {
        $result = $this->execute(['program' => 'printf', 7 => '%s|', 'x' => 12, 'y' => 1.5, 'z' => true, 'e' => false]);

        self::assertSame('12|1.5|1||', $result->stdout);
    }

    public function testWordsOfOtherTypesAreRefused(): void
    {
        foreach ([[[]], ['echo', null], ['echo', new ArrayObject()], [STDIN]] as $command) {
            $this->assertRefused(
                TypeError::class,
                'Altair\Eval\Runner\SubprocessRunner::run(): Argument #1 ($command) must be a list of strings',
                fn () => $this->execute($command),
            );
        }
        $this->assertRefused(TypeError::class, '$env', static fn () => (new SubprocessRunner())->run(
            ['true'],
            null,
            ['A' => []],
            self::LONG_MS,
        ));
        $this->assertRefused(ValueError::class, '($command) must not be empty', fn () => $this->execute([]));
    }

    /**
     * @dataProvider whatCannotBeStarted
     * @param list<string> $command
     */
    public function testWhatCannotBeStartedIs127AndTheReason(array $command, ?string $cwd, string $reason): void
    {
        $result = (new SubprocessRunner())->run($command, $cwd, [], self::LONG_MS);

        self::assertSame([127, '', false], [$result->exitCode, $result->stdout, $result->timedOut]);
        self::assertStringContainsString($reason, $result->stderr);
    }

    /**
     * @return iterable<string, array{list<string>, ?string, string}>
     */
    public static function whatCannotBeStarted(): iterable
    {
        yield 'no such name' => [['no-such-program-here'], null, 'no-such-program-here'];
        yield 'no such path' => [['/nowhere/program'], null, '/nowhere/program'];
        yield 'a file that is no program' => [['/etc/passwd'], null, '/etc/passwd'];
        yield 'a directory' => [['/etc'], null, '/etc'];
        yield 'an empty name' => [[''], null, 'empty'];
        yield 'a NUL byte' => [['echo', "a\0b"], null, 'NUL'];
        yield 'a directory that there is not' => [['true'], '/nowhere', '/nowhere'];
        yield 'a file as the directory' => [['true'], '/etc/passwd', '/etc/passwd'];
        yield 'a NUL byte in the directory' => [['true'], "/etc\0", 'NUL'];
    }

    public function testTheEnvironmentIsExactlyWhatIsGiven(): void
    {
        $result = (new SubprocessRunner())->run(['env'], null, ['A' => 'b c', 'N' => 5, 'E' => ''], self::LONG_MS);

        self::assertSame("A=b c\nN=5\nE=\n", $result->stdout);
        self::assertSame('', (new SubprocessRunner())->run(['env'], null, [], self::LONG_MS)->stdout);
    }

    public function testTheDirectoryIsTheGivenOneOrTheHosts(): void
    {
        self::assertSame("/\n", $this->execute(['pwd', '-P'], '/')->stdout);
        self::assertSame(realpath((string) getcwd()) . "\n", $this->execute(['pwd', '-P'])->stdout);
    }

    public function testItGetsNothingOfTheHostButThreeStreams(): void
    {
        $open = fopen('/etc/passwd', 'r');
        self::assertIsResource($open);

        // The last one is that of `ls` itself.
        self::assertSame("0\n1\n2\n3\n", $this->execute(['ls', '/proc/self/fd'])->stdout);
        self::assertSame('', $this->execute(['cat'])->stdout, 'Its standard input is empty.');
    }

    public function testTheDeadlineEndsItWithAllThatItStarted(): void
    {
        $mark = 'ALTAIR_TEST_MARK=' . bin2hex(random_bytes(12));
        [$name, $value] = explode('=', $mark);

        $result = (new SubprocessRunner())->run(
            [
                'sh', '-c',
                'trap "" TERM; echo begun; setsid sleep 50 & (sleep 50 & sleep 50) &'
                    . ' nohup sh -c "sleep 50 & :" & sleep 50',
            ],
            null,
            [$name => $value] + getenv(),
            1000,
        );

        self::assertSame([124, true, "begun\n"], [$result->exitCode, $result->timedOut, $result->stdout]);
        self::assertGreaterThanOrEqual(1000, $result->durationMs);
        self::assertLessThan(30000, $result->durationMs);
        self::assertSame([], Processes::leftOf($mark));
    }

    public function testATimeoutOfNothingEndsItAtOnce(): void
    {
        foreach ([0, -1, PHP_INT_MIN] as $timeout) {
            $result = (new SubprocessRunner())->run(['sleep', '50'], null, getenv(), $timeout);

            self::assertSame([124, true], [$result->exitCode, $result->timedOut]);
        }
    }

    public function testATimeoutBeyondAllBoundsDoesNotDisturb(): void
    {
        self::assertSame(0, (new SubprocessRunner())->run(['true'], null, getenv(), PHP_INT_MAX)->exitCode);
    }

    public function testOutputIsKeptFromTheHeadAndReadToItsEnd(): void
    {
        self::assertSame(16384, SubprocessRunner::OUTPUT_LIMIT);

        $whole = $this->execute(['head', '-c', '16384', '/dev/zero']);
        $result = $this->shell('yes out | head -c 1000000; yes err | head -c 1000000 >&2; exit 5');

        self::assertSame(str_repeat("\0", 16384), $whole->stdout);
        self::assertSame(5, $result->exitCode, 'It could write all of it.');
        self::assertSame(str_repeat("out\n", 4096) . "\n...(truncated)", $result->stdout);
        self::assertSame(str_repeat("err\n", 4096) . "\n...(truncated)", $result->stderr);
    }

    public function testAStrayCopyOfAStreamDoesNotKeepItWaiting(): void
    {
        $begun = microtime(true);

        $result = $this->shell('echo done; sleep 50 & exit 0');

        self::assertSame([0, "done\n"], [$result->exitCode, $result->stdout]);
        self::assertLessThan(30, microtime(true) - $begun);
    }

    public function testAResultIsAReadonlyValueThatCallersMayMake(): void
    {
        $result = new SubprocessResult(exitCode: 1, stdout: 'o', stderr: 'e', timedOut: true, durationMs: 5);

        self::assertSame(
            ['exitCode' => 1, 'stdout' => 'o', 'stderr' => 'e', 'timedOut' => true, 'durationMs' => 5],
            get_object_vars($result),
        );
        self::assertEquals($result, clone $result);
        $this->assertRefused(
            Error::class,
            'Cannot modify readonly property Altair\Eval\Runner\SubprocessResult::$exitCode',
            static fn () => $result->exitCode = 0, // @phpstan-ignore-line
        );
    }

    private function shell(string $script): SubprocessResult
    {
        return $this->execute(['sh', '-c', $script]);
    }

    /**
     * @param array<mixed> $command
     */
    private function execute(array $command, ?string $cwd = null): SubprocessResult
    {
        return (new SubprocessRunner())->run($command, $cwd, getenv(), self::LONG_MS);
    }
}
