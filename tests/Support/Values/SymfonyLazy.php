<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Values;

use LogicException;

/**
 * Has what a class with Symfony's LazyGhostTrait or LazyProxyTrait has.
 */
final class SymfonyLazy
{
    public static int $woken = 0;
    public int $id;
    public string $name;
    private readonly LazyState $lazyObjectState;

    public function __construct(LazyState $state, int $id, ?string $name = null)
    {
        $this->lazyObjectState = $state;
        $this->id = $id;
        if ($name === null) {
            unset($this->name);
        } else {
            $this->name = $name;
        }
    }

    /**
     * @return array<string, mixed>
     */
    public function __debugInfo(): array
    {
        self::$woken++;
        throw new LogicException('woken');
    }

    public function state(): LazyState
    {
        return $this->lazyObjectState;
    }
}
