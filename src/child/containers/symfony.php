// The kernel of a Symfony application, in the environment that its `bin/console` would choose.
if (!\interface_exists(\Symfony\Component\HttpKernel\KernelInterface::class)) {
    return null;
}
$file = "$root/composer.json";
$composer = \is_file($file) && \is_readable($file) ? \json_decode((string) \file_get_contents($file), true) : [];

$kernels = [];
foreach ([...\array_keys((array) ($composer['autoload']['psr-4'] ?? [])), 'App\\', 'App'] as $namespace) {
    $kernel = $namespace . 'Kernel';
    if (
        \is_subclass_of($kernel, \Symfony\Component\HttpKernel\KernelInterface::class)
        && (new \ReflectionClass($kernel))->isInstantiable()
    ) {
        $kernels[] = $kernel;
    }
}
if ($kernels === [] && empty($_SERVER['KERNEL_CLASS'] ?? $_ENV['KERNEL_CLASS'] ?? '')) {
    return null;
}

// Does what symfony/runtime does for `bin/console`, with its options. Older applications have a file for that.
$options = \is_array($composer['extra']['runtime'] ?? null) ? $composer['extra']['runtime'] : [];
foreach (['env_var_name' => 'APP_ENV', 'debug_var_name' => 'APP_DEBUG', 'dotenv_path' => '.env'] as $name => $default) {
    $options[$name] = \is_string($options[$name] ?? null) ? $options[$name] : $default;
}
$prod = (array) ($options['prod_envs'] ?? ['prod']);
$env = $options['env_var_name'];
$debug = $options['debug_var_name'];
if (\is_string($options['env'] ?? null)) {
    $_SERVER[$env] = $options['env'];
}
$dotenv = "$root/{$options['dotenv_path']}";
$isThere = \is_file($dotenv) || \is_file("$dotenv.dist") || \is_file("$dotenv.local.php");
if (
    \is_file("$root/config/bootstrap.php")
    && !\class_exists(\Symfony\Component\Runtime\SymfonyRuntime::class)
) {
    // In a function, so that it sees no variable of ours.
    (static fn () => require \func_get_arg(0))("$root/config/bootstrap.php");
} elseif ($isThere && empty($options['disable_dotenv']) && \class_exists(\Symfony\Component\Dotenv\Dotenv::class)) {
    (new \Symfony\Component\Dotenv\Dotenv($env, $debug))
        ->setProdEnvs($prod)
        ->usePutenv(!empty($options['use_putenv']))
        ->bootEnv($dotenv, 'dev', (array) ($options['test_envs'] ?? ['test']), !empty($options['dotenv_overload']));
}
// KERNEL_CLASS as in Symfony's KernelTestCase; `.env.test` may set it.
$class = (string) ($_SERVER['KERNEL_CLASS'] ?? $_ENV['KERNEL_CLASS'] ?? '') ?: $kernels[0];
if (
    !\is_subclass_of($class, \Symfony\Component\HttpKernel\KernelInterface::class)
    || !(new \ReflectionClass($class))->isInstantiable()
) {
    throw new \LogicException("KERNEL_CLASS is $class, which is not a Symfony kernel that can be loaded.");
}
$environment = $_SERVER[$env] ?? $_ENV[$env] ?? 'dev';
$isDebug = $options['debug'] ?? $_SERVER[$debug] ?? $_ENV[$debug] ?? !\in_array($environment, $prod, true);

$kernel = new $class($environment, \filter_var($isDebug, \FILTER_VALIDATE_BOOL));
if (
    $caches !== null
    && ($_SERVER['APP_CACHE_DIR'] ?? null) === "$caches/symfony"
    && $kernel instanceof \Symfony\Component\HttpKernel\Kernel
    && !$kernel->isDebug()
) {
    // The project is read-only, but may have a container that is used without another look. It is not copied: it knows
    // the project's directory by its own.
    unset($_SERVER['APP_CACHE_DIR'], $_ENV['APP_CACHE_DIR']);
    $name = (fn () => $this->getContainerClass())->call($kernel);
    $built = \method_exists($kernel, 'getBuildDir') ? $kernel->getBuildDir() : $kernel->getCacheDir();
    if (\is_file("$built/$name.php")) {
        \putenv('APP_CACHE_DIR');
    } else {
        $_SERVER['APP_CACHE_DIR'] = $_ENV['APP_CACHE_DIR'] = "$caches/symfony";
    }
}
try {
    $kernel->boot();
} catch (\RuntimeException $e) {
    $isTold = $caches !== null && ($_SERVER['APP_CACHE_DIR'] ?? null) === "$caches/symfony";
    if (!$isTold || !\str_starts_with($kernel->getCacheDir(), "$root/")) {
        throw $e;
    }
    $why = "The project is read-only here, and $class has its cache in it: it does not use the variables APP_CACHE_DIR"
        . " and APP_LOG_DIR, as Symfony's MicroKernelTrait does.";
    throw new \RuntimeException("{$e->getMessage()} $why", 0, $e);
}
$container = $kernel->getContainer();
if (
    $caches !== null
    && !\str_starts_with($caches, \sys_get_temp_dir() . '/')
    && \str_starts_with($kernel->getCacheDir(), "$caches/")
    && $container->has('cache_warmer')
) {
    // Runs can only read what a template writes there, so it is all written now.
    try {
        $warmer = $container->get('cache_warmer');
        $warmer->enableOptionalWarmers();
        $warmer->warmUp($kernel->getCacheDir(), $container->getParameter('kernel.build_dir'));
    } catch (\Throwable) {
        // Then what is missing is missing in the runs that need it.
    }
}

// With `framework.test`, the test container also has private services.
return $container->has('test.service_container') ? $container->get('test.service_container') : $container;
