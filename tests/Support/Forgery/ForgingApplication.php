<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Forgery;

/**
 * An application whose snippets have `Messages`, and `wire()` to send them.
 */
final class ForgingApplication
{
    private const BOOT = <<<'PHP'
        <?php
        foreach (['Messages', 'Wire', 'Mischief'] as $class) {
            require __DIR__ . "/../forgery/$class.php";
            class_alias("Altair\Eval\Tests\Support\Forgery\\$class", $class);
        }
        $GLOBALS['wire'] = new Altair\Eval\Tests\Support\Forgery\Wire();
        function wire(): Altair\Eval\Tests\Support\Forgery\Wire { return $GLOBALS['wire']; }
        PHP;

    /**
     * @return array<string, string> path => contents
     */
    public static function files(string $boot = ''): array
    {
        return [
            'vendor/autoload.php' => self::BOOT . "\n$boot\n",
            'forgery/Messages.php' => (string) file_get_contents(__DIR__ . '/Messages.php'),
            'forgery/Wire.php' => (string) file_get_contents(__DIR__ . '/Wire.php'),
            'forgery/Mischief.php' => (string) file_get_contents(__DIR__ . '/Mischief.php'),
        ];
    }
}
