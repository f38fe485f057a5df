<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Sandbox;

use Altair\Eval\Tests\Support\Processes;
use Altair\Eval\Tests\Support\Without;
use Closure;
use PHPUnit\Framework\TestCase;

/**
 * Attacks by commands. Each is made where nothing holds it, where it must succeed, or it would show nothing; and behind
 * the driver `native`, for everyone who may start commands. What it has done is looked at from outside.
 */
abstract class CommandEscapeTestCase extends TestCase
{
    /** How often an attack is made until it does harm where nothing holds it. */
    private const TRIES = 5;

    /** @var list<string> the children that earlier tests have left */
    private array $childrenBefore = [];

    protected function setUp(): void
    {
        $this->childrenBefore = Processes::children();
    }

    protected function assertPostConditions(): void
    {
        self::assertSame([], Processes::childrenSince($this->childrenBefore), 'No child is left.');
    }

    /**
     * @return iterable<string, array{Caller}>
     */
    public static function everyone(): iterable
    {
        return Caller::everyone();
    }

    /**
     * The command that starts an attack elsewhere than on this machine.
     *
     * @return list<string>
     */
    protected static function elsewhere(Ground $ground): array
    {
        return [];
    }

    /**
     * What a machine may lack: nothing, mounts, Landlock, or what a container's default profile refuses.
     *
     * @return iterable<string, array{Caller, list<string>}>
     */
    public static function levels(): iterable
    {
        foreach (Caller::everyone() as $name => [$caller]) {
            foreach ([[], ['landlock'], ['mounts'], ['mounts', 'copies']] as $lacking) {
                yield $name . ($lacking === [] ? '' : ', without ' . implode(' and ', $lacking)) => [$caller, $lacking];
            }
        }
    }

    /**
     * An attack that runs to its end.
     *
     * @param Closure(Ground): list<string> $attack
     * @param list<string> $options of `altair run`
     * @param Closure(Ground, string): list<string>|null $harm what it has done, other than to what everyone has
     * @param Closure(Ground): mixed|null $input its standard input
     * @param list<string> $lacking what is taken from the host ({@see Without})
     */
    protected static function assertHeld(
        Caller $caller,
        Closure $attack,
        array $options = [],
        ?Closure $harm = null,
        ?Closure $input = null,
        array $lacking = [],
    ): void {
        foreach ([null, $options] as $held) {
            // An attack that is a race may need more than one.
            $tries = $held === null ? self::TRIES : 1;
            do {
                $ground = new Ground($caller);
                $stdin = $input ? $input($ground) : ['pipe', 'r'];
                $elsewhere = $held === null ? static::elsewhere($ground) : static::where($ground, $lacking);
                $attempt = new Attempt($ground, $attack($ground), $held, $stdin, $elsewhere);
                $output = $attempt->end();
                $done = [...$ground->harm($output), ...($harm ? $harm($ground, $output) : [])];
            } while ($done === [] && --$tries > 0);
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
     * @param list<string> $lacking what is taken from the host ({@see Without})
     */
    protected static function assertHeldWhileItRuns(
        Caller $caller,
        Closure $attack,
        Closure $harm,
        array $options = [],
        array $lacking = [],
    ): void {
        foreach ([null, $options] as $held) {
            $ground = new Ground($caller);
            $elsewhere = $held === null ? static::elsewhere($ground) : static::where($ground, $lacking);
            $attempt = new Attempt($ground, $attack($ground), $held, elsewhere: $elsewhere);
            $done = $harm($ground, $attempt->awaitReady());
            if ($held === null) {
                $ground->endAttack();
            }
            $attempt->end();
            $held === null
                ? self::assertNotSame([], $done, "It does no harm even if nothing holds it.\n{$attempt->story()}")
                : self::assertSame([], $done, $attempt->story());
        }
    }

    /**
     * @param list<string> $lacking
     * @return list<string> the command that starts a host which lacks this
     */
    protected static function where(Ground $ground, array $lacking): array
    {
        return match ($lacking) {
            [] => static::elsewhere($ground),
            default => $ground->caller->setting()->hostCommand(Without::under($lacking)),
        };
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
