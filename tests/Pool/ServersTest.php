<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Pool;

use Altair\Eval\Tests\Support\PoolProcess;
use Altair\Eval\Tests\Support\PoolTestCase;
use Altair\Eval\Tests\Support\Servers\Apache;
use Altair\Eval\Tests\Support\Servers\BuiltIn;
use Altair\Eval\Tests\Support\Servers\Fpm;
use Altair\Eval\Tests\Support\Servers\Server;
use Altair\Eval\Tests\Support\Skip;
use Altair\Eval\Tests\Support\TemporaryApplication;

/**
 * Web servers, each real: a boot is shared by their workers, and outlives the one that asked for it.
 */
final class ServersTest extends PoolTestCase
{
    /** Requests that a worker answers, where its server replaces it. */
    private const REQUESTS = 5;

    private ?Server $server = null;

    /** What it serves. */
    private TemporaryApplication $pages;

    protected function endHosts(): void
    {
        $this->server = null;
    }

    /**
     * @return iterable<string, array{class-string<Server>, string, int}> what must be installed, and how many processes
     *     answer at least
     */
    public static function servers(): iterable
    {
        yield 'php-fpm' => [Fpm::class, 'php-fpm', 5];
        yield 'Apache with mod_php' => [Apache::class, 'Apache', 5];
        yield "PHP's own" => [BuiltIn::class, '', 1];
        yield "PHP's own with workers" => [BuiltIn::class, '', 2];
    }

    /**
     * @dataProvider servers
     * @param class-string<Server> $kind
     */
    public function testRequestsShareABootUntilAnEdit(string $kind, string $package, int $processes): void
    {
        if ($kind::program() === null) {
            Skip::NotInstalled->because("$package is not installed, and `scripts/setup.sh drivers` would.");
        }
        $page = $this->serve($kind, $processes);
        $ask = fn (int $times = 1): array => array_map(
            static fn (string $told): array => json_decode($told, true, flags: JSON_THROW_ON_ERROR),
            $this->server->pages($page, $times),
        );

        // The second call starts the pool, and is not served by it.
        $this->pool->await(static fn (): bool => $ask()[0][3]);
        $pid = $this->pool->pid();
        $hosts = [];
        for ($round = 0; $round < 10; $round++) {
            foreach ($ask(4) as [$host, $value, $start, $pool, $why]) {
                self::assertSame(['old', 'warm', true, ''], [$value, $start, $pool, $why]);
                $hosts[$host] = true;
            }
        }
        self::assertGreaterThanOrEqual($processes, count($hosts), 'Several processes have answered.');
        $this->assertOneTemplate(runs: 41);

        $this->edit('new');
        self::assertSame(['new', 'first', true], array_slice($ask()[0], 1, 3));
        self::assertSame(['new', 'warm', true], array_slice($ask()[0], 1, 3));
        self::assertSame($pid, $this->pool->pid(), 'One pool has served all.');
    }

    /**
     * Starts a server and makes a page that asks.
     *
     * @param class-string<Server> $kind
     */
    private function serve(string $kind, int $processes): string
    {
        $this->pages = new TemporaryApplication();
        $page = $this->pages->write('page.php', "<?php {$this->asking()} echo json_encode([getmypid(), ...\$told]);");
        if ($kind !== BuiltIn::class && posix_geteuid() === 0) {
            // The workers have changed their user, who has a pool of its own.
            $nobody = posix_getpwnam('nobody');
            ['uid' => $uid, 'gid' => $gid] = $nobody;
            $this->pool = new PoolProcess(['setpriv', "--reuid=$uid", "--regid=$gid", '--init-groups']);
            chown($this->pool->directory, $uid);
        }
        $this->server = match ($kind) {
            Fpm::class => new Fpm([
                'env[XDG_RUNTIME_DIR]' => $this->pool->directory,
                'pm.max_requests' => (string) self::REQUESTS,
            ]),
            Apache::class => new Apache($this->pages->root, $this->environment(), self::REQUESTS),
            BuiltIn::class => new BuiltIn($this->pages->root, $this->environment(), $processes > 1 ? 4 : 0),
        };

        return $page;
    }
}
