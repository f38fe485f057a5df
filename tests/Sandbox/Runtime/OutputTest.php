<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Sandbox\Runtime;

use Altair\Eval\EvalRequest;
use Altair\Eval\Tests\Support\RuntimeTestCase;
use Altair\Eval\Tests\Support\Script;
use Altair\Sandbox\Runtime;
use DomainException;

/**
 * What an entered closure prints appears where it was entered, in order, as it is produced.
 */
final class OutputTest extends RuntimeTestCase
{
    public function testItIsInOrderWithWhatTheCallerPrints(): void
    {
        $runtime = $this->runtime();
        [$output] = self::printed(static function () use ($runtime): void {
            echo 'a';
            $runtime->enter(static function (): void {
                echo 'b';
            });
            echo 'c';
            $runtime->enter(static function (): void {
                print 'd';
                ob_start();
                echo 'e';
                ob_end_flush();
                file_put_contents('php://stdout', 'f');
                fwrite(STDOUT, 'g');
                echo 'h';
            });
            echo 'i';
        });

        self::assertSame('abcdefghi', $output);
    }

    public function testWhatAClosureLeavesInABufferAppearsWhenItEnds(): void
    {
        $runtime = $this->runtime();
        [$output, $levels] = self::printed(static fn (): array => [
            $runtime->enter(static function (): int {
                ob_start();
                ob_start();
                echo 'left';

                return ob_get_level();
            }),
            $runtime->enter(static fn (): int => ob_get_level()),
        ]);

        self::assertSame(['left', [2, 0]], [$output, $levels]);
    }

    public function testEachByteArrives(): void
    {
        $runtime = $this->runtime();
        $all = implode('', array_map(chr(...), range(0, 255)));
        [$output, $length] = self::printed(static fn (): int => $runtime->enter(static function (string $all): int {
            $text = str_repeat($all, 20_000);
            echo $text;

            return strlen($text);
        }, [$all]));

        self::assertSame(20_000 * 256, $length);
        self::assertTrue($output === str_repeat($all, 20_000));
    }

    public function testItAppearsAsItIsProduced(): void
    {
        // The closure goes on once the callback has seen its first line.
        // A file that is there and grows: a new one could stay absent for whoever has looked for it before.
        $application = $this->application(['seen' => '']);
        $runtime = $this->runtime(root: $application->root);
        $seen = [];
        ob_start(static function (string $output) use (&$seen, $application): string {
            if ($output !== '') {
                $seen[] = $output;
                file_put_contents($application->path('seen'), '.', FILE_APPEND);
            }

            return '';
        }, 1);
        try {
            $waited = $runtime->enter(static function (string $seen): array {
                $waited = [];
                foreach ([1, 2, 3] as $number) {
                    echo "line $number\n";
                    flush();
                    do {
                        usleep(500);
                    } while (strlen(file_get_contents($seen)) < $number);
                    $waited[] = $number;
                }

                return $waited;
            }, [$application->path('seen')], timeoutMs: self::LONG_MS);
        } finally {
            ob_end_clean();
        }

        self::assertSame([1, 2, 3], $waited);
        self::assertSame(["line 1\n", "line 2\n", "line 3\n"], $seen);
    }

    public function testStandardErrorIsThatOfTheCaller(): void
    {
        $script = new Script($this->inFile(<<<'PHP'
            ini_set('altair_eval.warm', '0');
            $runtime = new Altair\Sandbox\Runtime();
            ob_start();
            fwrite(STDERR, 'a');
            $runtime->enter(static function () { echo 'out'; fwrite(STDERR, 'b'); error_log('logged'); });
            fwrite(STDERR, 'c');
            say(['printed' => ob_get_clean()]);
            PHP), ['-d', 'error_log=']);

        [$code, $output, $errors] = $script->end();
        self::assertSame([0, "{\"printed\":\"out\"}\n"], [$code, $output]);
        self::assertStringMatchesFormat('ab%wlogged%wc', $errors);
    }

    public function testAnExceptionOfAnOutputCallbackEndsTheRuntime(): void
    {
        $runtime = $this->runtime();
        ob_start(static function (string $output): string {
            return $output === '' ? '' : throw new DomainException('of the callback');
        }, 1);
        try {
            $thrown = self::thrown(static fn (): mixed => $runtime->enter(static function (): void {
                echo "line\n";
                flush();
                while (true) {
                    usleep(1000);
                }
            }));
        } finally {
            ob_end_clean();
        }
        $this->expectOutputString("line\n");

        self::assertInstanceOf(DomainException::class, $thrown);
        self::assertSame('of the callback', $thrown->getMessage());
        self::assertSame(
            'sandbox unusable: its caller was interrupted while it waited',
            self::failure(static fn (): mixed => $runtime->enter(static fn (): int => 1)),
        );
    }

    public function testACallerThatExitsInAnOutputCallbackEnds(): void
    {
        $script = new Script($this->inFile(<<<'PHP'
            $runtime = new Altair\Sandbox\Runtime();
            register_shutdown_function(static function () use ($runtime) { fwrite(STDERR, 'shut down'); });
            ob_start(static function ($output) { if ($output !== '') { exit(7); } return ''; }, 1);
            $runtime->enter(static function () { echo "line\n"; flush(); while (true) { usleep(1000); } });
            fwrite(STDERR, 'not reached');
            PHP));

        self::assertSame([7, "line\n", 'shut down'], $script->end());
        self::assertSame([], $script->left());
    }

    public function testShutdownFunctionsAndDestructorsRunWhenItIsClosed(): void
    {
        $runtime = $this->runtime();
        [$output] = self::printed(static function () use ($runtime): void {
            $runtime->enter(static function (): void {
                register_shutdown_function('printf', 'shut down, ');
                $GLOBALS['kept'] = eval('return new class {
                    public function __destruct() { echo "destroyed, "; }
                };');
                echo 'entered, ';
            });
            echo 'left, ';
            $runtime->close();
            echo 'closed';
        });

        self::assertSame('entered, left, shut down, destroyed, closed', $output);
    }

    public function testAlsoOfOneThatGoesOutOfScopeButNotItsOutput(): void
    {
        $file = $this->application()->path('destroyed');
        $runtime = new Runtime(self::INI, guarded: false);
        $runtime->enter(static function (string $file): void {
            register_shutdown_function('printf', 'nobody listens');
            register_shutdown_function('touch', $file);
        }, [$file]);
        [$output] = self::printed(static function () use (&$runtime): void {
            $runtime = null;
        });

        self::assertSame('', $output);
        self::assertFileExists($file);
        unlink($file);
    }

    public function testAShutdownFunctionThatDoesNotEndIsEnded(): void
    {
        // The deadline of an entry is that of the end, too.
        $request = new EvalRequest('', $this->application()->root, self::SHORT_MS);
        $runtime = $this->kept(Runtime::fromRequest($request));
        $runtime->enter(static function (): void {
            register_shutdown_function('printf', 'in time');
            register_shutdown_function('sleep', 1000);
        });
        $began = hrtime(true);
        [$output] = self::printed($runtime->close(...));

        self::assertSame('in time', $output);
        self::assertLessThan(20, (hrtime(true) - $began) / 1e9);
    }

    public function testClosedStreamsDoNotEndIt(): void
    {
        $runtime = $this->runtime();
        $runtime->enter(static function (): void {
            fclose(STDOUT);
            fclose(STDERR);
        });
        [$output, $value] = self::printed(static fn (): mixed => $runtime->enter(static function (): string {
            echo 'to nowhere';

            return 'goes on';
        }));

        self::assertSame('goes on', $value);
    }
}
