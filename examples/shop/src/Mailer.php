<?php

declare(strict_types=1);

namespace Shop;

/**
 * Hands letters to a mail server; the one part of the shop that needs the network.
 */
final class Mailer
{
    public const DEFAULT_SERVER = '127.0.0.1:1025';

    /** In seconds. */
    private const TIMEOUT = 2.0;

    public function __construct(private readonly string $server = self::DEFAULT_SERVER)
    {
    }

    /**
     * @return string the server's greeting
     * @throws MailFailed if there is no server
     */
    public function greet(): string
    {
        $connection = @stream_socket_client('tcp://' . $this->server, $code, $reason, self::TIMEOUT);
        if ($connection === false) {
            throw new MailFailed(sprintf('No mail server at %s: %s.', $this->server, $reason), $code);
        }
        $greeting = fgets($connection);
        fclose($connection);

        return $greeting === false ? '' : rtrim($greeting);
    }
}
