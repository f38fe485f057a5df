<?php

declare(strict_types=1);

namespace Shop;

/**
 * Where an order stands.
 */
enum OrderStatus: string
{
    case Open = 'open';
    case Paid = 'paid';
    case Shipped = 'shipped';
    case Cancelled = 'cancelled';

    public function isFinal(): bool
    {
        return $this === self::Shipped || $this === self::Cancelled;
    }
}
