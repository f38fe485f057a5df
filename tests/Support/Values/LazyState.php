<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Values;

/**
 * Stands for Symfony\Component\VarExporter\Internal\LazyObjectState of 6.2 and later, which no distribution packages
 * for the oldest PHP that is tested: the same properties.
 */
final class LazyState
{
    public object $realInstance;

    public function __construct(public int $status, ?object $instance = null)
    {
        if ($instance !== null) {
            $this->realInstance = $instance;
        }
    }
}
