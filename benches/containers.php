<?php

/**
 * What Altair Eval does in containers of a Docker engine that this starts itself, one line for each way to start them.
 * `make containers` runs it, as root.
 *
 *   EXTENSION=<path> scripts/php.sh benches/containers.php [<part of a name>]
 */

declare(strict_types=1);

namespace Altair\Eval\Benches;

use Altair\Eval\Tests\Support\Containers\Containers;
use Altair\Eval\Tests\Support\Database\MariaDb;
use Altair\Eval\Tests\Support\DockerEngine;
use RuntimeException;

require __DIR__ . '/autoload.php';

$missing = DockerEngine::whyMissing() ?? MariaDb::whyMissing()
    ?? (posix_geteuid() === 0 ? null : 'Only root can start a Docker engine.')
    ?? (getenv('EXTENSION') !== false ? null : 'EXTENSION is not set: `make containers` sets it.');
if ($missing !== null) {
    fwrite(STDERR, "$missing\n");
    exit(2);
}

/** Calls of which a time is the median. */
const CALLS = 20;

$containers = new Containers();
$columns = [
    'runs', 'layer', 'by_address', 'by_name', 'warm', 'symfony', 'symfony_warm', 'laravel', 'laravel_warm', 'cold_ms',
    'warm_ms', 'left',
];
$reasons = [];
/** A cell, with the number of its reason where the answer is no. */
$cell = static function (mixed $answer) use (&$reasons): string {
    if ($answer === true) {
        return 'yes';
    }
    if (is_int($answer) || is_float($answer)) {
        return number_format((float) $answer, 1);
    }
    if ($answer === [] || $answer === null) {
        return $answer === null ? '–' : 'nothing';
    }
    $reason = is_string($answer) ? $answer : implode(', ', (array) $answer);
    $number = array_search($reason, $reasons, true);
    if ($number === false) {
        $number = array_push($reasons, $reason) - 1;
    }

    return 'no (' . ($number + 1) . ')';
};

echo '| setting | runs | layer | database by address | by name | warm | Symfony | warm | Laravel | warm |'
    . " ms a call cold | ms a call warm | left |\n|" . str_repeat(' --- |', count($columns) + 1) . "\n";
foreach ($containers->settings() as $name => $setting) {
    if (!str_contains($name, $argv[1] ?? '')) {
        continue;
    }
    try {
        $answers = $containers->probe($setting, CALLS);
        $cells = array_map(static fn (string $column): string => $cell($answers[$column]), $columns);
    } catch (RuntimeException $e) {
        $cells = [$cell(trim($e->getMessage())), ...array_fill(1, count($columns) - 1, '')];
    }
    echo "| $name | " . implode(' | ', $cells) . " |\n";
}
echo "\n";
foreach ($reasons as $index => $reason) {
    echo $index + 1, '. ', str_replace("\n", ' ', $reason), "\n";
}
