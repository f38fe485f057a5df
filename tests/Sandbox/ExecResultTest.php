<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Sandbox;

use Altair\Eval\Tests\Support\Refusals;
use Altair\Sandbox\Data\ExecResult;
use Altair\Sandbox\Data\ExitCodes;
use Altair\Sandbox\Enums\SandboxDriver;
use Altair\Sandbox\Enums\TimeoutReason;
use ArgumentCountError;
use Error;
use LogicException;
use PHPUnit\Framework\TestCase;
use ReflectionClass;
use TypeError;

/**
 * A result that PHP code makes is a plain value, as one of a real command is but for its layer.
 */
final class ExecResultTest extends TestCase
{
    use Refusals;

    private const NAMES = [
        'stdout', 'stderr', 'exitCode', 'duration', 'timedOut', 'truncatedStdout', 'truncatedStderr', 'timeoutReason',
        'blocked',
    ];

    public function testEveryParameterHasAGetterOfItsName(): void
    {
        $blocked = [['what' => 'connect', 'guard' => 'seccomp', 'lift' => null]];
        $given = ["out\xff", 'err', 124, 1.25, true, true, true, TimeoutReason::IDLE, $blocked];
        $result = new ExecResult(...$given);

        self::assertSame($given, self::told($result));
        self::assertSame($given, self::told(new ExecResult(...array_combine(self::NAMES, $given))));
        self::assertSame($given + [9 => null], array_values(get_object_vars($result)));
    }

    public function testWhatIsLeftOutHasItsDefault(): void
    {
        $result = new ExecResult('o', 'e', 3, 0.5);

        self::assertSame(['o', 'e', 3, 0.5, false, false, false, null, []], self::told($result));
        self::assertSame(2.0, (new ExecResult('', '', 0, 2))->duration());
    }

    /**
     * @dataProvider ends
     */
    public function testItSucceedsWithExitCode0InTime(bool $success, int $exitCode, bool $timedOut): void
    {
        $result = new ExecResult('', '', $exitCode, 0.1, $timedOut);

        self::assertSame($success, $result->success());
        self::assertSame($success, $result->toArray()['success']);
    }

    /**
     * @return iterable<array{bool, int, bool}>
     */
    public static function ends(): iterable
    {
        yield [true, 0, false];
        yield [false, 0, true];
        yield [false, 1, false];
        yield [false, -1, false];
        yield [false, 124, true];
    }

    public function testTheArrayHasEightKeys(): void
    {
        $result = new ExecResult('o', 'e', 7, 0.5, false, true, false, TimeoutReason::WALL, [['what' => 'x']]);

        self::assertSame(
            [
                'stdout' => 'o',
                'stderr' => 'e',
                'exit_code' => 7,
                'duration' => 0.5,
                'timed_out' => false,
                'truncated_stdout' => true,
                'truncated_stderr' => false,
                'success' => false,
            ],
            $result->toArray(),
        );
    }

    /**
     * @dataProvider outputs
     */
    public function testErrorsFollowOutputOnALineOfTheirOwn(string $combined, string $stdout, string $stderr): void
    {
        self::assertSame($combined, (new ExecResult($stdout, $stderr, 0, 0.1))->combinedOutput());
    }

    /**
     * @return iterable<array{string, string, string}>
     */
    public static function outputs(): iterable
    {
        yield ['', '', ''];
        yield ['out', 'out', ''];
        yield ["out\n", "out\n", ''];
        yield ['err', '', 'err'];
        yield ["out\nerr", 'out', 'err'];
        yield ["out\nerr\n", "out\n", "err\n"];
        yield ["\xff\nerr", "\xff", 'err'];
    }

    public function testWithoutALayerThereIsNothingToApplyOrDiscard(): void
    {
        $result = new ExecResult('', '', 0, 0.1);
        $without = [$result, clone $result, unserialize(serialize($result))];

        foreach ($without as $one) {
            self::assertNull($one->fileChanges());
            foreach (['apply', 'discard'] as $method) {
                $message = 'The result has no layer.';
                $this->assertRefused(LogicException::class, $message, static fn () => $one->$method());
            }
        }
    }

    public function testArgumentsOfAnotherTypeAreRefused(): void
    {
        foreach (
            [
                [1, '', 0, 0.1],
                [null, '', 0, 0.1],
                ['', null, 0, 0.1],
                ['', '', '0', 0.1],
                ['', '', 0.5, 0.1],
                ['', '', null, 0.1],
                ['', '', 0, '0.1'],
                ['', '', 0, null],
                ['', '', 0, 0.1, 1],
                ['', '', 0, 0.1, false, 'no'],
                ['', '', 0, 0.1, false, false, null],
                ['', '', 0, 0.1, true, false, false, 'wall'],
                ['', '', 0, 0.1, true, false, false, SandboxDriver::Host],
                ['', '', 0, 0.1, true, false, false, null, 'none'],
                ['', '', 0, 0.1, true, false, false, null, null],
            ] as $arguments
        ) {
            $this->assertRefused(TypeError::class, 'must be of type', static fn () => new ExecResult(...$arguments));
        }
        $this->assertRefused(ArgumentCountError::class, '3 given', static fn () => new ExecResult('', '', 0));
        $surplus = ['', '', 0, 0.1, false, false, false, null, [], 1];
        $this->assertRefused(ArgumentCountError::class, '10 given', static fn () => new ExecResult(...$surplus));
    }

    public function testNobodyChangesIt(): void
    {
        $result = new ExecResult('o', 'e', 0, 0.1);
        $class = 'Altair\Sandbox\Data\ExecResult';
        foreach ([...self::NAMES, 'fileChanges'] as $name) {
            $message = "Cannot modify readonly property $class::\$$name";
            $this->assertRefused(Error::class, $message, static fn () => $result->$name = null);
        }
        $message = "Cannot modify readonly property $class::\$stdout";
        $this->assertRefused(Error::class, $message, static fn () => $result->__construct('forged', '', 1, 0.1));
        $copy = $result->blocked();
        $copy[] = 'more';

        self::assertEquals(new ExecResult('o', 'e', 0, 0.1), $result);
        self::assertTrue((new ReflectionClass($result))->isFinal());
    }

    public function testACloneIsEqualAndAnotherObject(): void
    {
        $result = new ExecResult('o', 'e', 124, 0.1, true, timeoutReason: TimeoutReason::WALL);
        $clone = clone $result;

        self::assertEquals($result, $clone);
        self::assertNotSame($result, $clone);
        self::assertSame($result->toArray(), $clone->toArray());
    }

    public function testItIsShownAndEncodedByItsProperties(): void
    {
        $result = new ExecResult('o', 'e', 124, 0.5, true, timeoutReason: TimeoutReason::WALL);
        ob_start();
        var_dump($result);
        $dump = (string) ob_get_clean();

        self::assertMatchesRegularExpression('/\["stdout"\]=>\s+string\(1\) "o"/', $dump);
        self::assertMatchesRegularExpression('/enum\(Altair\\\\Sandbox\\\\Enums\\\\TimeoutReason::WALL\)/', $dump);
        self::assertStringContainsString('[exitCode] => 124', print_r($result, true));
        self::assertSame(
            ['timeoutReason' => 'wall'] + get_object_vars($result),
            ['timeoutReason' => 'wall'] + json_decode((string) json_encode($result), true),
        );
    }

    public function testItSurvivesSerialisation(): void
    {
        $blocked = [['what' => 'connect', 'lift' => null]];
        $result = new ExecResult("\xff", 'e', 124, 0.5, true, true, false, TimeoutReason::IDLE, $blocked);
        $again = unserialize(serialize($result));

        self::assertEquals($result, $again);
        self::assertSame(TimeoutReason::IDLE, $again->timeoutReason());
        self::assertSame($result->toArray(), $again->toArray());
    }

    public function testUnserialisationKeepsTheTypes(): void
    {
        $forged = str_replace('i:77', 's:1:"7"', serialize(new ExecResult('', '', 77, 0.5)));

        $this->assertRefused(TypeError::class, 'of type int', static fn () => unserialize($forged));
    }

    public function testOneThatWasNeverConstructedIsToldFromOthers(): void
    {
        $hollow = unserialize('O:30:"Altair\Sandbox\Data\ExecResult":0:{}');
        self::assertInstanceOf(ExecResult::class, $hollow);
        foreach (
            ['stdout', 'fileChanges', 'success', 'combinedOutput', 'toArray', 'apply', '__serialize'] as $method
        ) {
            $message = 'The ExecResult was never constructed';
            $this->assertRefused(Error::class, $message, static fn () => $hollow->$method());
        }
    }

    public function testExitCodesHaveNames(): void
    {
        self::assertSame(
            ['TIMEOUT' => 124, 'COMMAND_NOT_FOUND' => 127],
            (new ReflectionClass(ExitCodes::class))->getConstants(),
        );
        $this->assertRefused(Error::class, 'private', static fn () => new ExitCodes());
    }

    public function testNothingIsLeftOfResults(): void
    {
        $use = static function (): void {
            $result = new ExecResult('o', 'e', 1, 0.5, false, false, false, TimeoutReason::WALL, [['what' => 'x']]);
            $clone = clone $result;
            $again = unserialize(serialize($clone));
            try {
                $again->apply();
            } catch (LogicException) {
            }
            json_encode([$result->toArray(), $clone->combinedOutput(), $again->blocked()]);
        };
        for ($i = 0; $i < 100; ++$i) {
            $use();
        }
        $before = memory_get_usage();
        for ($i = 0; $i < 1000; ++$i) {
            $use();
        }

        self::assertSame($before, memory_get_usage());
    }

    /**
     * What the getters say.
     *
     * @return list<mixed>
     */
    private static function told(ExecResult $result): array
    {
        return array_map(static fn (string $name) => $result->$name(), self::NAMES);
    }
}
