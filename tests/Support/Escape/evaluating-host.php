<?php

/**
 * A host: takes requests as lines of JSON, and answers with what is printed as it comes and with the result.
 *
 * `start` of a request says whether it is made cold, which is the default, or warm. Requests as `many` are made side by
 * side, warm, at most `atATime`; each of the next `more` lines is one more, and its number its key. Each result is
 * answered as it comes.
 *
 * `entry` as a start enters it in an isolated PHP of its own instead, which is that of an application only where there
 * are options that no other takes.
 *
 * Needs no autoloader, so that a user who may not read the checkout can run a copy of this one file.
 */

declare(strict_types=1);

use Altair\Eval\EvalRequest;
use Altair\Eval\Evaluator;
use Altair\Sandbox\Runtime;

// What reaches the host stays pending, where the test sees it.
$signals = [SIGURG, SIGUSR1, SIGIO, SIGWINCH];
pcntl_sigprocmask(SIG_BLOCK, $signals);
$say = static function (array $what): void {
    $flags = JSON_INVALID_UTF8_SUBSTITUTE | JSON_PARTIAL_OUTPUT_ON_ERROR | JSON_PRESERVE_ZERO_FRACTION;
    fwrite(STDOUT, json_encode($what, $flags) . "\n");
};
$evaluators = ['cold' => new Evaluator(warm: false), 'warm' => new Evaluator(warm: true)];
$many = static function (array $asked) use ($evaluators, $say): array {
    $requests = static function () use ($asked): Generator {
        foreach ($asked['many'] as $request) {
            yield new EvalRequest(...$request);
        }
        for ($more = $asked['more'] ?? 0; $more > 0; $more--) {
            yield new EvalRequest(...json_decode((string) fgets(STDIN), true, flags: JSON_THROW_ON_ERROR));
        }
    };
    foreach ($evaluators['warm']->evaluateMany($requests(), $asked['atATime']) as $key => $result) {
        $say(['key' => $key, 'of' => $result->toArray(verbose: true)]);
    }

    return ['result' => null];
};
// A runtime starts cold here: else what it leaves behind would be taken for its template.
ini_set('altair_eval.warm', '0');
$enter = static function (array $asked) use ($say): array {
    ['snippet' => $snippet, 'timeoutMs' => $timeout, 'projectRoot' => $root] = $asked;
    $options = array_diff_key($asked, ['snippet' => 1, 'timeoutMs' => 1, 'projectRoot' => 1, 'unsafe' => 1]);
    ob_start(static function (string $bytes) use ($say): string {
        $bytes === '' || $say(['out' => base64_encode($bytes)]);

        return '';
    }, 1);
    try {
        $runtime = $options === []
            ? new Runtime(guarded: !($asked['unsafe'] ?? false), root: $root)
            : Runtime::fromRequest(new EvalRequest(...['snippet' => ''] + $asked));
        $value = $runtime->enter(static fn (string $snippet): mixed => eval($snippet), [$snippet], $timeout);
        $outcome = 'returned';
    } catch (Altair\Sandbox\Exception $thrown) {
        [$value, $outcome] = [$thrown->getMessage(), 'threw'];
    } finally {
        unset($runtime);
        ob_end_clean();
    }

    return ['result' => ['result' => $value, 'diagnostics' => ['start' => 'entry', 'outcome' => $outcome]]];
};
$say(['pid' => getmypid()]);
while (($line = fgets(STDIN)) !== false) {
    $request = json_decode($line, true, flags: JSON_THROW_ON_ERROR);
    $onOutput = static fn (string $stream, string $bytes) => $say([$stream => base64_encode($bytes)]);
    $start = $request['start'] ?? 'cold';
    unset($request['start']);
    try {
        $answer = match (true) {
            isset($request['many']) => $many($request),
            $start === 'entry' => $enter($request),
            default => ['result' => $evaluators[$start]->evaluate(new EvalRequest(...$request), $onOutput)
                ->toArray(verbose: true)],
        };
    } catch (Throwable $thrown) {
        $answer = ['failure' => $thrown::class . ': ' . $thrown->getMessage()];
    }
    while (pcntl_sigtimedwait($signals, $information, 0, 1) > 0) {
        $answer['signals'][] = $information['signo'];
    }
    $say($answer);
}
