<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Warm;

use Altair\Eval\EvalResult;
use Altair\Eval\Support\Json;

/**
 * What a result says that is not a measure of time or memory, nor tells how the run was started.
 */
final class Answer
{
    private const OTHERWISE = ['timings_ms', 'start', 'start_reason'];

    /**
     * @return array<string, mixed>
     */
    public static function of(EvalResult $result): array
    {
        // As it is printed: two objects without properties are no difference.
        $answer = json_decode(Json::encode($result->toArray(verbose: true)), true, flags: JSON_THROW_ON_ERROR);
        unset($answer['duration_ms'], $answer['memory_peak_bytes']);
        $answer['diagnostics'] = array_diff_key($answer['diagnostics'], array_flip(self::OTHERWISE));

        return $answer;
    }
}
