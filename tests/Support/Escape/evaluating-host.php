<?php

/**
 * A host: takes requests as lines of JSON, and answers with what is printed as it comes and with the result.
 *
 * Needs no autoloader, so that a user who may not read the checkout can run a copy of this one file.
 */

declare(strict_types=1);

use Altair\Eval\EvalRequest;
use Altair\Eval\Evaluator;

// What reaches the host stays pending, where the test sees it.
$signals = [SIGURG, SIGUSR1, SIGIO, SIGWINCH];
pcntl_sigprocmask(SIG_BLOCK, $signals);
$say = static function (array $what): void {
    $flags = JSON_INVALID_UTF8_SUBSTITUTE | JSON_PARTIAL_OUTPUT_ON_ERROR | JSON_PRESERVE_ZERO_FRACTION;
    fwrite(STDOUT, json_encode($what, $flags) . "\n");
};
$evaluator = new Evaluator(warm: false);
$say(['pid' => getmypid()]);
while (($line = fgets(STDIN)) !== false) {
    $request = json_decode($line, true, flags: JSON_THROW_ON_ERROR);
    $onOutput = static fn (string $stream, string $bytes) => $say([$stream => base64_encode($bytes)]);
    try {
        $answer = ['result' => $evaluator->evaluate(new EvalRequest(...$request), $onOutput)->toArray()];
    } catch (Throwable $thrown) {
        $answer = ['failure' => $thrown::class . ': ' . $thrown->getMessage()];
    }
    while (pcntl_sigtimedwait($signals, $information, 0, 0) > 0) {
        $answer['signals'][] = $information['signo'];
    }
    $say($answer);
}
