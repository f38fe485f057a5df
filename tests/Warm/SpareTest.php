<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Warm;

use Altair\Eval\EvalRequest;
use Altair\Eval\Tests\Support\Processes;
use Altair\Eval\Tests\Support\Spare;
use Altair\Eval\Tests\Support\Warm\WarmTestCase;
use Closure;

/**
 * A fork that was made before it was asked for sees the project as it is when it gets its task: it has named no file
 * there before.
 */
final class SpareTest extends WarmTestCase
{
    private const FILES = [
        'config/shown.php' => '<?php return "before";',
        'deep/er/shown.php' => '<?php return "before";',
    ];

    /** Whether each fork is behind its guards and sleeps: it waits for its task. */
    private static function haveSpares(): bool
    {
        $forks = self::forks();

        return $forks > 0 && self::sleepingForks() === $forks;
    }

    public function testOneWaitsAfterARun(): void
    {
        $this->booting('');
        $this->warmed('return 1;');

        self::waitUntil(self::haveSpares(...), 'A fork waits.');
        self::assertStart('warm', $this->ask('return 1;'));
        self::waitUntil(self::haveSpares(...), 'Another one waits.');
    }

    /**
     * @return iterable<string, array{string, Closure}>
     */
    public static function edits(): iterable
    {
        $shown = 'return (include "config/shown.php") . "," . (include "deep/er/shown.php");';
        yield 'saved by rename' => [$shown, static function (string $root): void {
            foreach (['config/shown.php', 'deep/er/shown.php'] as $file) {
                file_put_contents("$root/$file.new", '<?php return "after";');
                rename("$root/$file.new", "$root/$file");
            }
        }];
        yield 'written in place' => [$shown, static function (string $root): void {
            file_put_contents("$root/config/shown.php", '<?php return "after";');
            file_put_contents("$root/deep/er/shown.php", '<?php return "after";');
        }];
        yield 'made' => ['return file_exists("config/new.php") ? include "config/new.php" : "absent";', static fn (
            string $root,
        ) => file_put_contents("$root/config/new.php", '<?php return "made";')];
        yield 'removed' => ['return file_exists("config/shown.php");', static fn (
            string $root,
        ) => unlink("$root/config/shown.php")];
        yield 'another directory in its place' => [$shown, static function (string $root): void {
            mkdir("$root/other/er", 0755, true);
            file_put_contents("$root/other/er/shown.php", '<?php return "after";');
            rename("$root/deep", "$root/old");
            rename("$root/other", "$root/deep");
        }];
        yield 'listed' => ['return scandir("config");', static fn (
            string $root,
        ) => file_put_contents("$root/config/listed.php", '')];
    }

    /**
     * @dataProvider edits
     */
    public function testAnEditOfWhatBootNeverReadShowsInTheOneThatWaits(string $snippet, Closure $edit): void
    {
        $application = $this->booting('', self::FILES);
        $this->warmed('return 1;');
        self::waitUntil(self::haveSpares(...), 'It waits for its task.');
        $before = self::returned($this->cold($snippet));

        $edit($application->root);
        $next = $this->ask($snippet);

        $after = self::returned($this->cold($snippet));
        self::assertNotSame($before, $after, 'It is an edit that shows.');
        self::assertSame($after, self::returned($next));
        self::assertStart('warm', $next);
    }

    public function testWithRealWritesNoneWaitsWhoseSealAnEditWouldLift(): void
    {
        $application = $this->booting('');
        $forge = '@mkdir(".altair"); return @file_put_contents(".altair/audit.log", "forged");';
        self::assertFalse(self::returned($this->ask($forge, allowWrites: true)));
        self::assertFalse(self::returned($this->warmed($forge, allowWrites: true)));
        $made = "$application->root/.altair";
        // In which a spare would be made.
        usleep(100_000);
        self::assertDirectoryExists($made);
        self::assertSame(0, self::forks());

        rmdir($made);
        usleep(100_000);
        self::assertDirectoryDoesNotExist($made, 'Nothing makes it before a run.');
        $next = $this->ask($forge, allowWrites: true);

        self::assertFalse(self::returned($next));
        self::assertStart('warm', $next);
        self::assertSame(['.', '..'], scandir($made));
    }

    public function testWithRealWritesNoneIsMadeBeforeItsTurn(): void
    {
        $application = $this->booting('');
        $this->warmed('return 1;', allowWrites: true);
        $made = "$application->root/.altair";
        // The first one has its turn, the second one waits for its own.
        $slow = 'usleep(300_000); return 1;';
        $forge = '@mkdir(".altair"); return @file_put_contents(".altair/audit.log", "forged");';
        $request = fn (string $code): EvalRequest => new EvalRequest(
            $code,
            $application->root,
            self::LONG_MS,
            allowWrites: true,
        );
        $remover = proc_open(['sh', '-c', 'sleep 0.15; exec rmdir "$1"', 'sh', $made], [], $pipes);

        $results = iterator_to_array($this->evaluator->evaluateMany([$request($slow), $request($forge)], 1), false);

        proc_close($remover);
        self::assertSame([1, false], array_map(self::returned(...), $results));
        self::assertSame(['.', '..'], scandir($made));
    }

    public function testThoseThatAreKilledBeforeTheyBeginAreReplaced(): void
    {
        $this->booting('');
        // Two at once have two made.
        $request = new EvalRequest('usleep(100_000);', $this->application()->root, self::LONG_MS);
        $this->warmed('return 1;');
        iterator_to_array($this->evaluator->evaluateMany([$request, $request], 2));
        self::waitUntil(fn (): bool => count(Spare::of((int) getmypid())) === 2, 'Two wait for their task.');
        $spares = Spare::of((int) getmypid());
        foreach ($spares as $spare) {
            posix_kill($spare, SIGSTOP);
        }
        $kill = 'for spare; do sleep 0.3; kill -9 $spare; done';
        $killer = proc_open(['sh', '-c', $kill, 'sh', ...array_map(strval(...), $spares)], [], $pipes);

        $result = $this->ask('return 7;');

        self::assertSame(7, self::returned($result));
        self::assertStart('warm', $result);
        proc_close($killer);
    }

    /** What a fork does for nothing while it waits must not show. */
    public function testItIsAsOneThatHasNotWaited(): void
    {
        $this->booting('$made = new SplObjectStorage(); preg_match("/a/", "a"); $held = array_fill(0, 1000, "held");');
        $snippet = '$now = [
                memory_get_usage(), memory_get_usage(true), memory_get_peak_usage(), memory_get_peak_usage(true),
                error_get_last(), get_included_files(), get_declared_classes(), ob_get_status(true),
                spl_object_id(new stdClass()), get_resource_id(fopen("php://memory", "r")),
                array_keys($GLOBALS), headers_list(), spl_autoload_functions() === false, ini_get_all(null, false),
            ];
            $collector = gc_status();

            return json_encode([$now, $collector["runs"], $collector["collected"], $collector["roots"]]);';

        $made = self::returned($this->warmed($snippet));
        self::waitUntil(self::haveSpares(...), 'It waits for its task.');
        $waited = $this->ask($snippet);

        self::assertStart('warm', $waited);
        self::assertSame($made, self::returned($waited));
        self::assertSame(self::returned($this->cold($snippet)), self::returned($waited));
    }

    /** It rehearses by itself, so its run does not wait for that; but never beyond the limit of the memory. */
    public function testItRehearsesWhereThereIsRoom(): void
    {
        $faults = function (string $boot): int {
            $this->application()->write('vendor/autoload.php', "<?php $boot");
            $this->warmed();
            self::waitUntil(self::haveSpares(...), 'It waits for its task.');

            return min(array_map(
                static fn (int $spare): int => (int) Processes::stat((string) $spare)[7],
                Spare::of((int) getmypid()),
            ));
        };
        $without = $faults('ini_set("memory_limit", (string) (memory_get_usage(true) + (1 << 20)));');

        self::assertGreaterThan($without + 5, $faults(''));
    }

    /** Until it is taken, one that is woken is kept from the processor of its host. */
    public function testItsRunMayUseAllProcessors(): void
    {
        $this->booting('');
        $this->warmed();
        self::waitUntil(self::haveSpares(...), 'It waits for its task.');
        $spares = Spare::of((int) getmypid());
        $flag = $this->application()->write('flag', '');
        // taskset asks the kernel, which leaves out processors that are offline.
        $look = 'flag=$1; shift
            until ls -l $(printf "/proc/%s/fd " "$@") | grep -q "$flag"; do sleep 0.01; done
            for process in $$ "$@"; do taskset -cp "$process" | sed "s/.*: //"; done
            echo seen >"$flag"';
        $look = ['timeout', '20', 'sh', '-c', $look, 'sh', $flag, ...array_map(strval(...), $spares)];
        $looks = proc_open($look, [1 => ['pipe', 'w']], $pipes);

        $run = $this->ask('$flag = fopen("' . $flag . '", "r");
            while (fgets($flag) === false) { usleep(1000); rewind($flag); }
            return getmypid();');

        $seen = explode("\n", trim(stream_get_contents($pipes[1])));
        proc_close($looks);
        self::assertContains(self::returned($run), $spares);
        self::assertCount(1 + count($spares), $seen);
        self::assertCount(1, array_unique($seen), implode(', ', $seen));
    }

    public function testTheTimeAndTheRandomNumbersAreOfTheRun(): void
    {
        $this->booting('mt_srand(1); mt_rand();');
        $this->warmed('return 1;');
        self::waitUntil(self::haveSpares(...), 'It waits for its task.');
        usleep(1_100_000);
        $asked = microtime(true);

        [$began, $now] = self::returned($this->ask('return [$_SERVER["REQUEST_TIME_FLOAT"], microtime(true)];'));

        self::assertGreaterThanOrEqual(floor($asked), $began);
        self::assertGreaterThanOrEqual($asked, $now);
    }

    public function testTheLimitsAreOfTheRequest(): void
    {
        $this->booting('');
        $this->warmed('return 1;');
        self::waitUntil(self::haveSpares(...), 'It waits for its task.');
        $snippet = 'return [ini_get("memory_limit"), posix_getrlimit()["hard cpu"]];';

        $short = self::returned($this->ask($snippet, memoryLimitMb: 32, timeoutMs: 2000));
        self::waitUntil(self::haveSpares(...), 'Another one waits for its task.');
        $long = self::returned($this->ask($snippet, memoryLimitMb: 64, timeoutMs: 20000));

        self::assertSame('32M', $short[0]);
        self::assertSame('64M', $long[0]);
        self::assertLessThan($long[1], $short[1]);
    }

    public function testItEndsWithItsTemplate(): void
    {
        $this->booting('');
        $this->warmed('return 1;');
        self::waitUntil(self::haveSpares(...), 'It waits for its task.');
        $template = self::template();

        posix_kill($template, SIGKILL);

        self::waitUntil(static fn (): bool => self::templates() === [], 'The fork has ended, too.');
        self::assertSame(7, self::returned($this->ask('return 7;')));
    }
}
