<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Warm;

use Altair\Eval\EvalRequest;
use Altair\Eval\EvalResult;
use Altair\Eval\Evaluator;
use Altair\Eval\Tests\Support\TemporaryApplication;
use Altair\Eval\Tests\Support\Warm\LockedRuns;
use Altair\Eval\Tests\Support\Warm\WarmTestCase;
use Generator;

/**
 * `evaluateMany()` on templates: each run is independent of the others.
 */
final class ManyTest extends WarmTestCase
{
    use LockedRuns;

    public function testAllComeFromOneTemplate(): void
    {
        $this->booting('$booted = getmypid();');
        $this->warmed();
        $request = fn (int $n): EvalRequest => $this->request("return [$n, \$GLOBALS['booted']];");
        $requests = array_map($request, range(0, 29));

        $values = [];
        foreach ($this->evaluator->evaluateMany($requests, 4) as $key => $result) {
            self::assertStart('warm', $result);
            $values[$key] = self::returned($result);
        }

        ksort($values);
        $template = self::template();
        self::assertSame(array_map(static fn (int $n): array => [$n, $template], range(0, 29)), $values);
    }

    public function testTheFirstOnesWaitForOneBoot(): void
    {
        $this->booting('usleep(1000); $booted = getmypid();');
        // A file that was just made is too young to be trusted, and would be a reason for a second boot.
        $this->warmed();
        $this->evaluator = new Evaluator(warm: true);

        $requests = array_fill(0, 8, $this->request('return $GLOBALS["booted"];'));
        $seen = [];
        foreach ($this->evaluator->evaluateMany($requests, 4) as $of) {
            $seen[] = self::returned($of);
            $starts[] = $of->diagnostics['start'];
        }

        self::assertSame(array_fill(0, 8, self::template()), $seen);
        self::assertEquals(['first' => 1, 'warm' => 7], array_count_values($starts));
    }

    public function testTheyComeInTheOrderInWhichTheyEnd(): void
    {
        $locks = $this->locks(['a', 'b']);
        $requests = [
            'third' => $this->request($this->wait('b')),
            'second' => $this->request($this->wait('a')),
            'first' => $this->request('return 1;'),
        ];

        $seen = [];
        foreach ($this->evaluator->evaluateMany($requests, 3) as $key => $result) {
            self::assertSame(1, self::returned($result));
            self::assertStart('warm', $result);
            $seen[] = $key;
            flock($locks[count($seen) === 1 ? 'a' : 'b'], LOCK_UN);
        }

        self::assertSame(['first', 'second', 'third'], $seen);
        array_map(fclose(...), $locks);
    }

    public function testASlowOneDelaysNobody(): void
    {
        $locks = $this->locks(['slow']);
        $requests = function (): Generator {
            yield 'slow' => $this->request($this->wait('slow'));
            for ($i = 0; $i < 20; $i++) {
                yield $i => $this->request("return $i;");
            }
        };

        $seen = [];
        foreach ($this->evaluator->evaluateMany($requests(), 2) as $key => $result) {
            self::assertTrue($result->ok(), var_export($result->toArray(), true));
            $seen[] = $key;
            if (count($seen) === 20) {
                flock($locks['slow'], LOCK_UN);
            }
        }

        self::assertSame('slow', array_pop($seen));
        self::assertEqualsCanonicalizing(range(0, 19), $seen);
        array_map(fclose(...), $locks);
    }

    /** @dataProvider concurrencies */
    public function testNoMoreSnippetsRunAtATimeThanItSays(int $concurrency): void
    {
        $this->booting('', ['running/.keep' => '']);
        $this->warmed(allowWrites: true);
        // Each counts who runs beside it, until one of them has seen as many as may be, and then a while longer.
        $snippet = 'touch($own = "running/" . getmypid()); $seen = 0;
            for ($until = hrtime(true) + 2e10; !file_exists("enough") && hrtime(true) < $until; usleep(1000)) {
                $seen = max($seen, count(glob("running/*")));
                if ($seen >= MOST) { touch("enough"); }
                clearstatcache();
            }
            usleep(20000); $seen = max($seen, count(glob("running/*"))); unlink($own); return $seen;';
        $snippet = str_replace('MOST', (string) $concurrency, $snippet);
        $request = new EvalRequest($snippet, $this->application()->root, self::LONG_MS, allowWrites: true);

        $seen = [];
        foreach ($this->evaluator->evaluateMany(array_fill(0, 3 * $concurrency, $request), $concurrency) as $result) {
            self::assertStart('warm', $result);
            $seen[] = self::returned($result);
        }

        self::assertSame($concurrency, max($seen));
    }

    /** @dataProvider concurrencies */
    public function testRequestsAreAskedForAsThereIsRoom(int $concurrency): void
    {
        $this->booting('');
        $this->warmed();
        $asked = 0;
        $requests = function () use ($concurrency, &$asked): Generator {
            for ($i = 0; $i < 5 * $concurrency; $i++) {
                $asked++;
                yield $i => $this->request('return 1;');
            }
        };

        $answered = 0;
        foreach ($this->evaluator->evaluateMany($requests(), $concurrency) as $result) {
            self::assertSame(1, self::returned($result));
            $answered++;
            // One at a time is in step; else as many again are under way.
            $most = $concurrency === 1 ? 1 : 2 * $concurrency;
            self::assertLessThanOrEqual($most - 1, $asked - $answered);
            self::assertLessThanOrEqual($most + self::processors(), self::forks());
        }

        self::assertSame([5 * $concurrency, 5 * $concurrency], [$asked, $answered]);
    }

    public function testWhatWaitsForItsTurnDoesNotAnswerFromBeforeAnEdit(): void
    {
        $locks = $this->locks(['a'], '$seen = @include "$root/seen.php";');
        $this->application()->write('seen.php', '<?php return "before";');
        $this->warmed(readablePaths: [$this->outside->root]);
        $requests = function () use ($locks): Generator {
            yield $this->request($this->wait('a'));
            yield $this->request($this->wait('a'));
            // The third may not take its turn before these have theirs.
            $this->untilWaitingFor($locks['a'], 2);
            yield 'next' => $this->request('return $GLOBALS["seen"];');
            // Two threads have a run, and one waits for its turn.
            $threads = static fn (): array => glob('/proc/self/task/*/comm') ?: [];
            $isRun = static fn (string $file): bool => @file_get_contents($file) === "altair-eval\n";
            $waits = static fn (): bool => count(array_filter($threads(), $isRun)) === 3;
            self::waitUntil($waits, 'A run waits for its turn.');
            $this->application()->write('seen.php', '<?php return "after";');
            flock($locks['a'], LOCK_UN);
        };

        $results = iterator_to_array($this->evaluator->evaluateMany($requests(), 2));

        self::assertSame('after', self::returned($results['next']));
        array_map(fclose(...), $locks);
    }

    public function testTheTimeOfARunCountsFromItsTurn(): void
    {
        $this->booting('');
        $this->warmed();
        $slow = $this->request('usleep(700000); return 1;');
        $requests = [$slow, $slow, 'next' => $this->request('return 1;', 500)];

        $results = iterator_to_array($this->evaluator->evaluateMany($requests, 2));

        self::assertSame(1, self::returned($results['next']));
        self::assertLessThan(500.0, $results['next']->diagnostics['timings_ms']['total']);
    }

    /** They may all wait for the one fork that is being made, which only one of them gets. */
    public function testNoneWaitsForAForkUntilAnotherEnds(): void
    {
        $locks = $this->locks(['a']);
        $wait = $this->request($this->wait('a'));
        $late = 0;
        for ($i = 0; $i < 30; $i++) {
            self::assertTrue(flock($locks['a'], LOCK_EX));
            // After it, a fork is being made.
            self::assertSame(1, self::returned($this->warmed('return 1;', readablePaths: [$this->outside->root])));
            $requests = [$wait, $wait, 'next' => $this->request('return 1;')];
            $seen = [];
            foreach ($this->evaluator->evaluateMany($requests, 3) as $key => $result) {
                self::assertSame(1, self::returned($result));
                $seen[] = $key;
                $late += (int) ($result->diagnostics['timings_ms']['start'] > 300.0);
                flock($locks['a'], LOCK_UN);
            }
            self::assertSame('next', $seen[0]);
        }
        // A busy machine may be late once.
        self::assertLessThan(3, $late);
        array_map(fclose(...), $locks);
    }

    public static function concurrencies(): iterable
    {
        yield 'one' => [1];
        yield 'two' => [2];
        yield 'five' => [5];
    }

    public function testOneAfterTheOther(): void
    {
        $application = $this->booting('', ['counter' => '0']);
        $this->warmed(allowWrites: true);
        $add = 'file_put_contents("counter", 1 + (int) file_get_contents("counter"));'
            . ' return file_get_contents("counter");';
        $request = new EvalRequest($add, $application->root, self::LONG_MS, allowWrites: true);

        $seen = [];
        foreach ($this->evaluator->evaluateMany(array_fill(0, 10, $request), 1) as $key => $result) {
            $seen[$key] = self::returned($result);
        }

        self::assertSame(array_map(strval(...), range(1, 10)), $seen);
        self::assertSame('10', file_get_contents($application->path('counter')));
    }

    public function testBadEndsDoNotDisturbTheOthers(): void
    {
        $this->booting('');
        $this->warmed();
        $requests = [
            'throws' => $this->request('throw new Exception("x");'),
            'exits' => $this->request('exit(3);'),
            'is killed' => $this->request('posix_kill(getmypid(), SIGKILL); sleep(9);'),
            'does not parse' => $this->request('return 1 +;'),
            'no memory' => $this->request('$s = ""; while (true) { $s .= str_repeat("x", 1 << 20); }'),
            'times out' => $this->request('while (true);', self::SHORT_MS),
            'returns' => $this->request('return 1;'),
            'returns, too' => $this->request('return 2;'),
        ];

        $codes = array_map(
            static fn (EvalResult $result): int => $result->exitCode,
            iterator_to_array($this->evaluator->evaluateMany($requests, 3)),
        );

        ksort($codes);
        self::assertSame([
            'does not parse' => 1, 'exits' => 3, 'is killed' => 137, 'no memory' => 255, 'returns' => 0,
            'returns, too' => 0, 'throws' => 1, 'times out' => 124,
        ], $codes);
        self::assertStart('warm', $this->ask('return 1;'));
    }

    public function testAnEditBetweenTwoResultsIsNotMissed(): void
    {
        $application = $this->booting('$seen = include "$root/config.php";', ['config.php' => '<?php return 0;']);
        $this->warmed();
        $requests = function () use ($application): Generator {
            for ($i = 1; $i < 6; $i++) {
                $application->write('config.php', "<?php return $i;");
                yield $i => $this->request('return $GLOBALS["seen"];');
            }
        };

        $seen = [];
        foreach ($this->evaluator->evaluateMany($requests(), 1) as $key => $result) {
            $seen[$key] = self::returned($result);
        }

        self::assertSame([1 => 1, 2 => 2, 3 => 3, 4 => 4, 5 => 5], $seen);
    }

    public function testSeveralApplications(): void
    {
        $applications = [];
        foreach (['a', 'b', 'c'] as $name) {
            $applications[$name] = new TemporaryApplication(['vendor/autoload.php' => "<?php \$seen = '$name';"]);
        }
        $requests = static function () use ($applications): Generator {
            for ($i = 0; $i < 12; $i++) {
                $name = array_keys($applications)[$i % 3];
                yield $i => new EvalRequest('return $GLOBALS["seen"];', $applications[$name]->root, self::LONG_MS);
            }
        };

        $seen = [];
        foreach ($this->evaluator->evaluateMany($requests(), 3) as $key => $result) {
            $seen[$key] = self::returned($result);
        }
        ksort($seen);

        self::assertSame(str_repeat('abc', 4), implode($seen));
    }
}
