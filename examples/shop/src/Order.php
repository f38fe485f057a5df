<?php

declare(strict_types=1);

namespace Shop;

/**
 * What one customer bought at once.
 */
final readonly class Order
{
    /**
     * @param int $total in cents
     */
    public function __construct(
        public int $id,
        public User $customer,
        public OrderStatus $status,
        public int $total,
    ) {
    }
}
