<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Warm;

use Altair\Eval\Tests\Support\TemporaryApplication;
use RuntimeException;

/**
 * A PHP extension that knows one word: its constant `ALTAIR_TEST_WORD`.
 */
final class CompiledExtension
{
    private const SOURCE = <<<'C'
        #include "php.h"
        static PHP_MINIT_FUNCTION(worded)
        {
            (void) type;
            REGISTER_STRING_CONSTANT("ALTAIR_TEST_WORD", WORD, CONST_PERSISTENT);
            return SUCCESS;
        }
        zend_module_entry worded_module_entry = {
            STANDARD_MODULE_HEADER, "worded", NULL, PHP_MINIT(worded), NULL, NULL, NULL, NULL, "1",
            STANDARD_MODULE_PROPERTIES
        };
        ZEND_GET_MODULE(worded)
        C;

    /** Compiles it to `$name` in a directory. */
    public static function make(TemporaryApplication $directory, string $name, string $word): string
    {
        $source = $directory->write("$name.c", self::SOURCE);
        $library = $directory->path($name);
        exec("cc -shared -fPIC -DWORD='\"$word\"' $(php-config --includes) -o $library $source 2>&1", $says, $status);
        if ($status !== 0) {
            throw new RuntimeException(implode("\n", $says));
        }

        return $library;
    }
}
