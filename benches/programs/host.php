<?php

/**
 * Evaluates a snippet as often as the line that it reads says, and writes how long each time took, and boot in it.
 *
 *   host.php <way> <snippet> <root>
 */

declare(strict_types=1);

use Altair\Eval\Benches\Reference;
use Altair\Eval\Benches\Support\Way;
use Altair\Eval\EvalRequest;
use Altair\Eval\EvalResult;
use Altair\Eval\Evaluator;
use Altair\Eval\Tests\Support\Processes;

require dirname(__DIR__) . '/autoload.php';
require dirname(__DIR__) . '/reference/evaluate.php';

[, $way, $snippet, $root] = $argv;
$way = Way::from($way);
$timeoutMs = EvalRequest::MAX_TIMEOUT_MS;
$request = new EvalRequest($snippet, $root, $timeoutMs);
$evaluator = $way === Way::Plain ? null : new Evaluator(warm: $way === Way::Warm);

// The first runs are not warm: one is cold, one boots, and files as new as this very moment are not yet trusted.
for ($i = 0; $way === Way::Warm && $i < 5; ++$i) {
    if (($evaluator->evaluate($request)->diagnostics['start'] ?? null) === $way->value) {
        break;
    }
}

/** Whatever the evaluator that is gone had made is gone, too. */
$alone = static function (): void {
    for ($i = 0; Processes::children() !== []; ++$i) {
        $i < 10_000 || throw new RuntimeException('A child of an evaluator outlives it.');
        usleep(1000);
    }
};

while (($line = fgets(STDIN)) !== false) {
    $answer = ['ok' => true, 'starts' => [], 'guards' => [], 'ms' => [], 'boot_ms' => []];
    for ($i = (int) $line; $i > 0; --$i) {
        $began = hrtime(true);
        if ($way === Way::First) {
            $evaluator = new Evaluator(warm: true);
        }
        $result = match ($way) {
            Way::Plain => Reference\evaluate($snippet, $root, $timeoutMs),
            // A call alone would start cold, and its template boot after the answer.
            Way::First => iterator_to_array($evaluator->evaluateMany((static fn () => yield $request)(), 1))[0],
            Way::Cold, Way::Warm => $evaluator->evaluate($request),
        };
        $answer['ms'][] = (hrtime(true) - $began) / 1e6;
        if ($result instanceof EvalResult) {
            $answer['ok'] = $answer['ok'] && $result->ok();
            $answer['starts'][$result->diagnostics['start'] ?? 'unknown'] = true;
            $answer['guards'] = $result->diagnostics['guards'];
            $answer['boot_ms'][] = $result->diagnostics['timings_ms']['boot'] ?? null;
        } else {
            $answer['ok'] = $answer['ok'] && $result['ok'];
            $answer['starts'][$way->value] = true;
            $answer['guards'] = ['deadline' => 'in force'];
        }
        if ($way === Way::First) {
            $evaluator = null;
            $alone();
        }
    }
    $answer['starts'] = array_keys($answer['starts']);
    fwrite(STDOUT, json_encode($answer) . "\n");
}
