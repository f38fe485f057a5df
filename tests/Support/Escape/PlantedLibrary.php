<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Escape;

/**
 * A native library that a snippet finds in its project, and whose code runs when it is loaded.
 */
final class PlantedLibrary
{
    private static ?string $bytes = null;

    /** Its content; null where there is no C compiler to make it with. */
    public static function bytes(): ?string
    {
        if (self::$bytes === null) {
            $file = tempnam(sys_get_temp_dir(), 'altair-planted-');
            $command = ['cc', '-shared', '-fPIC', '-o', $file, __DIR__ . '/planted.c'];
            exec(implode(' ', array_map(escapeshellarg(...), $command)) . ' 2>/dev/null', $output, $code);
            self::$bytes = $code === 0 ? (string) file_get_contents($file) : '';
            unlink($file);
        }

        return self::$bytes === '' ? null : self::$bytes;
    }
}
