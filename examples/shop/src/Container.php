<?php

declare(strict_types=1);

namespace Shop;

use Closure;
use ReflectionClass;
use ReflectionNamedType;
use ReflectionParameter;

/**
 * A container in the manner of PSR-11: factories first, else wiring by constructor types.
 * Every service is shared.
 */
final class Container
{
    /** @var array<string, object> */
    private array $services = [];

    /** @var array<string, true> what is being made, to notice a circle */
    private array $making = [];

    /**
     * @param array<string, Closure(Container): object> $factories
     */
    public function __construct(private readonly array $factories = [])
    {
        $this->services[self::class] = $this;
    }

    /**
     * @template T of object
     * @param class-string<T>|string $id
     * @return ($id is class-string<T> ? T : object)
     * @throws NotFound if nothing is known by that name or it cannot be wired
     */
    public function get(string $id): object
    {
        return $this->services[$id] ??= $this->make($id);
    }

    public function has(string $id): bool
    {
        return isset($this->services[$id]) || isset($this->factories[$id]) || $this->isWirable($id);
    }

    private function make(string $id): object
    {
        if (isset($this->making[$id])) {
            throw new NotFound(sprintf('"%s" needs itself: %s.', $id, implode(' → ', array_keys($this->making))));
        }
        $this->making[$id] = true;
        try {
            return isset($this->factories[$id]) ? ($this->factories[$id])($this) : $this->wire($id);
        } finally {
            unset($this->making[$id]);
        }
    }

    private function wire(string $id): object
    {
        if (!$this->isWirable($id)) {
            throw new NotFound(sprintf('There is no service "%s".', $id));
        }
        $class = new ReflectionClass($id);
        $arguments = [];
        foreach ($class->getConstructor()?->getParameters() ?? [] as $parameter) {
            $arguments[] = $this->argument($id, $parameter);
        }

        return $class->newInstanceArgs($arguments);
    }

    private function argument(string $id, ReflectionParameter $parameter): mixed
    {
        $type = $parameter->getType();
        if ($type instanceof ReflectionNamedType && !$type->isBuiltin() && $this->has($type->getName())) {
            return $this->get($type->getName());
        }
        if ($parameter->isDefaultValueAvailable()) {
            return $parameter->getDefaultValue();
        }

        throw new NotFound(sprintf('"%s" cannot be wired: nothing is known for $%s.', $id, $parameter->getName()));
    }

    private function isWirable(string $id): bool
    {
        return class_exists($id) && (new ReflectionClass($id))->isInstantiable();
    }
}
