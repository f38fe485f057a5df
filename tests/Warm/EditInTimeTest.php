<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Warm;

use Altair\Eval\Evaluator;
use Altair\Eval\EvalResult;
use Altair\Eval\Tests\Support\TemporaryApplication;
use Altair\Eval\Tests\Support\Warm\Change;
use Altair\Eval\Tests\Support\Warm\WarmTestCase;
use Closure;

/**
 * An edit while the boot goes on, while a run goes on, or right after a call, is not missed.
 */
final class EditInTimeTest extends WarmTestCase
{
    private const SNIPPET = 'return $GLOBALS["seen"];';

    /**
     * What boot looks at, in two parts, with a wait between them. The lock is of a file that lies outside of the
     * project, where it is the same file to both, and which nobody changes: the wait leaves nothing to go stale.
     */
    private const WAIT = <<<'PHP'
        %s
        $lock = fopen('%s', 'r');
        echo 'boot waits';
        flock($lock, LOCK_SH);
        fclose($lock);
        unset($lock);
        %s
        PHP;

    private ?TemporaryApplication $outside = null;

    protected function tearDown(): void
    {
        parent::tearDown();
        $this->outside = null;
    }

    public function testWithoutAnEditTheTemplateIsUsedAgain(): void
    {
        $this->bootWithWait('$seen = include "$root/config.php";', '');
        self::assertSame('old', self::returned($this->warmed(self::SNIPPET, readablePaths: [$this->outside->root])));

        $this->evaluator = new Evaluator(warm: true);
        self::assertStart('first', $this->during(static fn () => null));

        self::assertStart('warm', $this->next());
    }

    public function testAnEditDuringBootMakesNoneBootTwice(): void
    {
        $application = $this->booting(
            'file_put_contents("$root/boots", "x", FILE_APPEND); include "$root/config.php"; echo "x"; usleep(50000);',
            ['boots' => '', 'config.php' => '<?php'],
        );
        $boots = static function () use ($application): int {
            clearstatcache();

            return (int) filesize($application->path('boots'));
        };
        $began = null;
        $edit = static function () use ($application, $boots, &$began): void {
            if ($began === null) {
                $began = $boots();
                $application->write('config.php', '<?php // edited');
            }
        };

        $first = $this->askOf($this->evaluator, 'return 1;', $edit, allowWrites: true);

        self::assertStart('first', $first);
        self::assertSame($began, $boots());
    }

    /** @dataProvider edits */
    public function testAnEditDuringBoot(string $before, string $after, Closure $edit): void
    {
        $application = $this->bootWithWait($before, $after);
        // Old enough by now for the kernel's clock to tell an edit from the making.
        $this->warmed(self::SNIPPET, readablePaths: [$this->outside->root]);
        $this->evaluator = new Evaluator(warm: true);

        $first = $this->during(static fn () => $edit($application));

        self::assertContains(self::returned($first), ['old', 'new']);
        self::assertStart('first', $first);
        $next = $this->next();
        self::assertSame('new', self::returned($next), var_export($next->toArray(), true));
        self::assertSame('new', self::returned($this->next()));
        self::assertSame('new', self::returned(
            $this->warmed(self::SNIPPET, readablePaths: [$this->outside->root]),
        ));
    }

    public static function edits(): iterable
    {
        $edit = Change::write('config.php', "<?php return 'new';");
        $include = '$seen = include "$root/config.php";';
        yield 'of what boot has read' => [$include, '', $edit];
        yield 'of what boot will read' => ['', $include, $edit];
        yield 'of what boot has read and reads again' => [$include, 'file_get_contents("$root/config.php");', $edit];
        yield 'of what boot has looked for and not found' => [
            '$seen = is_file("$root/override.php") ? "new" : "old";',
            '',
            Change::add('override.php'),
        ];
        yield 'by which what boot has read is replaced' => [
            $include,
            '',
            Change::together(
                Change::add('other.php', "<?php return 'new';"),
                Change::rename('other.php', 'config.php'),
            ),
        ];
        yield 'in a directory that boot has listed' => [
            '$seen = count(scandir("$root/list")) > 3 ? "new" : "old";',
            '',
            Change::add('list/b'),
        ];
    }

    public function testAnEditWhileARunGoesOn(): void
    {
        $application = $this->booting('$seen = include "$root/config.php";', ['config.php' => "<?php return 'old';"]);
        $this->warmed();
        $edit = static function () use ($application): void {
            $application->write('config.php', "<?php return 'new';");
        };

        $running = $this->askOf($this->evaluator, 'echo "x"; usleep(1000); ' . self::SNIPPET, $edit);
        $next = $this->ask(self::SNIPPET);

        self::assertSame('old', self::returned($running));
        self::assertStart('warm', $running);
        self::assertSame('new', self::returned($next));
        self::assertStart('first', $next);
    }

    /** @dataProvider quickEdits */
    public function testEditsRightAfterEachOther(Closure $write): void
    {
        $application = $this->booting('$seen = include "$root/config.php";', ['config.php' => "<?php return '00';"]);
        $starts = [];

        for ($i = 10; $i < 30; $i++) {
            $write($application, "<?php return '$i';");
            for ($call = 0; $call < 2; $call++) {
                $result = $this->ask(self::SNIPPET);
                self::assertSame((string) $i, self::returned($result));
                $starts[$call][] = $result->diagnostics['start'];
            }
        }

        self::assertSame(['first'], array_values(array_unique($starts[0])));
        self::assertSame('29', self::returned($this->warmed(self::SNIPPET)));
    }

    public static function quickEdits(): iterable
    {
        yield 'in place' => [static fn (TemporaryApplication $of, string $code): string
            => $of->write('config.php', $code)];
        yield 'by another file' => [static function (TemporaryApplication $of, string $code): void {
            $of->write('config.new', $code);
            rename($of->path('config.new'), $of->path('config.php'));
        }];
        yield 'by another file, always of the same age' => [
            static function (TemporaryApplication $of, string $code): void {
                touch($of->write('config.new', $code), 1_000_000_000);
                rename($of->path('config.new'), $of->path('config.php'));
            },
        ];
        yield 'deleted and made again' => [static function (TemporaryApplication $of, string $code): void {
            $of->remove('config.php');
            $of->write('config.php', $code);
        }];
    }

    public function testAnEditThatIsUndone(): void
    {
        $application = $this->booting('$seen = include "$root/config.php";', ['config.php' => "<?php return 'old';"]);
        $this->warmed(self::SNIPPET);

        $application->write('config.php', "<?php return 'new';");
        $application->write('config.php', "<?php return 'old';");

        self::assertSame('old', self::returned($this->ask(self::SNIPPET)));
        self::assertSame('old', self::returned($this->warmed(self::SNIPPET)));
    }

    private function bootWithWait(string $before, string $after): TemporaryApplication
    {
        $this->outside = new TemporaryApplication(['lock' => '']);

        return $this->booting(
            sprintf(self::WAIT, $before, $this->outside->path('lock'), $after),
            ['config.php' => "<?php return 'old';", 'list/a' => ''],
        );
    }

    /** The first call of an evaluator, whose boot waits until `$edit` has returned. */
    private function during(Closure $edit): EvalResult
    {
        $lock = fopen($this->outside->path('lock'), 'r');
        self::assertTrue(flock($lock, LOCK_EX));
        $edited = false;
        $onOutput = static function () use ($lock, $edit, &$edited): void {
            // Boot's output comes a second time with that of the run.
            if (!$edited) {
                $edit();
                flock($lock, LOCK_UN);
                $edited = true;
            }
        };
        $result = $this->askOf($this->evaluator, self::SNIPPET, $onOutput, readablePaths: [$this->outside->root]);
        fclose($lock);
        self::assertTrue($edited, 'Boot has waited.');

        return $result;
    }

    private function next(): EvalResult
    {
        return $this->ask(self::SNIPPET, readablePaths: [$this->outside->root]);
    }
}
