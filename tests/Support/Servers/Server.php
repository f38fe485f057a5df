<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Servers;

/**
 * A web server with PHP, of a test's own, on this machine's loopback or in a directory of its own. It ends with this
 * object, and with it its workers.
 */
interface Server
{
    /**
     * The program that it is, in the version of this PHP; null: it is not installed.
     */
    public static function program(): ?string;

    /**
     * What a page of PHP prints, to each of several that ask at once.
     *
     * @return list<string>
     */
    public function pages(string $file, int $times = 1): array;

    /** Ends it and its workers. */
    public function end(): void;
}
