<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Forgery;

use Altair\Eval\EvalResult;
use Altair\Eval\Evaluator;
use Altair\Eval\Exception\LaunchException;
use Altair\Eval\Tests\Support\Warm\WarmTestCase;

/**
 * Evaluates snippets that speak to the host with the secret of their own run.
 */
abstract class ForgeryTestCase extends WarmTestCase
{
    /** How a run is started. */
    protected const STARTS = ['cold', 'warm'];

    protected function setUp(): void
    {
        parent::setUp();
        $this->application(ForgingApplication::files());
    }

    /** The result of such a snippet: whatever it says, it was run. */
    protected function forge(string $start, string $snippet, mixed ...$options): EvalResult
    {
        $evaluator = $this->evaluator;
        if ($start === 'warm') {
            $this->warmed('return 1;', ...$options);
        } else {
            $evaluator = new Evaluator(warm: false);
        }
        try {
            $result = $this->askOf($evaluator, $snippet, null, ...$options);
        } catch (LaunchException $thrown) {
            self::fail('It was run, and the host says: ' . $thrown->getMessage());
        }
        self::assertStart($start, $result);

        return $result;
    }

    /** The code that reports an ending in a forged message. */
    protected static function report(string $ending, string $more = ''): string
    {
        return "wire()->say(Messages::report(Messages::$ending" . ($more === '' ? '' : ", $more") . '));';
    }

    /**
     * Each of these cold and warm.
     *
     * @param iterable<string, list<mixed>> $rows
     * @return iterable<string, list<mixed>> with the start before what a row has
     */
    protected static function eachStart(iterable $rows): iterable
    {
        foreach ($rows as $name => $row) {
            foreach (self::STARTS as $start) {
                yield "$name, $start" => [$start, ...$row];
            }
        }
    }

    /**
     * @return iterable<string, array{string}>
     */
    public static function starts(): iterable
    {
        foreach (self::STARTS as $start) {
            yield $start => [$start];
        }
    }
}
