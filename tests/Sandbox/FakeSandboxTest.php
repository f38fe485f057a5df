<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Sandbox;

use Altair\Eval\Tests\Support\Refusals;
use Altair\Sandbox\Config\ExecutionPolicy;
use Altair\Sandbox\Contracts\CanExecuteCommand;
use Altair\Sandbox\Data\ExecResult;
use Altair\Sandbox\Testing\FakeSandbox;
use InvalidArgumentException;
use PHPUnit\Framework\TestCase;
use RuntimeException;
use TypeError;

/**
 * The sandbox for tests gives what it was given.
 */
final class FakeSandboxTest extends TestCase
{
    use Refusals;

    public function testItAnswersByTheCommandLine(): void
    {
        $clean = new ExecResult('clean', '', 0, 0.1);
        $fake = FakeSandbox::fromResponses([
            'git status' => $clean,
            'git push' => ['stderr' => 'rejected', 'exit_code' => 1],
            'true' => ['duration' => 2],
        ]);
        $rejected = $fake->execute(['git', 'push']);

        self::assertInstanceOf(CanExecuteCommand::class, $fake);
        self::assertSame($clean, $fake->execute(['git', 'status']));
        self::assertSame(['', 'rejected', 1], [$rejected->stdout(), $rejected->stderr(), $rejected->exitCode()]);
        self::assertSame(2.0, $fake->execute(['true'])->duration());
        self::assertSame([['git', 'push'], ['git', 'status'], ['true']], $fake->commands());
    }

    public function testResponsesAreAQueue(): void
    {
        $fake = FakeSandbox::fromResponses([
            'date' => [['stdout' => 'one'], new ExecResult('two', '', 0, 0.1)],
            'id' => ['stdout' => 'root'],
            '7' => [['stdout' => 'seven']],
            'never' => [],
        ]);
        $fake->enqueue('date', ['stdout' => 'three']);
        $fake->enqueue(['date'], new ExecResult('four', '', 0, 0.1));
        $fake->enqueue(['wc', '-l'], []);
        $given = [];
        for ($i = 0; $i < 4; ++$i) {
            $given[] = $fake->execute(['date'])->stdout();
        }

        self::assertSame(['one', 'two', 'three', 'four'], $given);
        self::assertTrue($fake->execute(['wc', '-l'])->success());
        self::assertSame('seven', $fake->execute(['7'])->stdout());
        foreach (['date', '7', 'never'] as $command) {
            $this->assertRefused(
                RuntimeException::class,
                "FakeSandbox has no response for command: $command",
                static fn () => $fake->execute([$command]),
            );
        }
    }

    public function testWithoutAResponseItAnswersWithTheDefaultOrRefuses(): void
    {
        $default = new ExecResult('', 'not here', 127, 0.0);
        $policy = ExecutionPolicy::in('/srv');
        $fake = new FakeSandbox($policy, ['ls' => ['stdout' => 'a']], $default);

        self::assertSame('a', $fake->execute(['ls'])->stdout());
        self::assertSame($default, $fake->execute(['ls']));
        self::assertSame($default, $fake->execute(['ls', '-l']));
        self::assertSame($default, FakeSandbox::fromResponses([], null, $default)->execute(['ls']));

        $strict = new FakeSandbox($policy);
        $refusal = $this->assertRefused(
            RuntimeException::class,
            'FakeSandbox has no response for command: git commit -m two words',
            static fn () => $strict->execute(['git', 'commit', '-m', 'two words']),
        );
        self::assertSame(RuntimeException::class, $refusal::class);
        self::assertSame([['git', 'commit', '-m', 'two words']], $strict->commands());
    }

    public function testItHasThePolicyThatItWasGiven(): void
    {
        $policy = ExecutionPolicy::in('/nowhere')->withTimeout(30);

        self::assertSame($policy, (new FakeSandbox($policy))->policy());
        self::assertSame($policy, FakeSandbox::fromResponses([], $policy)->policy());
        self::assertEquals(ExecutionPolicy::default(), FakeSandbox::fromResponses([])->policy());
    }

    public function testOutputIsGivenToTheCallback(): void
    {
        $fake = FakeSandbox::fromResponses([
            'a' => ['stdout' => 'o', 'stderr' => 'e'],
            'b' => ['stderr' => 'e'],
            'c' => [[]],
        ]);
        $seen = [];
        $watch = static function (string $stream, string $chunk) use (&$seen): void {
            $seen[] = "$stream: $chunk";
        };
        foreach (['a', 'b', 'c'] as $command) {
            $fake->execute([$command], 'in', $watch);
        }

        self::assertSame(['out: o', 'err: e', 'err: e'], $seen);
    }

    public function testAResultsArrayIsAResponse(): void
    {
        $result = new ExecResult('o', 'e', 124, 0.5, true, true, false);
        $fake = FakeSandbox::fromResponses(['a' => $result->toArray(), 'b' => array_reverse($result->toArray())]);

        self::assertEquals($result, $fake->execute(['a']));
        self::assertEquals($result, $fake->execute(['b']));
    }

    public function testWhatNoResponseIsIsRefused(): void
    {
        $this->assertRefused(
            InvalidArgumentException::class,
            'A response of FakeSandbox has no key "exitCode", but: stdout, stderr, exit_code, duration, timed_out, '
                . 'truncated_stdout, truncated_stderr, success',
            static fn () => FakeSandbox::fromResponses(['a' => ['exitCode' => 1]]),
        );
        $this->assertRefused(
            InvalidArgumentException::class,
            'A response of FakeSandbox says success: false, but exit_code and timed_out say the opposite',
            static fn () => FakeSandbox::fromResponses(['a' => ['success' => false]]),
        );
        foreach ([['a' => 'output'], ['a' => ['exit_code' => '1']], ['a' => [null]]] as $responses) {
            $this->assertRefused(TypeError::class, 'of type', static fn () => FakeSandbox::fromResponses($responses));
        }
    }

    public function testItRefusesTheCommandsThatARealOneRefuses(): void
    {
        $fake = FakeSandbox::fromResponses([], default: new ExecResult('', '', 0, 0.1));
        foreach ([[], [1], ["a\0"]] as $argv) {
            $this->assertRefused(InvalidArgumentException::class, 'command', static fn () => $fake->execute($argv));
        }

        self::assertSame([], $fake->commands());
    }
}
