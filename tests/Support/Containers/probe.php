<?php

/**
 * What Altair Eval does for an application here: prints an answer to each question as JSON, `true` or why not. It is
 * run in a container, and on the machine that the containers are on.
 *
 *   php probe.php <directory of applications> <calls to time> <host and port of a database> [<the same, by name>]
 *
 * SHOP_USER and SHOP_PASSWORD are its account.
 */

declare(strict_types=1);

use Altair\Eval\EvalRequest;
use Altair\Eval\EvalResult;
use Altair\Eval\Evaluator;

[, $applications, $calls, $address] = $argv;
$name = $argv[4] ?? null;
$warm = new Evaluator();
$cold = new Evaluator(warm: false);

/** Why a run did not give what it should have. */
$reason = static function (EvalResult $result): string {
    $first = strtok((string) ($result->exception['message'] ?? $result->diagnostics['message'] ?? ''), "\n");

    return $first !== false ? $first : 'it returned ' . json_encode($result->result['value'] ?? null);
};
/** Whether a snippet returns a value. */
$is = static function (
    mixed $expected,
    Evaluator $by,
    string $snippet,
    string $in,
    ?array $services = null
) use (
    $applications,
    $reason
): bool|string {
    try {
        $request = new EvalRequest($snippet, "$applications/$in", timeoutMs: 20000, services: $services);
        $result = $by->evaluate($request);
    } catch (Throwable $e) {
        return strtok($e->getMessage(), "\n") ?: $e::class;
    }

    return $result->diagnostics['outcome'] === 'returned' && ($result->result['value'] ?? null) === $expected
        ? true : $reason($result);
};
/** Milliseconds that a call takes, the median. */
$time = static function (Evaluator $by) use ($is, $calls): float|string {
    $times = [];
    for ($call = 0; $call < (int) $calls; $call++) {
        $start = hrtime(true);
        $seen = $is(42, $by, 'return 6 * 7;', 'shop');
        if ($seen !== true) {
            return $seen;
        }
        $times[] = (hrtime(true) - $start) / 1e6;
    }
    sort($times);

    return round($times[intdiv((int) $calls, 2)], 2);
};
$query = static function (string $where) use ($is, $cold): bool|string {
    [$host, $port] = explode(':', $where);
    putenv('SHOP_DSN=' . "mysql:host=$host;port=$port;dbname=shop");

    return $is(
        2,
        $cold,
        '$shop = new PDO(getenv("SHOP_DSN"), getenv("SHOP_USER"), getenv("SHOP_PASSWORD"));
        return (int) $shop->query("SELECT COUNT(*) FROM users")->fetchColumn();',
        'shop',
        [$where],
    );
};
$starts = static function (string $in) use ($warm, $applications): bool|string {
    try {
        $result = $warm->evaluate(new EvalRequest('return 1;', "$applications/$in", timeoutMs: 20000));
    } catch (Throwable $e) {
        return strtok($e->getMessage(), "\n") ?: $e::class;
    }
    $start = $result->diagnostics['start'] ?? 'cold';

    return $start === 'warm' ? true : "$start: " . ($result->diagnostics['start_reason'] ?? 'no reason');
};

$symfony = 'return container(App\Greeter::class)->hello();';
$laravel = 'return container("greeting");';
/** Whether a second run gives a value, too, from the same boot. */
$again = static function (mixed $expected, string $snippet, string $in) use ($is, $warm, $starts): bool|string {
    foreach ([1, 2] as $time) {
        $seen = $is($expected, $warm, $snippet, $in);
        if ($seen !== true) {
            return "call $time: $seen";
        }
    }

    return $starts($in);
};

$answers = [
    'runs' => $is(42, $cold, 'return 6 * 7;', 'shop'),
    'layer' => $is(5, $cold, 'return @file_put_contents("new", "hello") ?: "not written";', 'shop'),
    'by_address' => $query($address),
    'by_name' => $name === null ? null : $query($name),
    'cold_ms' => $time($cold),
    'warm_ms' => $time($warm),
    'warm' => $starts('shop'),
    'symfony' => $is('hello', $cold, $symfony, 'symfony'),
    'symfony_warm' => $again('hello', $symfony, 'symfony'),
    'laravel' => $is('hello from unnamed', $cold, $laravel, 'laravel'),
    'laravel_warm' => $again('hello from unnamed', $laravel, 'laravel'),
];
unset($warm, $cold, $starts, $again);
$left = array_values(array_diff(scandir(sys_get_temp_dir()) ?: [], ['.', '..']));
/** The children of this process that have not been collected. */
$children = static function (): array {
    $found = [];
    foreach (glob('/proc/[1-9]*/status') ?: [] as $file) {
        if (preg_match('/^PPid:\s+' . getmypid() . '$/m', (string) @file_get_contents($file)) === 1) {
            $found[] = basename(dirname($file));
        }
    }

    return $found;
};
// A thread of the evaluator's collects its templates after it.
for ($end = microtime(true) + 5; $children() !== [] && microtime(true) < $end;) {
    usleep(5000);
}
echo json_encode($answers + ['left' => [...$left, ...$children()]], JSON_THROW_ON_ERROR | JSON_INVALID_UTF8_SUBSTITUTE);
