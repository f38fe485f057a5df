<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Escape;

use Closure;

/**
 * What can have happened, as seen from outside: the proofs of attacks, and all of them together.
 */
final class Harm
{
    private const EPERM = 1;
    private const ENOSYS = 38;

    /**
     * Everything that no attack may ever do.
     *
     * @return list<string>
     */
    public static function any(Run $run): array
    {
        return [
            ...self::process()($run),
            ...self::secret()($run),
            ...self::outside()($run),
            ...self::audit()($run),
            ...self::arrival()($run),
            ...self::bystander()($run),
            ...self::self()($run),
            ...$run->leftovers,
        ];
    }

    /** A process was started, or the run became another program. */
    public static function process(): Closure
    {
        return static function (Run $run): array {
            $started = $run->escaped ? ['the program that nothing may start has run'] : [];
            foreach ($run->after as $after) {
                foreach (array_diff_key($after->processes, $run->before->processes ?? []) as $pid => $name) {
                    $started[] = "process $pid ($name) was started";
                }
            }

            return $started;
        };
    }

    /** What only stands outside came out of it. */
    public static function secret(): Closure
    {
        return static fn (Run $run): array =>
            str_contains($run->output(), $run->scene->secret) ? ['it has read the secret'] : [];
    }

    /** Something outside of the project is not as it was. */
    public static function outside(): Closure
    {
        return static fn (Run $run): array => array_values(array_filter(
            $run->changes,
            static fn (string $path): bool => !self::isBelow($path, $run->scene->project),
        ));
    }

    /** Something in the project is not as it was, the audit log aside. */
    public static function project(): Closure
    {
        return static fn (Run $run): array => array_values(array_filter(
            $run->changes,
            static fn (string $path): bool => self::isBelow($path, $run->scene->project)
                && !self::isBelow($path, $run->scene->project . '/.altair'),
        ));
    }

    /** The audit log, or its directory, is not as it was; an empty directory may have been made for it. */
    public static function audit(): Closure
    {
        return static fn (Run $run): array => array_values(array_filter(
            $run->changes,
            static fn (string $path): bool => self::isBelow($path, $run->scene->project . '/.altair')
                && !($path === "{$run->scene->project}/.altair" && @scandir($path) === ['.', '..']),
        ));
    }

    /** Something has arrived at a listener, of these kinds or of any. */
    public static function arrival(string ...$kinds): Closure
    {
        return static fn (Run $run): array => array_map(
            static fn (string $kind): string => "$kind was reached",
            $kinds === [] ? $run->arrived : array_values(array_intersect($run->arrived, $kinds)),
        );
    }

    /** A process that is none of the run's was signalled, traced or changed. */
    public static function bystander(): Closure
    {
        return static fn (Run $run): array => $run->molested;
    }

    /** The process has other rights, other namespaces or other mounts than before. */
    public static function self(): Closure
    {
        return static function (Run $run): array {
            $changes = [];
            foreach ($run->after as $after) {
                // What was started is named by itself.
                if ($run->before !== null && $after->pid === $run->before->pid) {
                    array_push($changes, ...$after->changesSince($run->before));
                }
            }

            return $changes;
        };
    }

    /** It holds a descriptor that it did not hold before, of a kind. */
    public static function descriptor(string $pattern): Closure
    {
        return static function (Run $run) use ($pattern): array {
            $new = array_diff((end($run->after) ?: null)?->descriptors ?? [], $run->before?->descriptors ?? []);

            return array_values(preg_grep($pattern, $new));
        };
    }

    /** A native call was let through by the filter: it failed otherwise, or not at all. */
    public static function call(string ...$names): Closure
    {
        return static function (Run $run) use ($names): array {
            $passed = [];
            foreach ($run->calls as [$name, $result]) {
                if (in_array($name, $names, true) && !in_array($result, [-self::EPERM, -self::ENOSYS], true)) {
                    $passed[] = "$name returned $result";
                }
            }

            return $passed;
        };
    }

    private static function isBelow(string $path, string $directory): bool
    {
        return $path === $directory || str_starts_with($path, $directory . '/');
    }
}
