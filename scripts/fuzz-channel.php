<?php

/**
 * Has native code in snippets say whatever comes to its mind on the channel, and looks how the host takes it.
 *
 *   EXTENSION=<absolute path of libaltair_eval.so> scripts/php.sh scripts/fuzz-channel.php [<seconds> [<first seed>]]
 *
 * Each evaluation has a seed, one more than the one before. With 0 seconds it is that of the seed alone, with what the
 * snippet did.
 */

declare(strict_types=1);

use Altair\Eval\EvalRequest;
use Altair\Eval\Evaluator;
use Altair\Eval\Tests\Support\Forgery\ForgingApplication;
use Altair\Eval\Tests\Support\Processes;
use Altair\Eval\Tests\Support\TemporaryApplication;

require dirname(__DIR__) . '/tests/bootstrap.php';

const DEADLINE_MS = 500;
const TIME_BEYOND_MS = 200;
const MEMORY_BEYOND_KB = 64 * 1024;
const HOST_MEMORY = '128M';
const OUTCOMES = [
    'returned', 'threw', 'exited', 'fatal', 'out_of_memory', 'timed_out', 'signalled', 'boot_failed', 'no_report',
];
/** Seconds in which a host answers, or is taken to hang. */
const PATIENCE = 60;
/** Bytes of what a snippet did that are shown of a failure. */
const SHOWN = 2000;

if (($argv[1] ?? '') === 'host') {
    host($argv[2]);
    exit(0);
}
exit(fuzz((int) ($argv[1] ?? 600), (int) ($argv[2] ?? random_int(1, 1 << 30))));

/** A host: answers each seed, a line, with what came of it, a line. */
function host(string $root): void
{
    $evaluators = ['cold' => new Evaluator(warm: false), 'warm' => new Evaluator(warm: true)];
    $printed = '';
    $onOutput = static function (string $stream, string $bytes) use (&$printed): void {
        $printed .= $stream === 'out' ? substr($bytes, 0, max(0, SHOWN - strlen($printed))) : '';
    };
    $evaluate = static fn (string $start, string $snippet, int $timeoutMs): array
        => $evaluators[$start]->evaluate(new EvalRequest($snippet, $root, $timeoutMs), $onOutput)->toArray(verbose: true);
    $honest = [];
    foreach (array_keys($evaluators) as $start) {
        // Until a template is kept; see WarmTestCase.
        for ($call = 0; $call < 6; $call++) {
            $honest[$start] = $evaluate($start, 'return 1;', 60000)['diagnostics']['guards'];
        }
    }
    while (($line = fgets(STDIN)) !== false) {
        $seed = (int) $line;
        $start = ['cold', 'warm'][$seed % 2];
        $printed = '';
        file_put_contents('/proc/self/clear_refs', '5'); // the peak begins anew (proc(5))
        $before = (int) Processes::status((int) getmypid())['VmRSS'];
        $began = hrtime(true);
        try {
            $result = $evaluate($start, "return (new Mischief($seed, wire()))->run();", DEADLINE_MS);
            $answer = [
                'ms' => (hrtime(true) - $began) / 1e6,
                'outcome' => $result['diagnostics']['outcome'],
                'duration_ms' => $result['duration_ms'],
                'guards' => $result['diagnostics']['guards'] === $honest[$start],
                'bytes' => strlen((string) json_encode($result, JSON_PARTIAL_OUTPUT_ON_ERROR)),
            ];
            unset($result);
        } catch (Throwable $thrown) {
            $message = (string) preg_replace('/\s+/', ' ', substr($thrown->getMessage(), 0, 160));
            $answer = ['ms' => (hrtime(true) - $began) / 1e6, 'thrown' => $thrown::class . ": $message"];
        }
        $answer += [
            'kb' => (int) Processes::status((int) getmypid())['VmHWM'] - $before,
            'start' => $start,
            'stdout' => $printed,
        ];
        fwrite(STDOUT, json_encode($answer, JSON_INVALID_UTF8_SUBSTITUTE) . "\n");
    }
}

/** Gives the exit status. */
function fuzz(int $seconds, int $seed): int
{
    $application = new TemporaryApplication(ForgingApplication::files());
    $until = hrtime(true) + $seconds * 1e9;
    $host = null;
    [$runs, $failed, $kinds, $outcomes, $worst] = [0, 0, [], [], ['ms' => 0, 'kb' => 0]];
    echo "first seed $seed\n";
    do {
        $host ??= start_host($application->root);
        $answer = ask($host, $seed);
        $wrong = wrong($answer);
        if (isset($answer['dead'])) {
            stop_host($host);
            $host = null;
        }
        $outcome = $answer['outcome'] ?? 'none';
        $outcomes[$outcome] = ($outcomes[$outcome] ?? 0) + 1;
        $worst = array_map(max(...), $worst, array_intersect_key($answer + ['ms' => 0, 'kb' => 0], $worst));
        $worst = array_combine(['ms', 'kb'], $worst);
        foreach ($wrong as $kind => $detail) {
            $kinds[$kind] = ($kinds[$kind] ?? 0) + 1;
            echo "seed $seed: $kind: $detail\n";
        }
        if ($seconds === 0) {
            echo $answer['stdout'] ?? '', json_encode(['stdout' => ''] + $answer), "\n";
        } elseif ($wrong !== []) {
            echo '    ', $answer['start'] ?? '', ': ', strtr($answer['stdout'] ?? '', ["\n" => '; ']), "\n";
        }
        $failed += (int) ($wrong !== []);
        [$runs, $seed] = [$runs + 1, $seed + 1];
    } while (hrtime(true) < $until);
    if ($host !== null) {
        stop_host($host);
    }
    arsort($outcomes);
    arsort($kinds);
    printf("%d evaluations, %d of them wrong\n", $runs, $failed);
    printf("at most %.0f ms and %.1f MiB beyond before\n", $worst['ms'], $worst['kb'] / 1024);
    echo 'outcomes: ', json_encode((object) $outcomes), "\nwrong: ", json_encode((object) $kinds), "\n";

    return $failed === 0 ? 0 : 1;
}

/**
 * @param array<string, mixed> $answer
 * @return array<string, string> what is wrong with it: kind => details
 */
function wrong(array $answer): array
{
    if (isset($answer['dead'])) {
        return ['the host has ended' => $answer['dead']];
    }
    $wrong = [];
    if (isset($answer['thrown'])) {
        $wrong['exception'] = $answer['thrown'];
    } else {
        if (!in_array($answer['outcome'], OUTCOMES, true)) {
            $wrong['outcome'] = $answer['outcome'];
        }
        if (!$answer['guards']) {
            $wrong['guards'] = 'not those of an honest run';
        }
        if ($answer['duration_ms'] > ceil($answer['ms'])) {
            $wrong['duration'] = sprintf('%.0f ms of %.0f', $answer['duration_ms'], $answer['ms']);
        }
        if ($answer['outcome'] === 'boot_failed') {
            $wrong['outcome'] = 'boot failed, of a snippet that began';
        }
    }
    if ($answer['ms'] > DEADLINE_MS + TIME_BEYOND_MS) {
        $wrong['time'] = sprintf('%.0f ms', $answer['ms']);
    }
    if ($answer['kb'] > MEMORY_BEYOND_KB) {
        $wrong['memory'] = sprintf('%.1f MiB', $answer['kb'] / 1024);
    }

    return $wrong;
}

/**
 * @return array{process: resource, pipes: array<int, resource>, errors: string}
 */
function start_host(string $root): array
{
    $php = [
        PHP_BINARY, '-d', 'extension=' . getenv('EXTENSION'), '-d', 'memory_limit=' . HOST_MEMORY,
        '-d', 'display_errors=stderr', '-d', 'log_errors=0', '-d', 'html_errors=0',
    ];
    $errors = ['file', "$root.errors", 'w'];
    $process = proc_open([...$php, __FILE__, 'host', $root], [['pipe', 'r'], ['pipe', 'w'], $errors], $pipes);

    return ['process' => $process, 'pipes' => $pipes, 'errors' => "$root.errors"];
}

/**
 * @param array{process: resource, pipes: array<int, resource>, errors: string} $host
 */
function stop_host(array $host): void
{
    array_map(fclose(...), $host['pipes']);
    proc_close($host['process']);
    @unlink($host['errors']);
}

/**
 * @param array{process: resource, pipes: array<int, resource>, errors: string} $host
 * @return array<string, mixed>
 */
function ask(array $host, int $seed): array
{
    @fwrite($host['pipes'][0], "$seed\n");
    $readable = [$host['pipes'][1]];
    $none = null;
    if (stream_select($readable, $none, $none, PATIENCE) !== 1) {
        proc_terminate($host['process'], SIGKILL);

        return ['dead' => 'it did not answer for ' . PATIENCE . ' s'];
    }
    $line = fgets($host['pipes'][1]);
    if ($line === false) {
        return ['dead' => trim(strtr(substr((string) file_get_contents($host['errors']), 0, 300), "\n", ' '))];
    }

    return json_decode($line, true, flags: JSON_THROW_ON_ERROR);
}
