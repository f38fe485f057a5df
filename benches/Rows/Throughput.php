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
        $name = "evaluateMany() / one at a time, $setting->requests warm requests";
        $cores = self::cores();
        if (count($cores) < self::CORES) {
            $table->skip($name, 'one core');

            return;
        }
        $pinned = ['taskset', '--cpu-list', implode(',', array_slice($cores, 0, self::CORES))];
        $worker = new Worker('throughput.php', [Setting::SNIPPET, $setting->shop], under: $pinned);
        $worker->ask('loop 10');
        $measure = static function (string $how) use ($worker, $setting): array {
            $answer = $worker->ask("$how $setting->requests");
            if ($answer['warm'] !== $setting->requests) {
                throw new RuntimeException('Not what is to be measured: ' . json_encode($answer));
            }

            return [$answer['ms']];
        };
        $many = static fn (): array => $measure('many');
        $loop = static fn (): array => $measure('loop');
        $table->faster($name, Comparison::ofBlocks($many, $loop, $setting->throughputs, 1), 1.7);
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
