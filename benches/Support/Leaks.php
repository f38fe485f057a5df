<?php

declare(strict_types=1);

namespace Altair\Eval\Benches\Support;

use Altair\Eval\EvalRequest;
use Altair\Eval\Evaluator;
use Altair\Eval\Tests\Support\Footprint;
use RuntimeException;

/**
 * What a host grows by, and has left behind, when it evaluates for long, each time in a process that boots.
 */
final class Leaks
{
    /** Evaluations before the first look: a host keeps some memory for good. */
    public const WARM_UP = 100;

    /**
     * @param list<string> $left
     */
    private function __construct(public readonly int $growthBytes, public readonly array $left)
    {
    }

    /**
     * @param list<array{string, string, int}> $cases snippet, expected outcome, timeout in milliseconds; by turns
     * @param string $watched a directory in which nothing is to be left
     */
    public static function of(array $cases, string $root, int $times, string $watched): self
    {
        Footprint::take($watched);
        self::evaluate($cases, $root, self::WARM_UP);
        $before = Footprint::take($watched);
        self::evaluate($cases, $root, $times - self::WARM_UP);
        $after = Footprint::take($watched);

        return new self(max(0, $after->residentBytes - $before->residentBytes), $after->beyond($before));
    }

    private static function evaluate(array $cases, string $root, int $times): void
    {
        $evaluator = new Evaluator(warm: false);
        for ($i = 0; $i < $times; ++$i) {
            [$snippet, $expected, $timeoutMs] = $cases[$i % count($cases)];
            $result = $evaluator->evaluate(new EvalRequest($snippet, $root, $timeoutMs));
            if ($result->diagnostics['outcome'] !== $expected) {
                throw new RuntimeException("Not $expected: " . var_export($result->toArray(), true));
            }
        }
    }
}
