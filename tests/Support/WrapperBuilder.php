<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support;

/**
 * What callers of an evaluator in plain PHP used to pass; notes whether anything of it is called.
 */
final class WrapperBuilder
{
    public int $calls = 0;

    public function build(string $snippet): string
    {
        $this->calls++;

        return $snippet;
    }

    /**
     * @param array<mixed> $arguments
     */
    public function __call(string $name, array $arguments): mixed
    {
        $this->calls++;

        return null;
    }
}
