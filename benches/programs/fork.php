<?php

/**
 * Boots an application and then forks as often as the line that it reads says: the fork ends at once and is collected.
 * Straight from the C library, so that no work of PHP's own is in it. Writes how long each time took. With `apart`
 * after the number, only forks count that ran on another processor than this process.
 *
 *   fork.php <root>
 */

declare(strict_types=1);

$container = (static function (string $root): object {
    require $root . '/vendor/autoload.php';

    return require $root . '/config/container.php';
})($argv[1]);

$libc = FFI::cdef(
    'int fork(void); void _exit(int status); int waitpid(int pid, int *status, int options); int sched_getcpu(void);',
);

/** At most so many forks for each one that is to be apart: the kernel begins with some hundred on one processor. */
const TRIES = 200;

const APART = 1;

while (($line = fgets(STDIN)) !== false) {
    [$times, $apart] = [...explode(' ', trim($line)), ''];
    $ms = [];
    for ($tries = TRIES * (int) $times; count($ms) < (int) $times && $tries > 0; --$tries) {
        $status = $libc->new('int');
        $own = $libc->sched_getcpu();
        $began = hrtime(true);
        $pid = $libc->fork();
        if ($pid === 0) {
            $libc->_exit($libc->sched_getcpu() === $own ? 0 : APART);
        }
        $collected = $libc->waitpid($pid, FFI::addr($status), 0);
        $took = (hrtime(true) - $began) / 1e6;
        $pid > 0 && $collected === $pid || throw new RuntimeException('No fork.');
        if ($apart === '' || $status->cdata >> 8 === APART) {
            $ms[] = $took;
        }
    }
    count($ms) === (int) $times || throw new RuntimeException('Too few forks ran on another processor.');
    fwrite(STDOUT, json_encode(['ms' => $ms]) . "\n");
}
