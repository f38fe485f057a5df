<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support;

/**
 * An application in a directory of its own, with an autoloader for `App\` below `src/`. It removes itself.
 */
final class TemporaryApplication
{
    private const AUTOLOADER = <<<'PHP'
        <?php
        spl_autoload_register(static function (string $class): void {
            $file = __DIR__ . '/../src/' . strtr(substr($class, 4), '\\', '/') . '.php';
            if (str_starts_with($class, 'App\\') && is_file($file)) {
                require $file;
            }
        });
        PHP;

    public readonly string $root;

    private readonly int $maker;

    /**
     * @param array<string, string> $files path below the root => contents
     */
    public function __construct(array $files = [])
    {
        $this->maker = (int) getmypid();
        $this->root = (string) realpath(sys_get_temp_dir()) . '/altair-app-' . bin2hex(random_bytes(6));
        mkdir($this->root, 0755, true);
        foreach ($files + ['vendor/autoload.php' => self::AUTOLOADER] as $path => $contents) {
            $this->write($path, $contents);
        }
    }

    public function __destruct()
    {
        // A fork of the host has a copy of this object, and no right to end the application.
        if ($this->maker === getmypid()) {
            self::delete($this->root);
        }
    }

    public function path(string $path): string
    {
        return $this->root . '/' . $path;
    }

    public function write(string $path, string $contents, int $mode = 0644): string
    {
        $file = $this->path($path);
        if (!is_dir(dirname($file))) {
            mkdir(dirname($file), 0755, true);
        }
        file_put_contents($file, $contents);
        chmod($file, $mode);

        return $file;
    }

    public function remove(string $path): void
    {
        self::delete($this->path($path));
    }

    /** Gives everything in it to a user. */
    public function giveTo(int $uid, int $gid): void
    {
        foreach (['', ...$this->tree()] as $path) {
            $path = rtrim($this->path($path), '/');
            lchgrp($path, $gid);
            lchown($path, $uid);
        }
    }

    /**
     * @return list<string> all paths below the root, sorted
     */
    public function tree(): array
    {
        $files = new \RecursiveIteratorIterator(
            new \RecursiveDirectoryIterator($this->root, \FilesystemIterator::SKIP_DOTS),
            \RecursiveIteratorIterator::SELF_FIRST,
        );
        $paths = [];
        foreach ($files as $file) {
            $paths[] = substr($file->getPathname(), strlen($this->root) + 1);
        }
        sort($paths);

        return $paths;
    }

    private static function delete(string $path): void
    {
        if (is_dir($path) && !is_link($path)) {
            chmod($path, 0755);
            foreach (array_diff(scandir($path), ['.', '..']) as $name) {
                self::delete("$path/$name");
            }
            rmdir($path);
        } elseif (is_link($path) || file_exists($path)) {
            unlink($path);
        }
    }
}
