<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Values;

use Exception;

/**
 * Throws from a known place, with a secret among its arguments.
 */
final class Thrower
{
    public const LINE_OF_THROW_IT = 18;

    public static function begin(string $secret): void
    {
        (new self())->throwIt($secret);
    }

    public static function recurse(int $times): void
    {
        if ($times <= 1) {
            throw new Exception('deep');
        }
        self::recurse($times - 1);
    }

    private function throwIt(string $secret): never
    {
        throw new Exception('thrown');
    }
}
