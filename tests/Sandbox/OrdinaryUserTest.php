<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Sandbox;

use Altair\Eval\Tests\Support\Skip;
use Altair\Eval\Tests\Support\TemporaryApplication;
use PHPUnit\Framework\TestCase;

/**
 * Where root runs the tests, an ordinary user runs those of the drivers once more.
 */
final class OrdinaryUserTest extends TestCase
{
    /** A user whom the machine knows for the time of the tests: Firejail runs no others. */
    private const USER = 54323;

    private const FILES = [
        'CommandEnd', 'CommandInput', 'CommandLimits', 'CommandOutput', 'CommandPaths', 'Drivers', 'Keeper', 'Layer',
        'OddUse', 'WorkDirectory',
    ];

    private const BECOME = <<<'SH'
        set -e
        for file in passwd group; do mount --bind "$0/$file" "/etc/$file"; done
        exec setpriv --reuid=altair --regid=altair --clear-groups -- "$@"
        SH;

    public function testTheDriversDoTheSameForAnOrdinaryUser(): void
    {
        posix_geteuid() === 0 || Skip::NeedsRoot->because('It becomes another user.');
        $id = self::USER;
        $known = new TemporaryApplication([
            'passwd' => file_get_contents('/etc/passwd') . "altair:x:$id:$id::/nonexistent:/bin/sh\n",
            'group' => file_get_contents('/etc/group') . "altair:x:$id:\n",
        ]);
        $extension = getenv('EXTENSION');
        $php = [PHP_BINARY, ...($extension === false ? [] : ['-d', "extension=$extension"])];
        $phpunit = [...$php, (string) realpath($_SERVER['SCRIPT_FILENAME']), '--do-not-cache-result', '--colors=never'];

        // Most of the time, each waits for deadlines.
        $runs = [];
        foreach (self::FILES as $name) {
            $log = tmpfile();
            $command = [
                'unshare', '--mount', '--propagation=private', 'bash', '-c', self::BECOME, $known->root,
                ...$phpunit, __DIR__ . "/{$name}Test.php",
            ];
            $process = proc_open($command, [['file', '/dev/null', 'r'], $log, $log], $pipes, dirname(__DIR__, 2));
            self::assertIsResource($process);
            $runs[$name] = [$process, $log];
        }
        foreach ($runs as $name => [$process, $log]) {
            $status = proc_close($process);
            rewind($log);
            $said = (string) stream_get_contents($log);
            self::assertSame(0, $status, "$name:\n$said");
            self::assertMatchesRegularExpression('/^OK/m', $said, $name);
        }
    }
}
