<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Escape;

use Altair\Eval\Tests\Support\Skip;
use PHPUnit\Framework\TestCase;

/**
 * A table of attacks. Each is made in every setting in which it must fail, cold and as the fork of a template, and once
 * without guards, where it must succeed: an attack that cannot succeed shows nothing.
 */
abstract class EscapeTestCase extends TestCase
{
    private const EPERM = 1;
    private const ENOSYS = 38;

    private static ?Arena $arena = null;

    /**
     * @return iterable<Attack>
     */
    abstract public static function attacks(): iterable;

    public static function tearDownAfterClass(): void
    {
        self::$arena = null;
        gc_collect_cycles();
    }

    /**
     * @dataProvider guarded
     */
    public function testItIsStopped(Attack $attack, Setting $setting, Start $start): void
    {
        if (($attack->options['allowWrites'] ?? false) && !Place::hasMounts()) {
            $this->assertNoWrites($attack, $setting);

            return;
        }
        $run = self::arena()->run($attack, $setting, $start);

        self::assertSame($start->value, $run->start(), $run->story());
        self::assertNotNull($run->before, "It was not made.\n" . $run->story());
        if ($attack->isNative()) {
            self::assertNotSame([], $run->calls, "It did not come to its native call.\n" . $run->story());
        }
        $harm = [...Harm::any($run), ...($attack->proof)($run)];
        if (!($attack->options['allowWrites'] ?? false)) {
            $harm = [...$harm, ...Harm::project()($run)];
        }
        self::assertSame([], $harm, $run->story());
    }

    /** Where nothing can be mounted, no run may write: the attack is not even begun. */
    private function assertNoWrites(Attack $attack, Setting $setting): void
    {
        $run = self::arena()->run($attack, $setting, Start::Cold);

        self::assertStringContainsString(Place::NO_WRITES, $run->failure, $run->story());
        self::assertSame([], [...Harm::any($run), ...($attack->proof)($run)], $run->story());
    }

    /**
     * @dataProvider unguarded
     */
    public function testItSucceedsWhereNothingStopsIt(Attack $attack, Setting $setting): void
    {
        $run = self::arena()->run($attack, $setting, static::unguardedStart(), unconfined: true);

        $results = array_column($run->calls, 1);
        if ($results !== [] && array_unique($results) === [-self::ENOSYS]) {
            Skip::LacksKernel->because('The kernel that runs does not have this call: ENOSYS, also without guards.');
        }
        $proof = ($attack->proof)($run);
        if ($proof === [] && in_array(-self::EPERM, $results, true) && Skip::RefusedToAll->holds()) {
            Skip::RefusedToAll->because('The profile around the tests refuses this call: EPERM, also without guards.');
        }
        self::assertNotSame([], $proof, $run->story());
    }

    public static function guarded(): iterable
    {
        foreach (static::attacks() as $attack) {
            foreach ($attack->settings as $setting) {
                foreach ($setting->isPossible() ? static::starts($setting) : [] as $start) {
                    yield "$attack->name: $setting->value, $start->value" => [$attack, $setting, $start];
                }
            }
        }
    }

    public static function unguarded(): iterable
    {
        foreach (static::attacks() as $attack) {
            // What an ordinary user can do, root can as well.
            $setting = $attack->needsRoot ? Setting::KernelAsRoot : Setting::KernelAsUser;
            if ($setting->isPossible() && $attack->unproven === '') {
                yield $attack->name => [$attack, $setting];
            }
        }
    }

    /**
     * @return list<Start> how attacks are made in a setting
     */
    protected static function starts(Setting $setting): array
    {
        return $setting->starts();
    }

    /** How they are made without guards. */
    protected static function unguardedStart(): Start
    {
        return Start::Cold;
    }

    protected static function arena(): Arena
    {
        return self::$arena ??= new Arena();
    }
}
