<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\Tests\Support\TemporaryApplication;
use PHPUnit\Framework\TestCase;

/**
 * The Composer package, as an application installs it: from a path repository, without network.
 */
final class ComposerPackageTest extends TestCase
{
    public function testItIsValid(): void
    {
        [$status, $said] = self::shell('composer validate --strict --no-interaction', dirname(__DIR__));

        self::assertSame(0, $status, $said);
    }

    public function testItAndTheReadmeNameThePhpVersionsThatWereTried(): void
    {
        $root = dirname(__DIR__);
        $tried = explode(' ', trim((string) file_get_contents("$root/php-versions.txt")));
        [$first, $last] = [$tried[0], end($tried)];
        $package = json_decode((string) file_get_contents("$root/composer.json"), true);
        $next = preg_replace_callback('/\d+$/', static fn (array $minor) => (string) ($minor[0] + 1), $last);

        self::assertSame(">=$first <$next", $package['require']['php']);
        self::assertStringContainsString("PHP $first to $last", (string) file_get_contents("$root/README.md"));
    }

    public function testAnApplicationThatRequiresItHasTheCommandAndTheClasses(): void
    {
        $application = new TemporaryApplication(['src/Greeting.php' => <<<'PHP'
            <?php
            namespace App;
            final class Greeting
            {
                public function of(string $name): string
                {
                    return "Hello, $name";
                }
            }
            PHP]);
        $application->write('composer.json', (string) json_encode([
            'name' => 'acme/app',
            'description' => 'An application',
            'require' => ['univeros/altair-eval' => '@dev'],
            'repositories' => [
                ['type' => 'path', 'url' => dirname(__DIR__)],
                ['packagist.org' => false],
            ],
            'autoload' => ['psr-4' => ['App\\' => 'src/']],
            // The interpreter that Composer runs in need not have the extension.
            'config' => ['platform' => ['ext-altair_eval' => '0.1.0']],
        ]));

        [$status, $said] = self::shell('composer install --no-interaction --no-progress', $application->root);
        self::assertSame(0, $status, $said);

        $eval = 'vendor/bin/altair eval --format=json ' . escapeshellarg('(new App\Greeting())->of("Ada")');
        [$status, $said] = self::shell($eval, $application->root);
        self::assertSame(0, $status, $said);
        self::assertSame('Hello, Ada', json_decode($said, true)['result']['value'] ?? null, $said);
    }

    /** @return array{int, string} */
    private static function shell(string $command, string $directory): array
    {
        $variables = 'COMPOSER_ALLOW_SUPERUSER=1 COMPOSER_DISABLE_NETWORK=1';
        exec('cd ' . escapeshellarg($directory) . " && env $variables $command 2>&1", $lines, $status);

        return [$status, implode("\n", $lines)];
    }
}
