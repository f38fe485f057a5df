<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Containers;

/**
 * A way to start a container: its user and its flags. Without flags it is the machine itself.
 */
final class Setting
{
    public const ROOT = 0;
    public const USER = 1000;

    /**
     * @param list<string>|null $flags of `docker run`; null is outside of any container
     */
    private function __construct(public readonly string $name, public readonly int $uid, public readonly ?array $flags)
    {
    }

    /**
     * @param string $docker the file that `altair doctor --docker-profile` has written
     * @param string $kubernetes the same of `--kubernetes-profile`
     * @return array<string, self> by name
     */
    public static function all(string $docker, string $kubernetes): array
    {
        $ways = [
            'no container' => null,
            'default' => [],
            '--cap-add SYS_PTRACE' => ['--cap-add=SYS_PTRACE'],
            '--cap-add SYS_ADMIN' => ['--cap-add=SYS_ADMIN'],
            "doctor's profile" => ["--security-opt=seccomp=$docker"],
            'its profile for Kubernetes' => ["--security-opt=seccomp=$kubernetes"],
            'seccomp=unconfined' => ['--security-opt=seccomp=unconfined'],
            '--cap-drop ALL' => ['--cap-drop=ALL', '--security-opt=no-new-privileges'],
            '--read-only, tmpfs on /tmp' => ['--read-only', '--tmpfs=/tmp:mode=1777'],
        ];
        $settings = [];
        foreach ($ways as $way => $flags) {
            foreach (['root' => self::ROOT, 'user' => self::USER] as $who => $uid) {
                $settings["$way, $who"] = new self("$way, $who", $uid, $flags);
            }
        }

        return $settings;
    }
}
