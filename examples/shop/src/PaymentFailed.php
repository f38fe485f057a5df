<?php

declare(strict_types=1);

namespace Shop;

use RuntimeException;

/**
 * An order could not be charged; the previous exception says why.
 */
final class PaymentFailed extends RuntimeException
{
}
