<?php

declare(strict_types=1);

namespace Altair\Eval\Benches\Rows;

use Altair\Eval\Benches\Support\Comparison;
use Altair\Eval\Benches\Support\Setting;
use Altair\Eval\Benches\Support\Spawned;
use Altair\Eval\Benches\Support\Table;
use Altair\Eval\Benches\Support\Worker;
use Altair\Eval\Tests\Support\Command;
use Altair\Eval\Tests\Support\PoolProcess;
use Altair\Eval\Tests\Support\Servers\Fpm;
use RuntimeException;

/**
 * Hosts that share templates: whole commands, and requests to php-fpm.
 */
final class SharedPool
{
    /** Requests of one block. */
    private const EACH = 10;

    /**
     * Microseconds before each request, and before each call of the process that it is compared with: long enough for
     * the next fork, which takes the pool up to 3 ms, and for the caches to be cold on both sides.
     */
    private const PAUSE = 10_000;

    /** Microseconds after which the process by itself still has its code in the caches (decision 17). */
    private const SHORT_PAUSE = 3000;

    /** Requests of which only the first boots, over four workers that end after 50 each. */
    private const REQUESTS = 1000;
    private const WORKERS = 4;
    private const EACH_WORKER = 50;

    public static function measure(Setting $setting, Table $table): void
    {
        $pool = new PoolProcess();
        foreach ($pool->environment + ['CI' => ''] as $name => $value) {
            $before[$name] = getenv($name);
            putenv($value === '' ? $name : "$name=$value");
        }
        try {
            $pool->start();
            self::commands($setting, $table);
        } finally {
            foreach ($before as $name => $value) {
                putenv($value === false ? $name : "$name=$value");
            }
        }
        self::requests($setting, $table);
    }

    private static function commands(Setting $setting, Table $table): void
    {
        $eval = ['eval', '--root', $setting->shop, Setting::SNIPPET];
        $native = [Command::native(), ...$eval];
        $script = [$setting->repository . '/bin/altair', ...$eval];
        Setting::run($native);
        $compare = static fn (array $subject, array $reference): Comparison => Comparison::of(
            Spawned::of($subject),
            Spawned::of($reference),
            $setting->rounds * 2,
        );
        $table->ratio('native altair eval, the pool is warm / true', $compare($native, ['/bin/true']), 5.0);
        $empty = $compare($native, [PHP_BINARY, '-r', '']);
        $table->ratio('native altair eval, the pool is warm / php -r ""', $empty, 0.15);
        $table->difference('bin/altair eval beyond the native one', $compare($script, $native), 1.0);
    }

    private static function requests(Setting $setting, Table $table): void
    {
        $name = 'evaluate() in a request to php-fpm / in one process, each after 10 ms';
        if (Fpm::program() === null) {
            $table->skip($name, 'no php-fpm');

            return;
        }
        $page = $setting->application->write('page.php', sprintf(
            '<?php $request = new Altair\Eval\EvalRequest(%s, %s, 60000); $began = hrtime(true);'
                . ' $start = (new Altair\Eval\Evaluator())->evaluate($request)->diagnostics["start"];'
                . ' echo json_encode([$start, (hrtime(true) - $began) / 1e6]);',
            var_export(Setting::SNIPPET, true),
            var_export($setting->shop, true),
        ));
        $pool = self::poolOfWorkers();
        $fpm = new Fpm([
            'env[XDG_RUNTIME_DIR]' => $pool->directory,
            'pm.max_children' => (string) self::WORKERS,
            'pm.max_requests' => (string) self::EACH_WORKER,
        ]);
        $ask = static fn (int $times): array => array_map(
            static fn (string $told): array => json_decode($told, true, flags: JSON_THROW_ON_ERROR),
            $fpm->pages($page, $times),
        );
        // The first call is cold, and the second one starts the pool.
        $pool->await(static fn (): bool => $ask(1)[0][0] === 'warm' && $pool->pid() !== null);
        $seen = static function (int $pause) use ($ask, $setting): Comparison {
            $inside = new Worker(
                'pauses.php',
                [Setting::SNIPPET, $setting->shop, (string) $pause],
                ['-d', 'altair_eval.pool=off'],
            );
            $requests = static function (int $times) use ($ask, $pause): array {
                for ($i = 0; $i < $times; ++$i) {
                    usleep($pause);
                    [[$start, $ms[]]] = $ask(1);
                    $start === 'warm' || throw new RuntimeException("Not what is to be measured: $start");
                }

                return $ms;
            };
            $in = static fn (int $times): array => $inside->ask((string) $times)['ms'];

            return Comparison::ofBlocks($requests, $in, intdiv($setting->rounds, 4), self::EACH);
        };
        $table->ratio($name, $seen(self::PAUSE), 1.3);
        $table->ratio('the same, one after the other', $seen(0), 1.3);
        $table->shown('the same, each after 3 ms', $seen(self::SHORT_PAUSE));

        $booted = [];
        for ($i = 0; $i < self::REQUESTS; $i += self::WORKERS) {
            foreach ($ask(self::WORKERS) as [$start]) {
                $booted = $start === 'warm' ? $booted : [...$booted, "a request started $start"];
            }
        }
        $table->count(sprintf('boots of %d requests after the first', self::REQUESTS), $booted);
    }

    /** A pool that the workers of php-fpm start: they change their user where root starts it. */
    private static function poolOfWorkers(): PoolProcess
    {
        if (posix_geteuid() !== 0) {
            return new PoolProcess();
        }
        ['uid' => $uid, 'gid' => $gid] = posix_getpwnam('nobody');
        $pool = new PoolProcess(['setpriv', "--reuid=$uid", "--regid=$gid", '--init-groups']);
        chown($pool->directory, $uid);

        return $pool;
    }
}
