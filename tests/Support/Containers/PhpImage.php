<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Containers;

use Altair\Eval\Tests\Support\DockerEngine;
use RuntimeException;

/**
 * Images of the tests' Docker engine that have the machine's own PHP: one with PHP alone, and the one that the
 * example's Dockerfile makes of it. Both are made once for an engine.
 *
 * What programs and extensions link to is found as their loader finds it, so it does not matter who has packaged PHP.
 */
final class PhpImage
{
    /** PHP with its extensions and the libraries of the distribution, BusyBox, and the users root and 1000. */
    public const PHP = 'altair-php';

    /** The same with Altair Eval, as examples/docker/Dockerfile puts it there. */
    public const ALTAIR = 'altair-php-altair';

    /** The files of `make install`, and nothing else. */
    private const INSTALLED = 'altair-installed';

    /**
     * Microseconds after which a template trusts files with time stamps of whole seconds, as `tar` makes them: on some
     * file systems they may be two seconds old.
     */
    private const TRUSTED = 2_100_000;

    /** What PHP opens by name: time zones (Debian's PHP has none of its own), character sets, a locale. */
    private const ALSO = ['/usr/share/zoneinfo', '/usr/lib/locale/C.utf8', '/etc/mime.types', '/etc/services'];

    private const ETC = [
        'passwd' => "root:x:0:0:root:/root:/bin/sh\ndeveloper:x:1000:1000::/home/developer:/bin/sh\n"
            . "nobody:x:65534:65534::/:/bin/false\n",
        'group' => "root:x:0:\ndeveloper:x:1000:\nnogroup:x:65534:\n",
        'nsswitch.conf' => "passwd: files\ngroup: files\nhosts: files dns\n",
        'os-release' => "ID=altair-test\nNAME=\"PHP of the machine that runs the tests\"\n",
    ];

    /** @var array<string, self> by the engine's address */
    private static array $made = [];

    private function __construct(private readonly DockerEngine $engine)
    {
        $directory = sys_get_temp_dir() . '/altair-image-' . bin2hex(random_bytes(6));
        mkdir($directory, 0700);
        try {
            $this->importPhp("$directory/php");
            $this->importInstalled("$directory/installed");
            $this->build("$directory/context");
            usleep(self::TRUSTED);
        } finally {
            self::shell('rm -rf -- ' . escapeshellarg($directory));
        }
    }

    /** Makes the images in an engine that does not have them. */
    public static function in(DockerEngine $engine): self
    {
        return self::$made[$engine->host()] ??= new self($engine);
    }

    /** A base image such as the official ones of PHP are: it knows nothing of Altair Eval. */
    private function importPhp(string $root): void
    {
        $binary = (string) realpath(PHP_BINARY);
        $extensions = glob(ini_get('extension_dir') . '/*.so') ?: [];
        $path = array_filter(explode(PATH_SEPARATOR, get_include_path()), is_dir(...));
        $files = [
            $binary, ...$extensions,
            ...self::linkedBy($binary, self::native(), ...$extensions),
            ...self::iniFiles(),
            ...array_diff($path, ['.']),
            ...array_filter(self::ALSO, file_exists(...)),
        ];
        mkdir("$root/etc", 0755, true);
        foreach (self::ETC as $name => $contents) {
            file_put_contents("$root/etc/$name", $contents);
        }
        file_put_contents("$root.files", implode("\n", array_unique(array_map(self::place(...), $files))) . "\n");
        $own = <<<'SH'
            set -eu
            cd "$1"
            for name in bin sbin lib lib32 lib64 libx32; do
                if [ -L "/$name" ]; then mkdir -p "usr/$name" && ln -s "usr/$name" "$name"; fi
            done
            mkdir -p bin usr/bin usr/sbin usr/local/bin root home/developer app proc sys dev tmp var/tmp run
            chmod 1777 tmp var/tmp
            chown 1000:1000 home/developer
            cp "$(command -v busybox)" bin/busybox
            for name in $(bin/busybox --list); do [ -e "bin/$name" ] || ln -s busybox "bin/$name"; done
            ln -s "$2" usr/local/bin/php
            SH;
        self::shell('sh -c ' . escapeshellarg($own) . ' sh ' . escapeshellarg($root) . ' ' . escapeshellarg($binary));
        // Links to files become files: what they point to may have another place here.
        self::shell(
            "tar --create --dereference --exclude='*altair_eval*' --absolute-names --transform='s,^/*,,'"
            . " --files-from=$root.files --file=$root.tar && tar --append --directory=$root --file=$root.tar .",
        );
        $this->engine->docker("import $root.tar " . self::PHP);
    }

    /** What `make install` writes, as the Dockerfile's builder leaves it. */
    private function importInstalled(string $root): void
    {
        mkdir("$root/install", 0755, true);
        $build = [
            'EXTENSION' => self::extension(), 'NATIVE' => self::native(), 'PHP' => PHP_BINARY,
            'DESTDIR' => "$root/install",
        ];
        $set = implode(' ', array_map(
            static fn (string $name, string $value): string => $name . '=' . escapeshellarg($value),
            array_keys($build),
            $build,
        ));
        self::shell($set . ' ' . escapeshellarg(self::top() . '/scripts/install.sh') . ' install');
        $this->engine->docker('import - ' . self::INSTALLED . " < <(tar --create --directory=$root .)");
    }

    /** The last stage of the example's Dockerfile. Those before it need a network; these images stand in for them. */
    private function build(string $context): void
    {
        mkdir($context);
        $file = (string) file_get_contents(self::top() . '/examples/docker/Dockerfile');
        $last = strrpos($file, "\nFROM php\n");
        if ($last === false) {
            throw new RuntimeException('The last stage of examples/docker/Dockerfile is not `FROM php`.');
        }
        file_put_contents(
            "$context/Dockerfile",
            'FROM ' . self::PHP . " AS php\nFROM " . self::INSTALLED . ' AS build' . substr($file, $last),
        );
        // Not every installation of Docker has the plugin of the newer builder.
        $this->engine->docker('build --quiet --network=none --tag=' . self::ALTAIR . " $context");
    }

    /**
     * @return list<string> the ini files of this PHP, and all of Debian's for it
     */
    private static function iniFiles(): array
    {
        $files = [php_ini_loaded_file(), ...explode(PATH_SEPARATOR, PHP_CONFIG_FILE_SCAN_DIR)];
        $files[] = '/etc/php/' . PHP_MAJOR_VERSION . '.' . PHP_MINOR_VERSION . '/mods-available';

        return array_values(array_filter($files, static fn ($file) => is_string($file) && file_exists($file)));
    }

    /**
     * @return list<string> the libraries that a program's loader would map
     */
    private static function linkedBy(string ...$files): array
    {
        $lines = self::shell('ldd ' . implode(' ', array_map(escapeshellarg(...), $files)));
        preg_match_all('~^\s+(?:\S+ => )?(/\S+) \(0x~m', $lines, $found);

        return array_values(array_unique($found[1]));
    }

    /** A path without links to directories, such as /lib is, but with the name that it has. */
    private static function place(string $path): string
    {
        return realpath(dirname($path)) . '/' . basename($path);
    }

    /** The extension that is tested. */
    public static function extension(): string
    {
        return getenv('EXTENSION') ?: throw new RuntimeException('EXTENSION is not set.');
    }

    /** The command that is tested. */
    public static function native(): string
    {
        return getenv('ALTAIR_NATIVE') ?: dirname(self::extension()) . '/altair';
    }

    private static function top(): string
    {
        return dirname(__DIR__, 3);
    }

    private static function shell(string $command): string
    {
        exec("$command 2>&1", $lines, $status);

        return $status === 0 ? implode("\n", $lines) : throw new RuntimeException("$command\n" . implode("\n", $lines));
    }
}
