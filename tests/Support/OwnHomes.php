<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support;

/**
 * Commands for which root and a user have homes of their own, by a user database of their own: in a mount namespace, so
 * that the machine's is as it was.
 */
final class OwnHomes
{
    private readonly TemporaryApplication $place;

    public function __construct(private readonly int $user)
    {
        if (posix_geteuid() !== 0) {
            Skip::NeedsRoot->because('Only root can mount a user database without a user namespace.');
        }
        $this->place = new TemporaryApplication(['etc/altair/.keep' => '']);
        foreach ([0, $this->user] as $uid) {
            mkdir($this->of($uid));
            chown($this->of($uid), $uid);
        }
        $this->place->write('etc/passwd', sprintf(
            "root:x:0:0:root:%s:/bin/sh\ntester:x:%d:%2\$d::%s:/bin/sh\n",
            $this->of(0),
            $this->user,
            $this->of($this->user),
        ));
    }

    public function of(int $uid): string
    {
        return $this->place->path("home-$uid");
    }

    /** The file of what a user allows. */
    public function file(int $uid): string
    {
        return $this->of($uid) . '/.config/altair/config.toml';
    }

    /** The machine's, which is /etc/altair/config.toml for commands. */
    public function machines(): string
    {
        return $this->place->path('etc/altair/config.toml');
    }

    /**
     * @param list<string> $command
     * @param array<string, string> $environment
     */
    public function run(array $command, int $uid = 0, array $environment = []): Command
    {
        // A directory of the machine's cannot be made for a test: one that is laid over /etc has it.
        $mount = 'set -e; mount -t overlay -o "lowerdir=$1:/etc" overlay /etc; shift; exec "$@"';
        $as = $uid === 0 ? [] : ['setpriv', "--reuid=$uid", "--regid=$uid", '--clear-groups', '--'];

        return Command::of([
            'unshare', '--mount', '--propagation=private', 'sh', '-c', $mount, 'sh',
            $this->place->path('etc'), ...$as, ...$command,
        ], environment: $environment);
    }
}
