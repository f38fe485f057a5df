<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Sandbox\Runtime;

use Altair\Eval\Tests\Support\RuntimeTestCase;
use Altair\Eval\Tests\Support\Script;
use Altair\Sandbox\Runtime;
use Throwable;

/**
 * Runtimes beside, within and instead of each other, and in forks.
 */
final class NestingTest extends RuntimeTestCase
{
    public function testARuntimeThatIsBeingEnteredCannotBeUsed(): void
    {
        $runtime = $this->runtime();
        $told = [];
        $this->whileItPrints($runtime, static function () use ($runtime, &$told): void {
            $told[] = self::failure(static fn (): mixed => $runtime->enter(static fn (): int => 1));
            $told[] = self::failure($runtime->close(...));
            $told[] = self::failure($runtime->fileChanges(...));
            $told[] = self::failure($runtime->blocked(...));
            $told[] = self::failure($runtime->__construct(...));
        });

        $entered = 'sandbox unusable: it is being entered';
        self::assertSame([$entered, $entered, $entered, $entered, 'sandbox unusable: it was made before'], $told);
        self::assertSame(1, $runtime->enter(static fn (): int => 1));
    }

    public function testAnotherCanBeEnteredMeanwhile(): void
    {
        [$outer, $inner] = [$this->runtime(), $this->runtime()];
        $value = null;
        $this->whileItPrints($outer, static function () use ($inner, &$value): void {
            $value = $inner->enter(static fn (string $a): string => "$a of the inner", ['value']);
        });

        self::assertSame('value of the inner', $value);
    }

    public function testOneThatIsFreedWhileItIsEnteredEndsAfterwards(): void
    {
        $runtime = $this->runtime();
        $own = new Runtime();
        $value = null;
        ob_start(static function () use (&$own): string {
            $own = null;

            return '';
        }, 1);
        try {
            $value = $own->enter(static function (): int {
                echo 'x';
                flush();

                return 5;
            });
        } finally {
            ob_end_clean();
        }

        self::assertSame([5, null], [$value, $own]);
        $runtime->close();
        self::assertSame([], $this->processes());
    }

    public function testTwoSideBySideShareNothing(): void
    {
        [$one, $other] = [$this->runtime(), $this->runtime()];
        $keep = static function (string $value): int {
            $GLOBALS['kept'] = $value;
            define('KEPT', $value);
            file_put_contents(sys_get_temp_dir() . '/kept', $value);

            return getmypid();
        };
        $pids = [$one->enter($keep, ['one']), $other->enter($keep, ['other'])];
        self::assertCount(2, array_unique($pids));

        $kept = static fn (): array => [$GLOBALS['kept'], KEPT, file_get_contents(sys_get_temp_dir() . '/kept')];
        self::assertSame(['one', 'one', 'one'], $one->enter($kept));
        self::assertSame(['other', 'other', 'other'], $other->enter($kept));
        $one->close();
        self::assertSame(['other', 'other', 'other'], $other->enter($kept));
    }

    /**
     * @dataProvider guarded
     */
    public function testNoneIsMadeInARuntime(bool $guarded): void
    {
        $runtime = $this->runtime(guarded: $guarded);
        $classes = [Runtime::class => 'Altair\Sandbox\Exception', \sandbox\Runtime::class => 'sandbox\Exception'];
        foreach ($classes as $class => $exception) {
            $told = $runtime->enter(static function (string $class): array {
                $told = [];
                try {
                    new $class();
                } catch (\Throwable $thrown) {
                    $told[] = $thrown::class . ': ' . $thrown->getMessage();
                }
                try {
                    $class::fromRequest(new \Altair\Eval\EvalRequest('return 1;', '/'));
                } catch (\Throwable $thrown) {
                    $told[] = $thrown::class . ': ' . $thrown->getMessage();
                }

                return $told;
            }, [$class]);
            self::assertSame(array_fill(0, 2, "$exception: sandboxes cannot create sandboxes"), $told);
        }
    }

    public static function guarded(): iterable
    {
        yield 'guarded' => [true];
        yield 'not guarded' => [false];
    }

    public function testNoneIsMadeInAnEvaluation(): void
    {
        $result = $this->evaluate('new \Altair\Sandbox\Runtime();');

        self::assertSame('Altair\Sandbox\Exception', $result->exception['class']);
        self::assertSame('sandboxes cannot create sandboxes', $result->exception['message']);
        self::assertSame(
            'sandboxes cannot create sandboxes',
            $this->value('try { new \sandbox\Runtime(); } catch (\sandbox\Exception $e) { return $e->getMessage(); }'),
        );
    }

    public function testAForkOfTheHostNeitherUsesNorEndsTheRuntimesOfItsParent(): void
    {
        $script = new Script($this->inFile(<<<'PHP'
            use Altair\Sandbox\Runtime;
            $told = static function (callable $use): void {
                try {
                    say($use());
                } catch (Altair\Sandbox\Exception $e) {
                    say($e->getMessage());
                }
            };
            $cold = new Runtime();
            $first = new Runtime();
            $warm = new Runtime();
            $write = static fn () => file_put_contents(sys_get_temp_dir() . '/kept', 'kept');
            $read = static fn () => [getcwd() !== '', file_get_contents(sys_get_temp_dir() . '/kept')];
            foreach ([$cold, $first, $warm] as $runtime) {
                $runtime->enter($write);
            }
            foreach (['exits', 'closes', 'frees'] as $how) {
                if (pcntl_fork() === 0) {
                    $told(static fn () => $cold->enter(static fn () => 'entered'));
                    if ($how === 'closes') {
                        $cold->close();
                        $warm->close();
                    }
                    if ($how === 'frees') {
                        unset($cold, $first, $warm);
                        for ($i = 0; $i < 3; $i++) {
                            say((new Runtime())->enter(static fn () => 'of the fork'));
                        }
                    }
                    exit(0);
                }
                pcntl_wait($status);
                say("$how: " . pcntl_wexitstatus($status));
                foreach ([$cold, $first, $warm] as $runtime) {
                    $told(static fn () => $runtime->enter($read));
                }
            }
            PHP));

        [$code, $output, $errors] = $script->end();
        $refused = "sandbox unusable: this process is a fork of the one that made it\n";
        $kept = str_repeat("[true,\"kept\"]\n", 3);
        self::assertSame([0, ''], [$code, $errors]);
        self::assertSame(
            "{$refused}exits: 0\n$kept{$refused}closes: 0\n$kept$refused" . str_repeat("of the fork\n", 3)
                . "frees: 0\n$kept",
            $output,
        );
        self::assertSame([], $script->left());
    }

    public function testAForkMadeWhileARuntimeIsEnteredDoesNotDisturbIt(): void
    {
        $script = new Script($this->inFile(<<<'PHP'
            $runtime = new Altair\Sandbox\Runtime();
            $forked = false;
            ob_start(static function ($output) use (&$forked) {
                if (!$forked) {
                    $forked = true;
                    if (pcntl_fork() === 0) {
                        posix_kill(getmypid(), SIGTERM);
                    }
                }
                return $output;
            }, 1);
            $value = $runtime->enter(static function () { echo "line\n"; flush(); usleep(100000); return 'value'; });
            pcntl_wait($status);
            say($value);
            PHP));

        self::assertSame([0, "line\nvalue\n", ''], $script->end());
    }

    /** Enters a closure that prints one line, and calls this when the line has come. */
    private function whileItPrints(Runtime $runtime, callable $call): void
    {
        $failed = null;
        ob_start(static function (string $output) use ($call, &$failed): string {
            if ($output === "line\n") {
                try {
                    $call();
                } catch (Throwable $thrown) {
                    $failed = $thrown;
                }
            }

            return '';
        }, 1);
        try {
            $runtime->enter(static function (): void {
                echo "line\n";
            });
        } finally {
            ob_end_clean();
        }
        $failed === null || throw $failed;
    }
}
