<?php

/**
 * A host under Valgrind: so many evaluations of every outcome, and all else that the extension does in a host.
 *
 *   php -d extension=… host.php <application> <php> <number of evaluations>
 */

declare(strict_types=1);

use Altair\Eval\Encoder\ExceptionEncoder;
use Altair\Eval\Encoder\ValueEncoder;
use Altair\Eval\EvalRequest;
use Altair\Eval\EvalResult;
use Altair\Eval\Evaluator;
use Altair\Eval\Exception\EvalException;
use Altair\Eval\Runner\SecurityProfile;
use Altair\Eval\Runner\SubprocessRunner;
use Altair\Eval\Support\Json;

[, $root, $php, $number] = $argv;

$cases = [
    ['return container(Shop\Catalog::class)->tree();', 'returned'],
    ['throw new RuntimeException("outer", 3, new LogicException("inner"));', 'threw'],
    ['exit(3);', 'exited'],
    ['trigger_error("enough", E_USER_ERROR);', 'fatal'],
    ['return str_repeat("x", 1 << 28);', 'out_of_memory'],
    ['for (;;);', 'timed_out', 'timeoutMs' => 1000],
    ['posix_kill(posix_getpid(), SIGKILL);', 'signalled', 'unsafe' => true],
    ['echo str_repeat("x", 1 << 20), "\xff"; fwrite(STDERR, "y"); return "\xff";', 'returned'],
    ['this is not PHP', 'threw'],
    ['return 1;', 'boot_failed', 'bootstrap' => 'vendor/autoload.php'],
];

$check = static function (bool $holds, mixed $seen): void {
    if (!$holds) {
        fwrite(STDERR, 'Not as expected: ' . var_export($seen, true) . "\n");
        exit(1);
    }
};

$request = static function (array $case) use ($root): EvalRequest {
    $options = array_filter($case, is_string(...), ARRAY_FILTER_USE_KEY);

    return new EvalRequest($case[0], $root, ...($options + ['timeoutMs' => 60000]));
};

$expect = static function (array $case, EvalResult $result) use ($check): void {
    $check($result->diagnostics['outcome'] === $case[1], $result->toArray());
    Json::encode($result->toArray());
};

// What an application does beside evaluating, on each round.
$others = static function () use ($root, $check): void {
    ValueEncoder::encode([1.5, "\xff", new ArrayIterator([1, 2]), static fn () => 1, new DateTimeImmutable(), STDERR]);
    ExceptionEncoder::encode(new RuntimeException('outer', 0, new LogicException('inner')));
    $profile = new SecurityProfile(new EvalRequest('return 1;', $root));
    $profile->phpFlags($root);
    $profile->envVars();
    $ran = (new SubprocessRunner())->run(['/bin/echo', 'hello'], null, ['A' => 'b'], 60000);
    $check($ran->stdout === "hello\n", $ran);
    $ran = (new SubprocessRunner())->run(['/nonexistent'], null, [], 60000);
    $check($ran->exitCode === 127, $ran);
    foreach (['', '/nonexistent'] as $bad) {
        try {
            (new Evaluator(phpBinary: $bad))->evaluate(new EvalRequest($bad === '' ? '' : 'return 1;', $root));
            $check(false, $bad);
        } catch (EvalException $exception) {
            ExceptionEncoder::encode($exception);
        }
    }
    $copy = clone new EvalRequest('return 1;', $root);
    try {
        $copy->snippet = 'other';
        $check(false, $copy);
    } catch (Error) {
    }
};

$evaluator = new Evaluator(phpBinary: $php);
for ($done = 0; $done < (int) $number; $done += count($cases)) {
    foreach ($cases as $at => $case) {
        // By turns alone, watched, and watched by a callback that throws.
        if ($at % 2 === 0) {
            $expect($case, $evaluator->evaluate($request($case)));
            continue;
        }
        $expect($case, $evaluator->evaluate($request($case), static function (string $type, string $chunk): void {
        }));
    }
    try {
        $evaluator->evaluate($request(['echo 1; sleep(50);']), static fn () => throw new DomainException('enough'));
        $check(false, 'the callback threw');
    } catch (DomainException) {
    }
    foreach ($evaluator->evaluateMany(array_map($request, [$cases[0], $cases[1]])) as $at => $result) {
        $expect($cases[$at], $result);
    }
    foreach ($evaluator->evaluateMany(array_map($request, [$cases[0], ['sleep(50);']])) as $result) {
        break;
    }
    unset($result);
    $others();
}
