<?php

declare(strict_types=1);

namespace Altair\Eval\Benches\Rows;

use Altair\Eval\Benches\Support\Comparison;
use Altair\Eval\Benches\Support\Host;
use Altair\Eval\Benches\Support\Setting;
use Altair\Eval\Benches\Support\Table;
use Altair\Eval\Benches\Support\Way;
use Altair\Eval\EvalRequest;
use Altair\Eval\Evaluator;
use RuntimeException;

/**
 * One evaluation in a process of its own, without guards: what it is compared with has none. What they cost has rows
 * of its own.
 */
final class Cold
{
    public static function measure(Setting $setting, Table $table): void
    {
        $bare = new Host(Setting::SNIPPET, $setting->shop, without: Guards::ALL);
        $today = new Host(Setting::SNIPPET, $setting->shop, Way::Plain);
        $switches = self::childSwitches($setting->application->root);
        $plain = [PHP_BINARY, ...$switches, '-r', Setting::boot($setting->shop)];
        $comparisons = [
            'cold evaluate(), guards off / php -r with the same boot' => [1.15, static fn () => Setting::run($plain)],
            'cold evaluate(), guards off / the same in plain PHP' => [1.0, $today->evaluate(...)],
        ];
        foreach ($comparisons as $name => [$limit, $reference]) {
            $table->ratio($name, Comparison::of($bare->evaluate(...), $reference, $setting->rounds), $limit);
        }
    }

    /**
     * The ini switches that a child is started with, but for those that load the extension and make it a child.
     *
     * @return list<string>
     */
    private static function childSwitches(string $root): array
    {
        $code = 'return array_slice(explode("\0", rtrim(file_get_contents("/proc/self/cmdline"), "\0")), 1);';
        $request = new EvalRequest($code, $root, EvalRequest::MAX_TIMEOUT_MS, unsafe: true);
        $result = (new Evaluator(warm: false))->evaluate($request);
        $result->ok() || throw new RuntimeException('No switches: ' . json_encode($result->toArray()));
        $switches = [];
        foreach (array_chunk(array_column($result->result['value'], 'value'), 2) as [$option, $setting]) {
            if ($option === '-d' && preg_match('/^(extension|altair_eval\.\w+)=/', $setting) === 0) {
                array_push($switches, $option, $setting);
            }
        }

        return $switches;
    }
}
