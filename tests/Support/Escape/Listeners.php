<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Escape;

use RuntimeException;

/**
 * Real listeners on loopback, one of each kind: what reaches them is seen here, not where it was sent from.
 */
final class Listeners
{
    /** @var array<string, resource> */
    private array $sockets = [];

    /** @var array<string, bool> whether a connection is made to it */
    private array $accepts = [];

    /** Sees the pings that arrive; only root may listen for them. */
    private ?\Socket $ping = null;

    public readonly string $abstract;

    /**
     * @param string $directory for the sockets that have a path
     */
    public function __construct(private readonly string $directory)
    {
        $this->abstract = 'altair-escape-' . bin2hex(random_bytes(6));
        $this->open('tcp', 'tcp://127.0.0.1:0', true);
        $this->open('tcp6', 'tcp://[::1]:0', true);
        $this->open('udp', 'udp://127.0.0.1:0', false);
        $this->open('udp6', 'udp://[::1]:0', false);
        $this->open('unix', 'unix://' . $this->path('unix'), true);
        $this->open('unixgram', 'udg://' . $this->path('unixgram'), false);
        $this->open('abstract', "unix://\0$this->abstract", true);
        if (posix_geteuid() === 0) {
            $this->ping = socket_create(AF_INET, SOCK_RAW, 1) ?: null;
            socket_set_nonblock($this->ping);
        }
    }

    public function port(string $kind): int
    {
        return (int) substr(strrchr((string) stream_socket_get_name($this->sockets[$kind], false), ':'), 1);
    }

    public function path(string $kind): string
    {
        return "$this->directory/$kind.sock";
    }

    /**
     * @return list<string> kinds of the listeners that something has arrived at since this was last asked
     */
    public function arrived(): array
    {
        $arrived = [];
        foreach ($this->sockets as $kind => $socket) {
            while ($this->accepts[$kind] ? $this->accept($socket) : $this->receive($socket)) {
                $arrived[] = $kind;
            }
        }
        while ($this->ping !== null && @socket_recv($this->ping, $packet, 2048, 0) > 0) {
            // Type 8 asks; the kernel's own answers and complaints are seen here, too.
            if (($packet[20] ?? '') === "\x08") {
                $arrived[] = 'ping';
            }
        }

        return array_values(array_unique($arrived));
    }

    private function open(string $kind, string $address, bool $accepts): void
    {
        $flags = $accepts ? STREAM_SERVER_BIND | STREAM_SERVER_LISTEN : STREAM_SERVER_BIND;
        $socket = stream_socket_server($address, $code, $message, $flags);
        $this->sockets[$kind] = $socket ?: throw new RuntimeException("No listener at $address: $message");
        $this->accepts[$kind] = $accepts;
        stream_set_blocking($socket, false);
        if (file_exists($this->path($kind))) {
            chmod($this->path($kind), 0777);
        }
    }

    /**
     * @param resource $socket
     */
    private function accept($socket): bool
    {
        return @stream_socket_accept($socket, 0) !== false;
    }

    /**
     * @param resource $socket
     */
    private function receive($socket): bool
    {
        $bytes = @stream_socket_recvfrom($socket, 2048);

        return $bytes !== false && $bytes !== '';
    }
}
