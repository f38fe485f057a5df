<?php

/**
 * Boots an application and then forks as often as the line that it reads says: the fork ends at once and is collected.
 * Straight from the C library, so that no work of PHP's own is in it. Writes how long each time took.
 *
 *   fork.php <root>
 */

declare(strict_types=1);

$container = (static function (string $root): object {
    require $root . '/vendor/autoload.php';

    return require $root . '/config/container.php';
})($argv[1]);

$libc = FFI::cdef('int fork(void); void _exit(int status); int waitpid(int pid, int *status, int options);');

while (($line = fgets(STDIN)) !== false) {
    $ms = [];
    for ($i = (int) $line; $i > 0; --$i) {
        $began = hrtime(true);
        $pid = $libc->fork();
        if ($pid === 0) {
            $libc->_exit(0);
        }
        $collected = $libc->waitpid($pid, null, 0);
        $ms[] = (hrtime(true) - $began) / 1e6;
        $pid > 0 && $collected === $pid || throw new RuntimeException('No fork.');
    }
    fwrite(STDOUT, json_encode(['ms' => $ms]) . "\n");
}
