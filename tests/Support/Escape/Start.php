<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Escape;

/**
 * How a run comes to be, as `diagnostics.start` says it; or that it is an entry of an isolated PHP.
 */
enum Start: string
{
    /** In a process of its own. */
    case Cold = 'cold';
    /** As a fork of a template that was there already. */
    case Warm = 'warm';
    /** As the entry of a runtime that has nothing else to do. */
    case Entry = 'entry';
}
