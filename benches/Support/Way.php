<?php

declare(strict_types=1);

namespace Altair\Eval\Benches\Support;

/**
 * How an evaluation comes by a booted application. The values are those of `diagnostics.start`, but for `plain`.
 */
enum Way: string
{
    /** A process that boots, runs once and ends. */
    case Cold = 'cold';
    /** The call that boots the template and forks from it. */
    case First = 'first';
    /** A fork of a template that is there. */
    case Warm = 'warm';
    /** What plain PHP does, without the extension: see reference/evaluate.php. */
    case Plain = 'plain';
}
