<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support;

use Throwable;

/**
 * Asserts several refusals in one test, where expectException() allows for one.
 */
trait Refusals
{
    /**
     * @param class-string<Throwable> $class what exactly is thrown
     * @param string $message what its message holds
     */
    private function assertRefused(string $class, string $message, callable $what): Throwable
    {
        try {
            $what();
        } catch (Throwable $thrown) {
            self::assertSame($class, $thrown::class, $thrown->getMessage());
            self::assertStringContainsString($message, $thrown->getMessage());

            return $thrown;
        }
        self::fail("It was not refused: $message");
    }
}
