<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Escape;

use Altair\Eval\Tests\Support\Escape\Attack;
use Altair\Eval\Tests\Support\Escape\EscapeTestCase;
use Altair\Eval\Tests\Support\Escape\Setting;
use Altair\Eval\Tests\Support\Escape\Start;
use Altair\Eval\Tests\Support\Skip;
use PHPUnit\Framework\TestCase;

/**
 * The tables of attacks as a whole.
 */
final class SuiteTest extends TestCase
{
    private const GROUPS = [
        ExhaustionTest::class,
        KernelArgumentsTest::class,
        KernelSurfaceTest::class,
        NativeNetworkEscapeTest::class,
        NativeProcessEscapeTest::class,
        NativeReadEscapeTest::class,
        NetworkEscapeTest::class,
        ProcessEscapeTest::class,
        ReadEscapeTest::class,
        ServicesEscapeTest::class,
        SessionsEscapeTest::class,
        SignalEscapeTest::class,
        TamperingTest::class,
        TemplateEscapeTest::class,
        WriteEscapeTest::class,
    ];

    public function testEveryTableIsCounted(): void
    {
        $tables = [];
        foreach (glob(__DIR__ . '/*Test.php') as $file) {
            $class = __NAMESPACE__ . '\\' . basename($file, '.php');
            if (is_subclass_of($class, EscapeTestCase::class)) {
                $tables[] = $class;
            }
        }

        self::assertSame(self::GROUPS, $tables);
    }

    public function testNearlyEveryAttackIsSeenToSucceedWithoutGuards(): void
    {
        $attacks = $this->attacks();
        $unproven = array_filter($attacks, static fn (Attack $attack): bool => $attack->unproven !== '');

        self::assertLessThan(0.1 * count($attacks), count($unproven));
    }

    public function testEverySettingHasItsAttacks(): void
    {
        foreach (Setting::cases() as $setting) {
            $here = array_filter(
                $this->attacks(),
                static fn (Attack $attack): bool => in_array($setting, $attack->settings, true),
            );
            self::assertGreaterThanOrEqual(120, count($here), $setting->value);
        }
    }

    public function testEveryAttackIsMadeInBothStarts(): void
    {
        foreach ($this->attacks() as $attack) {
            $starts = array_map(static fn (Setting $setting): array => $setting->starts(), $attack->settings);
            self::assertContains(Start::Cold, array_merge(...$starts), $attack->name);
            foreach ($attack->settings as $setting) {
                // Where one of these is left out there is no warm start, and it is here that this has to be said.
                self::assertSame([], array_intersect(Setting::NO_TEMPLATE_WITHOUT, $setting->omitted()));
                self::assertContains(Start::Warm, $setting->starts(), "$attack->name: $setting->value");
            }
        }
    }

    public function testNoNameIsGivenTwice(): void
    {
        foreach (self::GROUPS as $group) {
            $names = array_map(
                static fn (Attack $attack): string => $attack->name,
                iterator_to_array($group::attacks(), false),
            );
            self::assertSame($names, array_unique($names), $group);
        }
    }

    public function testTheSettingsOfRootAreRun(): void
    {
        if (!Setting::AllAsRoot->isPossible()) {
            Skip::NeedsRoot->because('No attack is made as root: the tests run as an ordinary user.');
        }
        self::assertTrue(Setting::KernelAsRoot->isPossible());
    }

    /**
     * @return list<Attack>
     */
    private function attacks(): array
    {
        $attacks = [];
        foreach (self::GROUPS as $group) {
            array_push($attacks, ...iterator_to_array($group::attacks(), false));
        }

        return $attacks;
    }
}
