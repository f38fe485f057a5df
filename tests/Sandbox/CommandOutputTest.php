<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Sandbox;

use Altair\Eval\Tests\Support\SandboxTestCase;
use Altair\Eval\Tests\Support\Script;
use Altair\Sandbox\Enums\TimeoutReason;
use DomainException;
use Fiber;
use TypeError;

/**
 * What becomes of a command's output: the callback gets all of it as it comes, the result its end.
 */
final class CommandOutputTest extends SandboxTestCase
{
    /**
     * The command goes on only once it has read what the callback writes.
     *
     * @dataProvider drivers
     */
    public function testTheCallbackGetsEachChunkWhileTheCommandRuns(string $driver): void
    {
        [$own, $stdin] = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);
        $chunks = [];
        $onOutput = static function (string $type, string $chunk) use ($own, &$chunks): bool {
            $chunks[] = [$type, $chunk];
            fwrite($own, "go\n");

            // What it returns does not matter.
            return false;
        };

        $script = 'echo 1; read go; echo 2 >&2; read go; printf 3; read go';
        $result = $this->sh($driver, $script, null, $stdin, $onOutput);

        self::assertSame([['out', "1\n"], ['err', "2\n"], ['out', '3']], $chunks);
        self::assertSame("1\n3", $result->stdout());
        self::assertSame("2\n", $result->stderr());
        fclose($own);
    }

    /**
     * @dataProvider drivers
     */
    public function testACapKeepsExactlyTheLastBytesAndTheCallbackGetsTheRestToo(string $driver): void
    {
        // Lines of different lengths, so that no other part of them looks like their end.
        $script = 'i=0; while [ $i -lt 3000 ]; do echo $i; i=$((i+1)); done; echo error >&2';
        $whole = implode("\n", range(0, 2999)) . "\n";
        $got = ['out' => '', 'err' => ''];
        $onOutput = static function (string $type, string $chunk) use (&$got): void {
            $got[$type] .= $chunk;
        };

        $result = $this->sh($driver, $script, $this->policy()->withOutputCaps(1500, 1024), null, $onOutput);

        self::assertSame(substr($whole, -1500), $result->stdout());
        self::assertTrue($result->truncatedStdout());
        self::assertSame("error\n", $result->stderr());
        self::assertFalse($result->truncatedStderr());
        self::assertSame(['out' => $whole, 'err' => "error\n"], $got);
        self::assertTrue($result->success());
    }

    public function testWhatFitsExactlyIsNotCut(): void
    {
        foreach ([1023 => false, 1024 => false, 1025 => true] as $bytes => $cut) {
            $script = "head -c $bytes /dev/zero; head -c $bytes /dev/zero >&2";
            $result = $this->sh('host', $script, $this->policy()->withOutputCaps(1, 1));
            self::assertSame(min($bytes, 1024), strlen($result->stdout()));
            self::assertSame(min($bytes, 1024), strlen($result->stderr()));
            self::assertSame([$cut, $cut], [$result->truncatedStdout(), $result->truncatedStderr()]);
        }
    }

    /**
     * @dataProvider drivers
     */
    public function testAnExceptionOfTheCallbackEndsTheCommandAndIsTheCallers(string $driver): void
    {
        $mine = new DomainException('mine');
        $calls = 0;
        $onOutput = static function () use ($mine, &$calls): never {
            $calls++;

            throw $mine;
        };

        $script = '(trap "" TERM HUP INT; while :; do echo x; sleep 1000; done) & echo y; wait';
        $sandbox = $this->sandbox($driver);
        $thrown = self::thrownBy(fn () => $sandbox->execute($this->shell($script), null, $onOutput));

        self::assertSame($mine, $thrown);
        self::assertSame(1, $calls);
        self::assertSame([], $this->commandProcesses());
        self::assertSame('still', $this->printed($driver, 'printf still'));
    }

    public function testAnExceptionAtTheLastChunkIsTheCallersToo(): void
    {
        for ($i = 0; $i < 20; $i++) {
            $thrown = self::thrownBy(fn () => $this->sh('host', 'echo x', null, null, static function (): never {
                throw new DomainException('late');
            }));
            self::assertInstanceOf(DomainException::class, $thrown);
        }
    }

    public function testWhatCannotBeCalledIsATypeError(): void
    {
        $this->assertRefused(
            TypeError::class,
            'execute(): Argument #3 ($onOutput) must be a valid callback or null',
            fn () => $this->sandbox('host')->execute(['true'], null, 'there is no such function'),
        );
    }

    /**
     * @dataProvider localDrivers
     */
    public function testACallbackMayRunCommandsItself(string $driver): void
    {
        $inner = [];
        $onOutput = function (string $type, string $chunk) use (&$inner, $driver): void {
            $inner[] = $this->printed($driver, 'printf "inner of ' . trim($chunk) . '"');
        };

        $result = $this->sh($driver, 'echo one; echo two >&2', null, null, $onOutput);

        self::assertSame("one\n", $result->stdout());
        sort($inner);
        self::assertSame(['inner of one', 'inner of two'], $inner);
    }

    public function testACallbackMaySuspendTheFiberThatRunsTheCommand(): void
    {
        $suspend = static fn (string $type): mixed => Fiber::suspend($type);

        $resumed = new Fiber(fn () => $this->sh('host', 'echo x; read go; echo y', null, "go\n", $suspend));
        self::assertSame('out', $resumed->start());
        self::assertSame('other', $this->printed('host', 'printf other'));
        while (!$resumed->isTerminated()) {
            $resumed->resume();
        }
        self::assertSame("x\ny\n", $resumed->getReturn()->stdout());

        // Forgotten there: the command ends with it.
        $forgotten = new Fiber(fn () => $this->sh('host', 'echo x; exec sleep 1000', null, null, $suspend));
        $forgotten->start();
        unset($forgotten);
        gc_collect_cycles();
        self::assertSame([], $this->commandProcesses());
    }

    public function testACommandDoesNotIdleWhileItWaitsForASlowCallback(): void
    {
        $calls = 0;
        $onOutput = static function () use (&$calls): void {
            // Longer than a command may be silent: time is what this is about.
            $calls++ === 0 && usleep(1_300_000);
        };
        $policy = $this->policy()->withIdleTimeout(1);

        $result = $this->sh('host', 'head -c 4194304 /dev/zero; echo end', $policy, null, $onOutput);

        self::assertFalse($result->timedOut());
        self::assertStringEndsWith("end\n", $result->stdout());
    }

    public function testASlowCallbackDoesNotDelayTheDeadline(): void
    {
        $calls = 0;
        $onOutput = function (string $type, string $chunk) use (&$calls): void {
            if ($calls++ > 0) {
                return;
            }
            // Looks until the deadline has ended the command, from within the callback. Twice, since a process that
            // executes a program has no command line for a moment.
            $until = hrtime(true) + 20e9;
            $left = ['not known'];
            do {
                $before = $left;
                usleep(10000);
                $left = $this->commandProcesses();
            } while ([$before, $left] !== [[], []] && hrtime(true) < $until);
            self::assertSame([], $left);
        };

        $result = $this->sh('host', 'echo x; exec sleep 1000', $this->policy()->withTimeout(1), null, $onOutput);

        self::assertSame(TimeoutReason::WALL, $result->timeoutReason());
        self::assertGreaterThan(0, $calls);
    }

    /**
     * @return iterable<string, array{string}>
     */
    public static function hostAndNative(): iterable
    {
        yield 'host' => ['host'];
        yield 'native' => ['native'];
    }

    /**
     * @dataProvider hostAndNative
     */
    public function testACommandMayCloseItsStreamsAndRunOn(string $driver): void
    {
        $fifo = $this->base->path('fifo');
        posix_mkfifo($fifo, 0666);
        // Waits until the command reads, which it does once its streams are closed.
        $writer = proc_open(['sh', '-c', "echo 7 > $fifo"], [], $pipes);

        $script = "exec <&- >&- 2>&-; read code < $fifo; exit \$code";
        $result = $this->sh($driver, $script, $this->policy()->withReadablePaths($fifo));

        self::assertSame(7, $result->exitCode());
        self::assertSame(['', ''], [$result->stdout(), $result->stderr()]);
        proc_close($writer);
    }

    /**
     * @dataProvider hostAndNative
     */
    public function testWhatACommandLeavesBehindEndsWithItAndDoesNotHoldItsStreams(string $driver): void
    {
        // It would keep the pipe open for long.
        $result = $this->sh($driver, '(trap "" HUP TERM; exec sleep 1000) & echo over');

        self::assertSame("over\n", $result->stdout());
        self::assertFalse($result->timedOut());
        self::assertSame([], $this->commandProcesses());
    }

    public function testAGibibyteThroughASmallCapTakesNoMemory(): void
    {
        $script = new Script(<<<'PHP'
            $peak = static function (): int {
                preg_match('/^VmHWM:\s+(\d+)/m', file_get_contents('/proc/self/status'), $kib);
                return (int) $kib[1];
            };
            $sandbox = Altair\Sandbox\Sandbox::host(
                Altair\Sandbox\Config\ExecutionPolicy::default()->withTimeout(60)->withOutputCaps(1024, 1024),
            );
            $bytes = 0;
            $count = static function (string $type, string $chunk) use (&$bytes): void { $bytes += strlen($chunk); };
            // What is loaded and allocated once, for each of the two ways.
            $sandbox->execute(['head', '-c', '4194304', '/dev/zero'], null, $count);
            $sandbox->execute(['head', '-c', '4194304', '/dev/zero']);
            $before = $peak();
            $result = $sandbox->execute(['head', '-c', '1G', '/dev/zero']);
            say([$peak() - $before, strlen($result->stdout()), $result->exitCode()]);
            $bytes = 0;
            $sandbox->execute(['head', '-c', '256M', '/dev/zero'], null, $count);
            say([$peak() - $before, $bytes]);
            PHP);

        [$silent, $kept, $code] = json_decode($script->line(), true);
        [$told, $bytes] = json_decode($script->line(), true);
        self::assertSame([1024, 0], [$kept, $code]);
        self::assertLessThan(2048, $silent, 'KiB');
        self::assertLessThan(2048, $told, 'KiB, with a callback');
        self::assertSame(256 << 20, $bytes);
        self::assertSame([0, '', ''], $script->end());
    }
}
