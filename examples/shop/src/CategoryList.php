<?php

declare(strict_types=1);

namespace Shop;

use ArrayIterator;
use Countable;
use IteratorAggregate;

/**
 * Categories side by side, in the order in which they were added.
 *
 * @implements IteratorAggregate<string, Category>
 */
final class CategoryList implements Countable, IteratorAggregate
{
    /** @var array<string, Category> by name */
    private array $categories = [];

    public function append(Category $category): void
    {
        $this->categories[$category->name] = $category;
    }

    public function get(string $name): ?Category
    {
        return $this->categories[$name] ?? null;
    }

    public function count(): int
    {
        return count($this->categories);
    }

    /**
     * @return ArrayIterator<string, Category>
     */
    public function getIterator(): ArrayIterator
    {
        return new ArrayIterator($this->categories);
    }
}
