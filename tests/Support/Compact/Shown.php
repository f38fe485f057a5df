<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Compact;

/**
 * A value that is neither scalar nor array, as far as it is shown.
 */
final class Shown
{
    /**
     * @param string $kind object, lazy, enum, date, closure, resource, iterable, reference, uninitialized, cut, error
     * @param array<string, mixed> $facts what is known beside the entries
     * @param list<array{mixed, mixed}> $entries keys and values; of an object, names with `#` or `-` in front
     */
    public function __construct(
        public readonly string $kind,
        public readonly array $facts = [],
        public readonly array $entries = [],
    ) {
    }
}
