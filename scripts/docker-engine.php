<?php

/**
 * Starts the Docker engine of the tests and keeps it until its standard input ends, to try a client with:
 *
 *   php scripts/docker-engine.php        as root; prints DOCKER_HOST and the name of the image
 */

declare(strict_types=1);

use Altair\Eval\Tests\Support\Database\ServerProcess;
use Altair\Eval\Tests\Support\DockerEngine;
use Altair\Eval\Tests\Support\Processes;

$support = dirname(__DIR__) . '/tests/Support';
$files = [
    Processes::class => "$support/Processes.php",
    ServerProcess::class => "$support/Database/ServerProcess.php",
    DockerEngine::class => "$support/DockerEngine.php",
];
spl_autoload_register(static fn (string $class) => require $files[$class]);

$missing = DockerEngine::whyMissing();
if ($missing !== null) {
    fwrite(STDERR, "$missing\n");
    exit(1);
}
$start = microtime(true);
$engine = DockerEngine::shared();
fprintf(STDERR, "Started in %.1f s. Ctrl+D ends it.\n", microtime(true) - $start);
echo "DOCKER_HOST={$engine->host()}\nIMAGE=" . DockerEngine::IMAGE . "\n";
stream_get_contents(STDIN);
