<?php

declare(strict_types=1);

namespace Altair\Eval\Testing;

use UnexpectedValueException;

/**
 * An encoded value is not completely made of null, scalars and arrays of them.
 *
 * @internal
 */
final class NotPlainException extends UnexpectedValueException
{
}
