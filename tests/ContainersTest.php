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
    private const NO_MOUNTS = ['runs'];
    private const NOTHING = [];
    private const ALL = ['runs', 'layer', 'by_address', 'by_name', 'warm', 'symfony', 'laravel'];

    /** What works there; the rest does not. Neither leaves anything behind. */
    private const WORKS = [
        'default, root' => self::NO_MOUNTS,
        'default, user' => self::NO_MOUNTS,
        '--cap-drop ALL, root' => self::NOTHING,
        '--cap-drop ALL, user' => self::NO_MOUNTS,
        '--read-only, tmpfs on /tmp, root' => self::NO_MOUNTS,
        '--read-only, tmpfs on /tmp, user' => self::NO_MOUNTS,
        'seccomp=unconfined, root' => self::ALL,
        'seccomp=unconfined, user' => self::ALL,
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

        $answers = $containers->probe(Setting::all('')[$setting], calls: 2);

        $seen = array_keys(array_filter(
            array_intersect_key($answers, array_flip(self::ALL)),
            static fn (mixed $answer): bool => $answer === true,
        ));
        self::assertEqualsCanonicalizing($works, $seen, json_encode($answers, JSON_PRETTY_PRINT));
        self::assertSame([], $answers['left'], 'Nothing is left.');
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
