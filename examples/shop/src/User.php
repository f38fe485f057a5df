<?php

declare(strict_types=1);

namespace Shop;

use DateTimeImmutable;

/**
 * A customer.
 */
final readonly class User
{
    public function __construct(
        public int $id,
        public string $email,
        public string $name,
        public DateTimeImmutable $registeredAt,
    ) {
    }
}
