<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Pool;

use Altair\Eval\Tests\Support\PoolProcess;
use Altair\Eval\Tests\Support\PoolTestCase;
use Altair\Eval\Tests\Support\Without;

/**
 * Hosts that ask again and again, as workers of php-fpm do: each keeps its connection to the pool. They have no
 * capabilities, as only such hosts remember a pool.
 */
final class StayingHostsTest extends PoolTestCase
{
    /**
     * Answers each line that it is given: `ask`, `confine` to ask once it may gain no privileges any more, `fork` to
     * ask as two processes at the same time, `leave` to leave a child behind, and `wait` for a run that takes long.
     */
    private const HOST = <<<'PHP'
        $links = fn (): array => array_map(fn ($fd) => (string) @readlink($fd), glob('/proc/self/fd/*'));
        $inherited = $links();
        $ask = function (string $by) use ($links, $inherited): array {
            [, $root, $port] = $_SERVER['argv'] + [2 => null];
            $connects = $port === null ? 'usleep(2000);' : "fclose(stream_socket_client('tcp://127.0.0.1:$port'));";
            $snippet = "$connects return '$by ' . \$GLOBALS['seen'];";
            $request = new Altair\Eval\EvalRequest($snippet, $root, 60000, allowNetwork: $port !== null);
            $answer = (new Altair\Eval\Evaluator())->evaluate($request);
            $sockets = preg_grep('~^socket:~', array_diff($links(), $inherited));
            $told = $answer->diagnostics;

            return [$answer->result['value'] ?? null, $told['start'], $told['pool'] ?? false, array_values($sockets)];
        };
        while (($line = fgets(STDIN)) !== false) {
            if ($line === "leave\n") {
                $child = pcntl_fork();
                $child === 0 && sleep(60) + exit;
                fwrite(STDOUT, json_encode([$child, getmypid()]) . "\n");
                continue;
            }
            if ($line === "wait\n") {
                $request = new Altair\Eval\EvalRequest('sleep(60);', $_SERVER['argv'][1], 60000);
                (new Altair\Eval\Evaluator())->evaluate($request);
            }
            if ($line === "confine\n") {
                // PR_SET_NO_NEW_PRIVS
                FFI::cdef('int prctl(int, long, long, long, long);')->prctl(38, 1, 0, 0, 0);
            }
            $child = $line === "fork\n" ? pcntl_fork() : -1;
            $told = json_encode($ask($child === 0 ? 'child' : 'host'));
            if ($child > 0) {
                pcntl_waitpid($child, $status);
            }
            fwrite(STDOUT, "$told\n");
            if ($child === 0) {
                exit;
            }
        }
        PHP;

    /** How many hosts may keep their connection; see crates/pool/src/server.rs. */
    private const KEPT = 32;

    /** @var list<array{resource, array<int, resource>}> processes and their pipes */
    private array $hosts = [];

    /** @var list<string> a command that takes all capabilities */
    private array $unable = [];

    protected function makePool(): PoolProcess
    {
        if (posix_geteuid() !== 0) {
            return new PoolProcess();
        }
        ['uid' => $uid, 'gid' => $gid] = posix_getpwnam('nobody');
        $this->unable = ['setpriv', "--reuid=$uid", "--regid=$gid", '--init-groups'];
        $pool = new PoolProcess($this->unable);
        chown($pool->directory, $uid);

        return $pool;
    }

    protected function endHosts(): void
    {
        foreach ($this->hosts as [$process, $pipes]) {
            array_map(fclose(...), $pipes);
            proc_close($process);
        }
        $this->hosts = [];
    }

    public function testAConnectionIsKept(): void
    {
        $pid = $this->pool->start();
        $host = $this->host();

        [, $start, $pool, $sockets] = $this->ask($host);
        self::assertSame(['first', true], [$start, $pool]);
        self::assertCount(1, $sockets);
        for ($call = 0; $call < 20; $call++) {
            self::assertSame(['host old', 'warm', true, $sockets], $this->ask($host));
        }
        $this->edit('new');
        self::assertSame(['host new', 'first', true, $sockets], $this->ask($host));
        self::assertSame($pid, $this->pool->pid());
    }

    public function testAPoolThatHasEndedIsNotMissed(): void
    {
        foreach ([SIGKILL, SIGTERM] as $signal) {
            $pid = $this->pool->start();
            $host = $this->host();
            $this->ask($host);
            self::assertTrue($this->ask($host)[2]);

            posix_kill($pid, $signal);
            $this->pool->await(static fn (): bool => !posix_kill($pid, 0));
            [$value, , $pool, $sockets] = $this->ask($host);
            self::assertSame(['host old', false, []], [$value, $pool, $sockets], 'The host has run it by itself.');

            $this->pool->start();
            $other = $this->host();
            self::assertTrue($this->ask($other)[2]);
            $this->pool->end();
        }
    }

    public function testAPoolThatIsStoppedIsNotWaitedFor(): void
    {
        foreach ([SIGKILL, SIGCONT] as $then) {
            $pid = $this->pool->start();
            $host = $this->host();
            $this->ask($host);
            posix_kill($pid, SIGSTOP);
            $began = hrtime(true);
            fwrite($this->hosts[$host][1][0], "ask\n");
            if ($then === SIGKILL) {
                // It has not read what it was asked.
                usleep(100_000);
                posix_kill($pid, $then);
            }

            [$value, , $pool, $sockets] = $this->answer($host);
            self::assertSame(['host old', false, []], [$value, $pool, $sockets], 'The host has run it by itself.');
            self::assertLessThan(5e9, hrtime(true) - $began);
            if ($then === SIGCONT) {
                posix_kill($pid, $then);
                self::assertTrue($this->ask($this->host())[2]);
                $uses = $this->pool->told()['templates'][0]['uses'];
                self::assertSame(2, $uses, 'It has not run what was given up.');
            }
            $this->pool->end();
        }
    }

    public function testAHostThatFindsANewPoolAsksIt(): void
    {
        $pid = $this->pool->start();
        $host = $this->host();
        $this->ask($host);
        posix_kill($pid, SIGKILL);
        $this->pool->start();

        [$value, , $pool, $sockets] = $this->ask($host);
        self::assertSame(['host old', true], [$value, $pool]);
        self::assertCount(1, $sockets);
    }

    public function testAHostThatHasEnteredASandboxGetsNoForkOfThePool(): void
    {
        $this->pool->start();
        $host = $this->host();
        foreach ([1, 2, 3] as $call) {
            $this->ask($host);
        }
        $ready = fn (): bool => $this->pool->told()['templates'][0]['spares'] > 0;
        $this->pool->await($ready);
        $before = count($this->processes());
        [$value, $start, $pool, $sockets] = $this->ask($host, 'confine');
        self::assertSame(['host old', 'cold', false, []], [$value, $start, $pool, $sockets]);
        // The fork that got ready for it has ended, and there is another one.
        $this->pool->await($ready);
        $this->pool->await(fn (): bool => count($this->processes()) === $before);
        self::assertSame(0, $this->pool->told()['running']);
    }

    public function testCodeOfAHostThatHasEnteredASandboxRunsThereAlone(): void
    {
        $this->pool->start();
        $listener = stream_socket_server('tcp://127.0.0.1:0');
        $port = explode(':', stream_socket_get_name($listener, false))[1];
        stream_set_blocking($listener, false);
        $connections = static function () use ($listener): int {
            usleep(20_000);
            for ($count = 0; @stream_socket_accept($listener, 0) !== false; $count++) {
            }

            return $count;
        };
        // The fork that gets ready for it is ended soon: not each time would it connect first if it had the code.
        for ($i = 0; $i < 20; $i++) {
            $host = $this->host($port);
            $this->ask($host);
            self::assertTrue($this->ask($host)[2]);
            $this->pool->await(fn (): bool => $this->pool->told()['templates'][0]['spares'] > 0);
            self::assertSame(2, $connections());
            self::assertFalse($this->ask($host, 'confine')[2]);
            self::assertSame(1, $connections());
        }
    }

    public function testAForkOfAHostHasAConnectionOfItsOwn(): void
    {
        $this->pool->start();
        $host = $this->host();
        [, , , $sockets] = $this->ask($host);

        $answers = [$this->ask($host, 'fork'), $this->answer($host)];
        sort($answers);
        [[$child, , $ofChild, $own], [$parent, , $ofParent, $kept]] = $answers;
        self::assertSame(['child old', true, 'host old', true], [$child, $ofChild, $parent, $ofParent]);
        self::assertSame($sockets, $kept, 'The host has its connection still.');
        self::assertNotSame($sockets, $own);
        self::assertSame(['host old', 'warm', true, $sockets], $this->ask($host));
    }

    public function testARunEndsWithItsHostThoughAChildOfThatHasTheConnection(): void
    {
        $this->pool->start();
        $host = $this->host();
        $this->ask($host);
        [$child, $pid] = $this->ask($host, 'leave');
        try {
            fwrite($this->hosts[$host][1][0], "wait\n");
            $this->pool->await(fn (): bool => $this->pool->told()['running'] === 1);
            posix_kill($pid, SIGKILL);
            $this->pool->await(fn (): bool => $this->pool->told()['running'] === 0);
            self::assertTrue(posix_kill($child, 0), 'The child is there still.');
        } finally {
            posix_kill($child, SIGKILL);
        }
    }

    public function testHostsThatStayLeaveRoomForOthers(): void
    {
        $this->pool->start();
        for ($i = 0; $i < self::KEPT + 8; $i++) {
            $hosts[] = $this->host();
        }
        foreach ([1, 2] as $round) {
            $kept = 0;
            foreach ($hosts as $host) {
                [$value, , $pool, $sockets] = $this->ask($host);
                self::assertSame(['host old', true], [$value, $pool]);
                $kept += count($sockets);
            }
            self::assertSame(self::KEPT, $kept);
        }
        $told = $this->pool->evaluate($this->shop, self::SEEN)['diagnostics'];
        self::assertSame(['warm', true], [$told['start'], $told['pool']]);
    }

    /** Starts a host, and returns its number. `$port`: what it evaluates connects to that one. */
    private function host(string ...$port): int
    {
        $process = proc_open(
            [
                ...$this->unable, PHP_BINARY, '-d', 'extension=' . Without::extension(), '-r', self::HOST, '--',
                $this->shop->root, ...$port,
            ],
            [['pipe', 'r'], ['pipe', 'w']],
            $pipes,
            '/',
            $this->environment(),
        );
        $this->hosts[] = [$process, $pipes];

        return count($this->hosts) - 1;
    }

    /**
     * What a host is told: value, start, whether the pool has answered, and the sockets that it has then.
     *
     * @return array{string, string, bool, list<string>}
     */
    private function ask(int $host, string $how = 'ask'): array
    {
        fwrite($this->hosts[$host][1][0], "$how\n");

        return $this->answer($host);
    }

    /** @return array{string, string, bool, list<string>} */
    private function answer(int $host): array
    {
        return json_decode((string) fgets($this->hosts[$host][1][1]), true, flags: JSON_THROW_ON_ERROR);
    }
}
