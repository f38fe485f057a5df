// A Laravel application, as its `artisan` boots it.
return (static function (string $file): ?object {
    // The class, and no interface of illuminate/contracts, which others use as well.
    if (!\is_file($file) || !\class_exists(\Illuminate\Foundation\Application::class)) {
        return null;
    }
    $application = require $file;
    if (!$application instanceof \Illuminate\Contracts\Foundation\Application) {
        $found = \get_debug_type($application);
        throw new \UnexpectedValueException("bootstrap/app.php returned $found, which is no Laravel application.");
    }
    $application->make(\Illuminate\Contracts\Console\Kernel::class)->bootstrap();
    return $application;
})("$root/bootstrap/app.php");
