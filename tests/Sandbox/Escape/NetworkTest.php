<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Sandbox\Escape;

use Altair\Eval\Tests\Support\Sandbox\Attempt;
use Altair\Eval\Tests\Support\Sandbox\Caller;
use Altair\Eval\Tests\Support\Sandbox\CommandEscapeTestCase;
use Altair\Eval\Tests\Support\Sandbox\Ground;

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
