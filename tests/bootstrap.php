<?php

/**
 * What the tests stand on: the extension, the package's autoloading and the example's autoloader.
 */

declare(strict_types=1);

namespace Altair\Eval\Tests;

$root = dirname(__DIR__);
$fail = static function (string $message): never {
    fwrite(STDERR, $message . "\n");
    exit(1);
};

if (!extension_loaded('altair_eval')) {
    $fail('The extension altair_eval is not loaded. Run `make test`, or '
        . '`php -d extension=' . $root . '/target/release/libaltair_eval.so $(command -v phpunit)`.');
}

if (!is_file($root . '/examples/shop/vendor/autoload.php')) {
    $fail('examples/shop has no autoloader. Run `make test`, or `composer dump-autoload` in examples/shop.');
}

// What a test is about starts by itself; tests of the pool have one of their own. For what this process starts: its own
// pool is what the variable said when it was started (scripts/php.sh).
putenv('ALTAIR_EVAL_POOL=off');

$package = json_decode(file_get_contents($root . '/composer.json'), true, flags: JSON_THROW_ON_ERROR);
$prefixes = $package['autoload-dev']['psr-4'] + $package['autoload']['psr-4'];

spl_autoload_register(static function (string $class) use ($root, $prefixes): void {
    foreach ($prefixes as $prefix => $directory) {
        $file = $root . '/' . $directory . strtr(substr($class, strlen($prefix)), '\\', '/') . '.php';
        if (str_starts_with($class, $prefix) && is_file($file)) {
            require $file;

            return;
        }
    }
});
