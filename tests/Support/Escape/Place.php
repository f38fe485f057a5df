<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Escape;

use Altair\Eval\EvalRequest;
use Altair\Eval\Evaluator;
use Altair\Eval\Tests\Support\TemporaryApplication;

/**
 * What the place where the tests run gives to runs: a machine, or a container under its engine's default profile.
 */
final class Place
{
    /** How a request for real writes is answered where nothing keeps them from the audit log. */
    public const NO_WRITES = 'only a private root protects the audit log';

    private static ?bool $hasMounts = null;

    /**
     * Whether runs have a private root and a layer. Where they have neither, Landlock and the filter alone keep them
     * in: the project is read-only, and what is outside can be looked at, but not read.
     */
    public static function hasMounts(): bool
    {
        if (self::$hasMounts === null) {
            $application = new TemporaryApplication();
            $request = new EvalRequest('return 1;', $application->root);
            $guards = (new Evaluator(warm: false))->evaluate($request)->diagnostics['guards'];
            self::$hasMounts = !str_starts_with($guards['filesystem'], 'missing');
        }

        return self::$hasMounts;
    }
}
