<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Sandbox\Escape;

use Altair\Eval\Tests\Support\Sandbox\Attempt;
use Altair\Eval\Tests\Support\Sandbox\Caller;
use Altair\Eval\Tests\Support\Sandbox\CommandEscapeTestCase;
use Altair\Eval\Tests\Support\Sandbox\Ground;
use Closure;

/**
 * What the descriptor of a command's standard input allows besides reading.
 */
final class InputTest extends CommandEscapeTestCase
{
    /**
     * @return iterable<string, array{Caller, list<string>, list<string>}>
     */
    public static function drivers(): iterable
    {
        foreach (self::levels() as $name => [$caller, $lacking]) {
            yield "$name: native" => [$caller, ['--write=.'], $lacking];
        }
        foreach (Caller::everyone() as $name => [$caller]) {
            yield "$name: bubblewrap" => [$caller, ['--driver=bubblewrap'], []];
        }
    }

    /**
     * @param list<string> $options
     * @param list<string> $lacking
     *
     * @dataProvider drivers
     */
    public function testADirectoryStaysAsItIs(Caller $caller, array $options, array $lacking): void
    {
        self::assertInputIsHeld($caller, $options, $lacking, static fn (Ground $ground): array => [
            'file', dirname($ground->secretFile), 'r',
        ], static fn (Ground $ground): string => dirname($ground->secretFile));
    }

    /**
     * @param list<string> $options
     * @param list<string> $lacking
     *
     * @dataProvider drivers
     */
    public function testAFileStaysAsItIs(Caller $caller, array $options, array $lacking): void
    {
        foreach (['r', 'r+', 'a'] as $mode) {
            self::assertInputIsHeld(
                $caller,
                $options,
                $lacking,
                static fn (Ground $ground): array => ['file', $ground->secretFile, $mode],
                static fn (Ground $ground): string => $ground->secretFile,
            );
        }
    }

    /**
     * @param list<string> $options
     * @param list<string> $lacking
     *
     * @dataProvider drivers
     */
    public function testAFileThatHasLostOneOfItsNamesStaysAsItIs(Caller $caller, array $options, array $lacking): void
    {
        self::assertInputIsHeld($caller, $options, $lacking, static function (Ground $ground): mixed {
            link($ground->secretFile, "$ground->place/name");
            $file = fopen("$ground->place/name", 'r');
            unlink("$ground->place/name");

            return $file;
        }, static fn (Ground $ground): string => $ground->secretFile);
    }

    /**
     * @param list<string> $options
     * @param list<string> $lacking
     *
     * @dataProvider drivers
     */
    public function testANamedPipeStaysAsItIs(Caller $caller, array $options, array $lacking): void
    {
        self::assertInputIsHeld($caller, $options, $lacking, static function (Ground $ground): mixed {
            posix_mkfifo("$ground->place/pipe", 0600);
            $ground->giveAway("$ground->place/pipe");
            $end = fopen("$ground->place/pipe", 'r+');
            fwrite($end, 'the end of what there is to be read');

            return fopen("$ground->place/pipe", 'r');
        }, static fn (Ground $ground): string => "$ground->place/pipe");
    }

    /**
     * @param list<string> $options
     * @param list<string> $lacking
     *
     * @dataProvider drivers
     */
    public function testASocketReachesNobodyElse(Caller $caller, array $options, array $lacking): void
    {
        self::assertHeld(
            $caller,
            static fn (Ground $ground): array => ['input', $ground->listeners()->path('unixgram')],
            ['--read=..', ...$options],
            // Bound, and connected to nobody.
            input: static fn (Ground $ground): mixed => stream_socket_server(
                "udg://$ground->place/socket",
                flags: STREAM_SERVER_BIND,
            ),
            lacking: $lacking,
        );
    }

    /**
     * @dataProvider everyone
     */
    public function testItSaysWhatAnInputMayBe(Caller $caller): void
    {
        foreach (['host', 'docker', 'podman', 'firejail', 'bubblewrap', 'native'] as $driver) {
            $ground = new Ground($caller);
            $attempt = new Attempt($ground, ['input'], ["--driver=$driver"], ['file', $ground->place, 'r']);
            self::assertSame('', $attempt->end());
            self::assertStringContainsString(
                'altair: Standard input is a directory: give a file, a pipe or /dev/null.',
                $attempt->story(),
            );
        }
    }

    /**
     * @param list<string> $options
     * @param list<string> $lacking
     * @param Closure(Ground): mixed $input
     * @param Closure(Ground): string $path whose mode is looked at
     */
    private static function assertInputIsHeld(
        Caller $caller,
        array $options,
        array $lacking,
        Closure $input,
        Closure $path,
    ): void {
        $harm = static function (Ground $ground) use ($path): array {
            clearstatcache();
            $mode = decoct(fileperms($path($ground)) & 0777);

            return $mode === '777' ? ["{$path($ground)} has the mode $mode"] : [];
        };
        self::assertHeld($caller, static fn (): array => ['input'], $options, $harm, $input, $lacking);
    }
}
