<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Database\Readers;

/**
 * A statement that reads.
 */
final readonly class Reader
{
    /**
     * @param list<int|string|null> $values for the `?` in it
     * @param bool $changes whether its rows are others each time, or others in a session that only reads
     */
    public function __construct(public string $sql, public array $values = [], public bool $changes = false)
    {
    }
}
