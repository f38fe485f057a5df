<?php

/**
 * What is known of the Univeros framework's attributes, interfaces and classes: names, parameters and types as they are
 * in the framework. What a test needs beside that is marked as the test's own.
 */

declare(strict_types=1);

namespace Altair\Cli\Attribute {

    use Attribute;

    #[Attribute(Attribute::TARGET_CLASS)]
    final readonly class Command
    {
        public function __construct(public string $name, public string $description)
        {
        }
    }

    #[Attribute(Attribute::TARGET_PARAMETER)]
    final readonly class Argument
    {
        public function __construct(public string $description)
        {
        }
    }

    #[Attribute(Attribute::TARGET_PARAMETER)]
    final readonly class Option
    {
        public function __construct(public string $description, public string $name)
        {
        }
    }
}

namespace Altair\Mcp\Attribute {

    use Attribute;

    #[Attribute(Attribute::TARGET_CLASS)]
    final readonly class McpTool
    {
        /**
         * @param string|null $inputSchema the absolute path of a JSON file
         * @param string|null $outputSchema the absolute path of a JSON file
         */
        public function __construct(
            public string $name,
            public string $description,
            public ?string $inputSchema = null,
            public ?string $outputSchema = null,
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

namespace Altair\Events {

    enum Actor
    {
        case Cli;
        case Mcp;
        case Worker;
        case Script;
    }

    enum EventKind: string
    {
        case Eval = 'eval';
    }

    enum EventStatus
    {
        case Ok;
        case Fail;
        case Partial;
    }

    /** Nothing is known of it but its name. */
    final readonly class Changes
    {
    }

    final readonly class Event
    {
        /**
         * @param array<string, mixed> $given the test's own: what `create` was given, by name
         */
        private function __construct(public array $given)
        {
        }

        /**
         * @param array<string, mixed> $extra
         */
        public static function create(
            Actor $actor,
            string $command,
            EventKind $kind,
            EventStatus $status,
            int $durationMs,
            ?string $user = null,
            ?string $client = null,
            ?Changes $changes = null,
            ?string $error = null,
            array $extra = [],
        ): self {
            if ($status === EventStatus::Fail && ($error ?? '') === '') {
                throw new \InvalidArgumentException('A failed event needs an error.');
            }

            return new self(get_defined_vars());
        }
    }
}

namespace Altair\Events\Contracts {

    use Altair\Events\Event;

    interface RecorderInterface
    {
        public function record(Event $event): void;
    }
}

namespace Altair\Container {

    /** What `factory` returns: all that is known is that it can be shared. */
    final class Definition
    {
        /** The test's own. */
        public bool $isShared = false;

        /** The test's own. */
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

        /** The test's own: what is bound to a name. */
        public function bound(string $id): object
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

    /** Made the program of a run, where that was plain PHP. Nothing is known of its methods, and none is called. */
    final class WrapperBuilder
    {
    }
}
