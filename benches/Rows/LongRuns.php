<?php

declare(strict_types=1);

namespace Altair\Eval\Benches\Rows;

use Altair\Eval\Benches\Support\Child;
use Altair\Eval\Benches\Support\Family;
use Altair\Eval\Benches\Support\Host;
use Altair\Eval\Benches\Support\Leaks;
use Altair\Eval\Benches\Support\Setting;
use Altair\Eval\Benches\Support\Table;
use Altair\Eval\Benches\Support\Way;
use Altair\Eval\EvalRequest;
use Altair\Eval\Evaluator;

/**
 * What many evaluations use and leave behind.
 */
final class LongRuns
{
    private const MIB = 1 << 20;

    public static function measure(Setting $setting, Table $table): void
    {
        $patient = EvalRequest::MAX_TIMEOUT_MS;
        self::cold($setting, $table, $setting->evaluations, 'cold evaluations', [
            [Setting::SNIPPET, 'returned', $patient],
        ]);
        self::cold($setting, $table, $setting->badEvaluations, 'that time out, crash or flood', [
            ['for (;;);', 'timed_out', EvalRequest::MIN_TIMEOUT_MS],
            ['posix_kill(posix_getpid(), SIGSEGV);', 'signalled', $patient],
            ['for ($i = 0; $i < 64; ++$i) { echo str_repeat("x", 1 << 16); }', 'returned', $patient],
        ]);
        self::warm($setting, $table);
        self::children($setting, $table);
    }

    /**
     * @param list<array{string, string, int}> $cases as Leaks takes them
     */
    private static function cold(Setting $setting, Table $table, int $times, string $what, array $cases): void
    {
        $root = $setting->application->root;
        $leaks = Leaks::of($cases, $root, $times, $root);
        $table->bytes("$times $what: memory grown by, after " . Leaks::WARM_UP, $leaks->growthBytes, self::MIB);
        $table->count("$times $what: left behind", $leaks->left);
    }

    private static function warm(Setting $setting, Table $table): void
    {
        $host = new Host(Setting::SNIPPET, $setting->shop, Way::Warm);
        $host->times(Leaks::WARM_UP);
        $before = Family::of($host->pid());
        for ($done = Leaks::WARM_UP; $done < $setting->warmEvaluations; $done += Leaks::WARM_UP) {
            $host->times(Leaks::WARM_UP);
        }
        $after = Family::of($host->pid());

        $what = "$setting->warmEvaluations warm evaluations";
        foreach (['host' => $host->pid(), 'template' => $before->template()] as $name => $pid) {
            $growth = max(0, $after->residentBytes($pid) - $before->residentBytes($pid));
            $table->bytes("$what: $name grown by, after " . Leaks::WARM_UP, $growth, self::MIB);
        }
        $table->count("$what: left behind", $after->beyond($before));
    }

    private static function children(Setting $setting, Table $table): void
    {
        $evaluator = new Evaluator(warm: true);
        foreach ($setting->applications() as $name => $root) {
            $own = array_map(
                static fn (): ?int => Child::ownBytes($evaluator, $root, $setting->application->path('tmp')),
                range(1, 5),
            );
            $row = "a warm child's own memory, $name";
            if (in_array(null, $own, true)) {
                $table->skip($row, 'not root');
            } else {
                $table->bytes($row, max($own), 4 * self::MIB);
            }
        }
    }
}
