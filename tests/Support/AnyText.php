<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support;

use LogicException;
use Stringable;

/** An object with a text, or one whose text throws. */
final class AnyText implements Stringable
{
    public function __construct(private readonly ?string $text)
    {
    }

    public function __toString(): string
    {
        return $this->text ?? throw new LogicException('It has no text.');
    }
}
