<?php

declare(strict_types=1);

namespace Shop;

use DateTimeImmutable;

/**
 * A shelf of the catalog.
 */
final class Category
{
    public ?Category $parent = null;

    public CategoryList $children;

    /** @var list<Product> */
    public array $products = [];

    public function __construct(public readonly string $name, public readonly DateTimeImmutable $since)
    {
        $this->children = new CategoryList();
    }

    /**
     * @return Category the one that was added
     */
    public function add(Category $child): Category
    {
        $child->parent = $this;
        $this->children->append($child);

        return $child;
    }
}
