<?php

declare(strict_types=1);

namespace Altair\Eval\Configuration;

use Altair\Configuration\Contracts\ConfigurationInterface;
use Altair\Container\Container;
use Altair\Eval\Evaluator;

// Without the Univeros framework there is no such class, and to ask for it is no error.
if (!interface_exists(ConfigurationInterface::class)) {
    return;
}

/**
 * Gives the container of the Univeros framework one evaluator for all who ask, so that it stays warm.
 */
final class EvalConfiguration implements ConfigurationInterface
{
    /**
     * @param string $phpBinary the interpreter of the children, as {@see Evaluator} takes it
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
