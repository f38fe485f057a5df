<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support;

use Altair\Eval\EvalRequest;
use Altair\Eval\Evaluator;
use Iterator;

/**
 * Requests for the application of an EvaluationTestCase, and many of them at a time.
 */
trait ManyEvaluations
{
    /**
     * @param iterable<mixed> $requests
     */
    private function many(iterable $requests, int $concurrency = 0): Iterator
    {
        return (new Evaluator())->evaluateMany($requests, $concurrency);
    }

    private function request(string $snippet, int $timeoutMs = self::LONG_MS, bool $unsafe = false): EvalRequest
    {
        return new EvalRequest($snippet, $this->application()->root, $timeoutMs, unsafe: $unsafe);
    }
}
