<?php

declare(strict_types=1);

namespace Altair\Eval\Benches\Rows;

use Altair\Eval\Benches\Support\Comparison;
use Altair\Eval\Benches\Support\Setting;
use Altair\Eval\Benches\Support\Table;
use Altair\Eval\EvalRequest;
use Altair\Eval\Evaluator;
use RuntimeException;

/**
 * What it costs to look for secrets in an answer: in the largest that there is, and where there are none to look for.
 */
final class Redaction
{
    private const SECRETS = 100;

    /** An answer of 1 MiB, in texts of every length, each with a secret. */
    private const LARGE = <<<'PHP'
        $texts = [];
        for ($size = 0, $n = 1; $size < 1040000; $size += 60 + $n, $n = $n * 7 % 2003) {
            $texts[] = substr(str_repeat('lorem ipsum dolor sit amet, ', 90), $n % 28, $n)
                . getenv('BENCH_' . count($texts) % 100 . '_SECRET');
        }
        return $texts;
        PHP;

    public static function measure(Setting $setting, Table $table): void
    {
        $small = self::compared(Setting::SNIPPET, $setting, 20);
        $table->difference('warm evaluate() that may redact, and has nothing to / that may not', $small, 0.1);

        for ($n = 0; $n < self::SECRETS; $n++) {
            putenv("BENCH_{$n}_SECRET=" . bin2hex(random_bytes(8 + $n % 24)) . '/é');
        }
        $large = self::compared(self::LARGE, $setting, 2);
        $row = '1 MiB of answer with ' . self::SECRETS . ' secrets replaced / with none looked for';
        $table->difference($row, $large, 5.0);
        for ($n = 0; $n < self::SECRETS; $n++) {
            putenv("BENCH_{$n}_SECRET");
        }
    }

    private static function compared(string $snippet, Setting $setting, int $each): Comparison
    {
        $evaluator = new Evaluator(warm: true);
        $times = static fn (bool $redact): \Closure => static function (int $times) use (
            $evaluator,
            $snippet,
            $setting,
            $redact,
        ): array {
            $request = new EvalRequest($snippet, $setting->shop, redact: $redact);
            $taken = [];
            while (count($taken) < $times) {
                $began = hrtime(true);
                $result = $evaluator->evaluate($request);
                $taken[] = (hrtime(true) - $began) / 1e6;
                $result->ok() || throw new RuntimeException(json_encode($result->diagnostics) ?: 'It failed.');
            }

            return $taken;
        };

        return Comparison::ofBlocks($times(true), $times(false), intdiv($setting->rounds, 2), $each);
    }
}
