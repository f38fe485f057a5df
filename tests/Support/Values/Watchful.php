<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Values;

/**
 * Notes each of its magic methods that is called; its one public property is unset, as a lazy proxy does.
 */
final class Watchful
{
    public int $lazy = 1;

    /** @var list<string> */
    private array $calls = [];

    public function __construct()
    {
        unset($this->lazy);
    }

    /**
     * @return list<string>
     */
    public function calls(): array
    {
        return $this->calls;
    }

    public function __get(string $name): mixed
    {
        $this->calls[] = __FUNCTION__;

        return 1;
    }

    public function __isset(string $name): bool
    {
        $this->calls[] = __FUNCTION__;

        return true;
    }

    /**
     * @param array<mixed> $arguments
     */
    public function __call(string $name, array $arguments): mixed
    {
        $this->calls[] = __FUNCTION__;

        return [];
    }

    /**
     * @return array<mixed>
     */
    public function __serialize(): array
    {
        $this->calls[] = __FUNCTION__;

        return [];
    }

    public function __toString(): string
    {
        $this->calls[] = __FUNCTION__;

        return '';
    }
}
