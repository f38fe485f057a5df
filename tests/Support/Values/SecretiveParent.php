<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Values;

class SecretiveParent
{
    public string $inherited = 'parent';
    private string $hidden = 'of the parent';

    public function hidden(): string
    {
        return $this->hidden;
    }
}
