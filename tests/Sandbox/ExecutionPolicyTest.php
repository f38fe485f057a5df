<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Sandbox;

use Altair\Eval\Tests\Support\Refusals;
use Altair\Sandbox\Config\ExecutionPolicy;
use ArgumentCountError;
use Error;
use InvalidArgumentException;
use PHPUnit\Framework\TestCase;
use ReflectionClass;
use stdClass;
use TypeError;

/**
 * A policy is a plain value with bounds, which nobody changes.
 */
final class ExecutionPolicyTest extends TestCase
{
    use Refusals;

    private const DEFAULTS = [
        'baseDir' => '/srv',
        'timeoutSeconds' => 5,
        'idleTimeoutSeconds' => null,
        'memoryLimit' => '128M',
        'readablePaths' => [],
        'writablePaths' => [],
        'env' => [],
        'inheritEnv' => false,
        'networkEnabled' => false,
        'stdoutLimitBytes' => 1_048_576,
        'stderrLimitBytes' => 1_048_576,
        'layers' => [],
        'services' => [],
    ];

    public function testWhatNobodyChoseHasItsDefault(): void
    {
        self::assertSame(self::DEFAULTS, self::told(ExecutionPolicy::in('/srv')));
        self::assertSame(['baseDir' => '/tmp'] + self::DEFAULTS, self::told(ExecutionPolicy::default()));
    }

    public function testTheBaseDirectoryNeedNotBeThereYet(): void
    {
        foreach (['/nowhere/at/all', 'relative', '', "/caf\xe9", __FILE__] as $directory) {
            self::assertSame($directory, ExecutionPolicy::in($directory)->baseDir());
        }
    }

    public function testEachMethodChangesOneThingInAnotherPolicy(): void
    {
        $policy = ExecutionPolicy::in('/srv');
        foreach (
            [
                [['timeoutSeconds' => 30], $policy->withTimeout(30)],
                [['idleTimeoutSeconds' => 3], $policy->withIdleTimeout(3)],
                [['memoryLimit' => '64M'], $policy->withMemory('65536K')],
                [['readablePaths' => ['/a', '/b']], $policy->withReadablePaths('/a', '/b')],
                [['writablePaths' => ['/c']], $policy->withWritablePaths('/c')],
                [['env' => ['A' => '1']], $policy->withEnv(['A' => '1'])],
                [['env' => ['A' => '1'], 'inheritEnv' => true], $policy->withEnv(['A' => '1'], true)],
                [['inheritEnv' => true], $policy->inheritEnvironment()],
                [[], $policy->inheritEnvironment(false)],
                [['networkEnabled' => true], $policy->withNetwork(true)],
                [['stdoutLimitBytes' => 2048, 'stderrLimitBytes' => 4096], $policy->withOutputCaps(2048, 4096)],
                [['layers' => ['/d', '/e']], $policy->withLayer('/d', '/e')],
                [['services' => ['db:3306', '/run/db.sock']], $policy->withServices('db:3306', '/run/db.sock')],
                [['baseDir' => '/opt'], $policy->with(baseDir: '/opt')],
            ] as [$changes, $changed]
        ) {
            self::assertSame($changes + self::DEFAULTS, self::sorted(self::told($changed), $changes));
            self::assertNotSame($policy, $changed);
        }
        self::assertSame(self::DEFAULTS, self::told($policy));
    }

    public function testChangesAddUp(): void
    {
        $policy = ExecutionPolicy::in('/srv')->withTimeout(9)->withIdleTimeout(2)->withMemory('1G')
            ->withReadablePaths('/a')->withWritablePaths('/b')->withEnv(['X' => 'y'], true)->withNetwork(true)
            ->withOutputCaps(5000, 6000)->withLayer('/c')->withServices('db:1');

        self::assertSame(
            ['/srv', 9, 2, '1024M', ['/a'], ['/b'], ['X' => 'y'], true, true, 5000, 6000, ['/c'], ['db:1']],
            array_values(self::told($policy)),
        );
    }

    public function testWithChangesWhatItIsGivenAndKeepsTheRest(): void
    {
        $given = [
            'baseDir' => '/opt',
            'timeoutSeconds' => 7,
            'idleTimeoutSeconds' => 2,
            'memoryLimit' => '16M',
            'readablePaths' => ['/a'],
            'writablePaths' => ['/b'],
            'env' => ['A' => 'b'],
            'inheritEnv' => true,
            'networkEnabled' => true,
            'stdoutLimitBytes' => 2000,
            'stderrLimitBytes' => 3000,
        ];
        $policy = ExecutionPolicy::in('/srv')->withLayer('/l')->withServices('db:1');
        $all = $policy->with(...$given);

        self::assertSame($given + ['layers' => ['/l'], 'services' => ['db:1']], self::told($all));
        self::assertEquals($all, $policy->with(...array_values($given)));
        self::assertEquals($all, $all->with());
        self::assertEquals($all, $all->with(...array_fill_keys(array_keys($given), null)));
        foreach ($given as $name => $value) {
            $one = self::told($policy->with(...[$name => $value]));
            self::assertSame([$name => $value], self::differences($one, self::told($policy)));
        }
        // What is false is given, too.
        self::assertFalse($all->with(inheritEnv: false, networkEnabled: false)->inheritEnv());
        self::assertSame([[], []], [$all->with(env: [])->env(), $all->with(readablePaths: [])->readablePaths()]);
    }

    public function testItsParametersHaveTheAccessorsNames(): void
    {
        $class = new ReflectionClass(ExecutionPolicy::class);
        $names = array_column($class->getMethod('with')->getParameters(), 'name');

        self::assertSame(array_slice(array_keys(self::DEFAULTS), 0, 11), $names);
        foreach ($names as $name) {
            self::assertTrue($class->hasMethod($name), $name);
        }
    }

    public function testTimeoutsAreAtLeastASecond(): void
    {
        $policy = ExecutionPolicy::in('/srv');
        foreach ([[PHP_INT_MIN, 1], [-1, 1], [0, 1], [1, 1], [2, 2], [86400, 86400]] as [$given, $kept]) {
            self::assertSame($kept, $policy->withTimeout($given)->timeoutSeconds());
            self::assertSame($kept, $policy->withIdleTimeout($given)->idleTimeoutSeconds());
            $both = $policy->with(timeoutSeconds: $given, idleTimeoutSeconds: $given);
            self::assertSame([$kept, $kept], [$both->timeoutSeconds(), $both->idleTimeoutSeconds()]);
        }
        self::assertSame(2 ** 32 - 1, $policy->withTimeout(PHP_INT_MAX)->timeoutSeconds());
    }

    public function testNullTurnsTheIdleTimeoutOff(): void
    {
        $policy = ExecutionPolicy::in('/srv')->withIdleTimeout(3);

        self::assertNull($policy->withIdleTimeout(null)->idleTimeoutSeconds());
        self::assertSame(3, $policy->with(idleTimeoutSeconds: null)->idleTimeoutSeconds());
    }

    public function testOutputCapsAreAtLeastAKibibyte(): void
    {
        $policy = ExecutionPolicy::in('/srv');
        foreach ([[PHP_INT_MIN, 1024], [-1, 1024], [0, 1024], [1023, 1024], [1025, 1025]] as [$given, $kept]) {
            $capped = $policy->withOutputCaps($given, 5000);
            self::assertSame([$kept, 5000], [$capped->stdoutLimitBytes(), $capped->stderrLimitBytes()]);
            $capped = $policy->with(stderrLimitBytes: $given);
            self::assertSame([1_048_576, $kept], [$capped->stdoutLimitBytes(), $capped->stderrLimitBytes()]);
        }
        self::assertSame(PHP_INT_MAX, $policy->withOutputCaps(PHP_INT_MAX, 1)->stdoutLimitBytes());
    }

    /**
     * @dataProvider memoryLimits
     */
    public function testMemoryIsWholeMegabytes(string $given, string $kept): void
    {
        self::assertSame($kept, ExecutionPolicy::in('/srv')->withMemory($given)->memoryLimit());
        self::assertSame($kept, ExecutionPolicy::in('/srv')->with(memoryLimit: $given)->memoryLimit());
    }

    /**
     * @return iterable<array{string, string}>
     */
    public static function memoryLimits(): iterable
    {
        yield ['128M', '128M'];
        yield ['128m', '128M'];
        yield ['65536K', '64M'];
        yield ['65537k', '65M'];
        yield ['1G', '1024M'];
        yield ['1g', '1024M'];
        yield ['2G', '1024M'];
        yield ['1025M', '1024M'];
        yield ['99999999999999999999999999', '1024M'];
        yield ['134217728', '128M'];
        yield ['134217729', '129M'];
        yield ['1', '1M'];
        yield ['0', '1M'];
        yield ['0M', '1M'];
        yield ['007M', '7M'];
        yield [" 64M\n", '64M'];
    }

    /**
     * @dataProvider wrongMemoryLimits
     */
    public function testOtherMemoryLimitsAreRefused(string $given, string $message): void
    {
        foreach (
            [
                static fn () => ExecutionPolicy::in('/srv')->withMemory($given),
                static fn () => ExecutionPolicy::in('/srv')->with(memoryLimit: $given),
            ] as $attempt
        ) {
            $refusal = $this->assertRefused(InvalidArgumentException::class, $message, $attempt);
            self::assertSame($message, $refusal->getMessage());
        }
    }

    /**
     * @return iterable<array{string, string}>
     */
    public static function wrongMemoryLimits(): iterable
    {
        yield ['-1', 'Unbounded memory limit (-1) is not allowed'];
        yield [' -1 ', 'Unbounded memory limit (-1) is not allowed'];
        $others = ['', 'M', '-2', '-1M', '+1M', '1.5M', '1e3M', '0x10M', '1T', '1MB', '1 M', '1M1', 'unlimited', 'é'];
        foreach ($others as $other) {
            yield [$other, "Invalid memory limit format: $other"];
        }
        yield ["1M\0", 'Invalid memory limit format: 1M\0'];
        yield ["1\xff", "Invalid memory limit format: 1\u{fffd}"];
    }

    public function testPathsAreListsInEveryForm(): void
    {
        $policy = ExecutionPolicy::in('/srv');

        self::assertSame(['/a', '/b'], $policy->withReadablePaths(...['x' => '/a', 'y' => '/b'])->readablePaths());
        self::assertSame(['/a', '/b'], $policy->withWritablePaths('/a', second: '/b')->writablePaths());
        self::assertSame(['/a', '/b'], $policy->with(readablePaths: [3 => '/a', 'k' => '/b'])->readablePaths());
        self::assertSame([], $policy->withReadablePaths('/a')->withReadablePaths()->readablePaths());
        self::assertSame(['/b'], $policy->withLayer('/a')->withLayer('/b')->layers());
        self::assertSame(["/caf\xe9"], $policy->withLayer("/caf\xe9")->layers());
    }

    public function testWhatNoProgramCanBeToldIsRefused(): void
    {
        $policy = ExecutionPolicy::in('/srv');
        $path = "/a\0b";
        foreach (
            [
                static fn () => ExecutionPolicy::in($path),
                static fn () => $policy->with(baseDir: $path),
                static fn () => $policy->withReadablePaths('/fine', $path),
                static fn () => $policy->withWritablePaths('/fine', $path),
                static fn () => $policy->withLayer($path),
                static fn () => $policy->with(readablePaths: [$path]),
                static fn () => $policy->with(writablePaths: [$path]),
            ] as $attempt
        ) {
            $this->assertRefused(InvalidArgumentException::class, 'The path "/a\0b" holds a NUL byte.', $attempt);
        }
        foreach (["db:1\0", "db\xff:1"] as $address) {
            $this->assertRefused(
                InvalidArgumentException::class,
                'Each of the services has to be UTF-8 without NUL bytes.',
                static fn () => $policy->withServices($address),
            );
        }
    }

    public function testVariablesAreStringsByName(): void
    {
        $given = [
            'STRING' => "caf\xe9", 'INT' => -7, 'FLOAT' => 1.5, 'THIRD' => 0.1 + 0.2, 'YES' => true, 'NO' => false,
            'EMPTY' => '', 'lower' => 'x', 'A B' => 'odd', 12 => 'number',
        ];
        $kept = [
            'STRING' => "caf\xe9", 'INT' => '-7', 'FLOAT' => '1.5', 'THIRD' => '0.3', 'YES' => '1', 'NO' => '',
            'EMPTY' => '', 'lower' => 'x', 'A B' => 'odd', 12 => 'number',
        ];
        $value = 'referenced';
        $reference = ['A' => &$value];
        $policy = ExecutionPolicy::in('/srv')->withEnv($given);

        self::assertSame($kept, $policy->env());
        self::assertSame($kept, $policy->withTimeout(7)->env());
        self::assertSame($kept, ExecutionPolicy::in('/srv')->with(env: $given)->env());
        $policy = $policy->withEnv($reference);
        $value = 'changed';
        self::assertSame(['A' => 'referenced'], $policy->env());
    }

    public function testInheritanceIsKeptUnlessItIsChosen(): void
    {
        $inheriting = ExecutionPolicy::in('/srv')->inheritEnvironment();

        self::assertTrue($inheriting->withEnv(['A' => 'b'])->inheritEnv());
        self::assertTrue($inheriting->withEnv([], null)->inheritEnv());
        self::assertFalse($inheriting->withEnv([], false)->inheritEnv());
        self::assertFalse($inheriting->inheritEnvironment(false)->inheritEnv());
        self::assertTrue($inheriting->inheritEnv());
    }

    public function testVariablesThatNoProgramCanHaveAreRefused(): void
    {
        $name = 'Invalid name of an environment variable: ';
        foreach (
            [
                [['' => 'x'], "$name\"\""],
                [['A=B' => 'x'], "$name\"A=B\""],
                [['=' => 'x'], "$name\"=\""],
                [["A\0" => 'x'], "$name\"A\\0\""],
                [['FINE' => 'x', "\0" => 'x'], "$name\"\\0\""],
                [['A' => "x\0"], 'The environment variable A holds a NUL byte.'],
                [['A' => null], 'The environment variable A has to be a string.'],
                [['A' => []], 'The environment variable A has to be a string.'],
                [['A' => new stdClass()], 'The environment variable A has to be a string.'],
                [['A' => STDIN], 'The environment variable A has to be a string.'],
            ] as [$env, $message]
        ) {
            $policy = ExecutionPolicy::in('/srv');
            $class = InvalidArgumentException::class;
            $this->assertRefused($class, $message, static fn () => $policy->withEnv($env));
            $this->assertRefused($class, $message, static fn () => $policy->with(env: $env));
        }
    }

    public function testArgumentsOfAnotherTypeAreRefused(): void
    {
        $policy = ExecutionPolicy::in('/srv');
        foreach (
            [
                static fn () => ExecutionPolicy::in(null),
                static fn () => ExecutionPolicy::in(1),
                static fn () => $policy->withTimeout('5'),
                static fn () => $policy->withTimeout(1.5),
                static fn () => $policy->withTimeout(null),
                static fn () => $policy->withIdleTimeout('5'),
                static fn () => $policy->withMemory(128),
                static fn () => $policy->withReadablePaths(1),
                static fn () => $policy->withReadablePaths('/a', null),
                static fn () => $policy->withReadablePaths(['/a']),
                static fn () => $policy->withReadablePaths(...['path' => 7]),
                static fn () => $policy->withWritablePaths(new stdClass()),
                static fn () => $policy->withLayer(false),
                static fn () => $policy->withServices(3306),
                static fn () => $policy->withEnv('A=b'),
                static fn () => $policy->withEnv([], 'yes'),
                static fn () => $policy->inheritEnvironment(1),
                static fn () => $policy->inheritEnvironment(null),
                static fn () => $policy->withNetwork('on'),
                static fn () => $policy->withOutputCaps('1', 1),
                static fn () => $policy->with(timeoutSeconds: '1'),
                static fn () => $policy->with(readablePaths: '/a'),
            ] as $attempt
        ) {
            $this->assertRefused(TypeError::class, 'must be of type', $attempt);
        }
        $this->assertRefused(
            TypeError::class,
            'ExecutionPolicy::withReadablePaths(): Argument #2 must be of type string, null given',
            static fn () => $policy->withReadablePaths('/a', null),
        );
        foreach (['readable', 'writable'] as $kind) {
            $this->assertRefused(
                InvalidArgumentException::class,
                "Each of the $kind paths has to be a string.",
                static fn () => $policy->with(...["{$kind}Paths" => ['/a', 1]]),
            );
        }
    }

    public function testMissingSurplusAndUnknownArgumentsAreRefused(): void
    {
        $policy = ExecutionPolicy::in('/srv');
        foreach (
            [
                static fn () => ExecutionPolicy::in(),
                static fn () => ExecutionPolicy::default('/srv'),
                static fn () => $policy->withTimeout(),
                static fn () => $policy->withTimeout(1, 2),
                static fn () => $policy->withIdleTimeout(),
                static fn () => $policy->withOutputCaps(1),
                static fn () => $policy->baseDir(1),
            ] as $attempt
        ) {
            $this->assertRefused(ArgumentCountError::class, 'given', $attempt);
        }
        $this->assertRefused(
            Error::class,
            'Unknown named parameter $timeout',
            static fn () => $policy->with(timeout: 1),
        );
    }

    public function testNobodyMakesOrChangesOneOtherwise(): void
    {
        $policy = ExecutionPolicy::in('/srv');

        $this->assertRefused(Error::class, 'private', static fn () => new ExecutionPolicy());
        foreach (array_keys(self::DEFAULTS) as $name) {
            $this->assertRefused(
                Error::class,
                "Cannot modify readonly property Altair\Sandbox\Config\ExecutionPolicy::\$$name",
                static fn () => $policy->$name = 1,
            );
        }
        $this->assertRefused(
            Error::class,
            'Cannot create dynamic property',
            static fn () => $policy->note = 'x', // @phpstan-ignore-line
        );
        self::assertTrue((new ReflectionClass($policy))->isFinal());
        self::assertSame(self::DEFAULTS, self::told($policy));
    }

    public function testACloneIsEqualAndAnotherObject(): void
    {
        $policy = ExecutionPolicy::in('/srv')->withEnv(['A' => 'b']);
        $clone = clone $policy;

        self::assertEquals($policy, $clone);
        self::assertNotSame($policy, $clone);
        self::assertEquals($policy->withTimeout(9), $clone->withTimeout(9));
    }

    public function testItIsShownAndEncodedByItsProperties(): void
    {
        $policy = ExecutionPolicy::in('/srv')->withReadablePaths('/a');
        ob_start();
        var_dump($policy);
        $dump = (string) ob_get_clean();

        self::assertMatchesRegularExpression('/\["baseDir"\]=>\s+string\(4\) "\/srv"/', $dump);
        self::assertStringContainsString('[memoryLimit] => 128M', print_r($policy, true));
        self::assertSame(self::told($policy), get_object_vars($policy));
        self::assertSame(self::told($policy), json_decode((string) json_encode($policy), true));
    }

    public function testItSurvivesSerialisation(): void
    {
        $policy = ExecutionPolicy::in("/caf\xe9")->withMemory('64M')->withEnv(['A' => "\xff"])->withServices('db:1');
        $again = unserialize(serialize($policy));

        self::assertEquals($policy, $again);
        self::assertEquals($policy->withTimeout(7), $again->withTimeout(7));
    }

    public function testWhatNoPolicyIsDoesNotBecomeOneByUnserialisation(): void
    {
        $serialized = static fn (string $from, string $to): ExecutionPolicy =>
            unserialize(str_replace($from, $to, serialize(ExecutionPolicy::in('/srv')->withMemory('16M'))));

        self::assertSame(1, $serialized('i:5', 'i:-5')->withNetwork(true)->timeoutSeconds());
        $this->assertRefused(
            InvalidArgumentException::class,
            'Invalid memory limit format: lots',
            static fn () => $serialized('s:3:"16M"', 's:4:"lots"')->withNetwork(true),
        );
        $this->assertRefused(
            InvalidArgumentException::class,
            'The path "/s\0v" holds a NUL byte.',
            static fn () => $serialized('/srv', "/s\0v")->withNetwork(true),
        );
    }

    public function testOneThatWasNeverMadeIsToldFromOthers(): void
    {
        $hollow = (new ReflectionClass(ExecutionPolicy::class))->newInstanceWithoutConstructor();
        foreach (
            [
                static fn () => $hollow->baseDir(),
                static fn () => $hollow->withTimeout(5),
                static fn () => $hollow->with(),
            ] as $attempt
        ) {
            $this->assertRefused(Error::class, 'The ExecutionPolicy was never constructed', $attempt);
        }
    }

    public function testWhetherSomebodyChoseTheMemoryLimitIsKept(): void
    {
        $chosen = static fn (ExecutionPolicy $policy): bool => !str_contains(
            print_r($policy->withTimeout(7), true),
            '[memoryIsDefault:Altair\Sandbox\Config\ExecutionPolicy:private] => 1',
        );

        self::assertFalse($chosen(ExecutionPolicy::in('/srv')));
        self::assertFalse($chosen(ExecutionPolicy::in('/srv')->with(timeoutSeconds: 5)));
        self::assertTrue($chosen(ExecutionPolicy::in('/srv')->withMemory('128M')));
        self::assertTrue($chosen(ExecutionPolicy::in('/srv')->with(memoryLimit: '128M')));
    }

    public function testNothingIsLeftOfPolicies(): void
    {
        $use = static function (): void {
            $policy = ExecutionPolicy::in('/srv')->withEnv(['A' => 1.5, 'B' => 'x'])->withReadablePaths('/a', x: '/b');
            $policy = (clone $policy)->with(memoryLimit: '7M', env: ['C' => 2])->withLayer('/l')->withServices('db:1');
            try {
                $policy->withMemory(str_repeat('x', 100));
            } catch (InvalidArgumentException) {
            }
            serialize(unserialize(serialize($policy))->env());
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
     * What the accessors say.
     *
     * @return array<string, mixed>
     */
    private static function told(ExecutionPolicy $policy): array
    {
        $names = array_keys(self::DEFAULTS);

        return array_combine($names, array_map(static fn (string $name) => $policy->$name(), $names));
    }

    /**
     * @param array<string, mixed> $told
     * @param array<string, mixed> $first
     * @return array<string, mixed>
     */
    private static function sorted(array $told, array $first): array
    {
        return array_intersect_key($told, $first) + $told;
    }

    /**
     * @param array<string, mixed> $one
     * @param array<string, mixed> $other
     * @return array<string, mixed>
     */
    private static function differences(array $one, array $other): array
    {
        return array_filter($one, static fn (string $name) => $one[$name] !== $other[$name], ARRAY_FILTER_USE_KEY);
    }
}
