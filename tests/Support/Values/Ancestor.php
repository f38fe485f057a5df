<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Values;

/**
 * Has a private property whose name a class below may use for another.
 */
class Ancestor
{
    private int $own = 1;

    public function own(): int
    {
        return $this->own;
    }
}
