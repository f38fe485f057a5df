<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Sandbox\Escape;

use Altair\Eval\Tests\Support\Sandbox\Attempt;
use Altair\Eval\Tests\Support\Sandbox\Caller;
use Altair\Eval\Tests\Support\Sandbox\CommandEscapeTestCase;
use Altair\Eval\Tests\Support\Sandbox\Ground;
use Altair\Eval\Tests\Support\Skip;

/**
 * Connections to what listens on this machine, and from it.
 */
final class NetworkTest extends CommandEscapeTestCase
{
    /**
     * @return iterable<string, array{Caller, string}>
     */
    public static function protocols(): iterable
    {
        foreach (Caller::everyone() as $name => [$caller]) {
            foreach (['tcp', 'udp'] as $kind) {
                yield "$name: $kind" => [$caller, $kind];
            }
        }
    }

    /**
     * @dataProvider protocols
     */
    public function testNothingIsReachedWithoutANetwork(Caller $caller, string $kind): void
    {
        self::assertHeld(
            $caller,
            static fn (Ground $ground): array => ['internet', (string) $ground->listeners()->port($kind)],
        );
    }

    /**
     * @return iterable<string, array{Caller, string, list<string>}>
     */
    public static function sockets(): iterable
    {
        foreach (Caller::everyone() as $name => [$caller]) {
            foreach (['unix', 'unixgram', 'abstract'] as $kind) {
                yield "$name: $kind" => [$caller, $kind, []];
                yield "$name: $kind, with the network" => [$caller, $kind, ['--network']];
                yield "$name: $kind, with a service" => [$caller, $kind, ['--service=127.0.0.1:9']];
            }
        }
    }

    /**
     * @param list<string> $options
     *
     * @dataProvider sockets
     */
    public function testNoUnixSocketIsReached(Caller $caller, string $kind, array $options): void
    {
        // Its directory may be read.
        self::assertHeld($caller, static function (Ground $ground) use ($kind): array {
            $listeners = $ground->listeners();

            return ['unix', $kind === 'abstract' ? "@$listeners->abstract" : $listeners->path($kind)];
        }, ['--read=..', ...$options]);
    }

    /**
     * @dataProvider everyone
     */
    public function testOnlyTheServiceIsReached(Caller $caller): void
    {
        $service = stream_socket_server('tcp://127.0.0.1:0');
        $options = ['--service=127.0.0.1:' . self::port($service)];
        foreach (['tcp', 'udp'] as $kind) {
            self::assertHeld(
                $caller,
                static fn (Ground $ground): array => ['internet', (string) $ground->listeners()->port($kind)],
                $options,
            );
        }
        $ground = new Ground($caller);
        (new Attempt($ground, ['internet', (string) self::port($service)], $options))->end();
        self::assertIsResource(stream_socket_accept($service, 5));
    }

    /**
     * @dataProvider everyone
     */
    public function testAnAddressThatChangesMeanwhileLeadsNowhereElse(Caller $caller): void
    {
        // Nobody listens there.
        $service = self::freePort();
        self::assertHeld(
            $caller,
            static fn (Ground $ground): array => [
                'race', (string) $service, (string) $ground->listeners()->port('tcp'), '1000',
            ],
            ["--service=127.0.0.1:$service"],
        );
    }

    /**
     * @dataProvider everyone
     */
    public function testNobodyReachesWhatTheCommandServes(Caller $caller): void
    {
        $port = self::freePort();
        $serve = static fn (Ground $ground): array => ['serve', (string) $port, "@$ground->mark"];
        self::assertHeldWhileItRuns($caller, $serve, static function (Ground $ground) use ($port): array {
            $reached = [];
            foreach (["tcp://127.0.0.1:$port", "unix://\0$ground->mark"] as $address) {
                if (@stream_socket_client($address, $code, $message, 1) !== false) {
                    $reached[] = $address;
                }
            }

            return $reached;
        });
    }

    /**
     * @return iterable<string, array{Caller, list<string>, list<string>}>
     */
    public static function networks(): iterable
    {
        foreach (self::levels() as $name => [$caller, $lacking]) {
            yield $name => [$caller, $lacking, ['--network']];
            yield "$name, with a service" => [$caller, $lacking, ['--network', '--service=/run/altair-none.sock']];
        }
    }

    /**
     * @param list<string> $lacking
     * @param list<string> $options
     *
     * @dataProvider networks
     */
    public function testNoNameOfTheMachineIsTakenByTheWay(Caller $caller, array $lacking, array $options): void
    {
        self::assertHeldWhileItRuns(
            $caller,
            static fn (Ground $ground): array => ['take-names', strrev($ground->mark), $ground->mark],
            static function (Ground $ground, Attempt $attempt): array {
                preg_match_all('/has the name (@.*)\.$/m', $attempt->story(), $told);
                $there = self::names();
                $own = preg_grep('/^@' . substr(strrev($ground->mark), 0, 13) . '/', $there);

                return [...$own, ...array_intersect($told[1], $there)];
            },
            $options,
            $lacking,
        );
    }

    /**
     * @dataProvider everyone
     */
    public function testANameThatIsSwappedForAPortIsNotTaken(Caller $caller): void
    {
        self::assertHeldWhileItRuns(
            $caller,
            static fn (Ground $ground): array => ['race-for-name', '@' . substr($ground->mark, -13), $ground->mark],
            static fn (Ground $ground): array => preg_grep('/^@' . substr($ground->mark, -13) . '/', self::names()),
            ['--network'],
        );
    }

    public function testRootsCommandTakesNoPortThatOnlyRootMay(): void
    {
        if (posix_geteuid() !== 0 || (int) file_get_contents('/proc/sys/net/ipv4/ip_unprivileged_port_start') < 1024) {
            Skip::NeedsRoot->because('Only root may take it.');
        }
        $port = 1023;
        while (@stream_socket_server("tcp://127.0.0.1:$port") === false) {
            $port--;
        }
        foreach ([[], ['mounts'], ['mounts', 'copies']] as $lacking) {
            self::assertHeldWhileItRuns(
                Caller::Root,
                static fn (Ground $ground): array => ['serve', (string) $port, $ground->mark],
                static fn (): array => @stream_socket_client("tcp://127.0.0.1:$port") === false ? [] : ['It serves.'],
                ['--network'],
                $lacking,
            );
        }
    }

    /**
     * @return list<string> the names in the abstract namespace of the machine's network
     */
    private static function names(): array
    {
        $names = array_map(
            static fn (string $line): string => substr(strrchr(rtrim($line, "\n"), ' '), 1),
            (array) file('/proc/net/unix'),
        );

        return array_values(preg_grep('/^@/', $names));
    }

    private static function freePort(): int
    {
        return self::port(stream_socket_server('tcp://127.0.0.1:0'));
    }

    /**
     * @param resource $socket
     */
    private static function port($socket): int
    {
        return (int) substr(strrchr((string) stream_socket_get_name($socket, false), ':'), 1);
    }
}
