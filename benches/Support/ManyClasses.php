<?php

declare(strict_types=1);

namespace Altair\Eval\Benches\Support;

use Altair\Eval\Tests\Support\TemporaryApplication;

/**
 * An application of 3,000 classes, all loaded, in Composer's class map, with a file each. It removes itself.
 */
final class ManyClasses
{
    private const MODULES = 100;
    private const NOUNS = ['Customer', 'Order', 'Invoice', 'Payment', 'Product', 'Shipment', 'Address', 'Category',
        'Report', 'Audit'];
    private const KINDS = ['Repository', 'Controller', 'Service'];

    public readonly string $root;

    private readonly TemporaryApplication $application;

    public function __construct()
    {
        $loader = dirname(__DIR__, 2) . '/examples/shop/vendor/composer/ClassLoader.php';
        $files = ['vendor/composer/ClassLoader.php' => (string) file_get_contents($loader)];
        $map = [];
        for ($module = 0; $module < self::MODULES; $module++) {
            foreach (self::NOUNS as $noun) {
                foreach (self::KINDS as $kind) {
                    $path = "src/Module$module/$noun$kind.php";
                    $files[$path] = "<?php namespace App\\Module$module; class $noun$kind { function run(int \$a) {} }";
                    $map["App\\Module$module\\$noun$kind"] = $path;
                }
            }
        }
        $files['vendor/autoload.php'] = '<?php require __DIR__ . "/composer/ClassLoader.php";'
            . ' $loader = new Composer\Autoload\ClassLoader(__DIR__); $map = ' . var_export($map, true) . ';'
            . ' $loader->addClassMap(array_map(fn ($file) => dirname(__DIR__) . "/$file", $map));'
            . ' $loader->addPsr4("App\\\\", dirname(__DIR__) . "/src"); $loader->register();'
            . ' array_map(class_exists(...), array_keys($map));';
        $this->application = new TemporaryApplication($files);
        $this->root = $this->application->root;
    }
}
