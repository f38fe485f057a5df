<?php

/**
 * Has eight processes ask one pool at once, and looks whether each answer is its caller's, what the pool holds after a
 * fifth of the calls and after all of them, and what is left when it has ended. `make pool-load` runs it.
 *
 *   EXTENSION=<absolute path of libaltair_eval.so> scripts/php.sh scripts/pool-load.php [<calls>]
 */

declare(strict_types=1);

use Altair\Eval\Tests\Support\PoolLoad;
use Altair\Eval\Tests\Support\PoolProcess;
use Altair\Eval\Tests\Support\Processes;
use Altair\Eval\Tests\Support\TemporaryApplication;

require dirname(__DIR__) . '/tests/bootstrap.php';

/** What the pool may hold more after all calls, by the names of {@see PoolLoad::held()}. */
const MORE = ['descriptors' => 0, 'threads' => 0, 'processes' => 0, 'kilobytes' => 1024];

$calls = max(5 * PoolLoad::CALLERS, (int) ($argv[1] ?? 10_000));
$mark = bin2hex(random_bytes(12));
$temporary = new TemporaryApplication();
$empty = $temporary->tree();
putenv("ALTAIR_TEST_MARK=$mark");
putenv("TMPDIR=$temporary->root");

$pool = new PoolProcess();
$pid = $pool->start();
$load = new PoolLoad($pool, new TemporaryApplication(['seen.php' => '']));
$began = hrtime(true);
$held = [];
foreach ([intdiv($calls, 5), $calls - intdiv($calls, 5)] as $times) {
    $since = hrtime(true);
    $starts = $load->call($times);
    $seconds = (hrtime(true) - $since) / 1e9;
    $held[] = $load->held();
    $list = static fn (array $named): string => implode(', ', array_map(
        static fn (string $name, int $number): string => "$number $name",
        array_keys($named),
        $named,
    ));
    printf("%s calls in %.1f s: %s. The pool holds %s.\n", array_sum($starts), $seconds, $list($starts), $list(end($held)));
    foreach (array_diff_key($starts, ['warm' => 0]) as $how => $number) {
        $wrong[] = count($held) === 1 && "$number $how" === '1 first' ? null : "$number calls started $how";
    }
}
foreach (MORE as $what => $most) {
    $more = $held[1][$what] - $held[0][$what];
    $wrong[] = $more > $most ? "the pool holds $more $what more" : null;
}
$wrong[] = $pool->pid() !== $pid ? 'it is another pool' : null;
$pool->altair(['pool', '--stop']);
try {
    $pool->await(static fn (): bool => Processes::startedWith($mark) === []);
} catch (RuntimeException) {
    $wrong[] = 'left: ' . implode(', ', Processes::startedWith($mark));
}
$left = array_diff($temporary->tree(), $empty);
$wrong[] = $left !== [] ? 'left in the temporary directory: ' . implode(', ', $left) : null;
$left = glob("$pool->directory/altair/*") ?: [];
$wrong[] = $left !== [] ? 'left of the pool: ' . implode(', ', $left) : null;

$wrong = array_filter($wrong);
echo $wrong === [] ? "All answers are right, and nothing is left.\n" : 'WRONG: ' . implode('; ', $wrong) . "\n";
exit($wrong === [] ? 0 : 1);
