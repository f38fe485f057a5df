<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Escape;

use Altair\Eval\Tests\Support\Escape\Attack;
use Altair\Eval\Tests\Support\Escape\EscapeTestCase;
use Altair\Eval\Tests\Support\Escape\Harm;

/**
 * A run that may connect to a service reaches nobody else: what holds without any service holds with one, too.
 */
final class ServicesEscapeTest extends EscapeTestCase
{
    /** Nobody is there: what matters is what they open. */
    private const SERVICES = ['127.0.0.1:1', '[::1]:1', '/run/altair-none.sock'];

    /** What makes sockets of each kind, and is about others than those that services need. */
    private const OF_ANY_KIND = 'a socket of any family and type';

    /** Listener => ways to it beside those of the other tables: spellings of an address, and what is said of a name. */
    private const CALLS = [
        'tcp' => [
            'by every name of this machine' => '$name = gethostname();'
                . ' @stream_socket_client("tcp://$name:$s->tcp", $e, $m, 1);'
                . ' @stream_socket_client("tcp://localhost:$s->tcp", $e, $m, 1);',
            'any address of this machine' => '@stream_socket_client("tcp://0.0.0.0:$s->tcp", $e, $m, 1);',
            'an address in fewer parts' => '@stream_socket_client("tcp://127.1:$s->tcp", $e, $m, 1);'
                . ' @stream_socket_client("tcp://2130706433:$s->tcp", $e, $m, 1);',
            'IPv4 by IPv6' => '@stream_socket_client("tcp://[::ffff:127.0.0.1]:$s->tcp", $e, $m, 1);'
                . ' @stream_socket_client("tcp://[::127.0.0.1]:$s->tcp", $e, $m, 1);',
            'a port and more than a port' => '@stream_socket_client("tcp://127.0.0.1:"'
                . ' . ($s->tcp + 65536), $e, $m, 1);',
        ],
        'unix' => [
            'a path with more in it' => '@stream_socket_client("unix:///run/../" . ltrim($s->unix, "/"), $e, $m, 1);',
        ],
    ];

    /** The same by native code. */
    private const NATIVE = [
        'tcp' => [
            'an address that another thread changes' => '$f = sys("socket", 2, 1, 0); $a = buf(16);'
                . ' FFI::memcpy($a, ip4(1), 16); $c = FFI::cdef("int pthread_create(unsigned long *, void *, void *,'
                . ' void *); void *memcpy(void *, const void *, size_t);"); sys("connect", $f, $a, 16);'
                . ' FFI::memcpy($a, ip4($s->tcp), 16); sys("connect", $f, $a, 16);',
            'a socket that was connected before' => '$f = sys("socket", 2, 1, 0); sys("connect", $f, ip4(1), 16);'
                . ' sys("connect", $f, str_repeat("\0", 16), 16); sys("connect", $f, ip4($s->tcp), 16);',
            'a socket under another number' => '$f = sys("socket", 2, 1, 0); raw("dup3", $f, 99, 0); raw("close", $f);'
                . ' sys("connect", 99, ip4($s->tcp), 16);',
            'thousands of sockets' => 'for ($i = 0; $i < 3000; $i++) { $f = raw("socket", 2, 1, 0);'
                . ' $f < 0 || $i % 500 > 0 || sys("connect", $f, ip4($s->tcp), 16);'
                . ' $f < 0 || $i % 3 === 0 || raw("close", $f); }'
                . ' for ($f = 4; $f < 250; $f += 9) { raw("connect", $f, ip4($s->tcp), 16); }',
            'a socket that was on its way in another' => '$p = buf(8); raw("socketpair", 1, 1, 0, $p);'
                . ' [1 => $a, 2 => $b] = unpack("V2", FFI::string($p, 8)); $f = sys("socket", 2, 1, 0);'
                . ' $x = buf(1); $v = buf(16); FFI::memcpy($v, iov($x, 1), 16); $c = buf(24);'
                . ' FFI::memcpy($c, pack("PVVVV", 20, 1, 1, $f, 0), 24);'
                . ' $m = pack("PPPPPPP", 0, 0, addr($v), 1, addr($c), 24, 0); raw("sendmsg", $a, $m, 0);'
                . ' raw("close", $f); usleep(300000); raw("recvmsg", $b, $m, 0);'
                . ' $f = unpack("V", FFI::string($c + 16, 4))[1]; sys("connect", $f, ip4($s->tcp), 16);',
            'connect with an address that is too long' => '$f = sys("socket", 2, 1, 0);'
                . ' sys("connect", $f, ip4($s->tcp) . str_repeat("x", 100), 116);',
            'TCP fast open by an option' => '$f = sys("socket", 2, 1, 0); $one = pack("V", 1);'
                . ' sys("setsockopt", $f, 6, 30, $one, 4); sys("connect", $f, ip4($s->tcp), 16);'
                . ' sys("write", $f, "x", 1);',
        ],
        'unix' => [
            'a path through the root of the process' => '$f = sys("socket", 1, 1, 0);'
                . ' $a = un("/proc/self/root$s->unix"); sys("connect", $f, $a, strlen($a));',
            'a path through a descriptor' => '$d = raw("openat", -100, dirname($s->unix), 0x200000, 0);'
                . ' $f = sys("socket", 1, 1, 0); $a = un("/proc/self/fd/$d/" . basename($s->unix));'
                . ' sys("connect", $f, $a, strlen($a));',
            'a socket behind the path of a service' => 'raw("symlink", $s->unix, "/run/altair-none.sock");'
                . ' raw("rename", $s->unix, "/run/altair-none.sock"); $f = sys("socket", 1, 1, 0);'
                . ' $a = un("/run/altair-none.sock"); sys("connect", $f, $a, strlen($a));'
                . ' $a = un($s->unix); sys("connect", $f, $a, strlen($a));',
        ],
    ];

    public static function attacks(): iterable
    {
        $others = [...NetworkEscapeTest::attacks(), ...NativeNetworkEscapeTest::attacks()];
        foreach ($others as $attack) {
            if ($attack->name !== self::OF_ANY_KIND && ($attack->options['allowNetwork'] ?? false) === false) {
                $name = $attack->name . ($attack->isNative() ? ', natively' : '');
                yield $attack->with(['services' => self::SERVICES], $name);
            }
        }
        yield from self::own();
    }

    public static function unguarded(): iterable
    {
        // The others are shown to succeed in the tables that they come from.
        $own = array_map(static fn (Attack $attack): string => $attack->name, [...self::own()]);
        foreach (parent::unguarded() as $name => $row) {
            if (in_array($name, $own, true)) {
                yield $name => $row;
            }
        }
    }

    private static function own(): iterable
    {
        $options = ['services' => self::SERVICES];
        foreach (self::CALLS as $kind => $calls) {
            foreach ($calls as $name => $snippet) {
                yield new Attack("service: $name", $snippet, Harm::arrival($kind), options: $options);
            }
        }
        foreach (self::NATIVE as $kind => $calls) {
            foreach ($calls as $name => $snippet) {
                yield Attack::native("service: $name", $snippet, Harm::arrival($kind), $options);
            }
        }
    }
}
