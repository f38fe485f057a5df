<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Warm;

use Altair\Eval\EvalResult;
use Altair\Eval\Tests\Support\Asked;
use Altair\Eval\Tests\Support\Processes;
use Altair\Eval\Tests\Support\TemporaryApplication;
use Altair\Eval\Tests\Support\Warm\WarmTestCase;
use Closure;
use LogicException;

/**
 * A boot that outlasts the deadline of the call that began it goes on, and is there for a later one.
 */
final class SlowBootTest extends WarmTestCase
{
    private TemporaryApplication $outside;

    public function testALaterCallFindsItDone(): void
    {
        $application = $this->waiting();
        $unlock = $this->lock();

        $late = $this->slowUntilItWaits();
        $booting = self::template();

        self::assertOutcome('timed_out', $late, 124, timedOut: true);
        self::assertSame('boot', $late->diagnostics['phase']);
        self::assertStringContainsString('goes on in the background', $late->diagnostics['message']);
        self::assertSame($application->path('vendor/autoload.php'), $late->diagnostics['location']['file']);
        self::assertSame(5, $late->diagnostics['location']['line']);
        self::assertSame('boot waits', $late->stdout);

        $unlock();
        // Its boot was when the first call was; a second one would have another time.
        $next = $this->ask('return $GLOBALS["booted"];', readablePaths: [$this->outside->root]);
        self::assertContains($next->diagnostics['start'], ['first', 'warm'], var_export($next->toArray(), true));
        self::assertSame('boot waits', $next->stdout);
        self::assertSame($booting, self::returned($next), 'The template is the process that began to boot.');
        $again = $this->warmed('return $GLOBALS["booted"];', readablePaths: [$this->outside->root]);
        self::assertSame($booting, self::returned($again));
    }

    public function testALaterCallThatIsTooEarlyIsToldTheSameAndDoesNotBeginAnother(): void
    {
        $this->waiting();
        $unlock = $this->lock();
        $first = $this->slowUntilItWaits();
        $booting = self::template();

        $second = $this->slow();

        self::assertOutcome('timed_out', $second, 124, timedOut: true);
        self::assertSame('boot', $second->diagnostics['phase']);
        self::assertSame($first->diagnostics['location'], $second->diagnostics['location']);
        self::assertSame($booting, self::template());
        $unlock();
        $next = $this->ask('return $GLOBALS["booted"];', readablePaths: [$this->outside->root]);
        self::assertSame($booting, self::returned($next));
    }

    public function testItEndsWithTheEvaluator(): void
    {
        $this->waiting();
        $unlock = $this->lock();
        $this->slow();
        $booting = self::template();

        $this->evaluator = null;

        self::assertSame([], Processes::childrenLeft());
        self::waitUntil(static fn (): bool => self::hasEnded($booting), 'It has ended.');
        $unlock();
    }

    public function testAnEditMeanwhileIsNotMissed(): void
    {
        $application = $this->waiting('$seen = include "$root/config.php";', ['config.php' => "<?php return 'old';"]);
        $unlock = $this->lock();
        $this->slow();

        $application->write('config.php', "<?php return 'new';");
        $unlock();

        // It was begun after the edit: it may not have an answer from before.
        $next = $this->ask('return $GLOBALS["seen"];', readablePaths: [$this->outside->root]);
        self::assertSame('new', self::returned($next), var_export($next->toArray(), true));
    }

    public function testOneThatFailsMeanwhileDoesNotSpoilTheNextCall(): void
    {
        $application = $this->waiting('', [], 'require "$root/more.php";');
        $application->write('more.php', '<?php throw new DomainException("boom");');
        $unlock = $this->lock();
        $this->slow();

        $unlock();
        $next = $this->ask('return 1;', readablePaths: [$this->outside->root]);
        self::assertOutcome('boot_failed', $next, 2, exception: true);
        self::assertSame('boom', $next->exception['message']);

        $application->write('more.php', '<?php');
        self::assertSame(1, self::returned($this->ask('return 1;', readablePaths: [$this->outside->root])));
    }

    public function testAnotherApplicationIsNotHeldUp(): void
    {
        $this->waiting();
        $unlock = $this->lock();
        $this->slow();
        $other = new TemporaryApplication(['vendor/autoload.php' => '<?php']);

        self::assertSame(1, self::returned($this->ask('return 1;', projectRoot: $other->root)));
        self::assertSame(1, self::returned($this->warmed('return 1;', projectRoot: $other->root)));

        $unlock();
    }

    public function testAnExceptionOfTheHostEndsIt(): void
    {
        $this->waiting();
        $unlock = $this->lock();
        $booting = null;
        $stop = static function () use (&$booting): void {
            $booting = self::template();
            throw new LogicException('enough');
        };

        try {
            $this->askOf($this->evaluator, 'return 1;', $stop, readablePaths: [$this->outside->root]);
            self::fail('It goes on to the caller.');
        } catch (LogicException $thrown) {
            self::assertSame('enough', $thrown->getMessage());
        }

        self::waitUntil(static fn (): bool => self::hasEnded($booting), 'It has ended.');
        $unlock();
        self::assertSame(1, self::returned($this->ask('return 1;', readablePaths: [$this->outside->root])));
    }

    /** An application whose boot waits for the lock to be free. */
    private function waiting(string $before = '', array $files = [], string $after = ''): TemporaryApplication
    {
        $this->outside = new TemporaryApplication(['lock' => '']);
        $lock = $this->outside->path('lock');

        $application = $this->booting(
            "$before \$booted = getmypid();\n\$lock = fopen('$lock', 'r'); echo 'boot waits';\n"
                . "flock(\$lock, LOCK_SH);\nfclose(\$lock); unset(\$lock);\n$after",
            $files,
        );
        $options = ['projectRoot' => $application->root, 'readablePaths' => [$this->outside->root]];
        Asked::before($this->evaluator, $options);

        return $application;
    }

    /**
     * @return Closure(): void lets it go on
     */
    private function lock(): Closure
    {
        $lock = fopen($this->outside->path('lock'), 'r');
        self::assertTrue(flock($lock, LOCK_EX));

        return static function () use (&$lock): void {
            fclose($lock);
            $lock = null;
        };
    }

    /** The answer of a call whose deadline came when the boot waited; on a busy machine that may not be the first. */
    private function slowUntilItWaits(): EvalResult
    {
        for ($tries = 0; $tries < 20; $tries++) {
            $slow = $this->slow();
            if ($slow->stdout === 'boot waits') {
                return $slow;
            }
        }
        self::fail('It does not come to the lock: ' . var_export($slow->toArray(), true));
    }

    private function slow(): EvalResult
    {
        return $this->ask('return 1;', timeoutMs: self::SHORT_MS, readablePaths: [$this->outside->root]);
    }
}
