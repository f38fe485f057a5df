<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Compact;

class FacesParent
{
    public string $inherited = '-inherited';
    private string $own = 'of the parent';
    private float $alone = 1.0;

    /** @return array<mixed> */
    protected function parents(): array
    {
        return [$this->own, $this->alone];
    }
}
