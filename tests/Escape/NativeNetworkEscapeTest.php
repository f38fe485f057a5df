<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Escape;

use Altair\Eval\Tests\Support\Escape\Attack;
use Altair\Eval\Tests\Support\Escape\EscapeTestCase;
use Altair\Eval\Tests\Support\Escape\Harm;
use Altair\Eval\Tests\Support\Escape\Listening;

/**
 * A run reaches nobody, by native code either.
 */
final class NativeNetworkEscapeTest extends EscapeTestCase
{
    /** A message header for `sendmsg`: name, name's length, one vector with one byte. */
    private const MESSAGE = '$byte = buf(8); $to = buf(128); $vector = buf(16);'
        . ' $message = static function (string $address) use ($byte, $to, $vector): string {'
        . ' FFI::memcpy($to, $address, strlen($address)); FFI::memcpy($vector, iov($byte, 1), 16);'
        . ' return pack("PP", addr($to), strlen($address)) . pack("PPPPP", addr($vector), 1, 0, 0, 0); };';

    /** Listener => ways to it. 1 is a stream, 2 a datagram, 3 raw; families are those of `socket(2)`. */
    private const CALLS = [
        'tcp' => [
            'connect' => '$f = sys("socket", 2, 1, 0); sys("connect", $f, ip4($s->tcp), 16);',
            'connect of a family with bits that the kernel ignores' =>
                '$f = sys("socket", (1 << 32) | 2, 1, 0); sys("connect", $f, ip4($s->tcp), 16);',
            'connect of a type with flags' => '$f = sys("socket", 2, 1 | 0x80800, 6);'
                . ' sys("connect", $f, ip4($s->tcp), 16);',
            'TCP fast open' => '$f = sys("socket", 2, 1, 0); sys("sendto", $f, "x", 1, 0x20000000, ip4($s->tcp), 16);',
            'MPTCP' => '$f = sys("socket", 2, 1, 262); sys("connect", $f, ip4($s->tcp), 16);',
            'IPv4 by an IPv6 socket' => '$f = sys("socket", 10, 1, 0); $a = pack("vnVa16V", 10, $s->tcp, 0,'
                . ' inet_pton("::ffff:127.0.0.1"), 0); sys("connect", $f, $a, 28);',
            'connect from a thread' => '$c = FFI::cdef("int pthread_create(unsigned long *, void *, void *, void *);'
                . ' int pthread_join(unsigned long, void *); int getaddrinfo(void *, void *, void *, void *);"'
                . ' . " void *dlsym(void *, const char *);"); $t = FFI::new("unsigned long");'
                . ' tell("pthread_create", $c->pthread_create(FFI::addr($t), null, $c->dlsym(null, "getpid"), null));'
                . ' $c->pthread_join($t->cdata, null); $f = sys("socket", 2, 1, 0);'
                . ' sys("connect", $f, ip4($s->tcp), 16);',
        ],
        'tcp6' => [
            'connect on IPv6' => '$f = sys("socket", 10, 1, 0); sys("connect", $f, ip6($s->tcp6), 28);',
        ],
        'udp' => [
            'sendto' => '$f = sys("socket", 2, 2, 0); sys("sendto", $f, "x", 1, 0, ip4($s->udp), 16);',
            'connect and write' => '$f = sys("socket", 2, 2, 0); sys("connect", $f, ip4($s->udp), 16);'
                . ' sys("write", $f, "x", 1);',
            'sendmsg' => self::MESSAGE . '$f = sys("socket", 2, 2, 0); sys("sendmsg", $f, $message(ip4($s->udp)), 0);',
            'sendmmsg' => self::MESSAGE
                . '$f = sys("socket", 2, 2, 0); sys("sendmmsg", $f, $message(ip4($s->udp)) . pack("P", 0), 1, 0);',
            'UDP by the number of its protocol' =>
                '$f = sys("socket", 2, 2, 17); sys("sendto", $f, "x", 1, 0, ip4($s->udp), 16);',
        ],
        'udp6' => [
            'sendto on IPv6' => '$f = sys("socket", 10, 2, 0); sys("sendto", $f, "x", 1, 0, ip6($s->udp6), 28);',
        ],
        'unix' => [
            'Unix socket' => '$f = sys("socket", 1, 1, 0); $a = un($s->unix); sys("connect", $f, $a, strlen($a));',
            'Unix socket by a relative path' => 'raw("chdir", dirname($s->unix)); $f = sys("socket", 1, 1, 0);'
                . ' $a = un(basename($s->unix)); sys("connect", $f, $a, strlen($a));',
        ],
        'unixgram' => [
            'Unix datagram' => '$f = sys("socket", 1, 2, 0); $a = un($s->unixgram);'
                . ' sys("sendto", $f, "x", 1, 0, $a, strlen($a));',
            'Unix datagram from a pair' => '$p = buf(8); sys("socketpair", 1, 2, 0, $p); $a = un($s->unixgram);'
                . ' sys("sendto", unpack("V", FFI::string($p, 4))[1], "x", 1, 0, $a, strlen($a));',
            'Unix datagram from a pair by sendmsg' => self::MESSAGE . '$p = buf(8); sys("socketpair", 1, 2, 0, $p);'
                . ' sys("sendmsg", unpack("V", FFI::string($p, 4))[1], $message(un($s->unixgram)), 0);',
            'Unix datagram from a pair that connects anew' => '$p = buf(8); sys("socketpair", 1, 2, 0, $p);'
                . ' $f = unpack("V", FFI::string($p, 4))[1]; $a = un($s->unixgram);'
                . ' sys("connect", $f, $a, strlen($a)); sys("write", $f, "x", 1);',
            'Unix datagram from a raw pair' => '$p = buf(8); sys("socketpair", 1, 3, 0, $p); $a = un($s->unixgram);'
                . ' sys("sendto", unpack("V", FFI::string($p, 4))[1], "x", 1, 0, $a, strlen($a));',
            'Unix datagram from every descriptor that is there' => '$p = buf(8); sys("socketpair", 1, 2, 0, $p);'
                . ' $a = un($s->unixgram); for ($f = 0; $f < 256; $f++) {'
                . ' raw("sendto", $f, "x", 1, 0x40, $a, strlen($a)); }',
        ],
        'abstract' => [
            'abstract socket' => '$f = sys("socket", 1, 1, 0); $a = pack("v", 1) . "\0$s->abstract";'
                . ' sys("connect", $f, $a, strlen($a));',
        ],
    ];

    /**
     * Sockets that speak to more than a listener: that one is there at all is too much.
     *
     * Family, type, protocol, whether only root gets one, what `/proc/net/protocols` calls it.
     */
    private const SOCKETS = [
        'netlink of routes' => [16, 3, 0, false, 'NETLINK'],
        'netlink of the kernel\'s events' => [16, 3, 15, false, 'NETLINK'],
        'netlink of audit' => [16, 3, 9, false, 'NETLINK'],
        'netlink of process events' => [16, 2, 11, false, 'NETLINK'],
        'vsock' => [40, 1, 0, false, 'AF_VSOCK'],
        'kernel cryptography' => [38, 5, 0, false, 'ALG'],
        'packet' => [17, 3, 0x0300, true, 'PACKET'],
        'packet without headers' => [17, 2, 0x0300, true, 'PACKET'],
        'raw IPv4' => [2, 3, 255, true, 'RAW'],
        'raw IPv6' => [10, 3, 58, true, 'RAWv6'],
    ];

    public static function attacks(): iterable
    {
        foreach (self::CALLS as $kind => $calls) {
            foreach ($calls as $name => $snippet) {
                yield Attack::native($name, $snippet, Harm::arrival($kind));
            }
        }
        $protocols = (string) file_get_contents('/proc/net/protocols');
        foreach (self::SOCKETS as $name => [$family, $type, $protocol, $needsRoot, $kernelName]) {
            $isThere = preg_match("/^$kernelName /m", $protocols) === 1;
            yield Attack::native(
                "$name socket",
                "sys('socket', $family, $type, $protocol);",
                Harm::descriptor('~^socket:~'),
                needsRoot: $needsRoot,
                unproven: $isThere ? '' : 'the kernel that runs has no such sockets',
            );
        }
        yield Attack::native(
            'a socket of any family and type',
            'for ($family = 1; $family < 47; $family++) { foreach ([1, 2, 3, 4, 5] as $type) {'
                . ' $f = raw("socket", $family, $type, 0); tell("socket", $f); } }',
            Harm::descriptor('~^socket:~'),
        );
        yield Attack::native(
            'a pair of sockets of any family but Unix',
            '$p = buf(8); for ($family = 2; $family < 47; $family++) { foreach ([1, 2, 3, 4, 5] as $type) {'
                . ' tell("socketpair", raw("socketpair", $family, $type, 0, $p)); } }',
            Harm::descriptor('~^socket:~'),
            unproven: 'the one other family with pairs, TIPC, is a module that few machines load',
        );
        yield Attack::native(
            'ping',
            '$f = sys("socket", 2, 3, 1); sys("sendto", $f, "\x08\0\xf7\xfe\0\x01\0\0", 8, 0, ip4(0), 16);',
            Harm::arrival('ping'),
            needsRoot: true,
        );
        yield from self::listening();
    }

    private static function listening(): iterable
    {
        $calls = [
            'bind and listen' => '$f = sys("socket", 2, 1, 0); sys("bind", $f, ip4($s->free), 16);'
                . ' sys("listen", $f, 5);',
            'bind and listen on IPv6' => '$f = sys("socket", 10, 1, 0);'
                . ' sys("bind", $f, pack("vnVa16V", 10, $s->free, 0, "", 0), 28); sys("listen", $f, 5);',
        ];
        foreach ($calls as $name => $snippet) {
            foreach (['' => [], ', with the network on' => ['allowNetwork' => true]] as $suffix => $options) {
                yield Attack::native(
                    "$name$suffix",
                    $snippet,
                    Listening::wasReached(),
                    options: $options,
                    prepare: Listening::choosePort(),
                    look: Listening::connect(),
                );
            }
        }
        foreach (['unix', 'unixgram', 'abstract'] as $kind) {
            foreach (self::CALLS[$kind] as $name => $snippet) {
                yield Attack::native(
                    "$name, with the network on",
                    $snippet,
                    Harm::arrival($kind),
                    options: ['allowNetwork' => true],
                );
            }
        }
        yield Attack::native(
            'ping, with the network on',
            '$f = sys("socket", 2, 3, 1); sys("sendto", $f, "\x08\0\xf7\xfe\0\x01\0\0", 8, 0, ip4(0), 16);',
            Harm::arrival('ping'),
            options: ['allowNetwork' => true],
            needsRoot: true,
        );
    }
}
