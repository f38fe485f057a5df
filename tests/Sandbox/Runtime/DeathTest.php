<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Sandbox\Runtime;

use Altair\Eval\Tests\Support\RuntimeTestCase;
use Altair\Eval\Tests\Support\Script;
use Altair\Sandbox\Exception;
use Altair\Sandbox\Runtime;
use FFI;

/**
 * Runtimes whose process ends: the caller goes on and is told why, then and afterwards, and can make a new one at once.
 */
final class DeathTest extends RuntimeTestCase
{
    /**
     * @dataProvider deaths
     */
    public function testTheCallerIsToldWhy(string $code, string $cause, bool $guarded = true): void
    {
        $runtime = $this->runtime(guarded: $guarded);
        $evaluated = static fn (string $code): mixed => eval($code);
        $enter = static fn (): mixed => $runtime->enter($evaluated, [$code], 20_000);

        $first = self::printed($enter)[1];
        self::assertInstanceOf(Exception::class, $first);
        self::assertStringMatchesFormat("sandbox unusable: $cause", $first->getMessage());
        $this->assertIsUnusable($runtime, $first->getMessage());
        self::assertSame(7, $this->runtime()->enter(static fn (int $a): int => $a + 1, [6]));
    }

    public static function deaths(): iterable
    {
        $eval = __FILE__ . "(%d) : eval()'d code";
        yield 'too much memory' => [
            'return str_repeat("x", 1 << 40);',
            "Allowed memory size of 134217728 bytes exhausted (tried to allocate %d bytes) in $eval:1",
        ];
        yield 'recursion without an end' => [
            'function f($n) { return f($n + 1) + 1; } return f(1);',
            "Allowed memory size of 134217728 bytes exhausted (tried to allocate %d bytes) in $eval:1",
        ];
        yield 'a null pointer of native code' => [
            'return FFI::string(FFI::cast("char *", 8), 8);',
            'it was ended by signal 11 (SIGSEGV)',
            false,
        ];
        yield 'a stack of C that overflows' => [
            '$a = []; for ($i = 0; $i < 500000; $i++) { $a = [$a]; }'
                . ' return count($a, COUNT_RECURSIVE) + strlen(serialize($a));',
            'it was ended by signal 11 (SIGSEGV)',
        ];
        yield 'a signal of its own' => [
            'posix_kill(getmypid(), 9); while (true) { }',
            'it was ended by signal 9 (SIGKILL)',
            false,
        ];
        yield 'abort' => ['FFI::cdef("void abort(void);")->abort();', 'it was ended by signal 6 (SIGABRT)', false];
        yield 'an exit that PHP does not see' => [
            'FFI::cdef("void _exit(int);")->_exit(5);',
            'it ended with status 5',
            false,
        ];
        yield 'a channel that is closed' => [
            'FFI::cdef("int close(int);")->close(3); return 1;',
            'it ended with status 0',
            false,
        ];
    }

    public function testAnEntryPastItsDeadlineEndsTheRuntimeAndSaysWhere(): void
    {
        $runtime = $this->runtime();
        $message = self::failure(static fn (): mixed => $runtime->enter(static function (): void {
            while (true) {
                usleep(1000);
            }
        }, timeoutMs: self::SOON_MS));

        self::assertStringMatchesFormat(
            'sandbox unusable: the deadline of ' . self::SOON_MS . ' ms passed in ' . __FILE__ . ':%d',
            $message,
        );
        $this->assertIsUnusable($runtime, $message);
    }

    public function testAnEntryThatNoSignalInterruptsEndsAtItsDeadlineToo(): void
    {
        $runtime = $this->runtime(guarded: false);
        $began = hrtime(true);
        $message = self::failure(static fn (): mixed => $runtime->enter(static function (): void {
            // SIG_BLOCK of all that there is.
            FFI::cdef('int sigprocmask(int, const char *, void *);')->sigprocmask(0, str_repeat("\xff", 128), null);
            while (true) {
                sleep(100);
            }
        }, timeoutMs: self::SOON_MS));

        self::assertSame('sandbox unusable: the deadline of ' . self::SOON_MS . ' ms passed', $message);
        self::assertLessThan(10, (hrtime(true) - $began) / 1e9);
    }

    /**
     * @dataProvider signals
     */
    public function testOneThatIsKilledFromOutsideBetweenEntries(int $signal, string $name): void
    {
        $runtime = $this->runtime(guarded: false);
        $pid = $runtime->enter(static fn (): int => getmypid());
        posix_kill($pid, $signal);

        $message = self::failure(static fn (): mixed => $runtime->enter(static fn (): int => 1));
        self::assertSame("sandbox unusable: it was ended by signal $signal ($name)", $message);
        $this->assertIsUnusable($runtime, $message);
    }

    /**
     * @dataProvider signals
     */
    public function testOneThatIsKilledFromOutsideWhileItIsEntered(int $signal, string $name): void
    {
        $runtime = $this->runtime(guarded: false);
        $killed = [];
        ob_start(static function (string $output) use ($signal, &$killed): string {
            if ((int) $output > 1) {
                $killed[] = posix_kill((int) $output, $signal);
            }

            return '';
        }, 1);
        try {
            $message = self::failure(static fn (): mixed => $runtime->enter(static function (): void {
                echo getmypid();
                while (true) {
                    sleep(100);
                }
            }));
        } finally {
            ob_end_clean();
        }

        self::assertSame([true], $killed);
        self::assertSame("sandbox unusable: it was ended by signal $signal ($name)", $message);
        $this->assertIsUnusable($runtime, $message);
    }

    public static function signals(): iterable
    {
        yield 'SIGKILL' => [SIGKILL, 'SIGKILL'];
        yield 'SIGSEGV' => [SIGSEGV, 'SIGSEGV'];
        yield 'SIGTERM' => [SIGTERM, 'SIGTERM'];
    }

    public function testWhatItPrintedBeforeItsDeathIsPrinted(): void
    {
        $runtime = $this->runtime(guarded: false);
        [$output] = self::printed(static fn (): mixed => $runtime->enter(static function (): void {
            echo "last words\n";
            FFI::string(FFI::cast('char *', 8), 8);
        }));

        self::assertSame("last words\n", $output);
    }

    public function testNothingIsLeftOfARuntimeWhoseHostIsKilled(): void
    {
        $script = new Script($this->inFile(<<<'PHP'
            $cold = new Altair\Sandbox\Runtime();
            $second = new Altair\Sandbox\Runtime();
            $third = new Altair\Sandbox\Runtime();
            $open = new Altair\Sandbox\Runtime(guarded: false);
            foreach ([$cold, $second, $third, $open] as $runtime) {
                say($runtime->enter(static fn () => 'ready'));
            }
            $open->enter(static function () { while (true) { echo "entered\n"; sleep(100); } });
            PHP));
        for ($i = 0; $i < 5; $i++) {
            $lines[] = $script->line();
        }
        self::assertSame([...array_fill(0, 4, 'ready'), 'entered'], $lines);
        self::assertNotSame([], $script->processes());
        $script->signal(SIGKILL);
        $script->end();

        for ($until = microtime(true) + 10; $script->processes() !== [] && microtime(true) < $until; usleep(5000)) {
        }
        self::assertSame([], $script->left());
    }

    private function assertIsUnusable(Runtime $runtime, string $message): void
    {
        self::assertSame($message, self::failure(static fn (): mixed => $runtime->enter(static fn (): int => 1)));
        self::assertSame($message, self::failure(static fn (): mixed => $runtime->enter(static fn (): int => 1)));
        $runtime->close();
        self::assertSame('sandbox unusable: it was closed', self::failure($runtime->close(...)));
    }
}
