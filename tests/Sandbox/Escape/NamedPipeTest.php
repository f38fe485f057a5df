<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Sandbox\Escape;

use Altair\Eval\Tests\Support\Sandbox\Caller;
use Altair\Eval\Tests\Support\Sandbox\CommandEscapeTestCase;
use Altair\Eval\Tests\Support\Sandbox\Ground;

/**
 * Named pipes of the machine's: what is in one is meant for another process, and so is what comes out.
 */
final class NamedPipeTest extends CommandEscapeTestCase
{
    /** @var resource a process that has both ends of the pipe */
    private static $ends;

    /**
     * @return iterable<string, array{Caller, list<string>, list<string>}>
     */
    public static function readable(): iterable
    {
        foreach (self::levels() as $name => [$caller, $lacking]) {
            // Only Landlock keeps from writing.
            if ($lacking !== ['landlock']) {
                yield $name => [$caller, ['--read=../pipes'], $lacking];
            }
        }
    }

    /**
     * @param list<string> $options
     * @param list<string> $lacking
     *
     * @dataProvider readable
     */
    public function testNothingIsPutIntoAPipeThatMayBeRead(Caller $caller, array $options, array $lacking): void
    {
        self::assertPipeIsHeld($caller, [], $options, $lacking);
    }

    /**
     * @return iterable<string, array{Caller, list<string>, list<string>}>
     */
    public static function others(): iterable
    {
        foreach (Caller::everyone() as $name => [$caller]) {
            yield "$name: in a layer" => [$caller, ['--read=.', '--layer=../pipes'], []];
            yield "$name: in a layer, without Landlock" => [$caller, ['--read=.', '--layer=../pipes'], ['landlock']];
        }
        foreach (self::levels() as $name => [$caller, $lacking]) {
            yield "$name: elsewhere" => [$caller, ['--read=.'], $lacking];
        }
    }

    /**
     * @param list<string> $options
     * @param list<string> $lacking
     *
     * @dataProvider others
     */
    public function testAPipeInALayerIsTheCommandsOwnAndOneElsewhereIsNotOpened(
        Caller $caller,
        array $options,
        array $lacking,
    ): void {
        self::assertPipeIsHeld($caller, ['and reads'], $options, $lacking);
    }

    /**
     * @param list<string> $reads
     * @param list<string> $options
     * @param list<string> $lacking
     */
    private static function assertPipeIsHeld(Caller $caller, array $reads, array $options, array $lacking): void
    {
        self::assertHeld(
            $caller,
            static function (Ground $ground) use ($reads): array {
                $directory = dirname($ground->place) . '/pipes';
                $path = "$directory/pipe";
                mkdir($directory) && posix_mkfifo($path, 0600);
                array_map($ground->giveAway(...), [$directory, $path]);
                self::$ends = fopen($path, 'r+n');
                fwrite(self::$ends, 'meant for another');

                return ['named-pipe', $path, ...$reads];
            },
            $options,
            static function (): array {
                $left = (string) fread(self::$ends, 1000);

                return $left === 'meant for another' ? [] : ["What is left in the pipe: $left"];
            },
            lacking: $lacking,
        );
    }
}
