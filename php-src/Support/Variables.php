<?php

declare(strict_types=1);

namespace Altair\Eval\Support;

/**
 * Environment variables for a run. A run inherits those of the host's process, but a host may have others: PHPUnit's
 * `<server>` and Symfony's Dotenv only set `$_SERVER` and `$_ENV`.
 *
 * @internal
 */
final class Variables
{
    /** The variables that choose an application's environment. */
    private const CHOOSING = ['APP_ENV', 'APP_DEBUG', 'KERNEL_CLASS'];

    private function __construct()
    {
    }

    /**
     * The values in this process of the variables that choose an application's environment.
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
     * Makes a call with these variables in the process's environment, and restores it afterwards.
     *
     * @template T
     * @param array<string, string> $variables
     * @param callable(): T $call
     * @return T
     */
    public static function with(array $variables, callable $call): mixed
    {
        $before = [];
        // A host may have disabled the function.
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
