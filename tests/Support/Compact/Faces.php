<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Compact;

/**
 * Has properties of every visibility, some without a value, and one that hides its parent's.
 */
final class Faces extends FacesParent
{
    public readonly int $never;
    protected string $inner = '#inner';
    private int $late;

    public function __construct(public readonly mixed $shown, private readonly mixed $own)
    {
        if ($own === null) {
            $this->late = 1;
        }
    }

    /** @return array<mixed> */
    public function used(): array
    {
        return [$this->inner, $this->late, $this->own, $this->parents()];
    }
}
