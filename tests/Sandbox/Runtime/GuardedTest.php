<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Sandbox\Runtime;

use Altair\Eval\Tests\Support\RuntimeTestCase;
use Closure;

/**
 * What a guarded PHP without an application may read, write and connect to.
 */
final class GuardedTest extends RuntimeTestCase
{
    private const SHOP = __DIR__ . '/../../../examples/shop';

    private string $directory;

    protected function setUp(): void
    {
        parent::setUp();
        $this->directory = (string) getcwd();
    }

    protected function tearDown(): void
    {
        chdir($this->directory);
        parent::tearDown();
    }

    public function testWithoutAProjectItReadsNothingButPhpsOwnFiles(): void
    {
        chdir('/');
        $runtime = $this->runtime();

        self::assertFalse($runtime->enter(self::reads(), [self::shop('composer.json')]));
        self::assertFalse($runtime->enter(self::reads(), ['/etc/shadow']));
        self::assertFalse($runtime->enter(self::reads(), [__FILE__]), 'The closure travels, and not its directory.');
        self::assertTrue($runtime->enter(self::reads(), [PHP_BINARY]));
    }

    public function testTheRootThatIsNamedIsReadAndWrittenInALayer(): void
    {
        chdir('/');
        $root = $this->application()->path('');
        $file = $this->application()->write('kept.txt', 'as it was');
        $runtime = $this->runtime(root: $root);

        self::assertTrue($runtime->enter(self::reads(), [$file]));
        self::assertSame('changed', $runtime->enter(static function (string $file): string {
            file_put_contents($file, 'changed');
            file_put_contents(dirname($file) . '/new.txt', 'new');
            return (string) file_get_contents($file);
        }, [$file]));
        self::assertSame('as it was', file_get_contents($file));
        self::assertFileDoesNotExist($root . '/new.txt');
        $paths = static fn (array $changes): array => array_column($changes, 'path');
        self::assertSame(['kept.txt'], $paths($runtime->fileChanges()['modified']));
        self::assertSame(['new.txt'], $paths($runtime->fileChanges()['created']));
    }

    public function testTheWorkingDirectoryIsTheRootIfItHoldsAComposerProject(): void
    {
        chdir(self::SHOP);
        $runtime = $this->runtime();

        self::assertTrue($runtime->enter(self::reads(), [self::shop('composer.json')]));
        self::assertSame(self::shop(), $runtime->enter(static fn (): string => (string) getcwd()));
        self::assertFalse($runtime->enter(self::reads(), [__FILE__]));
    }

    public function testItConnectsToNothingButTheServicesThatAreNamed(): void
    {
        [$named, $other] = [self::listen(), self::listen()];
        $connects = static function (string $address): bool {
            $socket = @stream_socket_client("tcp://$address", $code, $why, 2);
            return is_resource($socket);
        };
        $runtime = $this->runtime(services: [self::address($named)]);
        self::assertTrue($runtime->enter($connects, [self::address($named)]));
        self::assertFalse($runtime->enter($connects, [self::address($other)]));
        $blocked = json_encode($runtime->blocked(), JSON_UNESCAPED_SLASHES);
        self::assertStringContainsString(self::address($other), $blocked);
        self::assertNotFalse(stream_socket_accept($named, 0));
        self::assertFalse(@stream_socket_accept($other, 0));

        self::assertTrue($this->runtime([], guarded: false)->enter($connects, [self::address($other)]));
    }

    public function testARefusalNamesWhatTheConstructorHas(): void
    {
        $runtime = $this->runtime();

        self::assertSame([
            'exec() is refused in a confined run; guarded: false allows it',
            "fsockopen() is refused in a confined run; services: ['127.0.0.1:1'] allows it",
        ], self::refusedFunctions($runtime));
        self::assertSame([
            'connect to 127.0.0.1:1' => "services: ['127.0.0.1:1']",
            'exec()' => 'guarded: false',
            'read /etc/shadow' => "root: '/etc/shadow'",
        ], self::ways($runtime));
    }

    public function testItStartsNoProcess(): void
    {
        $marker = $this->application()->path('started');
        $starts = static fn (string $marker): mixed => shell_exec('touch ' . escapeshellarg($marker));
        $thrown = self::failure(fn () => $this->runtime()->enter($starts, [$marker]));
        self::assertStringContainsString('shell_exec() is refused', $thrown);
        self::assertFileDoesNotExist($marker);

        $this->runtime([], guarded: false)->enter($starts, [$marker]);
        self::assertFileExists($marker);
        unlink($marker);
    }

    public function testWithoutGuardsItHasTheRightsOfItsCaller(): void
    {
        $file = $this->application()->path('real.txt');
        $runtime = $this->runtime([], guarded: false);

        self::assertTrue($runtime->enter(self::reads(), [__FILE__]));
        $runtime->enter(static fn (string $file) => file_put_contents($file, 'real'), [$file]);
        self::assertSame('real', file_get_contents($file));
        self::assertSame([], $runtime->fileChanges());
        unlink($file);
    }

    /** A closure that tells whether a file can be read. */
    private static function reads(): Closure
    {
        return static fn (string $file): bool => is_string(@file_get_contents($file, false, null, 0, 1));
    }

    private static function shop(string $path = ''): string
    {
        return realpath(self::SHOP) . ($path === '' ? '' : "/$path");
    }

    /** @return resource */
    private static function listen()
    {
        $socket = stream_socket_server('tcp://127.0.0.1:0');
        self::assertIsResource($socket);

        return $socket;
    }

    /** @param resource $socket */
    private static function address($socket): string
    {
        return stream_socket_get_name($socket, false);
    }
}
