<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Sandbox;

use Altair\Eval\Tests\Support\GreetingStream;
use Altair\Eval\Tests\Support\SandboxTestCase;
use Altair\Sandbox\Data\ExecResult;
use DomainException;
use InvalidArgumentException;
use TypeError;

/**
 * What a command reads from its standard input: nothing, a string, or whatever PHP calls a stream.
 */
final class CommandInputTest extends SandboxTestCase
{
    private const MIB = 1 << 20;

    /** What fits no pipe, and does not end at a chunk's end. */
    private const MUCH = 3 * self::MIB + 12345;

    /**
     * @return iterable<string, array{string}>
     */
    public static function hostAndNative(): iterable
    {
        yield 'host' => ['host'];
        yield 'native' => ['native'];
    }

    private function echoed(string $driver, mixed $stdin, int $cap = 8 * self::MIB): ExecResult
    {
        $result = $this->sh($driver, 'cat', $this->policy()->withOutputCaps($cap, $cap), $stdin);
        self::assertSame(0, $result->exitCode(), $result->stderr());
        self::assertSame('', $result->stderr());
        self::assertFalse($result->truncatedStdout());

        return $result;
    }

    private static function random(int $bytes): string
    {
        // Every byte value, and nothing that repeats within a pipe.
        return substr(str_repeat(random_bytes(65537), intdiv($bytes, 65537) + 1), 0, $bytes);
    }

    /**
     * @dataProvider drivers
     */
    public function testWithoutInputItIsAtItsEnd(string $driver): void
    {
        foreach ([null, ''] as $stdin) {
            self::assertSame('', $this->echoed($driver, $stdin)->stdout());
        }
    }

    /**
     * @dataProvider drivers
     */
    public function testAStringOfAnyBytesArrivesWhole(string $driver): void
    {
        $bytes = self::random(self::MUCH);

        self::assertSame(md5($bytes), md5($this->echoed($driver, $bytes)->stdout()));
    }

    /**
     * @dataProvider hostAndNative
     */
    public function testSo64MebibytesDoAndComeBackAsTheyGo(string $driver): void
    {
        $bytes = self::random(64 * self::MIB);

        self::assertSame(md5($bytes), md5($this->echoed($driver, $bytes, 64 * self::MIB)->stdout()));
    }

    /**
     * @dataProvider drivers
     */
    public function testAFileArrivesFromItsPositionOn(string $driver): void
    {
        $bytes = self::random(self::MUCH);
        $file = fopen($this->base->write('file', $bytes), 'r');
        fseek($file, 100);
        // Its buffer now holds more than was asked for.
        fread($file, 17);

        self::assertSame(md5(substr($bytes, 117)), md5($this->echoed($driver, $file)->stdout()));
        self::assertTrue(is_resource($file), 'The stream is still the caller\'s.');
        self::assertTrue(feof($file));
        fclose($file);
    }

    public function testAStreamInMemoryArrives(): void
    {
        foreach (['php://memory', 'php://temp'] as $name) {
            $stream = fopen($name, 'w+');
            fwrite($stream, $bytes = self::random(self::MUCH));
            rewind($stream);
            self::assertSame(md5($bytes), md5($this->echoed('host', $stream)->stdout()));
        }
    }

    public function testAPipeArrives(): void
    {
        $stream = popen('printf "from a pipe"', 'r');

        self::assertSame('from a pipe', $this->echoed('host', $stream)->stdout());
        pclose($stream);
    }

    public function testWhatASocketsBufferAlreadyHoldsArrivesBeforeWhatComesLater(): void
    {
        [$own, $stdin] = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
        fwrite($own, "first\nsecond\n");
        self::assertSame("first\n", fgets($stdin));
        $onOutput = static function (string $type, string $chunk) use ($own): void {
            if ($chunk === "second\n") {
                fwrite($own, "third\n");
                fclose($own);
            }
        };

        self::assertSame("second\nthird\n", $this->sh('host', 'cat', null, $stdin, $onOutput)->stdout());
    }

    public function testWhatDoesNotBlockArrivesToo(): void
    {
        [$own, $stdin] = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
        stream_set_blocking($stdin, false);
        $onOutput = static function (string $type, string $chunk) use ($own): void {
            if ($chunk === "ready\n") {
                fwrite($own, "late\n");
                fclose($own);
            }
        };

        self::assertSame("ready\nlate\n", $this->sh('host', 'echo ready; cat', null, $stdin, $onOutput)->stdout());
    }

    public function testAFilterIsApplied(): void
    {
        $file = fopen($this->base->write('file', "hello\n"), 'r');
        stream_filter_append($file, 'string.toupper', STREAM_FILTER_READ);
        self::assertSame("HELLO\n", $this->echoed('host', $file)->stdout());

        [$own, $stdin] = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
        stream_filter_append($stdin, 'convert.base64-encode', STREAM_FILTER_READ);
        fwrite($own, 'hello');
        fclose($own);
        // What it gives only at the end.
        self::assertSame('aGVsbG8=', $this->echoed('host', $stdin)->stdout());
    }

    public function testAStreamOfPhpCodeArrives(): void
    {
        GreetingStream::register();
        foreach (['plain', 'slow'] as $kind) {
            self::assertSame("hello\n", $this->echoed('host', fopen("greeting://$kind", 'r'))->stdout(), $kind);
        }
        // One that never ends may have nothing for the rest of a command's life.
        $policy = $this->policy()->withTimeout(1);
        $endless = $this->sh('host', 'read line; echo $line; cat', $policy, fopen('greeting://endless', 'r'));
        self::assertSame("hello\n", $endless->stdout());
        self::assertTrue($endless->timedOut());
    }

    /**
     * @dataProvider drivers
     */
    public function testAStreamThatThrowsEndsTheCommand(string $driver): void
    {
        GreetingStream::register();
        $sandbox = $this->sandbox($driver);

        $this->assertRefused(DomainException::class, 'no more of this', function () use ($sandbox): void {
            $sandbox->execute($this->shell('cat; exec sleep 1000'), fopen('greeting://throws', 'r'));
        });
        self::assertSame([], $this->commandProcesses());
    }

    public function testAStreamThatCannotBeReadEndsTheInput(): void
    {
        GreetingStream::register();
        $streams = [
            fn () => fopen('greeting://fails', 'r'),
            fn () => fopen($this->base->path('written'), 'w'),
        ];
        foreach ($streams as $kind => $open) {
            set_error_handler(static fn (): bool => true);
            try {
                $result = $this->sh('host', 'cat; echo over', $this->policy()->withTimeout(10), $open());
            } finally {
                restore_error_handler();
            }
            self::assertFalse($result->timedOut(), "stream $kind");
            self::assertSame("over\n", $result->stdout());
        }
    }

    public function testANoticeOfAStreamThatBecomesAnExceptionEndsTheCommand(): void
    {
        set_error_handler(static fn (int $level, string $message) => throw new DomainException($message));
        try {
            $this->assertRefused(DomainException::class, 'fread', function (): void {
                fread(fopen($this->base->path('written'), 'w'), 1);
            });
            $this->assertRefused(DomainException::class, 'execute', function (): void {
                $this->sh('host', 'cat; exec sleep 1000', null, fopen($this->base->path('written'), 'w'));
            });
        } finally {
            restore_error_handler();
        }
    }

    /**
     * @dataProvider hostAndNative
     */
    public function testWhatIsNoOpenStreamIsATypeError(string $driver): void
    {
        $closed = fopen('php://memory', 'r');
        fclose($closed);
        foreach ([$closed, 7, 1.5, true, [], (object) [], stream_context_create()] as $stdin) {
            $this->assertRefused(
                TypeError::class,
                'execute(): Argument #2 ($stdin) must be a string, an open stream or null',
                fn () => $this->sh($driver, 'cat', null, $stdin),
            );
        }
    }

    public function testAStreamThatTheCallbackClosesIsAtItsEnd(): void
    {
        [$own, $stdin] = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
        $onOutput = static function () use ($stdin): void {
            is_resource($stdin) && fclose($stdin);
        };

        $result = $this->sh('host', 'echo ready; cat; echo over', null, $stdin, $onOutput);

        self::assertSame("ready\nover\n", $result->stdout());
        fclose($own);
    }

    /**
     * @dataProvider drivers
     */
    public function testACommandMayEndBeforeItHasReadItsInput(string $driver): void
    {
        $bytes = str_repeat('x', self::MUCH);
        self::assertSame(3, $this->sh($driver, 'exit 3', null, $bytes)->exitCode());

        $file = fopen($this->base->write('file', $bytes), 'r');
        self::assertSame(3, $this->sh($driver, 'exit 3', null, $file)->exitCode());

        // One that never says anything, and stays open.
        [$own, $stdin] = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
        self::assertSame(3, $this->sh($driver, 'exit 3', null, $stdin)->exitCode());
        fclose($own);
    }

    /**
     * @dataProvider hostAndNative
     */
    public function testACommandMayCloseItsInputAndRunOn(string $driver): void
    {
        foreach ([str_repeat('x', self::MUCH), fopen('/dev/zero', 'r')] as $stdin) {
            $result = $this->sh($driver, 'exec <&-; echo closed; exit 4', null, $stdin);
            self::assertSame(4, $result->exitCode());
            self::assertSame("closed\n", $result->stdout());
        }
    }

    /**
     * @dataProvider drivers
     */
    public function testAStreamIsReadOnWhileOutputFloodsTheCallback(string $driver): void
    {
        [$own, $stdin] = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
        $told = false;
        $onOutput = static function () use ($own, &$told): void {
            $told = $told || fwrite($own, "stop\n") === 5;
            // Slower than the command writes, so that there is always more.
            usleep(1000);
        };

        $result = $this->sh($driver, 'yes & read go; kill $!; exit 5', null, $stdin, $onOutput);

        self::assertSame(5, $result->exitCode());
        self::assertFalse($result->timedOut());
        fclose($own);
    }

    /**
     * @dataProvider drivers
     */
    public function testADirectoryIsNoInput(string $driver): void
    {
        $said = [];
        foreach ([['fopen', 'fclose'], ['opendir', 'closedir']] as [$open, $close]) {
            $directory = $open($this->base->path('.'), ...($open === 'fopen' ? ['r'] : []));
            try {
                $this->sh($driver, 'cat', null, $directory);
            } catch (InvalidArgumentException | TypeError $error) {
                $said[] = $error->getMessage();
            }
            $close($directory);
        }
        self::assertSame([
            'Standard input is a directory: give a file, a pipe or /dev/null.',
            'execute(): Argument #2 ($stdin) must be a string, an open stream or null',
        ], $said);
    }
}
