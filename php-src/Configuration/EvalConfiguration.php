<?php

declare(strict_types=1);

namespace Altair\Eval\Configuration;

use Altair\Configuration\Contracts\ConfigurationInterface;
use Altair\Container\Container;
use Altair\Eval\Evaluator;

// Without the Univeros framework the class is not declared, and autoloading it is not an error.
if (!interface_exists(ConfigurationInterface::class)) {
    return;
}

/**
 * Registers one shared evaluator in the container of the Univeros framework, so that it stays warm.
 */
final class EvalConfiguration implements ConfigurationInterface
{
    /**
     * @param string $phpBinary the interpreter of the children; see {@see Evaluator}
     */
    public function __construct(private readonly string $phpBinary = 'php')
    {
    }

    /**
     * Binds a shared {@see Evaluator}.
     */
    public function apply(Container $container): void
    {
        $phpBinary = $this->phpBinary;
        $container
            ->factory(Evaluator::class, static fn (): Evaluator => new Evaluator(phpBinary: $phpBinary))
            ->shared();
    }
}
