<?php

declare(strict_types=1);

namespace Altair\Eval\Benches\Rows;

use Altair\Eval\Benches\Support\Comparison;
use Altair\Eval\Benches\Support\Family;
use Altair\Eval\Benches\Support\Host;
use Altair\Eval\Benches\Support\Setting;
use Altair\Eval\Benches\Support\Table;
use Altair\Eval\Benches\Support\Way;
use Altair\Eval\Benches\Support\Worker;

/**
 * One evaluation from a template, all guards on, and what the same costs otherwise.
 */
final class Warm
{
    /** How many times as fast as plain PHP it has to be. */
    private const TIMES_PLAIN = ['shop' => 10.0, 'larger' => 50.0];

    /**
     * @return array<string, array<string, float>> application => way => the median of one evaluation in milliseconds
     */
    public static function measure(Setting $setting, Table $table): array
    {
        $medians = [];
        foreach ($setting->applications() as $name => $root) {
            $warm = new Host(Setting::SNIPPET, $root, Way::Warm);
            self::againstBareFork($name, $root, $warm, $setting->rounds, $table);

            $plain = new Host(Setting::SNIPPET, $root, Way::Plain);
            $fast = Comparison::ofBlocks($warm->times(...), $plain->times(...), intdiv($setting->rounds, 10), 20);
            $table->faster("warm evaluate() / the same in plain PHP, $name", $fast, self::TIMES_PLAIN[$name]);
            unset($warm, $plain);

            $first = new Host(Setting::SNIPPET, $root, Way::First);
            $cold = new Host(Setting::SNIPPET, $root, Way::Cold);
            $begun = Comparison::ofBlocks($first->times(...), $cold->times(...), $setting->rounds, 1);
            $table->ratio("first evaluate() / cold, $name", $begun, 1.25);

            $medians[$name] = [
                'plain' => $fast->referenceMs(),
                'cold' => $begun->referenceMs(),
                'first' => $begun->subjectMs(),
                'warm' => $fast->subjectMs(),
            ];
        }

        return $medians;
    }

    private static function againstBareFork(string $name, string $root, Host $warm, int $rounds, Table $table): void
    {
        $bare = new Worker('fork.php', [$root]);
        $fork = static fn (int $times): array => $bare->ask((string) $times)['ms'];
        $seen = Comparison::ofBlocks($warm->times(...), $fork, intdiv($rounds, 2), 20);
        $table->ratio("warm evaluate() / bare fork, $name", $seen, 3.0);

        // After the first forks: before them the reference has not yet touched all that it needs.
        $family = Family::of($warm->pid());
        $table->apart(
            "resident size of the template / of what is forked bare, $name",
            $family->residentBytes($family->template()),
            Family::of($bare->pid)->residentBytes($bare->pid),
            0.15,
        );
    }
}
