<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Values;

enum Side
{
    case Left;
}
