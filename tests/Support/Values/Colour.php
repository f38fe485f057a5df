<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Values;

enum Colour: string
{
    case Red = 'r';
}
