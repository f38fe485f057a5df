<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support;

use Altair\Eval\EvalRequest;
use Altair\Eval\Evaluator;
use LogicException;
use WeakMap;

/**
 * Makes evaluators that have been asked before: the first request of a kind starts cold, and the next one boots a
 * template if none has booted in between.
 */
final class Asked
{
    /** Does not end by itself. */
    private const SNIPPET = 'fwrite(STDERR, "x"); while (true) { sleep(1); }';

    /** @var WeakMap<Evaluator, array<string, true>>|null the kinds that each was asked for */
    private static ?WeakMap $kinds = null;

    /**
     * Asks once, unless it has asked for this kind already.
     *
     * @param array<string, mixed> $options those of the request to come
     */
    public static function before(Evaluator $evaluator, array $options): void
    {
        if (!$evaluator->warm || ($options['unsafe'] ?? false)) {
            return;
        }
        // What a run is told, and not its template.
        unset($options['snippet'], $options['arguments'], $options['timeoutMs'], $options['memoryLimitMb']);
        // One that is off is as none.
        $options = array_filter($options, static fn (mixed $value): bool => $value !== false);
        $kind = serialize([$options, getenv(), (string) ini_get('altair_eval.omit')]);
        self::$kinds ??= new WeakMap();
        if (!isset(self::$kinds[$evaluator][$kind])) {
            self::$kinds[$evaluator] = [$kind => true] + (self::$kinds[$evaluator] ?? []);
            try {
                $request = new EvalRequest(self::SNIPPET, ...$options, timeoutMs: 60000);
                $evaluator->evaluate($request, static fn () => throw new LogicException('enough'));
            } catch (LogicException) {
                // As meant: after an answer a template would boot, sooner or later.
            }
        }
    }
}
