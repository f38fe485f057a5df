<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Sandbox;

use Altair\Eval\Tests\Support\Command;
use Altair\Eval\Tests\Support\Without;

/**
 * A user whom the machine knows for the time of a command, with a home, and a project in it: `altair run` is started as
 * a person starts it. As root, it is root whose home that is.
 */
final class Household
{
    /** Makes the files in place of those of `/etc`, in a mount namespace, and becomes somebody. */
    private const ENTER = 'for file in passwd group; do mount --bind "$0/$file" "/etc/$file" || exit 99; done;'
        . ' exec "$@"';

    private readonly string $directory;

    public readonly string $home;

    public readonly string $project;

    /** `$isLinked`: the user database has a path that leads through a link. */
    public function __construct(public readonly Caller $caller, bool $isLinked = false)
    {
        $this->directory = '/var/tmp/altair-household-' . bin2hex(random_bytes(6));
        $this->home = $this->directory . ($isLinked ? '/alias/home' : '/home');
        $this->project = "$this->home/project";
        mkdir($this->directory);
        $isLinked && symlink('.', "$this->directory/alias");
        mkdir($this->project, recursive: true);
        foreach ([$this->directory, $this->home, $this->project] as $directory) {
            chmod($directory, 0755);
        }
        $uid = $caller->uid();
        $others = '/^(root:|[^:]*:[^:]*:' . $uid . ':)/';
        $lines = ['passwd' => "resident:x:$uid:$uid::$this->home:/bin/sh", 'group' => "resident:x:$uid:"];
        foreach ($lines as $file => $own) {
            $known = array_filter(
                file("/etc/$file"),
                static fn (string $line): bool => preg_match($others, $line) !== 1,
            );
            $root = $uid === 0 ? [] : [$file === 'passwd' ? 'root:x:0:0::/root:/bin/sh' : 'root:x:0:'];
            file_put_contents("$this->directory/$file", implode("\n", [$own, ...$root]) . "\n" . implode('', $known));
        }
        $this->giveAway($this->home);
    }

    public function __destruct()
    {
        Tools::run('rm -rf ' . escapeshellarg($this->directory));
    }

    /** Makes a file of the user's, and the directories above it. */
    public function put(string $path, string $content, int $mode = 0644): string
    {
        $path = str_starts_with($path, '/') ? $path : "$this->home/$path";
        is_dir(dirname($path)) || mkdir(dirname($path), 0755, true);
        file_put_contents($path, $content);
        chmod($path, $mode);
        $this->giveAway($this->home);

        return $path;
    }

    public function giveAway(string $path): void
    {
        $uid = $this->caller->uid();
        posix_geteuid() === 0 && $uid !== 0 && Tools::run("chown -hR $uid:$uid " . escapeshellarg($path));
    }

    /**
     * Runs `altair run` in the project.
     *
     * @param list<string> $arguments
     * @param list<string> $without what the machine lacks ({@see Without})
     * @param array<string, string> $environment
     */
    public function run(
        array $arguments,
        array $without = [],
        ?string $directory = null,
        array $environment = [],
    ): Command {
        return Command::of(
            $this->command($arguments, $without),
            $directory ?? $this->project,
            environment: $environment + ['HOME' => $this->home, 'XDG_CONFIG_HOME' => ''],
        );
    }

    /**
     * The command that starts `altair run` on this machine as the one who does.
     *
     * @param list<string> $arguments
     * @param list<string> $without
     * @return list<string>
     */
    public function command(array $arguments, array $without = []): array
    {
        return $this->enter($this->caller->setting()->hostCommand(
            $this->lacking($without, [Tools::shared()->altair(), 'run', ...$arguments]),
        ));
    }

    /**
     * Runs as the user, with nothing that holds it.
     *
     * @param list<string> $command
     */
    public function unheld(array $command, ?string $directory = null): Command
    {
        return Command::of(
            $this->enter($this->caller->setting()->command($command)),
            $directory ?? $this->project,
            environment: ['HOME' => $this->home],
        );
    }

    /**
     * @param list<string> $without
     * @param list<string> $command
     * @return list<string>
     */
    private function lacking(array $without, array $command): array
    {
        return $without === [] ? $command : [...Without::under($without), ...$command];
    }

    /**
     * @param list<string> $command
     * @return list<string> the command where the machine knows the user
     */
    private function enter(array $command): array
    {
        $enter = ['unshare', '--mount', '--propagation=private', 'sh', '-c', self::ENTER, $this->directory];

        return posix_geteuid() === 0 ? [...$enter, ...$command] : $command;
    }

    /**
     * Names, kinds, modes, owners, links, sizes, contents and times of change below the directory; the last of them
     * tells of every attribute, too.
     *
     * @return list<string>
     */
    public static function tree(string $directory): array
    {
        $at = escapeshellarg($directory);
        exec("find $at -printf '%P %y %m %U %G %n %s %T@ %C@ %l\\n' | sort", $found);
        exec("find $at -type f -exec md5sum {} + | sort", $found);

        return $found;
    }
}
