<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Pool;

use Altair\Eval\Tests\Support\PoolProcess;
use Altair\Eval\Tests\Support\PoolTestCase;
use Altair\Eval\Tests\Support\Servers\Fpm;
use Altair\Eval\Tests\Support\Skip;
use Altair\Eval\Tests\Support\TemporaryApplication;

/**
 * Workers of php-fpm have changed their user, and the kernel lets nobody of that user look into them. It stays so while
 * they ask the pool, which serves them all the same.
 *
 * What the pool says to those that are confined, crates/pool/tests/whom_it_serves/ tells.
 */
final class HiddenHostsTest extends PoolTestCase
{
    private const USER = 'nobody';

    private const ROUNDS = 40;

    /**
     * Tries again and again to look into a process, until its standard input ends; then it says what it could.
     */
    private const ATTACKER = <<<'PHP'
        [, $pid] = $argv;
        $done = [];
        stream_set_blocking(STDIN, false);
        echo "ready\n";
        while (fgets(STDIN) === false && !feof(STDIN)) {
            for ($i = 0; $i < 50; ++$i) {
                foreach (['mem', 'environ', 'maps'] as $file) {
                    @fopen("/proc/$pid/$file", 'r') && $done[$file] = true;
                }
                foreach (['root', 'exe', 'fd/0', 'ns/net'] as $link) {
                    @readlink("/proc/$pid/$link") && $done[$link] = true;
                }
            }
        }
        ksort($done);
        echo json_encode(array_keys($done)), "\n";
        PHP;

    private ?Fpm $server = null;

    private TemporaryApplication $pages;

    /** @var list<string> a command that becomes the workers' user */
    private array $asUser;

    protected function makePool(): PoolProcess
    {
        if (posix_geteuid() !== 0) {
            Skip::NeedsRoot->because('Only root can start workers that change their user.');
        }
        Fpm::program() ?? Skip::NotInstalled->because('php-fpm is not installed.');
        ['uid' => $uid, 'gid' => $gid] = posix_getpwnam(self::USER);
        $this->asUser = ['setpriv', "--reuid=$uid", "--regid=$gid", '--init-groups'];
        $pool = new PoolProcess($this->asUser);
        chown($pool->directory, $uid);

        return $pool;
    }

    protected function endHosts(): void
    {
        $this->server = null;
    }

    public function testNobodyMayLookIntoAWorkerWhileItAsks(): void
    {
        $ask = $this->worker();
        // Over a connection that is kept, and, in each worker, over the first one.
        $this->pool->await(static fn (): bool => $ask()[3]);
        [$worker] = $ask();

        [$process, $pipes] = $this->attacker($worker);
        for ($round = 0; $round < self::ROUNDS; ++$round) {
            [$pid, , $start, $pool] = $ask();
            self::assertSame([$worker, 'warm', true], [$pid, $start, $pool]);
        }
        fclose($pipes[0]);
        $done = fgets($pipes[1]);
        proc_close($process);

        self::assertSame("[]\n", $done);
    }

    public function testNobodyMayLookIntoAWorkerThatConnects(): void
    {
        $ask = $this->worker();
        $this->pool->await(static fn (): bool => $ask()[3]);
        [$worker] = $ask();

        [$process, $pipes] = $this->attacker($worker);
        for ($round = 0; $round < 3; ++$round) {
            $this->pool->end();
            $this->pool->start();
            self::assertSame([$worker, true], [($asked = $ask())[0], $asked[3]]);
        }
        fclose($pipes[0]);
        $done = fgets($pipes[1]);
        proc_close($process);

        self::assertSame("[]\n", $done);
    }

    /**
     * @return callable(): array{int, mixed, string, bool, string} asks the one worker for a page that evaluates
     */
    private function worker(): callable
    {
        $this->pages = new TemporaryApplication();
        $page = $this->pages->write('page.php', "<?php {$this->asking()} echo json_encode([getmypid(), ...\$told]);");
        $this->server = new Fpm(['env[XDG_RUNTIME_DIR]' => $this->pool->directory, 'pm.max_children' => '1']);

        return fn (): array => json_decode($this->server->pages($page)[0], true, flags: JSON_THROW_ON_ERROR);
    }

    /**
     * @return array{resource, array<int, resource>} a process of the worker's user that attacks it, and its pipes
     */
    private function attacker(int $worker): array
    {
        $command = [...$this->asUser, PHP_BINARY, '-n', '-r', self::ATTACKER, (string) $worker];
        $process = proc_open($command, [['pipe', 'r'], ['pipe', 'w']], $pipes) ?: self::fail('No process.');
        self::assertSame("ready\n", fgets($pipes[1]));

        return [$process, $pipes];
    }
}
