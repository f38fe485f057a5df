<?php

/**
 * Runs PHPUnit in a container of the tests' Docker engine, under the engine's default profile: the attacks of
 * tests/Escape are then made where nothing but Landlock and seccomp confines a run. `make test-container` runs it.
 *
 *   EXTENSION=<path> ALTAIR_NATIVE=<path> php scripts/container-tests.php [<argument of PHPUnit's>...]     as root
 *
 * The machine's programs and this clone are mounted read-only. No other test of root's should run meanwhile: a
 * signal to everybody reaches what runs as the same user in the container.
 */

declare(strict_types=1);

use Altair\Eval\Tests\Support\Containers\PhpImage;
use Altair\Eval\Tests\Support\DockerEngine;

$top = dirname(__DIR__);
require "$top/benches/autoload.php";

$missing = DockerEngine::whyMissing() ?? (posix_geteuid() === 0 ? null : 'Only root can start a Docker engine.')
    ?? (getenv('EXTENSION') !== false ? null : 'EXTENSION is not set: `make test-container` sets it.');
if ($missing !== null) {
    fwrite(STDERR, "$missing\n");
    exit(2);
}

// The tests look at processes of others, which takes a capability. It opens calls in the engine's profile, so these are
// taken out; hosts give it up (`Setting::hostCommand()`).
$default = "$top/crates/engine/src/doctor/container_profile/moby-20.10.24.json";
$profile = json_decode((string) file_get_contents($default), flags: JSON_THROW_ON_ERROR);
$profile->syscalls = array_values(array_filter(
    $profile->syscalls,
    static fn (object $rule): bool => ($rule->includes->caps ?? []) !== ['CAP_SYS_PTRACE'],
));
$file = tempnam(sys_get_temp_dir(), 'profile');
file_put_contents($file, json_encode($profile, JSON_THROW_ON_ERROR));
// What is far from projects is on a file system that can all that a disk's can, not an overlay.
$scratch = "$file-scratch";
mkdir($scratch);
chmod($scratch, 01777);
register_shutdown_function(static fn () => exec('rm -rf -- ' . escapeshellarg($file) . ' ' . escapeshellarg($scratch)));

$engine = DockerEngine::shared();
PhpImage::in($engine);
$mounted = ['/usr', '/etc/alternatives', $top, dirname(PhpImage::extension()), dirname(PhpImage::native())];
$phpunit = trim((string) shell_exec('command -v phpunit'));
$command = [
    'docker', "--host={$engine->host()}", 'run', '--rm',
    // The attacks need a loopback with IPv6, which a container without a network does not have.
    '--network=host', "--volume=$scratch:/var/tmp",
    "--security-opt=seccomp=$file", '--cap-add=SYS_PTRACE', '--env=ALTAIR_TEST_WATCHES=1',
    ...array_map(static fn (string $path): string => "--volume=$path:$path:ro", array_unique($mounted)),
    "--workdir=$top", '--env=CI=1', '--env=ALTAIR_EVAL_POOL=off', '--env=ALTAIR_TEST_INCOMPLETE=1', '--env=PHP=php',
    '--env=EXTENSION=' . PhpImage::extension(), '--env=ALTAIR_NATIVE=' . PhpImage::native(),
    // Signals of tests that run elsewhere on this machine reach whoever runs as the same user, in containers, too.
    '--env=ALTAIR_TEST_USER=54399',
    PhpImage::PHP, 'php', '-d', 'extension=' . PhpImage::extension(), $phpunit, '--do-not-cache-result',
    ...(array_slice($argv, 1) ?: ['tests/Escape']),
];
$process = proc_open($command, [STDIN, STDOUT, STDERR], $pipes);
exit($process === false ? 1 : proc_close($process));
