<?php

/**
 * Evaluates a snippet as often as the line that it reads says, with a pause before each in which the next fork gets
 * ready, and writes how long each took. For the line `let go` it lets its evaluator and the template go.
 *
 *   pauses.php <snippet> <root> [<microseconds of a pause>]
 */

declare(strict_types=1);

use Altair\Eval\EvalRequest;
use Altair\Eval\Evaluator;

/** Microseconds, unless another pause is named. */
const PAUSE = 3000;

/** Microseconds in which a template boots. */
const BOOTS = 200_000;

[, $snippet, $root] = $argv;
$pause = (int) ($argv[3] ?? PAUSE);
$evaluator = new Evaluator();
$request = new EvalRequest($snippet, $root, EvalRequest::MAX_TIMEOUT_MS);
// The first one is cold, and the template boots after it.
while ($evaluator->evaluate($request)->diagnostics['start'] !== 'warm') {
    usleep(BOOTS);
}

while (($line = fgets(STDIN)) !== false) {
    $ms = [];
    for ($i = (int) $line; $i > 0; --$i) {
        usleep($pause);
        $began = hrtime(true);
        $result = $evaluator->evaluate($request);
        $ms[] = (hrtime(true) - $began) / 1e6;
        $result->diagnostics['start'] === 'warm' || throw new RuntimeException(json_encode($result->diagnostics));
    }
    if ($line === "let go\n") {
        $began = hrtime(true);
        $evaluator = null;
        $ms = (hrtime(true) - $began) / 1e6;
    }
    fwrite(STDOUT, json_encode(['ms' => $ms]) . "\n");
}
