<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Escape;

use Altair\Eval\Tests\Support\Escape\Attack;
use Altair\Eval\Tests\Support\Escape\EscapeTestCase;
use Altair\Eval\Tests\Support\Escape\Harm;
use Altair\Eval\Tests\Support\Escape\Listening;
use Altair\Eval\Tests\Support\Escape\Scene;

/**
 * A run reaches nobody, by whatever of PHP and its extensions can connect.
 */
final class NetworkEscapeTest extends EscapeTestCase
{
    /** Listener => ways to it. What has no extension here cannot connect here. */
    private const CALLS = [
        'tcp' => [
            'fsockopen' => 'fsockopen("127.0.0.1", $s->tcp, $e, $m, 1);',
            'pfsockopen' => 'pfsockopen("127.0.0.1", $s->tcp, $e, $m, 1);',
            'stream_socket_client' => 'stream_socket_client("tcp://127.0.0.1:$s->tcp", $e, $m, 1);',
            'stream_socket_client that does not wait' =>
                'stream_socket_client("tcp://127.0.0.1:$s->tcp", $e, $m, 1, STREAM_CLIENT_ASYNC_CONNECT);',
            'TLS' => '@stream_socket_client("tls://127.0.0.1:$s->tcp", $e, $m, 0.2);',
            'HTTP by file_get_contents' => '@file_get_contents("http://127.0.0.1:$s->tcp/", false, $context());',
            'HTTPS by file_get_contents' => '@file_get_contents("https://127.0.0.1:$s->tcp/", false, $context());',
            'HTTP by fopen' => '@fopen("http://127.0.0.1:$s->tcp/", "r", false, $context());',
            'HTTP by copy' => '@copy("http://127.0.0.1:$s->tcp/", "copy.txt", $context());',
            'HTTP by a file object' => '$context(); new SplFileObject("http://127.0.0.1:$s->tcp/");',
            'HTTP through a filter' =>
                '@readfile("php://filter/resource=http://127.0.0.1:$s->tcp/", false, $context());',
            'HTTP by getimagesize' => '$context(); @getimagesize("http://127.0.0.1:$s->tcp/");',
            'HTTP by get_headers' => '@get_headers("http://127.0.0.1:$s->tcp/", false, $context());',
            'HTTP by SimpleXML' => '$context(); @simplexml_load_file("http://127.0.0.1:$s->tcp/");',
            'HTTP by DOM' => '$context(); @(new DOMDocument())->load("http://127.0.0.1:$s->tcp/");',
            'HTTP by an external entity' => '$context(); libxml_set_external_entity_loader(null);'
                . ' @(new DOMDocument())->loadXML("<!DOCTYPE r [<!ENTITY e SYSTEM \"http://127.0.0.1:$s->tcp/\">]>'
                . '<r>&e;</r>", LIBXML_NOENT | LIBXML_DTDLOAD);',
            'HTTP by XMLReader' => '$context(); @XMLReader::open("http://127.0.0.1:$s->tcp/")->read();',
            'HTTP by a stylesheet' => '$context(); $x = new DOMDocument(); $x->loadXML('
                . '"<x:stylesheet xmlns:x=\"http://www.w3.org/1999/XSL/Transform\" version=\"1.0\">'
                . '<x:template match=\"/\"><x:copy-of select=\"document(\'http://127.0.0.1:$s->tcp/\')\"/>'
                . '</x:template></x:stylesheet>"); $t = new XSLTProcessor(); @$t->importStylesheet($x);'
                . ' @$t->transformToXml(new SimpleXMLElement("<r/>"));',
            'FTP by fopen' => '@fopen("ftp://127.0.0.1:$s->tcp/f", "r", false, $context());',
            'FTP' => '@ftp_connect("127.0.0.1", $s->tcp, 1);',
            'socket_connect' => 'socket_connect(socket_create(AF_INET, SOCK_STREAM, SOL_TCP), "127.0.0.1", $s->tcp);',
            'socket_addrinfo_connect' => 'socket_addrinfo_connect(socket_addrinfo_lookup("127.0.0.1", $s->tcp,'
                . ' ["ai_flags" => 4, "ai_socktype" => SOCK_STREAM])[0]);',
        ],
        'tcp6' => [
            'IPv6 by fsockopen' => 'fsockopen("[::1]", $s->tcp6, $e, $m, 1);',
            'IPv6 by stream_socket_client' => 'stream_socket_client("tcp://[::1]:$s->tcp6", $e, $m, 1);',
            'IPv6 by socket_connect' =>
                'socket_connect(socket_create(AF_INET6, SOCK_STREAM, SOL_TCP), "::1", $s->tcp6);',
        ],
        'udp' => [
            'UDP by fsockopen' => 'fwrite(fsockopen("udp://127.0.0.1", $s->udp), "x");',
            'UDP by stream_socket_client' => 'fwrite(stream_socket_client("udp://127.0.0.1:$s->udp"), "x");',
            'UDP by stream_socket_sendto' => 'stream_socket_sendto(stream_socket_server("udp://127.0.0.1:0", $e, $m,'
                . ' STREAM_SERVER_BIND), "x", 0, "127.0.0.1:$s->udp");',
            'UDP by socket_sendto' =>
                'socket_sendto(socket_create(AF_INET, SOCK_DGRAM, SOL_UDP), "x", 1, 0, "127.0.0.1", $s->udp);',
            'UDP by socket_sendmsg' => 'socket_sendmsg(socket_create(AF_INET, SOCK_DGRAM, SOL_UDP),'
                . ' ["name" => ["addr" => "127.0.0.1", "port" => $s->udp], "iov" => ["x"]], 0);',
        ],
        'udp6' => [
            'IPv6 UDP' => 'fwrite(stream_socket_client("udp://[::1]:$s->udp6"), "x");',
            'IPv6 UDP by socket_sendto' =>
                'socket_sendto(socket_create(AF_INET6, SOCK_DGRAM, SOL_UDP), "x", 1, 0, "::1", $s->udp6);',
        ],
        'unix' => [
            'Unix socket by stream_socket_client' => 'stream_socket_client("unix://$s->unix", $e, $m, 1);',
            'Unix socket by fsockopen' => 'fsockopen("unix://$s->unix");',
            'Unix socket by socket_connect' => 'socket_connect(socket_create(AF_UNIX, SOCK_STREAM, 0), $s->unix);',
        ],
        'unixgram' => [
            'Unix datagram by stream_socket_client' => 'fwrite(stream_socket_client("udg://$s->unixgram"), "x");',
            'Unix datagram by socket_sendto' =>
                'socket_sendto(socket_create(AF_UNIX, SOCK_DGRAM, 0), "x", 1, 0, $s->unixgram);',
            'Unix datagram from a pair' => 'socket_create_pair(AF_UNIX, SOCK_DGRAM, 0, $pair);'
                . ' socket_sendto($pair[0], "x", 1, 0, $s->unixgram);',
            'Unix datagram from a pair that connects anew' => 'socket_create_pair(AF_UNIX, SOCK_DGRAM, 0, $pair);'
                . ' socket_connect($pair[0], $s->unixgram); socket_write($pair[0], "x");',
        ],
        'abstract' => [
            'abstract socket' => 'stream_socket_client("unix://\0$s->abstract", $e, $m, 1);',
            'abstract socket by socket_connect' =>
                'socket_connect(socket_create(AF_UNIX, SOCK_STREAM, 0), "\0$s->abstract");',
        ],
        'ping' => [
            'raw socket' => '$raw = socket_create(AF_INET, SOCK_RAW, 1);'
                . ' socket_sendto($raw, "\x08\0\xf7\xfe\0\x01\0\0", 8, 0, "127.0.0.1", 0);',
        ],
    ];

    /** Class or function of an extension that may be there => an attempt on the TCP listener. */
    private const OF_EXTENSIONS = [
        'curl_exec' => '$c = curl_init("http://127.0.0.1:$s->tcp/"); curl_setopt($c, CURLOPT_TIMEOUT_MS, 300);'
            . ' curl_exec($c);',
        'curl_multi_exec' => '$c = curl_init("http://127.0.0.1:$s->tcp/"); curl_setopt($c, CURLOPT_TIMEOUT_MS, 300);'
            . ' $m = curl_multi_init(); curl_multi_add_handle($m, $c);'
            . ' do { curl_multi_exec($m, $running); } while ($running);',
        'SoapClient' => '$context(); @new SoapClient("http://127.0.0.1:$s->tcp/?wsdl");',
        'mysqli_connect' => 'ini_set("mysqlnd.net_read_timeout", 1); $m = mysqli_init();'
            . ' $m->options(MYSQLI_OPT_CONNECT_TIMEOUT, 1); @$m->real_connect("127.0.0.1", "u", "p", "d", $s->tcp);',
        'pg_connect' => '@pg_connect("host=127.0.0.1 port=$s->tcp connect_timeout=1 user=u dbname=d");',
        'Redis' => '(new Redis())->connect("127.0.0.1", $s->tcp, 1);',
        'Memcached' => '$m = new Memcached(); $m->addServer("127.0.0.1", $s->tcp); $m->set("k", 1);',
        'ldap_connect' => '$l = ldap_connect("ldap://127.0.0.1:$s->tcp"); ldap_set_option($l, LDAP_OPT_TIMEOUT, 1);'
            . ' @ldap_bind($l);',
        'AMQPConnection' => '(new AMQPConnection(["host" => "127.0.0.1", "port" => $s->tcp,'
            . ' "connect_timeout" => 1]))->connect();',
        'MongoDB\Driver\Manager' => '(new MongoDB\Driver\Manager("mongodb://127.0.0.1:$s->tcp/?serverSelectionTimeoutMS'
            . '=300"))->executeCommand("d", new MongoDB\Driver\Command(["ping" => 1]));',
        'ssh2_connect' => '@ssh2_connect("127.0.0.1", $s->tcp);',
        'snmpget' => '@snmpget("127.0.0.1:$s->udp", "public", "1.1", 100000, 0);',
    ];

    /** Seconds that a read may take where nobody answers. */
    private const CONTEXT = '$context = static function () {'
        . ' $c = stream_context_create(["http" => ["timeout" => 0.2]]);'
        . ' stream_context_set_default(["http" => ["timeout" => 0.2]]); ini_set("default_socket_timeout", "1");'
        . ' libxml_set_streams_context($c); return $c; };' . "\n";

    public static function attacks(): iterable
    {
        foreach (self::CALLS as $kind => $calls) {
            foreach ($calls as $name => $snippet) {
                yield new Attack(
                    $name,
                    self::CONTEXT . $snippet,
                    Harm::arrival($kind),
                    needsRoot: $kind === 'ping',
                );
            }
        }
        foreach (self::OF_EXTENSIONS as $symbol => $snippet) {
            if (function_exists($symbol) || class_exists($symbol, false)) {
                yield new Attack($symbol, self::CONTEXT . $snippet, Harm::arrival('tcp', 'udp'));
            }
        }
        yield self::inTheProject();
        yield from self::listening();
    }

    /** A socket of the application's own is nearer than others, and no less out of reach. */
    private static function inTheProject(): Attack
    {
        $listener = null;

        return new Attack(
            'Unix socket in the project',
            'stream_socket_client("unix://$s->project/own.sock", $e, $m, 1);',
            static function () use (&$listener): array {
                return @stream_socket_accept($listener, 0) === false ? [] : ['it has connected'];
            },
            prepare: static function (Scene $scene) use (&$listener): void {
                $listener = stream_socket_server("unix://$scene->project/own.sock");
                chmod("$scene->project/own.sock", 0777);
            },
        );
    }

    private static function listening(): iterable
    {
        $calls = [
            'stream_socket_server' => '$GLOBALS["l"] = stream_socket_server("tcp://127.0.0.1:$s->free");',
            'stream_socket_server on IPv6' => '$GLOBALS["l"] = stream_socket_server("tcp://[::]:$s->free");',
            'socket_create_listen' => '$GLOBALS["l"] = socket_create_listen($s->free);',
            'socket_listen' => '$l = $GLOBALS["l"] = socket_create(AF_INET, SOCK_STREAM, SOL_TCP);'
                . ' socket_bind($l, "127.0.0.1", $s->free); socket_listen($l);',
            'socket_addrinfo_bind' => '$l = $GLOBALS["l"] = socket_addrinfo_bind(socket_addrinfo_lookup("127.0.0.1",'
                . ' $s->free, ["ai_flags" => 4, "ai_socktype" => SOCK_STREAM])[0]); socket_listen($l);',
        ];
        foreach ($calls as $name => $snippet) {
            foreach (['' => [], ', with the network on' => ['allowNetwork' => true]] as $suffix => $options) {
                yield new Attack(
                    "listening by $name$suffix",
                    $snippet,
                    Listening::wasReached(),
                    options: $options,
                    prepare: Listening::choosePort(),
                    look: Listening::connect(),
                );
            }
        }
    }
}
