<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Sandbox;

use Altair\Eval\Tests\Support\Escape\Setting;

/**
 * Who starts a command, and whose the directory is that it works in.
 */
enum Caller: string
{
    /** The command is user 0, without any privilege. */
    case Root = 'root, in a directory of root';
    case RootForAUser = 'root, in a directory of a user';
    case User = 'a user';

    /**
     * @return iterable<string, array{self}>
     */
    public static function everyone(): iterable
    {
        foreach (self::cases() as $caller) {
            if ($caller === self::User || posix_geteuid() === 0) {
                yield $caller->value => [$caller];
            }
        }
    }

    public function setting(): Setting
    {
        return match ($this) {
            self::Root => Setting::KernelAsRoot,
            self::RootForAUser => Setting::KernelAsRootForAUser,
            self::User => Setting::KernelAsUser,
        };
    }

    /** As whom the command runs. */
    public function uid(): int
    {
        return $this->setting()->uid();
    }
}
