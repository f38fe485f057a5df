<?php

declare(strict_types=1);

namespace Altair\Eval\Support;

/**
 * Variables that a run is to have. It has those of its host's process, which are not all that a host goes by: PHPUnit's
 * `<server>` and Symfony's Dotenv set `$_SERVER` and `$_ENV` alone.
 *
 * @internal
 */
final class Variables
{
    /** What chooses an application's environment. */
    private const CHOOSING = ['APP_ENV', 'APP_DEBUG', 'KERNEL_CLASS'];

    private function __construct()
    {
    }

    /**
     * What chooses an application's environment, as this process goes by it.
     *
     * @return array<string, string>
     */
    public static function chosen(): array
    {
        $chosen = [];
        foreach (self::CHOOSING as $name) {
            $value = $_SERVER[$name] ?? $_ENV[$name] ?? null;
            if (is_scalar($value)) {
                $chosen[$name] = is_bool($value) ? (string) (int) $value : (string) $value;
            }
        }

        return $chosen;
    }

    /**
     * Calls with these variables in the process's environment, and leaves that as it was.
     *
     * @template T
     * @param array<string, string> $variables
     * @param callable(): T $call
     * @return T
     */
    public static function with(array $variables, callable $call): mixed
    {
        $before = [];
        // A host may have disabled it.
        if (function_exists('putenv')) {
            foreach ($variables as $name => $value) {
                $before[$name] = getenv($name, true);
                putenv("$name=$value");
            }
        }
        try {
            return $call();
        } finally {
            foreach ($before as $name => $value) {
                putenv($value === false ? $name : "$name=$value");
            }
        }
    }
}
