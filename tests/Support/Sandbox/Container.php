<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Sandbox;

use Altair\Eval\Tests\Support\DockerEngine;

/**
 * A container with the engine's default profile and capabilities, of an image that holds BusyBox and the C library. It
 * has the machine's /var/tmp, and so what tests make there.
 */
final class Container
{
    private const IMAGE = 'altair-libc';

    private const MAKE = <<<'SH'
        set -eu
        mkdir -p "$0/bin" "$0/etc" "$0/root" "$0/tmp" "$0/var/tmp"
        chmod 1777 "$0/tmp"
        cp "$(command -v busybox)" "$0/bin/busybox"
        ln -s busybox "$0/bin/sh"
        ln -s busybox "$0/bin/sleep"
        ldd "$1" | grep -o '/[^ ]*' | while read -r library; do
            mkdir -p "$0${library%/*}" && cp "$library" "$0$library"
        done
        echo root:secret-of-the-container:1:: > "$0/etc/shadow"
        chmod 600 "$0/etc/shadow"
        SH;

    /** @var array<int, self> */
    private static array $shared = [];

    private readonly string $id;

    private function __construct(private readonly DockerEngine $engine, int $uid)
    {
        $user = "--user=$uid:$uid";
        $run = 'run --detach --network=none --volume=/var/tmp:/var/tmp';
        [$this->id] = $engine->docker("$run $user " . self::IMAGE . ' sleep 600');
    }

    /** The one of a user. It is gone with the engine. */
    public static function of(int $uid): self
    {
        $engine = DockerEngine::shared();
        if (self::$shared === []) {
            $root = Tools::shared()->directory . '/image';
            Tools::run(implode(' ', array_map(
                escapeshellarg(...),
                ['sh', '-c', self::MAKE, $root, Tools::shared()->altair()],
            )));
            $engine->docker('import - ' . self::IMAGE . " < <(tar --create --directory=$root .)");
        }

        return self::$shared[$uid] ??= new self($engine, $uid);
    }

    /**
     * @param array<string, string> $environment
     * @return list<string> the command that starts another in it
     */
    public function command(string $directory, array $environment = []): array
    {
        $variables = array_map(
            static fn (string $name, string $value): string => "--env=$name=$value",
            array_keys($environment),
            $environment,
        );

        return [
            'docker', "--host={$this->engine->host()}", 'exec', '--interactive', "--workdir=$directory", ...$variables,
            $this->id,
        ];
    }
}
