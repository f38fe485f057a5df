<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Sandbox\Escape;

use Altair\Eval\Tests\Support\Sandbox\Attempt;
use Altair\Eval\Tests\Support\Sandbox\Caller;
use Altair\Eval\Tests\Support\Sandbox\CommandEscapeTestCase;
use Altair\Eval\Tests\Support\Sandbox\Ground;

/**
 * Signals to processes outside, by name and by descriptors, and a terminal that is not the command's own.
 */
final class SignalTest extends CommandEscapeTestCase
{
    /**
     * @dataProvider everyone
     */
    public function testNoSignalReachesOthers(Caller $caller): void
    {
        self::assertHeld(
            $caller,
            static fn (Ground $ground): array => ['signals', (string) $ground->bystander()->pid, (string) SIGURG],
        );
    }

    /**
     * @dataProvider everyone
     */
    public function testNoDescriptorSendsSignalsToOthers(Caller $caller): void
    {
        self::assertHeld(
            $caller,
            static fn (Ground $ground): array => ['owner', (string) $ground->bystander()->pid, (string) SIGURG],
        );
    }

    /**
     * @dataProvider everyone
     */
    public function testNobodyIsHeldUpAtAFileThatMayBeRead(Caller $caller): void
    {
        $lease = static fn (Ground $ground): array => ['lease', $ground->secretFile];
        $isHeldUp = static function (Ground $ground, Attempt $attempt): array {
            // Does not wait for the holder of a lease.
            $file = @fopen($ground->secretFile, 'r+n');

            return $file === false ? ['it cannot be opened'] : [];
        };
        self::assertHeldWhileItRuns($caller, $lease, $isHeldUp, ['--read=../outside']);
    }

    /**
     * @dataProvider everyone
     */
    public function testTheTerminalOfTheHostStaysAsItIs(Caller $caller): void
    {
        foreach ([null, []] as $held) {
            $ground = new Ground($caller);
            // Its other end is not closed before it was looked at.
            $terminal = proc_open(['sleep', '60'], [['pty'], ['pty'], ['pty']], $ends);
            $input = '/proc/' . proc_get_status($terminal)['pid'] . '/fd/0';
            self::await(static fn (): bool => str_starts_with((string) @readlink($input), '/dev/pts/'), 'No terminal.');
            $path = readlink($input);
            $ground->giveAway($path);
            $attempt = new Attempt($ground, ['type', 'x'], $held, ['file', $path, 'r+']);
            $attempt->end();
            exec('stty -F ' . escapeshellarg($path) . ' size', $lines);
            clearstatcache();
            $has = [array_pop($lines), decoct(fileperms($path) & 0777)];
            proc_terminate($terminal, SIGKILL);
            // Waits; the end of the resource does not.
            proc_close($terminal);
            $held === null
                ? self::assertSame(['77 77', '666'], $has, $attempt->story())
                : self::assertNotContains($has[0], ['77 77'], $attempt->story());
            if ($held !== null) {
                self::assertNotSame('666', $has[1], $attempt->story());
            }
        }
    }
}
