// The project is read-only: frameworks are told to write elsewhere, where nothing else tells them to.
$tell = static function (string $name, string $value): void {
    if (!isset($_SERVER[$name]) && !isset($_ENV[$name]) && \getenv($name) === false) {
        \putenv("$name=$value");
        $_SERVER[$name] = $_ENV[$name] = $value;
    }
};
$temp = \sys_get_temp_dir();
if (\is_file("$root/bootstrap/app.php") && \class_exists(\Illuminate\Foundation\Application::class)) {
    // What is written whenever the application has changed. It does not depend on where it is.
    foreach (['PACKAGES', 'SERVICES'] as $name) {
        $file = \strtolower($name) . '.php';
        \is_dir("$caches/laravel") || \mkdir("$caches/laravel", 0700, true);
        \is_file("$root/bootstrap/cache/$file")
            && @\copy("$root/bootstrap/cache/$file", "$caches/laravel/$file");
        $tell("APP_{$name}_CACHE", "$caches/laravel/$file");
    }
    // Read where the skeleton's config/view.php is; see laravel.php for what else is written.
    \mkdir("$temp/views");
    $tell('VIEW_COMPILED_PATH', "$temp/views");
} elseif (\trait_exists(\Symfony\Bundle\FrameworkBundle\Kernel\MicroKernelTrait::class)) {
    // The directory for what is built is that for caches, where nothing else is said.
    $tell('APP_CACHE_DIR', "$caches/symfony");
    $tell('APP_LOG_DIR', "$temp/log");
}
return null;
