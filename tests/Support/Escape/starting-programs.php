<?php

/**
 * Tries every way that PHP code has to start a program, and returns what became of each.
 *
 * A program that is started without guards connects to the test and says the name of its way. `$place` is a directory
 * with such programs (`bin/<name>`), and `$port` where the test listens.
 */

declare(strict_types=1);

use Altair\Eval\EvalRequest;
use Altair\Eval\Evaluator;
use Altair\Eval\Runner\SubprocessRunner;
use Altair\Eval\Support\CommandLine;
use Altair\Sandbox\Config\ExecutionPolicy;
use Altair\Sandbox\Runtime;
use Altair\Sandbox\Sandbox;

// What is disabled can be declared again, and is not PHP's own then.
if (!function_exists('proc_open')) {
    eval('function proc_open() {}');
}

return static function (string $place, int $port): array {
    $project = "$place/project";
    $program = static fn (string $name): string => "$place/bin/$name";
    $say = static fn (string $name): string
        => "fwrite(stream_socket_client('tcp://127.0.0.1:$port'), '$name'); return 1;";
    $request = static fn (string $snippet, bool $unsafe = false): EvalRequest
        => new EvalRequest($snippet, $project, 60000, unsafe: $unsafe);
    $evaluate = static fn (string $snippet, mixed ...$options): mixed
        => (new Evaluator(...$options))->evaluate($request($snippet))->result['value'] ?? null;
    $many = static fn (EvalRequest $one): mixed
        => iterator_to_array((new Evaluator(warm: false))->evaluateMany([$one], 1))[0]->result['value'] ?? null;
    $policy = ExecutionPolicy::in("$place/base")->withTimeout(60);
    $put = static function (array $variables, callable $what): mixed {
        $set = static fn (string|false $value, string $name): bool
            => putenv($value === false ? $name : "$name=$value");
        $before = array_map(getenv(...), array_combine(array_keys($variables), array_keys($variables)));
        array_walk($variables, $set);
        try {
            return $what();
        } finally {
            array_walk($before, $set);
        }
    };
    // The second call of a host without a pool starts one.
    $askForAPool = static fn (): mixed => [$evaluate('return 1;'), $evaluate('return 1;')];

    $ways = [
        // Confined.
        'evaluation' => static fn (): mixed => $evaluate('return 1 + 1;', warm: false),
        'evaluateMany' => static fn (): mixed => $many($request('return 1 + 1;')),
        'runtime' => static fn (): mixed => (new Runtime(root: $project))->enter(static fn (): int => 1 + 1),
        'native' => static fn (): mixed => (int) Sandbox::native($policy)->execute(['echo', '2'])->stdout(),
        'the own PHP by its path' => static fn (): mixed
            => $evaluate('return 1 + 1;', phpBinary: realpath(PHP_BINDIR . '/php'), warm: false),

        // Not confined.
        'SubprocessRunner' => static fn (): mixed
            => (new SubprocessRunner())->run([$program('SubprocessRunner')], null, [], 60000)->exitCode,
        'unsafe' => static fn (): mixed => (new Evaluator())->evaluate($request($say('unsafe'), true))->exitCode,
        'unsafe, many' => static fn (): mixed => $many($request($say('unsafe, many'), true)),
        'unsafe runtime' => static fn (): mixed => Runtime::fromRequest($request('', true))->enter(
            static fn (int $port): mixed => fwrite(stream_socket_client("tcp://127.0.0.1:$port"), 'unsafe runtime'),
            [$port],
        ),
        'unguarded runtime' => static fn (): mixed => (new Runtime(guarded: false, root: $project))->enter(
            static fn (int $port): mixed => fwrite(stream_socket_client("tcp://127.0.0.1:$port"), 'unguarded runtime'),
            [$port],
        ),
        'phpBinary' => static fn (): mixed => $evaluate('return 1;', phpBinary: $program('phpBinary'), warm: false),
        'phpBinary, by the pool' => static fn (): mixed
            => $evaluate('return 1;', phpBinary: $program('phpBinary, by the pool'), warm: true),
        'host' => static fn (): mixed => Sandbox::host($policy)->execute([$program('host')])->exitCode(),
        'command line' => static fn (): mixed => [
            chdir("$place/base"), CommandLine::run(['run', '--driver=host', '--', $program('command line')]),
        ],
        'docker of the start' => static fn (): mixed => Sandbox::docker($policy)->execute(['true'])->exitCode(),
    ];
    foreach (['docker', 'podman', 'firejail', 'bubblewrap'] as $driver) {
        $ways[$driver] = static fn (): mixed
            => Sandbox::$driver($policy, ...["{$driver}Bin" => $program($driver)])->execute(['true'])->exitCode();
    }

    // What is named at run time, and never decides about a program.
    $ways += [
        'PATH, docker' => static fn (): mixed => $put(
            ['PATH' => "$place/path"],
            static fn (): mixed => Sandbox::docker($policy)->execute(['true'])->exitCode(),
        ),
        'DOCKER_BIN' => static fn (): mixed => $put(
            ['DOCKER_BIN' => $program('DOCKER_BIN')],
            static fn (): mixed => Sandbox::docker($policy)->execute(['true'])->exitCode(),
        ),
        'PATH, a command' => static fn (): mixed => $put(
            ['PATH' => "$place/path"],
            static fn (): mixed => (new SubprocessRunner())->run(['a-tool-of-the-test'], null, [], 60000)->exitCode,
        ),
        'PATH, php' => static fn (): mixed => $put(
            ['PATH' => "$place/path"],
            static fn (): mixed => $evaluate('return 1;', warm: false),
        ),
        'PATH, the pool' => static fn (): mixed => $put(['PATH' => "$place/path"], $askForAPool),
        'LD_PRELOAD, the pool' => static fn (): mixed => $put(
            ['LD_PRELOAD' => "$project/says.so", 'ALTAIR_TEST_SAY' => "$port LD_PRELOAD, the pool"],
            $askForAPool,
        ),
        'ALTAIR_EVAL_POOL' => static fn (): mixed
            => $put(['ALTAIR_EVAL_POOL' => $program('ALTAIR_EVAL_POOL')], $askForAPool),
        'altair_eval.pool' => static fn (): mixed
            => [ini_set('altair_eval.pool', $program('altair_eval.pool')), $askForAPool()],
        'altair_eval.programs' => static fn (): mixed => ini_set('altair_eval.programs', 'all'),
    ];
    // What the start of PHP would load before the guards.
    $loaded = static fn (string $name, array $ini): mixed => $put(
        ['ALTAIR_TEST_SAY' => "$port $name"],
        static fn (): mixed => (new Runtime($ini, root: $project))->enter(static fn (): int => 1),
    );
    $ways += [
        'OPENSSL_CONF' => static fn (): mixed => $put(
            ['OPENSSL_CONF' => "$project/openssl.cnf", 'ALTAIR_TEST_SAY' => "$port OPENSSL_CONF"],
            static fn (): mixed => $evaluate('return 1;', warm: false),
        ),
        'extension_dir' => static fn (): mixed => $loaded('extension_dir', ['extension_dir' => "$project/extensions"]),
        'ffi.preload' => static fn (): mixed
            => $loaded('ffi.preload', ['ffi.enable' => 'preload', 'ffi.preload' => "$project/says.h"]),
        'opcache.preload' => static fn (): mixed => $loaded('opcache.preload', [
            'opcache.enable' => '1', 'opcache.enable_cli' => '1', 'opcache.preload' => "$project/says.php",
        ]),
    ];

    $became = [];
    foreach ($ways as $name => $way) {
        try {
            $became[$name] = ['gives' => $way()];
        } catch (Throwable $thrown) {
            $became[$name] = ['throws' => $thrown::class, 'message' => $thrown->getMessage()];
        }
    }

    return $became;
};
