<?php

/**
 * Finds the benchmark's own classes, and what it takes from the tests.
 */

declare(strict_types=1);

spl_autoload_register(static function (string $class): void {
    $directories = ['Altair\\Eval\\Benches\\' => __DIR__, 'Altair\\Eval\\Tests\\' => dirname(__DIR__) . '/tests'];
    foreach ($directories as $prefix => $directory) {
        if (str_starts_with($class, $prefix)) {
            require $directory . '/' . strtr(substr($class, strlen($prefix)), '\\', '/') . '.php';
        }
    }
});
