<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Sandbox;

use Altair\Eval\Tests\Support\Refusals;
use Altair\Sandbox\Config\ExecutionPolicy;
use Altair\Sandbox\Contracts\CanExecuteCommand;
use Altair\Sandbox\Data\ExecResult;
use Altair\Sandbox\Data\Mount;
use Altair\Sandbox\Enums\SandboxDriver;
use Altair\Sandbox\Enums\TimeoutReason;
use Altair\Sandbox\Value\Argv;
use Altair\Sandbox\Value\CommandSpec;
use BackedEnum;
use Error;
use InvalidArgumentException;
use PHPUnit\Framework\TestCase;
use ReflectionClass;
use ReflectionEnum;
use stdClass;
use TypeError;
use ValueError;

/**
 * The small values of Altair\Sandbox, its enums, and its interface.
 */
final class SandboxValuesTest extends TestCase
{
    use Refusals;

    public function testACommandIsItsProgramAndItsArguments(): void
    {
        $argv = Argv::of(['git', 'status']);

        self::assertSame(['git', 'status'], $argv->toArray());
        self::assertSame(['git', 'status', '-s'], $argv->with('-s')->toArray());
        self::assertSame(['git', 'status'], $argv->toArray());
        self::assertSame(['a', 'b'], Argv::of(['x' => 'a', 7 => 'b'])->toArray());
        self::assertSame(["\xff", '', 'a b', "'"], Argv::of(["\xff", '', 'a b', "'"])->toArray());
        self::assertSame(['a', ''], Argv::of(['a'])->with('')->toArray());
    }

    public function testACommandOfAnotherFormIsRefused(): void
    {
        $strings = 'Each of the arguments of the command has to be a string.';
        foreach (
            [
                [[], 'The command must not be empty.'],
                [[1], $strings],
                [['a', null], $strings],
                [['a', 1.5], $strings],
                [['a', ['b']], $strings],
                [['a', new stdClass()], $strings],
                [["a\0b"], 'The argument "a\0b" of the command holds a NUL byte.'],
                [['a', "\0"], 'The argument "\0" of the command holds a NUL byte.'],
            ] as [$argv, $message]
        ) {
            $class = InvalidArgumentException::class;
            $this->assertRefused($class, $message, static fn () => Argv::of($argv));
        }
        $message = 'The argument "\0" of the command holds a NUL byte.';
        $this->assertRefused(InvalidArgumentException::class, $message, static fn () => Argv::of(['a'])->with("\0"));
        foreach (
            [
                static fn () => Argv::of('ls -l'),
                static fn () => Argv::of(null),
                static fn () => Argv::of(['a'])->with(1),
                static fn () => Argv::of(['a'])->with(null),
            ] as $attempt
        ) {
            $this->assertRefused(TypeError::class, 'must be of type', $attempt);
        }
        $this->assertRefused(Error::class, 'private', static fn () => new Argv());
    }

    public function testACommandMayHaveSomethingToRead(): void
    {
        $argv = Argv::of(['cat']);
        $spec = new CommandSpec($argv, "in\xff");

        self::assertSame([$argv, "in\xff"], [$spec->argv(), $spec->stdin()]);
        self::assertNull((new CommandSpec($argv))->stdin());
        self::assertSame('', (new CommandSpec(stdin: '', argv: $argv))->stdin());
        $this->assertRefused(TypeError::class, 'must be of type', static fn () => new CommandSpec(['cat']));
        $this->assertRefused(TypeError::class, 'must be of type', static fn () => new CommandSpec($argv, 1));
        $again = static fn () => $spec->__construct(Argv::of(['rm']));
        $this->assertRefused(Error::class, 'Cannot modify readonly property', $again);
        self::assertSame('{"argv":{"arguments":["cat"]},"stdin":null}', json_encode(new CommandSpec($argv)));
    }

    public function testAMountIsAnArgumentOfDockers(): void
    {
        $mount = new Mount('/srv/app', '/work', 'ro');

        self::assertSame(['/srv/app', '/work', 'ro'], [$mount->host(), $mount->container(), $mount->options()]);
        self::assertSame('/srv/app:/work:ro', $mount->toVolumeArg());
        self::assertSame('{"host":"a","container":"b","options":"rw"}', json_encode(new Mount('a', 'b', 'rw')));
        $this->assertRefused(TypeError::class, 'must be of type', static fn () => new Mount('/a', '/b', null));
        $again = static fn () => $mount->__construct('/', '/', 'rw');
        $this->assertRefused(Error::class, 'Cannot modify readonly property', $again);
    }

    public function testValuesAreClonedSerialisedAndNotChanged(): void
    {
        $argv = Argv::of(['a', 'b']);
        foreach ([$argv, new CommandSpec($argv, 'in'), new Mount('/a', '/b', 'ro')] as $value) {
            self::assertEquals($value, clone $value);
            self::assertEquals($value, unserialize(serialize($value)));
            $name = array_key_first(get_object_vars($value));
            $change = static fn () => $value->$name = 'x';
            $this->assertRefused(Error::class, 'Cannot modify readonly property', $change);
            self::assertTrue((new ReflectionClass($value))->isFinal());
        }
    }

    public function testValuesThatWereNeverConstructedAreToldFromOthers(): void
    {
        foreach ([[Argv::class, 'toArray'], [CommandSpec::class, 'argv'], [Mount::class, 'toVolumeArg']] as $row) {
            [$class, $method] = $row;
            $hollow = (new ReflectionClass($class))->newInstanceWithoutConstructor();
            $this->assertRefused(Error::class, 'was never constructed', static fn () => $hollow->$method());
        }
    }

    public function testDriversAndReasonsAreEnumsOfStrings(): void
    {
        self::assertSame(
            [
                'Host' => 'host', 'Docker' => 'docker', 'Podman' => 'podman', 'Firejail' => 'firejail',
                'Bubblewrap' => 'bubblewrap', 'Native' => 'native',
            ],
            array_column(SandboxDriver::cases(), 'value', 'name'),
        );
        self::assertSame(['WALL' => 'wall', 'IDLE' => 'idle'], array_column(TimeoutReason::cases(), 'value', 'name'));
        foreach ([SandboxDriver::class, TimeoutReason::class] as $enum) {
            foreach ($enum::cases() as $case) {
                self::assertInstanceOf(BackedEnum::class, $case);
                self::assertSame($case, $enum::from($case->value));
                self::assertSame($case, $enum::tryFrom($case->value));
                self::assertSame($case, constant("$enum::$case->name"));
                self::assertSame($case, unserialize(serialize($case)));
                self::assertSame("\"$case->value\"", json_encode($case));
            }
            self::assertNull($enum::tryFrom('Host'));
            $this->assertRefused(ValueError::class, 'is not a valid backing value', static fn () => $enum::from('x'));
            $this->assertRefused(Error::class, '', static fn () => (new ReflectionClass($enum))->newInstance());
            $this->assertRefused(Error::class, 'clone', static fn () => clone $enum::cases()[0]);
            self::assertSame('string', (string) (new ReflectionEnum($enum))->getBackingType());
            self::assertTrue((new ReflectionEnum($enum))->isFinal());
        }
        self::assertSame(1, match (SandboxDriver::from('native')) {
            SandboxDriver::Native => 1,
            default => 0,
        });
    }

    public function testPhpCodeCanExecuteCommands(): void
    {
        $echo = new class (ExecutionPolicy::in('/srv')) implements CanExecuteCommand {
            public function __construct(private readonly ExecutionPolicy $policy)
            {
            }

            public function policy(): ExecutionPolicy
            {
                return $this->policy;
            }

            public function execute(array $argv, ?string $stdin = null, ?callable $onOutput = null): ExecResult
            {
                $onOutput?->__invoke('out', (string) $stdin);

                return new ExecResult(implode(' ', $argv), '', 0, 0.1);
            }
        };
        $seen = [];
        $watch = static function (string $stream, string $chunk) use (&$seen): void {
            $seen[] = [$stream, $chunk];
        };
        $result = $echo->execute(['echo', 'a'], 'in', $watch);

        self::assertInstanceOf(CanExecuteCommand::class, $echo);
        self::assertSame('/srv', $echo->policy()->baseDir());
        self::assertSame('echo a', $result->stdout());
        self::assertSame([['out', 'in']], $seen);
    }

    public function testAnotherSignatureIsNoImplementation(): void
    {
        $code = 'final class Wrong implements Altair\Sandbox\Contracts\CanExecuteCommand {'
            . 'public function policy(): array { return []; }'
            . 'public function execute(array $argv): string { return ""; } }';
        exec(sprintf(
            '%s -d extension=%s -r %s 2>&1',
            escapeshellarg(PHP_BINARY),
            escapeshellarg((string) getenv('EXTENSION')),
            escapeshellarg($code),
        ), $lines, $status);

        self::assertSame(255, $status);
        self::assertStringContainsString('must be compatible with', implode("\n", $lines));
    }
}
