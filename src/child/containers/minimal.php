namespace Altair\Eval\Child;

/** The container of an application that configures none: creates objects without constructor arguments. */
trait Instantiating
{
    private array $made = [];

    public function has($id): bool
    {
        return \class_exists($id) && $this->obstacle($id) === null;
    }

    public function get($id): mixed
    {
        if (isset($this->made[$id])) {
            return $this->made[$id];
        }
        $obstacle = \class_exists($id) ? $this->obstacle($id) : 'there is no such class';
        if ($obstacle !== null) {
            $message = "The application configures no container (there is no config/container.php), so only"
                . " classes without required constructor arguments are available; $id is not: $obstacle.";
            throw $this->notFound($message);
        }
        return $this->made[$id] = new $id();
    }

    private function obstacle(string $id): ?string
    {
        $class = new \ReflectionClass($id);
        if (!$class->isInstantiable()) {
            return 'it cannot be instantiated';
        }
        $required = $class->getConstructor()?->getNumberOfRequiredParameters() ?? 0;
        return $required === 0 ? null : "its constructor requires $required argument" . ($required === 1 ? '' : 's');
    }

    private function notFound(string $message): \RuntimeException
    {
        return \interface_exists(\Psr\Container\NotFoundExceptionInterface::class)
            ? new class ($message) extends \RuntimeException implements \Psr\Container\NotFoundExceptionInterface {
            }
            : new \RuntimeException($message);
    }
}

return \interface_exists(\Psr\Container\ContainerInterface::class)
    ? new class implements \Psr\Container\ContainerInterface {
        use Instantiating;
    }
    : new class {
        use Instantiating;
    };
