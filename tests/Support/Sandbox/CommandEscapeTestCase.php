<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Sandbox;

use Closure;
use PHPUnit\Framework\TestCase;

/**
 * Attacks by commands. Each is made where nothing holds it, and must succeed there, or it would show nothing; and behind
 * the driver `native`, for everyone who may start commands. What it has done is looked at from outside.
 */
abstract class CommandEscapeTestCase extends TestCase
{
    /**
     * @return iterable<string, array{Caller}>
     */
    public static function everyone(): iterable
    {
        return Caller::everyone();
    }

    /**
     * An attack that runs to its end.
     *
     * @param Closure(Ground): list<string> $attack
     * @param list<string> $options of `altair run`
     * @param Closure(Ground, string): list<string>|null $harm what it has done, other than to what everyone has
     * @param Closure(Ground): mixed|null $input its standard input
     */
    protected static function assertHeld(
        Caller $caller,
        Closure $attack,
        array $options = [],
        ?Closure $harm = null,
        ?Closure $input = null,
    ): void {
        foreach ([null, $options] as $held) {
            $ground = new Ground($caller);
            $attempt = new Attempt($ground, $attack($ground), $held, $input ? $input($ground) : ['pipe', 'r']);
            $output = $attempt->end();
            $done = [...$ground->harm($output), ...($harm ? $harm($ground, $output) : [])];
            $held === null
                ? self::assertNotSame([], $done, "It does no harm even if nothing holds it.\n{$attempt->story()}")
                : self::assertSame([], $done, $attempt->story());
        }
    }

    /**
     * An attack that is looked at while it stays.
     *
     * @param Closure(Ground): list<string> $attack
     * @param Closure(Ground, Attempt): list<string> $harm
     * @param list<string> $options of `altair run`
     */
    protected static function assertHeldWhileItRuns(
        Caller $caller,
        Closure $attack,
        Closure $harm,
        array $options = [],
    ): void {
        foreach ([null, $options] as $held) {
            $ground = new Ground($caller);
            $attempt = new Attempt($ground, $attack($ground), $held);
            $done = $harm($ground, $attempt->awaitReady());
            $attempt->end();
            $held === null
                ? self::assertNotSame([], $done, "It does no harm even if nothing holds it.\n{$attempt->story()}")
                : self::assertSame([], $done, $attempt->story());
        }
    }

    /** Waits until something holds, and fails where it does not. */
    protected static function await(Closure $condition, string $what): void
    {
        $until = hrtime(true) + 10 * 1e9;
        while (!$condition()) {
            self::assertLessThan($until, hrtime(true), $what);
            usleep(1000);
        }
    }
}
