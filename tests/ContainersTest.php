<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\Tests\Support\Containers\Containers;
use Altair\Eval\Tests\Support\Containers\Setting;
use Altair\Eval\Tests\Support\Database\MariaDb;
use Altair\Eval\Tests\Support\DockerEngine;
use Altair\Eval\Tests\Support\Skip;
use PHPUnit\Framework\TestCase;

/**
 * What works in containers of a real engine, in the image that the example's Dockerfile makes. One container for each
 * way to start it answers all questions; `make containers` prints them as a table, with reasons and times.
 */
final class ContainersTest extends TestCase
{
    private const NO_MOUNTS = [
        'runs', 'by_address', 'by_name', 'warm', 'symfony', 'symfony_warm', 'laravel', 'laravel_warm',
    ];
    private const ALL = [...self::NO_MOUNTS, 'layer'];

    /** What works there; the rest does not. Neither leaves anything behind. */
    private const WORKS = [
        'default, root' => self::NO_MOUNTS,
        'default, user' => self::NO_MOUNTS,
        '--cap-drop ALL, root' => self::NO_MOUNTS,
        '--cap-drop ALL, user' => self::NO_MOUNTS,
        '--read-only, tmpfs on /tmp, root' => self::NO_MOUNTS,
        '--read-only, tmpfs on /tmp, user' => self::NO_MOUNTS,
        "doctor's profile, root" => self::ALL,
        "doctor's profile, user" => self::ALL,
        'seccomp=unconfined, root' => self::ALL,
    ];

    private static ?Containers $containers = null;

    public static function tearDownAfterClass(): void
    {
        self::$containers = null;
    }

    /**
     * @return iterable<string, array{string, list<string>}>
     */
    public static function settings(): iterable
    {
        foreach (self::WORKS as $setting => $works) {
            yield $setting => [$setting, $works];
        }
    }

    /**
     * @dataProvider settings
     * @param list<string> $works
     */
    public function testAContainerHasWhatItsFlagsAllow(string $setting, array $works): void
    {
        $containers = self::containers();

        $answers = $containers->probe($containers->setting($setting), calls: 2);

        $seen = array_keys(array_filter(
            array_intersect_key($answers, array_flip(self::ALL)),
            static fn (mixed $answer): bool => $answer === true,
        ));
        self::assertEqualsCanonicalizing($works, $seen, json_encode($answers, JSON_PRETTY_PRINT));
        self::assertSame([], $answers['left'], 'Nothing is left.');
    }

    /**
     * @return iterable<string, array{string}>
     */
    public static function withoutMounts(): iterable
    {
        foreach (['default', '--cap-drop ALL', '--read-only, tmpfs on /tmp'] as $way) {
            yield "$way, user" => ["$way, user"];
        }
        yield 'default, root' => ['default, root'];
    }

    /**
     * @dataProvider withoutMounts
     */
    public function testAWarmCallTakesAtMostThirteenTenthsOfTheTimeOutside(string $setting): void
    {
        $containers = self::containers();

        $slowdown = $containers->slowdown($containers->setting($setting), 1.3);

        self::assertLessThanOrEqual(1.3, $slowdown);
    }

    /**
     * @return iterable<string, array{string}>
     */
    public static function profiles(): iterable
    {
        foreach (["doctor's profile, root", "doctor's profile, user", 'its profile for Kubernetes, user'] as $setting) {
            yield $setting => [$setting];
        }
    }

    /**
     * @dataProvider profiles
     */
    public function testWithTheProfileThatTheDoctorPrintsEverythingIsInForce(string $setting): void
    {
        $containers = self::containers();

        $report = $containers->doctor($containers->setting($setting));

        $shown = (string) json_encode($report, JSON_PRETTY_PRINT);
        self::assertTrue($report['ok'], $shown);
        self::assertSame(['docker', true], [$report['kernel']['container'], $report['kernel']['filtered']]);
        self::assertSame(['in_force'], array_values(array_unique(array_column($report['guards'], 'state'))), $shown);
        self::assertCount(9, $report['guards']);
        self::assertSame([true, true], array_column($report['abilities'], 'works'), $shown);
    }

    public function testTheProfileHasNoCallThatIsNotNeeded(): void
    {
        $containers = self::containers();
        $profile = json_decode($containers->docker([], ['altair', 'doctor', '--docker-profile'])[1]);
        $added = array_pop($profile->syscalls);
        self::assertContains('unshare', $added->names);
        $program = 'altair eval --root=shop --require=filesystem 1; altair run -- true';

        // Without it the private root is entered by chroot(2), and the old root stays mounted below.
        $preferred = ['pivot_root'];
        foreach ([null, ...array_diff($added->names, $preferred)] as $missing) {
            $less = clone $profile;
            $names = array_values(array_diff($added->names, [$missing]));
            $less->syscalls[] = ['names' => $names, 'action' => $added->action];
            $flag = '--security-opt=seccomp=' . $containers->write((string) json_encode($less));
            [, $output, $errors] = $containers->docker([$flag], ['sh', '-c', $program]);

            $lacks = str_contains($errors, 'the guard filesystem is missing');
            self::assertSame($missing !== null, $lacks, "$missing: $output$errors");
        }
    }

    public function testWhatTheDoctorAdvisesInADefaultContainerIsThatProfile(): void
    {
        $containers = self::containers();

        $report = $containers->doctor($containers->setting('default, root'));

        $guards = array_column($report['guards'], null, 'name');
        self::assertSame(['missing', 'in_force'], [$guards['filesystem']['state'], $guards['landlock']['state']]);
        $advice = array_column($guards['filesystem']['remedies'], 'how');
        self::assertCount(1, $advice);
        self::assertStringContainsString('altair doctor --docker-profile > altair.json', $advice[0]);
        self::assertSame(false, array_column($report['abilities'], 'works', 'name')['layer']);
    }

    private static function containers(): Containers
    {
        if (posix_geteuid() !== 0) {
            Skip::NeedsRoot->because('Only root can start a Docker engine.');
        }
        $missing = DockerEngine::whyMissing() ?? MariaDb::whyMissing();
        if ($missing !== null) {
            Skip::NotInstalled->because($missing);
        }

        return self::$containers ??= new Containers();
    }
}
