<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\EvalRequest;
use Altair\Eval\EvalResult;
use Altair\Eval\Evaluator;
use Altair\Eval\Exception\InvalidRequestException;
use Altair\Eval\Tests\Support\Refusals;
use Altair\Eval\Tests\Support\TemporaryApplication;
use ArgumentCountError;
use Error;
use Exception;
use PHPUnit\Framework\TestCase;
use ReflectionClass;
use TypeError;

/**
 * EvalRequest behaves as a readonly class written in PHP does.
 */
final class EvalRequestTest extends TestCase
{
    use Refusals;

    private const SHOP = __DIR__ . '/../examples/shop';

    public function testItNamesItsDefaultsAndBounds(): void
    {
        self::assertSame(
            [
                'DEFAULT_TIMEOUT_MS' => 5000,
                'MIN_TIMEOUT_MS' => 100,
                'MAX_TIMEOUT_MS' => 60000,
                'DEFAULT_MEMORY_MB' => 128,
                'MIN_MEMORY_MB' => 16,
                'MAX_MEMORY_MB' => 512,
            ],
            (new ReflectionClass(EvalRequest::class))->getConstants(),
        );
    }

    public function testEveryParameterIsAPropertyOfThatName(): void
    {
        $given = [
            'return 1;', '/srv/app', 700, 64, true, false, true, 'boot.php', ['db:3306'], ['/srv/shared'], false,
            'rollback', true, ['id' => 7, 'names' => ['a' => 1.5, 'b' => null]], 4, 100, 200, true,
            ['A_TOKEN'],
        ];
        $request = new EvalRequest(...$given);

        self::assertSame(
            array_combine(
                [
                    'snippet', 'projectRoot', 'timeoutMs', 'memoryLimitMb',
                    'allowWrites', 'allowNetwork', 'unsafe', 'bootstrap', 'services', 'readablePaths', 'redact',
                    'database', 'queries', 'arguments', 'depth', 'maxItems', 'maxString', 'diff', 'env',
                ],
                $given,
            ),
            get_object_vars($request),
        );
    }

    public function testWhatIsLeftOutHasItsDefault(): void
    {
        self::assertEquals(
            new EvalRequest('1', '/', 5000, 128, false, false, false, null, null, [], true, null, false, ...[
                [], null, null, null, false, [],
            ]),
            new EvalRequest('1', '/'),
        );
    }

    public function testHowMuchIsShownIsClamped(): void
    {
        $shown = static fn (EvalRequest $request): array => [$request->depth, $request->maxItems, $request->maxString];

        self::assertSame([1, 1, 100], $shown(new EvalRequest('1', '/', depth: 0, maxItems: -5, maxString: 1)));
        self::assertSame(
            [10, 10_000, 1_000_000],
            $shown(new EvalRequest('1', '/', depth: 11, maxItems: PHP_INT_MAX, maxString: PHP_INT_MAX)),
        );
        self::assertSame([null, null, null], $shown(new EvalRequest('1', '/')));
    }

    public function testNamedArgumentsWorkInAnyOrder(): void
    {
        $request = new EvalRequest(bootstrap: 'b.php', allowNetwork: true, projectRoot: '/p', snippet: 's');

        self::assertEquals(new EvalRequest('s', '/p', 5000, 128, false, true, false, 'b.php'), $request);
    }

    public function testANameThatThereIsNotIsRefused(): void
    {
        $this->assertRefused(Error::class, 'Unknown named parameter $timeout', static fn () => new EvalRequest(
            snippet: '1',
            projectRoot: '/',
            timeout: 1, // @phpstan-ignore-line
        ));
    }

    /**
     * @dataProvider limits
     */
    public function testLimitsAreClamped(int $timeout, int $expectedTimeout, int $memory, int $expected): void
    {
        $request = new EvalRequest('1', '/', $timeout, $memory);

        self::assertSame([$expectedTimeout, $expected], [$request->timeoutMs, $request->memoryLimitMb]);
    }

    /**
     * @return iterable<array{int, int, int, int}>
     */
    public static function limits(): iterable
    {
        yield [99, 100, 15, 16];
        yield [100, 100, 16, 16];
        yield [101, 101, 17, 17];
        yield [60000, 60000, 512, 512];
        yield [60001, 60000, 513, 512];
        yield [0, 100, 0, 16];
        yield [-1, 100, -1, 16];
        yield [PHP_INT_MIN, 100, PHP_INT_MIN, 16];
        yield [PHP_INT_MAX, 60000, PHP_INT_MAX, 512];
        yield [1 << 32, 60000, 1 << 32, 512];
    }

    public function testWritingAPropertyIsPhpsOwnError(): void
    {
        $request = new EvalRequest('1', '/');
        foreach (array_keys(get_object_vars($request)) as $name) {
            $this->assertRefused(
                Error::class,
                "Cannot modify readonly property Altair\Eval\EvalRequest::\$$name",
                static fn () => $request->$name = 1,
            );
        }
    }

    public function testThereIsNoOtherWayToChangeAProperty(): void
    {
        $request = new EvalRequest('1', '/');
        $message = 'Cannot modify readonly property Altair\Eval\EvalRequest::$snippet';

        $this->assertRefused(Error::class, $message, static function () use ($request): void {
            $reference = &$request->snippet;
        });
        $this->assertRefused(Error::class, $message, static fn () => $request->snippet .= 'x');
        $this->assertRefused(
            Error::class,
            'Cannot unset readonly property Altair\Eval\EvalRequest::$snippet',
            static function () use ($request): void {
                unset($request->snippet);
            },
        );
        $this->assertRefused(Error::class, $message, static function () use ($request): void {
            $request->__construct('2', '/elsewhere');
        });
        $this->assertRefused(Error::class, $message, static function () use ($request): void {
            (new ReflectionClass($request))->getProperty('snippet')->setValue($request, '2');
        });
        self::assertEquals(new EvalRequest('1', '/'), $request);
    }

    public function testDynamicPropertiesAreRefused(): void
    {
        $request = new EvalRequest('1', '/');

        $this->assertRefused(
            Error::class,
            'Cannot create dynamic property Altair\Eval\EvalRequest::$note',
            static fn () => $request->note = 'x', // @phpstan-ignore-line
        );
    }

    public function testACloneIsEqualAndAnotherObject(): void
    {
        $request = new EvalRequest('1', '/', 200, bootstrap: 'b.php');
        $clone = clone $request;

        self::assertEquals($request, $clone);
        self::assertNotSame($request, $clone);
        $this->assertRefused(
            Error::class,
            'Cannot modify readonly property Altair\Eval\EvalRequest::$timeoutMs',
            static fn () => $clone->timeoutMs = 300, // @phpstan-ignore-line
        );
    }

    public function testVarDumpAndFriendsShowItsProperties(): void
    {
        $request = new EvalRequest("return 'x';", '/srv', unsafe: true);
        ob_start();
        var_dump($request);
        $dump = (string) ob_get_clean();

        self::assertStringContainsString('(19) {', $dump);
        self::assertMatchesRegularExpression('/\["snippet"\]=>\s+string\(11\) "return \'x\';"/', $dump);
        self::assertMatchesRegularExpression('/\["unsafe"\]=>\s+bool\(true\)/', $dump);
        self::assertMatchesRegularExpression('/\["bootstrap"\]=>\s+NULL/', $dump);
        self::assertMatchesRegularExpression('/\["services"\]=>\s+NULL/', $dump);
        self::assertMatchesRegularExpression('/\["readablePaths"\]=>\s+array\(0\)/', $dump);
        self::assertStringContainsString('[timeoutMs] => 5000', print_r($request, true));
        self::assertSame(get_object_vars($request), json_decode((string) json_encode($request), true));
    }

    public function testItCannotBeSerialized(): void
    {
        $this->assertRefused(
            Exception::class,
            "Serialization of 'Altair\Eval\EvalRequest' is not allowed",
            static fn () => serialize(new EvalRequest('1', '/')),
        );
        $this->assertRefused(
            Exception::class,
            "Unserialization of 'Altair\Eval\EvalRequest' is not allowed",
            static fn () => unserialize('O:23:"Altair\Eval\EvalRequest":0:{}'),
        );
    }

    public function testArgumentsOfAnotherTypeAreRefused(): void
    {
        foreach ([[1, '/'], ['1', []], ['1', '/', '200'], ['1', '/', 1.5], ['1', '/', 1, 1, 'yes']] as $arguments) {
            $this->assertRefused(TypeError::class, 'must be of type', static fn () => new EvalRequest(...$arguments));
        }
        $this->assertRefused(
            TypeError::class,
            'Altair\Eval\EvalRequest::__construct(): Argument #8 ($bootstrap) must be of type ?string, int given',
            static fn () => new EvalRequest('1', '/', bootstrap: 1), // @phpstan-ignore-line
        );
        $this->assertRefused(
            TypeError::class,
            'Altair\Eval\EvalRequest::__construct(): Argument #9 ($services) must be of type ?array, string given',
            static fn () => new EvalRequest('1', '/', services: 'db:3306'), // @phpstan-ignore-line
        );
        $this->assertRefused(
            TypeError::class,
            'Altair\Eval\EvalRequest::__construct(): Argument #10 ($readablePaths) must be of type array, null given',
            static fn () => new EvalRequest('1', '/', readablePaths: null), // @phpstan-ignore-line
        );
    }

    public function testMissingAndSurplusArgumentsAreRefused(): void
    {
        $this->assertRefused(
            ArgumentCountError::class,
            'at least 2 arguments, 1 given',
            static fn () => new EvalRequest('1'), // @phpstan-ignore-line
        );
        $this->assertRefused(
            ArgumentCountError::class,
            'at most 19 arguments, 20 given',
            static fn () => new EvalRequest('1', '/', 1, 1, false, false, false, null, null, [], true, null, false, ...[
                [], null, null, null, false, [], 1,
            ]),
        );
    }

    public function testBytesOfTheSnippetAreKeptAsTheyAre(): void
    {
        $snippet = "\xff\0\r\n<?php";

        self::assertSame($snippet, (new EvalRequest($snippet, '/'))->snippet);
    }

    /**
     * @dataProvider unreadable
     */
    public function testAReadablePathThatCannotBeAllowedIsRefusedByName(mixed $path, string ...$parts): void
    {
        $request = new EvalRequest('echo "ran";', self::SHOP, readablePaths: [__DIR__, $path]);
        $refusal = $this->assertRefused(
            InvalidRequestException::class,
            'readable path',
            static fn () => (new Evaluator())->evaluate($request),
        );

        foreach ($parts as $part) {
            self::assertStringContainsString($part, $refusal->getMessage());
        }
        self::assertStringNotContainsString('os error', $refusal->getMessage());
    }

    /**
     * @return iterable<string, array{mixed}>
     */
    public static function unreadable(): iterable
    {
        yield 'relative' => ['src', 'src', 'not absolute'];
        yield 'empty' => ['', 'not absolute'];
        yield 'with a NUL byte' => ["/srv\0", 'NUL byte'];
        yield 'missing' => ['/nowhere/at/all', '/nowhere/at/all', 'no such file'];
        yield 'the whole disk' => ['/', 'whole disk'];
        yield 'the whole disk by a detour' => ['/usr/..', 'whole disk'];
        yield 'processes' => ['/proc', 'processes'];
        yield 'one process' => ['/proc/self/environ', 'processes'];
        yield 'devices' => ['/dev/shm', 'devices'];
        yield 'all temporary files' => ['/tmp', 'directory of its own'];
        yield 'no string' => [1, 'a string'];
        yield 'an array' => [['/srv'], 'a string'];
    }

    public function testAReadablePathCanBeRead(): void
    {
        $elsewhere = new TemporaryApplication(['notes/file.txt' => 'elsewhere', 'single.txt' => 'alone']);
        $read = static fn (string $path): string => sprintf('return file_get_contents(%s);', var_export($path, true));
        $evaluate = static fn (string $path, array $readable): EvalResult => (new Evaluator())->evaluate(
            new EvalRequest($read($path), self::SHOP, readablePaths: $readable),
        );
        [$below, $single] = [$elsewhere->path('notes/file.txt'), $elsewhere->path('single.txt')];

        self::assertFalse($evaluate($below, [])->result['value']);
        self::assertSame('elsewhere', $evaluate($below, [$elsewhere->path('notes')])->result['value']);
        self::assertSame('alone', $evaluate($single, [$single])->result['value']);
        self::assertFalse($evaluate($single, [$elsewhere->path('notes')])->result['value']);
    }

    public function testOneThatWasNeverConstructedIsToldFromOthers(): void
    {
        $hollow = (new ReflectionClass(EvalRequest::class))->newInstanceWithoutConstructor();

        $this->assertRefused(
            Error::class,
            'Typed property Altair\Eval\EvalRequest::$snippet must not be accessed before initialization',
            static fn () => $hollow->snippet,
        );
        $this->assertRefused(
            Error::class,
            'The EvalRequest was never constructed',
            static fn () => (new Evaluator())->evaluate($hollow),
        );
        $hollow->__construct('1', '/');
        self::assertEquals(new EvalRequest('1', '/'), $hollow);
    }
}
