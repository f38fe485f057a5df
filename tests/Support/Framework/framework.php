<?php

/**
 * What the package knows of the Univeros framework: its attributes and interfaces, and a container that notes what it
 * is told. Required by tests that play the framework.
 */

declare(strict_types=1);

namespace Altair\Cli\Attribute {

    use Attribute;

    #[Attribute(Attribute::TARGET_CLASS)]
    final class Command
    {
        public function __construct(public readonly string $name, public readonly string $description = '')
        {
        }
    }

    #[Attribute(Attribute::TARGET_PARAMETER)]
    final class Argument
    {
        public function __construct(public readonly string $description = '')
        {
        }
    }

    #[Attribute(Attribute::TARGET_PARAMETER)]
    final class Option
    {
        public function __construct(public readonly string $description = '', public readonly ?string $name = null)
        {
        }
    }
}

namespace Altair\Mcp\Attribute {

    use Attribute;

    #[Attribute(Attribute::TARGET_CLASS)]
    final class McpTool
    {
        /**
         * @param array<string, mixed> $inputSchema
         * @param array<string, mixed> $outputSchema
         */
        public function __construct(
            public readonly string $name,
            public readonly string $description,
            public readonly array $inputSchema,
            public readonly array $outputSchema,
        ) {
        }
    }
}

namespace Altair\Mcp\Contracts {

    interface McpToolInterface
    {
        /**
         * @param array<string, mixed> $input
         * @return array<string, mixed>
         */
        public function call(array $input): array;
    }
}

namespace Altair\Events\Contracts {

    interface RecorderInterface
    {
        /**
         * @param array<string, mixed> $event
         */
        public function record(array $event): void;
    }
}

namespace Altair\Container {

    final class Definition
    {
        public bool $isShared = false;

        public function __construct(public readonly \Closure $factory)
        {
        }

        public function shared(): self
        {
            $this->isShared = true;

            return $this;
        }
    }

    final class Container
    {
        /** @var array<string, Definition> */
        private array $definitions = [];

        /** @var array<string, object> */
        private array $shared = [];

        public function factory(string $id, callable $factory): Definition
        {
            return $this->definitions[$id] = new Definition($factory(...));
        }

        public function get(string $id): object
        {
            $definition = $this->definitions[$id];

            return $definition->isShared ? $this->shared[$id] ??= ($definition->factory)() : ($definition->factory)();
        }
    }
}

namespace Altair\Configuration\Contracts {

    use Altair\Container\Container;

    interface ConfigurationInterface
    {
        public function apply(Container $container): void;
    }
}

// A framework's own files of classes that the extension brings: autoloading never comes to them.

namespace Altair\Eval\Wrapper {

    /**
     * Made the program of a run, where that was plain PHP.
     */
    final class WrapperBuilder
    {
        public function build(string $snippet): string
        {
            throw new \LogicException('It is not used.');
        }
    }
}
