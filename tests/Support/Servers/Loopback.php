<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Servers;

use RuntimeException;

/**
 * Pages of a server that listens on loopback.
 */
final class Loopback
{
    /** Seconds that a page may take. */
    private const PATIENCE = 60;

    /**
     * What a page prints, to each of several connections at once.
     *
     * @return list<string>
     */
    public static function pages(string $address, string $path, int $times): array
    {
        $connections = [];
        while (count($connections) < $times) {
            $connection = stream_socket_client("tcp://$address", $code, $message, self::PATIENCE);
            $connections[] = $connection ?: throw new RuntimeException($message);
            stream_set_timeout($connection, self::PATIENCE);
            fwrite($connection, "GET $path HTTP/1.0\r\nHost: $address\r\n\r\n");
        }

        return array_map(self::page(...), $connections);
    }

    /** @param resource $connection */
    private static function page($connection): string
    {
        $answer = (string) stream_get_contents($connection);
        [$headers, $page] = explode("\r\n\r\n", $answer, 2) + [1 => ''];

        return preg_match('~^HTTP/1.\d 200 ~', $headers) ? $page : throw new RuntimeException("No page: $answer");
    }
}
