<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Values;

use Closure;
use Countable;
use IteratorAggregate;
use Traversable;

/**
 * A collection whose count and items a test decides.
 *
 * @implements IteratorAggregate<mixed, mixed>
 */
final class CountsWrong implements IteratorAggregate, Countable
{
    public function __construct(private readonly int|Closure $count, private readonly Closure $items)
    {
    }

    public function count(): int
    {
        return is_int($this->count) ? $this->count : ($this->count)();
    }

    public function getIterator(): Traversable
    {
        return ($this->items)();
    }
}
