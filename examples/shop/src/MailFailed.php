<?php

declare(strict_types=1);

namespace Shop;

use RuntimeException;

/**
 * The mail server could not be reached.
 */
final class MailFailed extends RuntimeException
{
}
