<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Warm;

use Altair\Eval\Tests\Support\TemporaryApplication;
use Closure;

/**
 * Ways to change a file of an application.
 */
final class Change
{
    public static function write(string $path, string $contents): Closure
    {
        return static function (TemporaryApplication $application) use ($path, $contents): void {
            // Not over a link, nor as a new file: in place.
            file_put_contents($application->path($path), $contents);
        };
    }

    public static function add(string $path, string $contents = ''): Closure
    {
        return static fn (TemporaryApplication $application): string => $application->write($path, $contents);
    }

    public static function delete(string $path): Closure
    {
        return static fn (TemporaryApplication $application) => $application->remove($path);
    }

    public static function rename(string $from, string $to): Closure
    {
        return static fn (TemporaryApplication $application): bool
            => rename($application->path($from), $application->path($to));
    }

    /** As a deployment does it: there is no moment without the link. */
    public static function relink(string $path, string $target): Closure
    {
        return static function (TemporaryApplication $application) use ($path, $target): void {
            symlink($target, $application->path("$path.new"));
            rename($application->path("$path.new"), $application->path($path));
        };
    }

    public static function chmod(string $path, int $mode): Closure
    {
        return static fn (TemporaryApplication $application): bool => chmod($application->path($path), $mode);
    }

    public static function touch(string $path, int $time): Closure
    {
        return static fn (TemporaryApplication $application): bool => touch($application->path($path), $time);
    }

    public static function together(Closure ...$changes): Closure
    {
        return static function (TemporaryApplication $application) use ($changes): void {
            foreach ($changes as $change) {
                $change($application);
            }
        };
    }
}
