<?php

/**
 * Says to a real MariaDB or PostgreSQL what a snippet may come to say, behind the guards of a run whose sessions only
 * read, or are rolled back, and looks from outside whether anything has changed.
 *
 *   EXTENSION=<absolute path of libaltair_eval.so> scripts/php.sh scripts/fuzz-sql.php
 *       [--server=mariadb|postgresql] [--mode=read-only|rollback] [--seconds=600] [--seed=<number>]
 *       [--without=<word>]... [--oddness=0|1|2]
 *
 * Each sequence of statements has a seed, one more than the one before. With 0 seconds it is that of the seed alone,
 * with what it came to. Without a word: sequences in which it is are left out, as it is known what comes of it. Of
 * oddness 1 is a server with tables that have no transactions, of 2 one with tables whose names are no words, too.
 */

declare(strict_types=1);

use Altair\Eval\Tests\Support\Database\MariaDb;
use Altair\Eval\Tests\Support\Database\PostgreSql;
use Altair\Eval\Tests\Support\Fuzz\Control;
use Altair\Eval\Tests\Support\Fuzz\MariaDbGrammar;
use Altair\Eval\Tests\Support\Fuzz\MariaDbPlace;
use Altair\Eval\Tests\Support\Fuzz\PostgreSqlGrammar;
use Altair\Eval\Tests\Support\Fuzz\PostgreSqlPlace;
use Altair\Eval\Tests\Support\Fuzz\SqlFuzzer;

const SERVERS = [
    'mariadb' => [MariaDb::class, MariaDbPlace::class, MariaDbGrammar::class],
    'postgresql' => [PostgreSql::class, PostgreSqlPlace::class, PostgreSqlGrammar::class],
];

if (($argv[1] ?? '') === '--control') {
    // It has not the extension, and needs no more than these.
    require dirname(__DIR__) . '/tests/Support/Fuzz/Control.php';
    require dirname(__DIR__) . '/tests/Support/Fuzz/Player.php';
    Control::serve();
    exit(0);
}

require dirname(__DIR__) . '/tests/bootstrap.php';

$options = getopt('', ['server:', 'mode:', 'seconds:', 'seed:', 'without:', 'oddness:'], $rest);
$servers = isset($options['server']) ? [$options['server']] : array_keys(SERVERS);
$modes = isset($options['mode']) ? [$options['mode']] : SqlFuzzer::MODES;
if (isset($argv[$rest]) || array_diff($servers, array_keys(SERVERS)) || array_diff($modes, SqlFuzzer::MODES)) {
    fwrite(STDERR, "There is no such argument; the first lines of this file say which there are.\n");
    exit(2);
}
$seconds = (int) ($options['seconds'] ?? 600);
$seed = (int) ($options['seed'] ?? random_int(1, 1 << 30));
$found = 0;
foreach ($servers as $name) {
    [$server, $place, $grammar] = SERVERS[$name];
    if (($missing = $server::whyMissing()) !== null) {
        fwrite(STDERR, "$missing\n");
        exit(1);
    }
    echo "$name: first seed $seed\n";
    $fuzzer = new SqlFuzzer(new $place(), $grammar, __FILE__, (array) ($options['without'] ?? []));
    $found += $seconds > 0 ? $fuzzer->run($seed, intdiv($seconds, count($servers)), $modes)
        : $fuzzer->one($seed, $modes[0], (int) ($options['oddness'] ?? 0));
    unset($fuzzer);
}
exit($found === 0 ? 0 : 1);
