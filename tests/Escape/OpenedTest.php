<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Escape;

use Altair\Eval\Tests\Support\Escape\Arena;
use Altair\Eval\Tests\Support\Escape\Attack;
use Altair\Eval\Tests\Support\Escape\Harm;
use Altair\Eval\Tests\Support\Escape\Place;
use Altair\Eval\Tests\Support\Escape\Setting;
use Altair\Eval\Tests\Support\Escape\Start;
use PHPUnit\Framework\TestCase;

/**
 * What a request opens is open, in every setting: the attacks are stopped by guards, not by runs that can do nothing.
 */
final class OpenedTest extends TestCase
{
    private const NETWORK = [
        'tcp' => 'fclose(stream_socket_client("tcp://127.0.0.1:$s->tcp"));',
        'tcp6' => 'fclose(stream_socket_client("tcp://[::1]:$s->tcp6"));',
        'udp' => 'fwrite(stream_socket_client("udp://127.0.0.1:$s->udp"), "x");',
        'udp6' => 'fwrite(stream_socket_client("udp://[::1]:$s->udp6"), "x");',
    ];

    private const WRITES = [
        'a new file' => 'file_put_contents("new", "x");',
        'a file that is there' => 'file_put_contents("data.txt", "x");',
        'a file that goes' => 'unlink("data.txt");',
        'a new directory' => 'mkdir("new/deep", 0755, true);',
        'another name' => 'rename("data.txt", "src/renamed");',
        'another mode' => 'chmod("data.txt", 0600);',
        'another time' => 'touch("data.txt", 1000000000);',
    ];

    private static ?Arena $arena = null;

    public static function tearDownAfterClass(): void
    {
        self::$arena = null;
        gc_collect_cycles();
    }

    /**
     * @dataProvider connections
     */
    public function testWithTheNetworkOnItConnects(string $kind, Setting $setting, Start $start): void
    {
        $attempt = new Attack($kind, self::NETWORK[$kind], Harm::arrival($kind), options: ['allowNetwork' => true]);

        $run = self::arena()->run($attempt, $setting, $start);

        self::assertSame($start->value, $run->start(), $run->story());
        self::assertSame([$kind], $run->arrived, $run->story());
    }

    public static function connections(): iterable
    {
        return self::inEverySetting(array_keys(self::NETWORK));
    }

    /**
     * @dataProvider writes
     */
    public function testWithWritesOnTheyAreReal(string $name, Setting $setting, Start $start): void
    {
        $attempt = new Attack($name, self::WRITES[$name], Harm::project(), options: ['allowWrites' => true]);

        if (!Place::hasMounts()) {
            $run = self::arena()->run($attempt, $setting, Start::Cold);
            self::assertStringContainsString(Place::NO_WRITES, $run->failure, $run->story());
            self::assertSame([], [...Harm::any($run), ...Harm::project()($run)], $run->story());

            return;
        }

        $run = self::arena()->run($attempt, $setting, $start);

        self::assertSame($start->value, $run->start(), $run->story());
        self::assertNotSame([], Harm::project()($run), $run->story());
        self::assertSame([], Harm::any($run), $run->story());
    }

    public static function writes(): iterable
    {
        return self::inEverySetting(array_keys(self::WRITES));
    }

    /**
     * @param list<string> $names
     */
    private static function inEverySetting(array $names): iterable
    {
        foreach ($names as $name) {
            foreach (Setting::cases() as $setting) {
                foreach ($setting->isPossible() ? $setting->starts() : [] as $start) {
                    yield "$name: $setting->value, $start->value" => [$name, $setting, $start];
                }
            }
        }
    }

    private static function arena(): Arena
    {
        return self::$arena ??= new Arena();
    }
}
