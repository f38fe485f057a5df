<?php

declare(strict_types=1);

namespace Shop;

use LogicException;

/**
 * The container knows no service of that name, or cannot make it.
 */
final class NotFound extends LogicException
{
}
