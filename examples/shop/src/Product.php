<?php

declare(strict_types=1);

namespace Shop;

use Closure;

/**
 * Something on a shelf.
 */
final readonly class Product
{
    /**
     * @param int $price in cents
     * @param Closure(int): int $discount from the price to what is asked today
     */
    public function __construct(
        public string $name,
        public int $price,
        public Closure $discount,
    ) {
    }

    public function priceToday(): int
    {
        return ($this->discount)($this->price);
    }
}
