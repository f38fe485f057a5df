<?php

declare(strict_types=1);

namespace Altair\Eval\Testing;

use UnexpectedValueException;

/**
 * An encoded value is not, or not wholly, null, a scalar or arrays of them.
 *
 * @internal
 */
final class NotPlainException extends UnexpectedValueException
{
}
