<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Sandbox\Runtime;

use Altair\Eval\Tests\Escape\NativeNetworkEscapeTest;
use Altair\Eval\Tests\Escape\NativeProcessEscapeTest;
use Altair\Eval\Tests\Escape\NativeReadEscapeTest;
use Altair\Eval\Tests\Support\Escape\EscapeTestCase;
use Altair\Eval\Tests\Support\Escape\Setting;
use Altair\Eval\Tests\Support\Escape\Start;

/**
 * The attacks of native code on a run, made by a closure that is entered in a guarded runtime; and in one without
 * guards, where they succeed.
 */
final class EscapeTest extends EscapeTestCase
{
    private const NATIVE = [
        NativeReadEscapeTest::class,
        NativeProcessEscapeTest::class,
        NativeNetworkEscapeTest::class,
    ];

    public static function attacks(): iterable
    {
        foreach (self::NATIVE as $class) {
            foreach ($class::attacks() as $attack) {
                if ($attack->isNative() && !$attack->needsTemplate) {
                    yield $attack;
                }
            }
        }
    }

    /** As an ordinary user, and what only root can do as root; runs are attacked in each setting. */
    protected static function starts(Setting $setting): array
    {
        return $setting === Setting::KernelAsUser ? [Start::Entry] : [];
    }

    protected static function unguardedStart(): Start
    {
        return Start::Entry;
    }
}
