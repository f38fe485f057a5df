<?php

declare(strict_types=1);

namespace Shop;

use RuntimeException;

/**
 * The customer's bank said no.
 */
final class CardDeclined extends RuntimeException
{
}
