<?php

/**
 * The least time of a warm call here, in milliseconds, as JSON. It is run in a container, and on the machine that the
 * containers are on.
 *
 *   php time.php <directory of applications> <calls>
 */

declare(strict_types=1);

use Altair\Eval\EvalRequest;
use Altair\Eval\Evaluator;

[, $applications, $calls] = $argv;
$evaluator = new Evaluator();
$request = new EvalRequest('return 6 * 7;', "$applications/shop", timeoutMs: 20000);
// The first call is cold, and the template boots after it.
for ($i = 0; $i < 20 && $evaluator->evaluate($request)->diagnostics['start'] !== 'warm'; $i++) {
    usleep(100_000);
}
$least = INF;
for ($call = 0; $call < (int) $calls; $call++) {
    // The next fork is made after a run, and waits for the next one.
    usleep(5000);
    $start = hrtime(true);
    $result = $evaluator->evaluate($request);
    $least = min($least, (hrtime(true) - $start) / 1e6);
    if ($result->diagnostics['start'] !== 'warm') {
        fwrite(STDERR, $result->diagnostics['start'] . ': ' . ($result->diagnostics['start_reason'] ?? 'no reason'));
        exit(1);
    }
}
echo json_encode(['least_ms' => $least], JSON_THROW_ON_ERROR);
