// A Laravel application, booted as by its `artisan`.
$file = "$root/bootstrap/app.php";
// Checks the class, since others also use the interfaces of illuminate/contracts.
if (!\is_file($file) || !\class_exists(\Illuminate\Foundation\Application::class)) {
    return null;
}
\defined('LARAVEL_START') || \define('LARAVEL_START', \microtime(true));
// In a function, so that it sees no variable of ours.
$application = (static fn () => require \func_get_arg(0))($file);
if (!$application instanceof \Illuminate\Contracts\Foundation\Application) {
    $found = \get_debug_type($application);
    throw new \UnexpectedValueException("bootstrap/app.php returned $found, which is not a Laravel application.");
}
if ($caches !== null && $application instanceof \Illuminate\Foundation\Application) {
    // The project is read-only: what is written in each run goes to the run's own directory. The rest of the
    // directory `storage` stays where it is, since it has files of the application.
    $elsewhere = static function ($application) use ($root): void {
        $config = $application->make('config');
        $paths = [
            'view.compiled' => null,
            'session.files' => null,
            'logging.channels.emergency.path' => $application->storagePath() . '/logs/laravel.log',
        ];
        foreach (\array_keys((array) $config->get('logging.channels')) as $name) {
            $paths += ["logging.channels.$name.path" => null];
        }
        foreach (\array_keys((array) $config->get('cache.stores')) as $name) {
            $paths += ["cache.stores.$name.path" => null, "cache.stores.$name.lock_path" => null];
        }
        foreach ($paths as $key => $default) {
            $path = $config->get($key, $default);
            if (\is_string($path) && \str_starts_with($path, "$root/")) {
                $path = \sys_get_temp_dir() . \substr($path, \strlen($root));
                $directory = \pathinfo($path, \PATHINFO_EXTENSION) === '' ? $path : \dirname($path);
                \is_dir($directory) || \mkdir($directory, 0700, true);
                $config->set($key, $path);
            }
        }
    };
    $application->afterBootstrapping(\Illuminate\Foundation\Bootstrap\LoadConfiguration::class, $elsewhere);
}
$application->make(\Illuminate\Contracts\Console\Kernel::class)->bootstrap();

return $application;
