<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Sandbox;

/**
 * What a machine may lack so that `altair run` still runs: each is a level of its guards.
 */
final class Levels
{
    private const LACKING = [
        'all guards' => [],
        'no mounts' => ['mounts'],
        'no mounts, no copies of descriptors' => ['mounts', 'copies'],
        'no mounts, no listener' => ['mounts', 'listener'],
        'no listener' => ['listener'],
        'no Landlock' => ['landlock'],
        'no pivot_root()' => ['pivot'],
    ];

    /** Root that may not mount, and root that may nothing. */
    private const LACKING_OF_ROOT = [
        'no capability to mount' => ['mounts', 'capability'],
        'no capability' => ['capabilities'],
    ];

    /**
     * @return iterable<string, array{Caller, list<string>}>
     */
    public static function all(): iterable
    {
        foreach (Caller::everyone() as $who => [$caller]) {
            $lacking = self::LACKING + ($caller === Caller::Root ? self::LACKING_OF_ROOT : []);
            foreach ($lacking as $name => $without) {
                yield "$who: $name" => [$caller, $without];
            }
        }
    }

    /**
     * With mounts and without, for everyone.
     *
     * @return iterable<string, array{Caller, list<string>}>
     */
    public static function both(): iterable
    {
        foreach (Caller::everyone() as $who => [$caller]) {
            yield "$who: with mounts" => [$caller, []];
            yield "$who: without mounts" => [$caller, ['mounts']];
        }
    }
}
