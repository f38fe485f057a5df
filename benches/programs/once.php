<?php

/**
 * Evaluates a snippet once, as a script does that has one question.
 *
 *   once.php <snippet> <root>
 */

declare(strict_types=1);

use Altair\Eval\EvalRequest;
use Altair\Eval\Evaluator;

[, $snippet, $root] = $argv;
exit((new Evaluator())->evaluate(new EvalRequest($snippet, $root, EvalRequest::MAX_TIMEOUT_MS))->ok() ? 0 : 1);
