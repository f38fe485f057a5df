<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Warm;

use Altair\Eval\EvalRequest;
use Altair\Eval\EvalResult;
use Altair\Eval\Evaluator;
use Altair\Eval\Tests\Support\Processes;
use Altair\Eval\Tests\Support\Script;
use Altair\Eval\Tests\Support\TemporaryApplication;
use Altair\Eval\Tests\Support\Warm\WarmTestCase;

/**
 * The first call of a kind starts cold. Its template boots after the answer, in a host that lives on.
 */
final class FirstCallTest extends WarmTestCase
{
    /** Longer than a host is waited for to end or to ask again, in microseconds. */
    private const LATER_US = 300000;

    protected bool $hasAskedBefore = false;

    public function testItIsColdAndTheNextOneAfterAPauseIsWarm(): void
    {
        $this->booting('$booted = getmypid();');

        $first = $this->ask('return 1;');
        self::assertStart('cold', $first);
        self::assertArrayNotHasKey('start_reason', $first->diagnostics);
        self::assertArrayNotHasKey('start', $first->toArray()['diagnostics']);
        self::waitUntil(static fn (): bool => self::templates() !== [], 'A template boots.');
        $booting = self::template();

        $second = $this->ask('return $GLOBALS["booted"];');
        self::assertStart('warm', $second);
        self::assertSame($booting, self::returned($second));
    }

    public function testNothingBootsBesideIt(): void
    {
        $this->counting();
        $during = [];
        $look = function () use (&$during): void {
            usleep(self::LATER_US);
            $during[] = $this->boots();
        };

        $result = $this->askOf($this->evaluator, 'echo 1; usleep(600000); return 1;', $look, allowWrites: true);

        self::assertSame(1, self::returned($result));
        self::assertSame([1], $during);
    }

    public function testACallThatComesMeanwhileBootsATemplateAtOnce(): void
    {
        $this->booting('');
        $second = null;
        $ask = function () use (&$second): void {
            $second = $this->ask('return 2;');
        };

        self::assertStart('cold', $this->askOf($this->evaluator, 'echo 1; return 1;', $ask));
        self::assertStart('first', $second);
        self::assertStart('warm', $this->ask('return 3;'));
        usleep(self::LATER_US);
        self::assertCount(1, self::templates());
    }

    public function testACallRightAfterItBootsATemplateAtOnce(): void
    {
        $this->counting();
        $starts = [];
        // A busy machine may take longer from one call to the next than a boot waits.
        while (count($starts) < 5 && !in_array('first', $starts, true)) {
            $before = $this->boots();
            $this->evaluator = new Evaluator(warm: true);
            self::assertStart('cold', $this->ask('return 1;', allowWrites: true));
            $second = $this->ask('return $GLOBALS["n"];', allowWrites: true);
            self::assertSame($before + 2, $this->boots());
            $starts[] = $second->diagnostics['start'];
        }
        self::assertSame('first', end($starts), implode(' ', $starts));
    }

    public function testNothingBootsOnceTheEvaluatorIsFreed(): void
    {
        $this->counting();
        self::assertStart('cold', $this->ask('return 1;', allowWrites: true));

        $this->evaluator = null;

        self::assertSame([], Processes::children());
        usleep(self::LATER_US);
        self::assertSame(1, $this->boots());
    }

    public function testAProcessThatEndsHasBootedNoTemplate(): void
    {
        $application = $this->counting();
        for ($times = 1; $times <= 10; $times++) {
            $script = new Script(
                '$request = new EvalRequest("return 1;", ' . var_export($application->root, true)
                    . ', 60000, allowWrites: true);'
                    . ' $evaluator = new Evaluator(); say($evaluator->evaluate($request)->diagnostics["start"]);',
                ['-d', 'altair_eval.pool=off'],
            );
            self::assertSame([0, "cold\n", ''], $script->end());
            self::assertSame([], $script->left());
            self::assertSame($times, $this->boots());
        }
    }

    public function testAForkOfTheHostHasNoTemplateAndLeavesItsParentsAlone(): void
    {
        $script = new Script(<<<'PHP'
            $evaluator = new Evaluator();
            $start = static fn () => $evaluator->evaluate(request('return 1;'))->diagnostics['start'];
            say($start());
            if (($fork = pcntl_fork()) === 0) {
                say($start());
                unset($start, $evaluator);
                exit(7);
            }
            pcntl_waitpid($fork, $status);
            say(pcntl_wexitstatus($status));
            for ($call = 0; $call < 5 && ($last = $start()) !== 'warm'; $call++) {
            }
            say($last);
            PHP, ['-d', 'altair_eval.pool=off']);

        self::assertSame([0, "cold\ncold\n7\nwarm\n", ''], $script->end());
        self::assertSame([], $script->left());
    }

    /** @dataProvider ends */
    public function testAHostThatEndsWhileATemplateBootsLeavesNothing(string $end, int $code): void
    {
        $this->counting('if (filesize("$root/boots") > 1) { sleep(60); }');
        $script = $this->host(
            "say('boots');
            $end",
            ['-d', 'display_errors=0', '-d', 'log_errors=0'],
        );
        self::assertSame('boots', $script->line());
        $began = microtime(true);

        self::assertSame([$code, '', ''], $script->end());

        self::waitUntil(static fn (): bool => $script->processes() === [], 'Nothing of the host is left.');
        self::assertLessThan(20, microtime(true) - $began, 'Nobody waits for the boot.');
        self::assertSame(2, $this->boots());
    }

    public static function ends(): iterable
    {
        yield 'it is at its end' => ['', 0];
        yield 'exit' => ['exit(3);', 3];
        yield 'an exception' => ['throw new LogicException();', 255];
        yield 'a fatal error' => ['function container() {} eval("function container() {}");', 255];
        yield 'no memory' => ['ini_set("memory_limit", "32M"); str_repeat("x", 1 << 30);', 255];
        yield 'it lets go of the evaluator' => ['unset($evaluator); exit(4);', 4];
        yield 'a fork that ends' => [
            '$fork = pcntl_fork(); if ($fork === 0) { exit(5); }'
                . ' pcntl_waitpid($fork, $status); exit(pcntl_wexitstatus($status));',
            5,
        ];
        yield 'a fork that evaluates' => [
            '$fork = pcntl_fork();'
                . ' if ($fork === 0) { exit($evaluator->evaluate(request("return 6;"))->result["value"]); }'
                . ' pcntl_waitpid($fork, $status); exit(pcntl_wexitstatus($status));',
            6,
        ];
    }

    public function testAnEvaluatorThatIsAskedOnceForManyApplicationsKeepsAsManyTemplatesAsItMay(): void
    {
        $applications = [];
        for ($count = 1; $count <= 10; $count++) {
            $before = self::templates();
            $applications[] = $application = new TemporaryApplication(['vendor/autoload.php' => '<?php']);
            self::assertStart('cold', $this->ask('return 1;', projectRoot: $application->root));
            $hasAnother = static fn (): bool => array_diff(self::templates(), $before) !== [];
            self::waitUntil($hasAnother, 'Its template boots.');
        }
        self::waitUntil(static fn (): bool => count(self::templates()) === 8, 'As many as may be are kept.');

        self::assertStart('warm', $this->ask('return 1;', projectRoot: $applications[9]->root));
        self::assertStart('first', $this->ask('return 1;', projectRoot: $applications[0]->root));
    }

    public function testATemplateThatNobodyAskedIsCollected(): void
    {
        $before = ini_set('altair_eval.idle', '1');
        try {
            $this->booting('');
            $this->ask('return 1;');
            $zombie = self::endedByItself();
            $other = new TemporaryApplication();
            $this->ask('return 1;', projectRoot: $other->root);

            $isGone = static fn (): bool => @file_get_contents("/proc/$zombie/stat") === false;
            self::waitUntil($isGone, 'No zombie is left of it.');
        } finally {
            ini_set('altair_eval.idle', (string) $before);
        }
    }

    public function testTheProjectIsTheOneThatWasNamedWhereverTheHostIsLater(): void
    {
        $application = $this->booting('');
        $elsewhere = new TemporaryApplication();
        symlink($application->root, $elsewhere->path('current'));
        $directory = getcwd();
        $named = var_export($elsewhere->path('current/vendor/autoload.php'), true);
        $ask = function () use ($elsewhere, $named): EvalResult {
            chdir($elsewhere->root);
            try {
                return $this->ask("return is_file($named);", projectRoot: 'current');
            } finally {
                chdir('/');
            }
        };
        try {
            $first = $ask();
            self::waitUntil(static fn (): bool => self::templates() !== [], 'A template boots.');
            $second = $ask();
        } finally {
            chdir($directory);
        }

        self::assertStart('cold', $first);
        self::assertStart('warm', $second);
        self::assertSame([true, true], [self::returned($first), self::returned($second)]);
    }

    public function testABootThatFailsAfterwardsIsTheAnswerOfTheNextCall(): void
    {
        $application = $this->counting('echo "boot"; require "$root/more.php";', ['more.php' => '<?php']);
        self::assertStart('cold', $this->ask('return 1;', allowWrites: true));
        $application->write('more.php', '<?php throw new DomainException("boom");');
        self::waitUntil(fn (): bool => $this->boots() === 2, 'A template boots.');

        $next = $this->ask('return 1;', allowWrites: true);
        self::assertOutcome('boot_failed', $next, 2, exception: true);
        self::assertSame(['boom', 'boot'], [$next->exception['message'], $next->stdout]);

        $application->write('more.php', '<?php');
        self::assertSame(1, self::returned($this->ask('return 1;', allowWrites: true)));
    }

    public function testWhatCannotBootIsNotBootedAgainAfterwards(): void
    {
        $this->counting('throw new DomainException("boom");');

        self::assertOutcome('boot_failed', $this->ask('return 1;', allowWrites: true), 2, exception: true);
        usleep(self::LATER_US);

        self::assertSame(1, $this->boots());
    }

    /** @dataProvider moments */
    public function testAnEditAfterTheAnswerIsNotMissed(bool $hasBooted): void
    {
        $application = $this->counting('$seen = require "$root/seen.php";', ['seen.php' => '<?php return "old";']);
        $ask = fn (): EvalResult => $this->ask('return $GLOBALS["seen"];', allowWrites: true);
        self::assertSame('old', self::returned($ask()));
        self::waitUntil(fn (): bool => !$hasBooted || $this->boots() === 2, 'A template boots.');

        $application->write('seen.php', '<?php return "new";');

        self::assertSame('new', self::returned($ask()));
        self::assertSame('new', self::returned($ask()));
    }

    public static function moments(): iterable
    {
        yield 'before the boot' => [false];
        yield 'after or during the boot' => [true];
    }

    public function testABatchBootsATemplateAtOnce(): void
    {
        $this->booting('');
        $request = new EvalRequest('return 1;', $this->application()->root, self::LONG_MS);
        $starts = fn (iterable $requests): array => array_map(
            static fn (EvalResult $result): string => $result->diagnostics['start'],
            iterator_to_array((new Evaluator(warm: true))->evaluateMany($requests, 2)),
        );

        self::assertEqualsCanonicalizing(['first', 'warm', 'warm'], $starts([$request, $request, $request]));
        self::assertSame(['cold'], $starts([$request]));
    }

    public function testTheOutputOfABootIsShownOnceToACallThatWaitsForIt(): void
    {
        $outside = new TemporaryApplication(['lock' => '']);
        $lock = $outside->path('lock');
        $this->booting("echo '<boot>'; \$lock = fopen('$lock', 'r'); flock(\$lock, LOCK_SH); fclose(\$lock);");
        $ask = function (int $timeoutMs) use ($outside, &$seen): EvalResult {
            $seen = '';
            $onOutput = static function (string $type, string $chunk) use (&$seen): void {
                $seen .= $chunk;
            };
            $options = ['timeoutMs' => $timeoutMs, 'readablePaths' => [$outside->root]];

            return $this->askOf($this->evaluator, 'echo "<run>"; return 1;', $onOutput, ...$options);
        };
        self::assertStart('cold', $ask(self::LONG_MS));
        $held = fopen($lock, 'r');
        flock($held, LOCK_EX);
        self::waitUntil(static fn (): bool => count(self::templates()) === 1, 'A template boots.');

        $late = $ask(self::SHORT_MS);
        self::assertOutcome('timed_out', $late, 124, timedOut: true);
        self::assertSame(['<boot>', '<boot>'], [$seen, $late->stdout]);

        pcntl_async_signals(true);
        pcntl_signal(SIGALRM, static fn () => flock($held, LOCK_UN));
        pcntl_alarm(1);
        $result = $ask(self::LONG_MS);
        pcntl_signal(SIGALRM, SIG_DFL);
        self::assertSame(['<boot><run>', '<boot><run>'], [$seen, $result->stdout]);
        fclose($held);
    }

    /** An application that counts its boots, in calls that may write. */
    private function counting(string $then = '', array $files = []): TemporaryApplication
    {
        $count = 'file_put_contents("$root/boots", "x", FILE_APPEND);';

        return $this->booting("$count \$n = 1;\n$then", ['boots' => ''] + $files);
    }

    /** A host that has been answered, and whose template boots for the second time when it does the rest. */
    private function host(string $rest, array $options): Script
    {
        $root = var_export($this->application()->root, true);

        return new Script(
            "
            \$evaluator = new Evaluator();
            \$evaluator->evaluate(new EvalRequest('return 1;', $root, 60000, allowWrites: true));
            while (filesize($root . '/boots') < 2) {
                usleep(1000);
                clearstatcache();
            }
            $rest",
            ['-d', 'altair_eval.pool=off', ...$options],
        );
    }

    private function boots(): int
    {
        clearstatcache();

        return (int) filesize($this->application()->path('boots'));
    }
}
