<?php

declare(strict_types=1);

namespace Altair\Eval\Benches\Rows;

use Altair\Eval\Benches\Support\Comparison;
use Altair\Eval\Benches\Support\ManyClasses;
use Altair\Eval\Benches\Support\Setting;
use Altair\Eval\Benches\Support\Table;
use Altair\Eval\EvalRequest;
use Altair\Eval\Evaluator;
use RuntimeException;

/**
 * What hints add to a run that fails, on an application of 3,000 classes: against runs that fail in the same way, and
 * of which nothing can be said.
 */
final class Hints
{
    private const LIMIT_MS = 2.0;

    /** What fails => the snippet, the same without anything near, and what the first is to say. */
    private const FAILURES = [
        'an undefined class' => [
            'new App\Module7\OrderRepositry();',
            'throw new Error("none");',
            'did you mean App\Module7\OrderRepository?',
        ],
        'an undefined function' => ['strlenn(1);', 'throw new Error("none");', 'did you mean strlen()?'],
        'an undefined key of 30,000' => [
            self::KEYS . 'return $keys["custmer_name_x"];',
            self::KEYS . 'return $keys["custmer_name_x"] ?? trigger_error("none", E_USER_WARNING);',
            'did you mean customer_name_0, customer_name_1 or customer_name_2?',
        ],
    ];

    private const KEYS = '$keys = []; for ($n = 0; $n < 30000; $n++) { $keys["customer_name_$n"] = 1; } ';

    public static function measure(Setting $setting, Table $table): void
    {
        $application = new ManyClasses();
        $evaluator = new Evaluator(warm: true);
        foreach (self::FAILURES as $what => [$snippet, $plain, $hint]) {
            $times = static fn (string $code, array $hints): \Closure => static function (int $times) use (
                $evaluator,
                $application,
                $code,
                $hints,
            ): array {
                $request = new EvalRequest($code, $application->root);
                for ($taken = []; count($taken) < $times;) {
                    $began = hrtime(true);
                    $result = $evaluator->evaluate($request);
                    $taken[] = (hrtime(true) - $began) / 1e6;
                    ($result->diagnostics['hints'] ?? []) === $hints
                        || throw new RuntimeException(json_encode($result->toArray()) ?: 'It has other hints.');
                }

                return $taken;
            };
            $seen = Comparison::ofBlocks($times($snippet, [$hint]), $times($plain, []), $setting->rounds, 10);
            $table->difference("a run that fails by $what / that fails without a hint", $seen, self::LIMIT_MS);
        }
    }
}
