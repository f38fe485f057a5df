<?php

/**
 * What users have today: the same evaluation in plain PHP, with `proc_open`, a generated wrapper file and a
 * result file.
 */

declare(strict_types=1);

namespace Altair\Eval\Benches\Reference;

use RuntimeException;

/** Functions that the child goes without; the flag is all that such a runner has. */
const DISABLED = 'exec,shell_exec,passthru,system,proc_open,proc_close,proc_terminate,proc_nice,popen,pclose,'
    . 'pcntl_exec,assert,symlink,link,ini_set,ini_alter,ini_restore,putenv,mail,'
    . 'fsockopen,pfsockopen,stream_socket_client,curl_exec,curl_multi_exec';

/** Bytes that are kept of each stream. */
const OUTPUT_LIMIT = 16384;

/**
 * @return array{ok: bool, result: ?array, stdout: string, stderr: string, exception: ?array, exit_code: int,
 *     timed_out: bool}
 */
function evaluate(string $snippet, string $root, int $timeoutMs = 5000, int $memoryLimitMb = 128): array
{
    $base = sys_get_temp_dir() . '/eval-' . bin2hex(random_bytes(8));
    $wrapper = $base . '.php';
    $report = $base . '.json';
    file_put_contents($wrapper, wrap($snippet, $root, $report));
    try {
        $run = run(
            [
                PHP_BINARY,
                '-d', "memory_limit={$memoryLimitMb}M",
                '-d', 'open_basedir=' . $root . PATH_SEPARATOR . sys_get_temp_dir(),
                '-d', 'disable_functions=' . DISABLED,
                '-d', 'allow_url_fopen=0',
                $wrapper,
            ],
            $root,
            microtime(true) + $timeoutMs / 1000,
        );
        $reported = is_file($report) ? json_decode(file_get_contents($report), true) : null;
    } finally {
        @unlink($wrapper);
        @unlink($report);
    }
    $reported ??= ['result' => null, 'exception' => null];

    return [
        'ok' => $run['exit_code'] === 0 && !$run['timed_out'] && $reported['exception'] === null,
        ...$reported,
        ...$run,
    ];
}

function wrap(string $snippet, string $root, string $report): string
{
    $quote = static fn (string $value): string => var_export($value, true);

    // The encoder is part of the file: its own one would lie outside of `open_basedir`.
    return strtr(
        <<<'PHP'
            <?php
            require ROOT . '/vendor/autoload.php';
            function container(?string $id = null): mixed
            {
                static $container = null;
                $container ??= require ROOT . '/config/container.php';
                return $id === null ? $container : $container->get($id);
            }
            container();
            ENCODE
            $report = ['result' => null, 'exception' => null];
            try {
                $report['result'] = $encode((static function () { SNIPPET })());
            } catch (Throwable $e) {
                $report['exception'] = [
                    'class' => $e::class,
                    'message' => $e->getMessage(),
                    'file' => $e->getFile(),
                    'line' => $e->getLine(),
                ];
            }
            $flags = JSON_INVALID_UTF8_SUBSTITUTE | JSON_PARTIAL_OUTPUT_ON_ERROR;
            file_put_contents(REPORT, json_encode($report, $flags));
            exit($report['exception'] === null ? 0 : 1);
            PHP,
        ['ROOT' => $quote($root), 'REPORT' => $quote($report), 'SNIPPET' => $snippet, 'ENCODE' => encoder()],
    );
}

/** The encoder's code, to depth 3, as the native one's. */
function encoder(): string
{
    return <<<'PHP'
        $encode = static function (mixed $value, int $depth = 0) use (&$encode): array {
            $type = get_debug_type($value);
            if (is_scalar($value) || $value === null) {
                return ['type' => $type, 'value' => $value];
            }
            $members = is_array($value) ? $value : (is_object($value) ? get_object_vars($value) : []);
            $encoded = ['type' => is_object($value) ? 'object' : $type, 'class' => $type, 'count' => count($members)];
            if ($depth === 3) {
                return $encoded + ['truncated' => true];
            }
            return $encoded + ['value' => array_map(static fn ($member) => $encode($member, $depth + 1), $members)];
        };
        PHP;
}

/**
 * @param list<string> $command
 * @return array{stdout: string, stderr: string, exit_code: int, timed_out: bool}
 */
function run(array $command, string $directory, float $deadline): array
{
    $process = proc_open($command, [['file', '/dev/null', 'r'], ['pipe', 'w'], ['pipe', 'w']], $pipes, $directory)
        ?: throw new RuntimeException('The process could not be started.');
    $output = ['', ''];
    $open = [$pipes[1], $pipes[2]];
    $timedOut = false;
    foreach ($open as $pipe) {
        stream_set_blocking($pipe, false);
    }
    while ($open !== []) {
        $left = $deadline - microtime(true);
        if ($left <= 0) {
            proc_terminate($process, 9);
            $timedOut = true;
            break;
        }
        $readable = $open;
        $none = null;
        stream_select($readable, $none, $none, (int) $left, (int) (fmod($left, 1) * 1e6));
        foreach ($readable as $at => $pipe) {
            $chunk = (string) fread($pipe, 65536);
            $output[$at] = substr($output[$at] . $chunk, 0, OUTPUT_LIMIT);
            if ($chunk === '' && feof($pipe)) {
                unset($open[$at]);
            }
        }
    }
    array_map(fclose(...), [$pipes[1], $pipes[2]]);
    $exitCode = proc_close($process);

    return [
        'stdout' => $output[0],
        'stderr' => $output[1],
        'exit_code' => $timedOut ? 124 : $exitCode,
        'timed_out' => $timedOut,
    ];
}
