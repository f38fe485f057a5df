<?php

/**
 * What an evaluation costs, against plain PHP in the same run. `make bench` runs it.
 *
 *   bench.php [--quick]
 *
 * Prints a table of medians and writes results.json next to this file. Exit code 1 when a limit is missed.
 */

declare(strict_types=1);

namespace Altair\Eval\Benches;

use Altair\Eval\Benches\Rows\Cold;
use Altair\Eval\Benches\Rows\Commands;
use Altair\Eval\Benches\Rows\Databases;
use Altair\Eval\Benches\Rows\Freshness;
use Altair\Eval\Benches\Rows\Guards;
use Altair\Eval\Benches\Rows\Hints;
use Altair\Eval\Benches\Rows\LongRuns;
use Altair\Eval\Benches\Rows\Mcp;
use Altair\Eval\Benches\Rows\Redaction;
use Altair\Eval\Benches\Rows\Runtimes;
use Altair\Eval\Benches\Rows\Sandboxes;
use Altair\Eval\Benches\Rows\Services;
use Altair\Eval\Benches\Rows\SharedPool;
use Altair\Eval\Benches\Rows\Spares;
use Altair\Eval\Benches\Rows\Throughput;
use Altair\Eval\Benches\Rows\Warm;
use Altair\Eval\Benches\Support\Setting;
use Altair\Eval\Benches\Support\Table;

require __DIR__ . '/autoload.php';

if (array_diff(array_slice($argv, 1), ['--quick']) !== [] || getenv('EXTENSION') === false) {
    fwrite(STDERR, "Usage: EXTENSION=<path> scripts/php.sh benches/bench.php [--quick], or `make bench`.\n");
    exit(2);
}

$began = hrtime(true);
$setting = new Setting(quick: $argc > 1);
putenv('TMPDIR=' . $setting->application->path('tmp'));
// What is measured has its own templates (scripts/php.sh), also in what this process starts. Rows of the pool ask one
// of theirs.
putenv('ALTAIR_EVAL_POOL=off');
chdir($setting->shop);
$table = new Table();

Cold::measure($setting, $table);
Commands::measure($setting, $table);
Guards::measure($setting, $table);
$evaluation = Warm::measure($setting, $table);
Spares::measure($setting, $table);
SharedPool::measure($setting, $table);
Freshness::measure($setting, $table);
Mcp::measure($setting, $table);
Redaction::measure($setting, $table);
Hints::measure($setting, $table);
Services::measure($setting, $table);
Sandboxes::measure($setting, $table);
Runtimes::measure($setting, $table);
Databases::measure($setting, $table);
Throughput::measure($setting, $table);
LongRuns::measure($setting, $table);

echo $table->render();
// By turns or not: on a busy machine what takes more processes waits more often.
[$load] = sys_getloadavg();
$machine = (string) file_get_contents('/proc/cpuinfo');
$cores = substr_count($machine, "processor\t");
if ($load > $cores) {
    printf("The machine was busy (load %.1f on %d cores): take the figures on an idle one.\n", $load, $cores);
}
file_put_contents(__DIR__ . '/results.json', $table->json([
    'taken_at' => date(DATE_ATOM),
    'php' => PHP_VERSION,
    'kernel' => php_uname('r'),
    'machine' => php_uname('m'),
    'cores' => $cores,
    'load' => $load,
    'rounds' => $setting->rounds,
    'seconds' => round((hrtime(true) - $began) / 1e9, 1),
    'evaluation_ms' => $evaluation,
]));
exit($table->passes() ? 0 : 1);
