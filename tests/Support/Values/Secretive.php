<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Values;

/**
 * Has properties of every visibility, and one that has no value.
 */
final class Secretive extends SecretiveParent
{
    public static int $static = 9;
    public int $shown = 1;
    public readonly int $uninitialised;
    public readonly bool $fixed;
    protected int $protected = 2;

    public function __construct(private readonly string $secret = 's3cret')
    {
        $this->fixed = $secret !== '';
    }

    public function secret(): string
    {
        return $this->secret . $this->protected;
    }
}
