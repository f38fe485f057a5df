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

use Altair\Eval\Benches\Support\Comparison;
use Altair\Eval\Benches\Support\Host;
use Altair\Eval\Benches\Support\KilledHost;
use Altair\Eval\Benches\Support\Leaks;
use Altair\Eval\Benches\Support\Table;
use Altair\Eval\EvalRequest;
use Altair\Eval\Evaluator;
use Altair\Eval\Tests\Support\TemporaryApplication;
use RuntimeException;

require __DIR__ . '/Support/Comparison.php';
require __DIR__ . '/Support/Host.php';
require __DIR__ . '/Support/KilledHost.php';
require __DIR__ . '/Support/Leaks.php';
require __DIR__ . '/Support/Table.php';
require dirname(__DIR__) . '/tests/Support/Processes.php';
require dirname(__DIR__) . '/tests/Support/Footprint.php';
require dirname(__DIR__) . '/tests/Support/TemporaryApplication.php';

const SNIPPET = 'return 1 + 1;';
const MIB = 1 << 20;
/** Milliseconds for runs that are not to meet their deadline. */
const PATIENT = 60000;
/** The guards that can be left out. */
const GUARDS = ['environment', 'ini', 'limits', 'privileges', 'filesystem', 'landlock', 'seccomp'];
/** Files of the large project. */
const MANY_FILES = 100_000;

if (array_diff(array_slice($argv, 1), ['--quick']) !== [] || getenv('EXTENSION') === false) {
    fwrite(STDERR, "Usage: EXTENSION=<path> scripts/php.sh benches/bench.php [--quick], or `make bench`.\n");
    exit(2);
}
[$rounds, $evaluations, $badEvaluations] = $argc > 1 ? [20, 400, 160] : [60, 2000, 300];

/** Runs a command to its end, with as little around it as PHP has. */
function run(array $command): void
{
    $null = ['file', '/dev/null', 'r+'];
    $exitCode = proc_close(proc_open($command, [$null, $null, $null], $pipes));
    if ($exitCode !== 0) {
        throw new RuntimeException(implode(' ', $command) . " ended with $exitCode.");
    }
}

function expect(bool $holds, mixed $seen): void
{
    $holds || throw new RuntimeException('Not what is to be measured: ' . var_export($seen, true));
}

/**
 * The ini switches that a child is started with, but for those that load the extension and make it a child.
 *
 * @return list<string>
 */
function childSwitches(TemporaryApplication $application): array
{
    $code = 'return array_slice(explode("\0", rtrim(file_get_contents("/proc/self/cmdline"), "\0")), 1);';
    $result = (new Evaluator())->evaluate(new EvalRequest($code, $application->root, PATIENT, unsafe: true));
    expect($result->ok(), $result);
    $switches = [];
    foreach (array_chunk(array_column($result->result['value'], 'value'), 2) as [$option, $setting]) {
        if ($option === '-d' && preg_match('/^(extension|altair_eval\.\w+)=/', $setting) === 0) {
            array_push($switches, $option, $setting);
        }
    }

    return $switches;
}

$repository = dirname(__DIR__);
$shop = $repository . '/examples/shop';
// With a temporary directory inside, so that everything that is left behind is seen in one place.
$application = new TemporaryApplication(['tmp/.keep' => '']);
chmod($application->path('tmp'), 01777);
putenv('TMPDIR=' . $application->path('tmp'));
chdir($shop);
$began = hrtime(true);

// --- One evaluation ---------------------------------------------------------------------------

// Without guards: what is compared has none. What they cost has rows of its own.
$bare = new Host(SNIPPET, $shop, PATIENT, GUARDS);
$boot = "require '$shop/vendor/autoload.php'; require '$shop/config/container.php';";
$plain = [PHP_BINARY, ...childSwitches($application), '-r', $boot];
$today = new Host(SNIPPET, $shop, PATIENT, plain: true);
$comparisons = [
    [
        'cold evaluate(), guards off / php -r with the same boot',
        1.15,
        $bare->evaluate(...),
        static fn () => run($plain),
    ],
    ['cold evaluate(), guards off / the same in plain PHP', 1.0, $bare->evaluate(...), $today->evaluate(...)],
    [
        'bin/altair eval / php -r ""',
        2.2,
        static fn () => run([$repository . '/bin/altair', 'eval', SNIPPET]),
        static fn () => run([PHP_BINARY, '-r', '']),
    ],
];
$table = new Table();
foreach ($comparisons as [$name, $limit, $subject, $reference]) {
    $table->ratio($name, Comparison::of($subject, $reference, $rounds), $limit);
}

// --- The guards -------------------------------------------------------------------------------

$guarded = new Host(SNIPPET, $shop, PATIENT);
$all = Comparison::of($guarded->evaluate(...), $bare->evaluate(...), $rounds * 2);
$table->difference('all guards, cold evaluate()', $all, 3.0);
foreach (['filesystem', 'landlock', 'seccomp'] as $guard) {
    $one = new Host(SNIPPET, $shop, PATIENT, array_values(array_diff(GUARDS, [$guard])));
    $table->difference("$guard alone", Comparison::of($one->evaluate(...), $bare->evaluate(...), $rounds), 3.0);
}
$large = new TemporaryApplication();
for ($file = 0; $file < MANY_FILES; ++$file) {
    $directory = $large->path('data/' . intdiv($file, 1000));
    $file % 1000 === 0 && mkdir($directory, 0755, true);
    touch("$directory/$file");
}
$small = new TemporaryApplication();
[$inLarge, $inSmall] = [new Host(SNIPPET, $large->root, PATIENT), new Host(SNIPPET, $small->root, PATIENT)];
$size = Comparison::of($inLarge->evaluate(...), $inSmall->evaluate(...), $rounds * 2);
$table->difference('a project of ' . MANY_FILES . ' files rather than one', $size, 0.5);
unset($large, $small, $inLarge, $inSmall);
$table->longest(
    'the host is killed: nothing of its run is alive after',
    array_map(static fn (): float => KilledHost::untilAllIsGone($shop), range(1, 20)),
    100.0,
);

// --- Loading the extension --------------------------------------------------------------------

$seen = Comparison::of(
    static fn () => run([PHP_BINARY, '-n', '-d', 'extension=' . getenv('EXTENSION'), '-r', '']),
    static fn () => run([PHP_BINARY, '-n', '-r', '']),
    $rounds * 3,
);
$table->difference('loading the extension, php -n -r ""', $seen, 1.0);

// --- Many evaluations -------------------------------------------------------------------------

$cases = [
    "$evaluations evaluations" => [$evaluations, [[SNIPPET, 'returned', PATIENT]]],
    "$badEvaluations that time out, crash or flood" => [
        $badEvaluations,
        [
            ['for (;;);', 'timed_out', EvalRequest::MIN_TIMEOUT_MS],
            ['posix_kill(posix_getpid(), SIGSEGV);', 'signalled', PATIENT],
            ['for ($i = 0; $i < 64; ++$i) { echo str_repeat("x", 1 << 16); }', 'returned', PATIENT],
        ],
    ],
];
foreach ($cases as $name => [$times, $snippets]) {
    $leaks = Leaks::of($snippets, $application->root, $times, $application->root);
    $table->bytes("$name: memory grown by, after " . Leaks::WARM_UP, $leaks->growthBytes, MIB);
    $table->count("$name: left behind", $leaks->left);
}

// ----------------------------------------------------------------------------------------------

echo $table->render();
// By turns or not: on a busy machine what takes more processes waits more often.
[$load] = sys_getloadavg();
$cores = substr_count((string) file_get_contents('/proc/cpuinfo'), "processor\t");
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
    'rounds' => $rounds,
    'seconds' => round((hrtime(true) - $began) / 1e9, 1),
]));
exit($table->passes() ? 0 : 1);
