<?php

/**
 * Evaluates a snippet so many times with one warm evaluator, one after the other (`loop 1000`) or side by side
 * (`many 1000`), and writes how long all took.
 *
 *   throughput.php <snippet> <root>
 */

declare(strict_types=1);

use Altair\Eval\EvalRequest;
use Altair\Eval\EvalResult;
use Altair\Eval\Evaluator;

[, $snippet, $root] = $argv;
$evaluator = new Evaluator(warm: true);
$request = new EvalRequest($snippet, $root, EvalRequest::MAX_TIMEOUT_MS);

/** Adds one up that is what is to be measured. */
$isWarm = static fn (EvalResult $result): int => (int) ($result->ok() && $result->diagnostics['start'] === 'warm');

while (sscanf((string) fgets(STDIN), '%s %d', $how, $times) === 2) {
    $began = hrtime(true);
    $warm = 0;
    if ($how === 'loop') {
        for ($i = 0; $i < $times; ++$i) {
            $warm += $isWarm($evaluator->evaluate($request));
        }
    } else {
        foreach ($evaluator->evaluateMany(array_fill(0, $times, $request)) as $result) {
            $warm += $isWarm($result);
        }
    }
    fwrite(STDOUT, json_encode(['ms' => (hrtime(true) - $began) / 1e6, 'warm' => $warm]) . "\n");
}
