<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Compact;

use IteratorAggregate;
use Traversable;

/**
 * An iterable with any keys, which can be gone through again.
 *
 * @implements IteratorAggregate<mixed, mixed>
 */
final class Pairs implements IteratorAggregate
{
    /**
     * @param list<array{mixed, mixed}> $pairs
     */
    public function __construct(private readonly array $pairs)
    {
    }

    public function getIterator(): Traversable
    {
        foreach ($this->pairs as [$key, $value]) {
            yield $key => $value;
        }
    }
}
