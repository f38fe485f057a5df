<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support;

use RuntimeException;

/**
 * Gives TCP listeners of a test to another user, as a database server's are: a project may name those.
 */
final class AnotherUser
{
    private const UID = 54331;

    /**
     * @param resource $listener
     */
    public static function has($listener): void
    {
        if (posix_geteuid() !== 0) {
            Skip::NeedsRoot->because('Only root can give a listener to another user.');
        }
        $link = 'socket:[' . fstat($listener)['ino'] . ']';
        foreach (glob('/proc/self/fd/*') ?: [] as $descriptor) {
            if (@readlink($descriptor) === $link) {
                chown($descriptor, self::UID);

                return;
            }
        }
        throw new RuntimeException('There is no such descriptor.');
    }
}
