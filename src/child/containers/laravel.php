// A Laravel application, as its `artisan` boots it.
$file = "$root/bootstrap/app.php";
// The class, and no interface of illuminate/contracts, which others use as well.
if (!\is_file($file) || !\class_exists(\Illuminate\Foundation\Application::class)) {
    return null;
}
\defined('LARAVEL_START') || \define('LARAVEL_START', \microtime(true));
// In a function, so that it sees no variable of ours.
$application = (static fn () => require \func_get_arg(0))($file);
if (!$application instanceof \Illuminate\Contracts\Foundation\Application) {
    $found = \get_debug_type($application);
    throw new \UnexpectedValueException("bootstrap/app.php returned $found, which is no Laravel application.");
}
$application->make(\Illuminate\Contracts\Console\Kernel::class)->bootstrap();

return $application;
