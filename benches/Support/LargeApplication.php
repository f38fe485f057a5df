<?php

declare(strict_types=1);

namespace Altair\Eval\Benches\Support;

use Altair\Eval\Tests\Support\TemporaryApplication;

/**
 * An application of the size that frameworks bring along: its boot loads 800 classes and takes 150 ms. It removes
 * itself.
 */
final class LargeApplication
{
    public const CLASSES = 800;
    public const BOOT_MS = 150;

    /** Classes of one module: a contract, an abstract class, and eight that extend it. */
    private const MODULE = 10;

    private const AUTOLOADER = <<<'PHP'
        <?php

        define('LARGE_BEGAN', hrtime(true));

        spl_autoload_register(static function (string $class): void {
            if (str_starts_with($class, 'Large\\')) {
                require dirname(__DIR__) . '/src/' . strtr(substr($class, 6), '\\', '/') . '.php';
            }
        });
        PHP;

    /** The rest of the time is spent as a framework spends it: computing, not waiting. */
    private const CONTAINER = <<<'PHP'
        <?php

        $container = new Large\Container();
        for ($module = 0; $module < MODULES; ++$module) {
            for ($service = 0; $service < SERVICES; ++$service) {
                $container->add("Large\\Module$module\\Service$service");
            }
        }
        for ($seed = ''; hrtime(true) - LARGE_BEGAN < BOOT_MS * 1_000_000;) {
            $seed = hash('sha256', $seed);
        }

        return $container;
        PHP;

    private const CONTAINER_CLASS = <<<'PHP'
        <?php

        declare(strict_types=1);

        namespace Large;

        final class Container
        {
            private array $services = [];

            public function add(string $class): void
            {
                $this->services[$class] = new $class($this);
            }

            public function has(string $id): bool
            {
                return isset($this->services[$id]);
            }

            public function get(string $id): object
            {
                return $this->services[$id];
            }
        }
        PHP;

    private const CONTRACT = <<<'PHP'
        <?php

        declare(strict_types=1);

        namespace Large\Module#;

        interface Contract
        {
            public const MODULE = #;

            public function handle(array $request, ?string $locale = null): array;
        }
        PHP;

    private const BASE = <<<'PHP'
        <?php

        declare(strict_types=1);

        namespace Large\Module#;

        use Large\Container;

        abstract class Base implements Contract
        {
            protected const DEFAULTS = ['locale' => 'en', 'limit' => 50, 'order' => ['id' => 'asc', 'name' => 'desc']];

            protected array $options = self::DEFAULTS;
            private int $handled = 0;

            public function __construct(protected readonly Container $container)
            {
            }

            public function handle(array $request, ?string $locale = null): array
            {
                ++$this->handled;

                return $this->validate([...$this->options, ...$request, 'locale' => $locale ?? 'en']);
            }

            public function handled(): int
            {
                return $this->handled;
            }

            abstract protected function validate(array $request): array;
        }
        PHP;

    /** `#` is the module's number, `%` the service's. */
    private const SERVICE = <<<'PHP'
        <?php

        declare(strict_types=1);

        namespace Large\Module#;

        final class Service% extends Base
        {
            public const NAME = 'module#.service%';
            private const RULES = [
                'id' => ['required', 'integer', 'min:1'],
                'email' => ['required', 'string', 'email', 'max:255'],
                'items' => ['array', 'max:%00'],
            ];

            private ?string $lastError = null;
            private array $cache = ['hits' => 0, 'misses' => 0];

            /** Looks an entry up, or computes it. */
            public function find(int $id, bool $refresh = false): array
            {
                if (!$refresh && isset($this->cache[$id])) {
                    ++$this->cache['hits'];

                    return $this->cache[$id];
                }
                ++$this->cache['misses'];

                return $this->cache[$id] = ['id' => $id, 'name' => self::NAME, 'hash' => md5(self::NAME . $id)];
            }

            public function total(iterable $items, float $rate = 0.2): float
            {
                $total = 0.0;
                foreach ($items as ['price' => $price, 'quantity' => $quantity]) {
                    $total += $price * $quantity * (1 + $rate);
                }

                return round($total, 2);
            }

            public function lastError(): ?string
            {
                return $this->lastError;
            }

            protected function validate(array $request): array
            {
                foreach (self::RULES as $field => $rules) {
                    foreach ($rules as $rule) {
                        [$name, $argument] = explode(':', "$rule:");
                        $passes = match ($name) {
                            'required' => isset($request[$field]),
                            'integer' => is_int($request[$field] ?? 0),
                            'string' => is_string($request[$field] ?? ''),
                            'array' => is_array($request[$field] ?? []),
                            'email' => str_contains($request[$field] ?? '@', '@'),
                            'min' => ($request[$field] ?? PHP_INT_MAX) >= (int) $argument,
                            'max' => true,
                        };
                        if (!$passes) {
                            $this->lastError = "$field: $rule";
                        }
                    }
                }

                return $request;
            }
        }
        PHP;

    public readonly string $root;

    private readonly TemporaryApplication $application;

    public function __construct()
    {
        $modules = intdiv(self::CLASSES, self::MODULE);
        // Next to the contract and the base class.
        $services = self::MODULE - 2;
        $files = [
            'vendor/autoload.php' => self::AUTOLOADER,
            'config/container.php' => strtr(
                self::CONTAINER,
                ['MODULES' => $modules, 'SERVICES' => $services, 'BOOT_MS' => self::BOOT_MS],
            ),
            'src/Container.php' => self::CONTAINER_CLASS,
        ];
        for ($module = 0; $module < $modules; ++$module) {
            $files["src/Module$module/Contract.php"] = strtr(self::CONTRACT, ['#' => $module]);
            $files["src/Module$module/Base.php"] = strtr(self::BASE, ['#' => $module]);
            for ($service = 0; $service < $services; ++$service) {
                $code = strtr(self::SERVICE, ['#' => $module, '%' => $service]);
                $files["src/Module$module/Service$service.php"] = $code;
            }
        }
        $this->application = new TemporaryApplication($files);
        $this->root = $this->application->root;
    }
}
