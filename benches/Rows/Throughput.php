<?php

declare(strict_types=1);

namespace Altair\Eval\Benches\Rows;

use Altair\Eval\Benches\Support\Comparison;
use Altair\Eval\Benches\Support\Setting;
use Altair\Eval\Benches\Support\Table;
use Altair\Eval\Benches\Support\Worker;
use Altair\Eval\Tests\Support\Processes;
use RuntimeException;

/**
 * Many evaluations side by side, on two cores.
 */
final class Throughput
{
    private const CORES = 2;

    public static function measure(Setting $setting, Table $table): void
    {
        $name = "evaluateMany(), $setting->requests warm requests";
        $cores = self::cores();
        if (count($cores) < self::CORES) {
            $table->skip("$name, two cores / one", 'one core');

            return;
        }
        $two = self::worker($setting, array_slice($cores, 0, self::CORES));
        $one = self::worker($setting, [$cores[0]]);
        $measure = static function (Worker $worker, string $how) use ($setting): array {
            $answer = $worker->ask("$how $setting->requests");
            if ($answer['warm'] !== $setting->requests) {
                throw new RuntimeException('Not what is to be measured: ' . json_encode($answer));
            }

            return [$answer['ms']];
        };
        $many = static fn (): array => $measure($two, 'many');
        $onOne = static fn (): array => $measure($one, 'many');
        // The next fork is made while a loop goes on, and the last one ends: it has two cores to use, too.
        $loop = static fn (): array => $measure($two, 'loop');
        $table->faster("$name, two cores / one", Comparison::ofBlocks($many, $onOne, $setting->throughputs, 1), 1.7);
        $table->faster("$name / one at a time", Comparison::ofBlocks($many, $loop, $setting->throughputs, 1), 1.0);
    }

    /**
     * @param list<int> $cores
     */
    private static function worker(Setting $setting, array $cores): Worker
    {
        $pinned = ['taskset', '--cpu-list', implode(',', $cores)];
        $worker = new Worker('throughput.php', [Setting::SNIPPET, $setting->shop], under: $pinned);
        $worker->ask('loop 10');

        return $worker;
    }

    /** @return list<int> those that this process may run on */
    private static function cores(): array
    {
        $cores = [];
        foreach (explode(',', Processes::status((int) getmypid())['Cpus_allowed_list']) as $range) {
            [$from, $to] = [...explode('-', $range), $range];
            array_push($cores, ...range((int) $from, (int) $to));
        }

        return $cores;
    }
}
