<?php

declare(strict_types=1);

namespace Altair\Eval\Benches\Rows;

use Altair\Eval\Benches\Support\Comparison;
use Altair\Eval\Benches\Support\Setting;
use Altair\Eval\Benches\Support\Table;
use Altair\Eval\Benches\Support\Worker;

/**
 * A call that finds a fork ready, as that of an agent or a worker does, a host that asks once, and one that lets its
 * templates go.
 */
final class Spares
{
    /** Evaluations of one block. */
    private const EACH = 20;

    /** Hosts of which each lets a template go. */
    private const HOSTS = 5;

    public static function measure(Setting $setting, Table $table): void
    {
        $spare = new Worker('pauses.php', [Setting::SNIPPET, $setting->shop]);
        $bare = new Worker('fork.php', [$setting->shop]);
        $seen = Comparison::ofBlocks(
            static fn (int $times): array => $spare->ask((string) $times)['ms'],
            // As that of an evaluation does. On its parent's processor a bare fork takes half as long.
            static fn (int $times): array => $bare->ask("$times apart")['ms'],
            intdiv($setting->rounds, 2),
            self::EACH,
        );
        $table->ratio('evaluate(), a fork is ready / bare fork on another core', $seen, 0.6);
        $table->ratio('the slowest of 100 such calls / bare fork on another core', $seen->atQuantile(0.99), 3.0);
        unset($spare, $bare);

        $once = static fn (string $warm): array => [
            PHP_BINARY, '-d', 'extension=' . getenv('EXTENSION'),
            '-d', 'altair_eval.pool=off', '-d', "altair_eval.warm=$warm",
            $setting->repository . '/benches/programs/once.php', Setting::SNIPPET, $setting->shop,
        ];
        $table->ratio('a script that asks once / the same without templates', Comparison::of(
            static fn () => Setting::run($once('1')),
            static fn () => Setting::run($once('0')),
            $setting->rounds,
        ), 1.03);

        $times = [];
        for ($host = 0; $host < self::HOSTS; ++$host) {
            $times[] = (new Worker('pauses.php', [Setting::SNIPPET, $setting->shop]))->ask('let go')['ms'];
        }
        $table->longest('letting an Evaluator with a template go', $times, 0.2);
    }
}
