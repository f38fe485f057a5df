<?php

/**
 * One evaluation whose child runs under Valgrind: the binary that is given wraps it. Without arguments: the names.
 *
 *   php -d extension=… child.php [<application> <wrapper> <name> [<number>]]
 */

declare(strict_types=1);

use Altair\Eval\EvalRequest;
use Altair\Eval\Evaluator;

// Everything that a snippet can make the extension do, so many times.
$often = <<<'PHP'
    $keep = [];
    $refused = shell_exec(...);
    for ($i = 0; $i < NUMBER; ++$i) {
        $keep[] = container(Shop\UserRepository::class);
        try {
            container('missing');
        } catch (Throwable) {
        }
        foreach ([$refused, 'ini_set', 'passthru'] as $function) {
            try {
                $function('x', 'y');
            } catch (Throwable) {
            }
        }
        try {
            eval('1;');
        } catch (Throwable) {
        }
        Altair\Eval\Encoder\ValueEncoder::encode([container(Shop\Catalog::class)->tree(), "\xff", new DateTime()]);
        Altair\Eval\Encoder\ExceptionEncoder::encode(new RuntimeException('outer', 0, new LogicException('inner')));
        Altair\Eval\Support\Json::encode(['x' => $i]);
        echo str_repeat('x', 100);
        trigger_error('mind', E_USER_WARNING);
    }
    PHP;

$cases = [
    'value' => ['return container(Shop\Catalog::class)->tree();', 'returned'],
    'exception' => ['throw new RuntimeException("outer", 3, new LogicException("inner"));', 'threw'],
    'parse-error' => ['this is not PHP', 'threw'],
    'exit' => ['register_shutdown_function(static fn () => exit(4)); exit(3);', 'exited'],
    'fatal' => ['function f() { trigger_error("enough", E_USER_ERROR); } f();', 'fatal'],
    'compile-error' => ['function strlen() {}', 'fatal'],
    'hard-cap' => ['for ($all = [];; ) { $all[] = str_repeat("x", 1 << 20); }', 'out_of_memory'],
    'deadline' => ['function f() { for (;;); } f();', 'timed_out', 'timeoutMs' => 30000],
    'destructor' => ['return new class { public function __destruct() { throw new Exception("late"); } };', 'threw'],
    'encoding' => [
        'return new class { public function __debugInfo() { throw new Exception("no"); } };',
        'returned',
    ],
    'no-boot' => ['return 1;', 'boot_failed', 'bootstrap' => 'vendor/autoload.php'],
    'unsafe' => ['return shell_exec("echo hello");', 'returned', 'unsafe' => true],
    'many-times' => [$often, 'returned'],
];

if ($argc === 1) {
    echo implode("\n", array_diff(array_keys($cases), ['many-times'])), "\n";
    exit(0);
}

[, $root, $wrapper, $name] = $argv;
$case = $cases[$name];
$options = array_filter($case, is_string(...), ARRAY_FILTER_USE_KEY);
$request = new EvalRequest(
    strtr($case[0], ['NUMBER' => $argv[4] ?? '']),
    $root,
    // Valgrind needs room of its own, and time.
    ...($options + ['timeoutMs' => 60000, 'memoryLimitMb' => 512]),
);
$result = (new Evaluator(phpBinary: $wrapper))->evaluate($request);
printf("child, %s: %s\n", $name, $result->diagnostics['outcome']);
if ($result->diagnostics['outcome'] !== $case[1]) {
    fwrite(STDERR, 'Not as expected: ' . var_export($result->toArray(), true) . "\n");
    exit(1);
}
