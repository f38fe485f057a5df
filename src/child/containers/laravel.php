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
$application->make(\Illuminate\Contracts\Console\Kernel::class)->bootstrap();

return $application;
