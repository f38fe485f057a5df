<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Values;

use Closure;

/**
 * Has a __debugInfo() that a test decides.
 */
final class Introduces
{
    public string $public = 'not shown';

    public function __construct(private readonly Closure $introduction)
    {
    }

    /**
     * @return array<mixed>|null
     */
    public function __debugInfo(): ?array
    {
        return ($this->introduction)();
    }
}
