// A Symfony application's kernel, in the environment that its `bin/console` would choose.
return (static function (string $root): ?object {
    if (!\interface_exists(\Symfony\Component\HttpKernel\KernelInterface::class)) {
        return null;
    }
    $isKernel = static fn (string $class): bool => \class_exists($class)
        && \is_subclass_of($class, \Symfony\Component\HttpKernel\KernelInterface::class)
        && (new \ReflectionClass($class))->isInstantiable();
    $composer = \is_file("$root/composer.json")
        ? (array) \json_decode((string) \file_get_contents("$root/composer.json"), true)
        : [];

    // KERNEL_CLASS is what Symfony's own KernelTestCase goes by.
    $named = (string) ($_SERVER['KERNEL_CLASS'] ?? $_ENV['KERNEL_CLASS'] ?? '');
    if ($named !== '' && !$isKernel($named)) {
        throw new \LogicException("KERNEL_CLASS is $named, which is no kernel of Symfony's that can be loaded.");
    }
    $candidates = \array_keys((array) ($composer['autoload']['psr-4'] ?? []));
    $candidates = [...\array_map(static fn ($prefix) => $prefix . 'Kernel', $candidates), 'App\Kernel', 'AppKernel'];
    $class = $named !== '' ? $named : \current(\array_filter($candidates, $isKernel));
    if ($class === false) {
        return null;
    }

    // What symfony/runtime does before `bin/console`, with the same options; before it, an application's own file did.
    $options = (array) ($composer['extra']['runtime'] ?? []);
    $env = $options['env_var_name'] ?? 'APP_ENV';
    $debug = $options['debug_var_name'] ?? 'APP_DEBUG';
    $prod = (array) ($options['prod_envs'] ?? ['prod']);
    $dotenv = "$root/" . ($options['dotenv_path'] ?? '.env');
    $isThere = \is_file($dotenv) || \is_file("$dotenv.dist") || \is_file("$dotenv.local.php");
    if (\is_file("$root/config/bootstrap.php")) {
        (static fn () => require \func_get_arg(0))("$root/config/bootstrap.php");
    } elseif (!($options['disable_dotenv'] ?? false) && $isThere && \class_exists(\Symfony\Component\Dotenv\Dotenv::class)) {
        (new \Symfony\Component\Dotenv\Dotenv($env, $debug))
            ->setProdEnvs($prod)
            ->usePutenv($options['use_putenv'] ?? false)
            ->bootEnv(
                $dotenv,
                'dev',
                (array) ($options['test_envs'] ?? ['test']),
                $options['dotenv_overload'] ?? false,
            );
    }
    $environment = $_SERVER[$env] ?? $_ENV[$env] ?? 'dev';
    $isDebug = $_SERVER[$debug] ?? $_ENV[$debug] ?? !\in_array($environment, $prod, true);

    $kernel = new $class($environment, \filter_var($isDebug, \FILTER_VALIDATE_BOOL));
    $kernel->boot();
    $container = $kernel->getContainer();
    // With `framework.test`, it has private services, too.
    return $container->has('test.service_container') ? $container->get('test.service_container') : $container;
})($root);
