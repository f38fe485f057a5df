<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Escape;

use Closure;

/**
 * Whether a run listens: the test itself connects to it while it is stopped.
 */
final class Listening
{
    /** Gives the snippet a port of loopback that nobody uses. */
    public static function choosePort(): Closure
    {
        return static function (Scene $scene): void {
            $free = stream_socket_server('tcp://127.0.0.1:0');
            $scene->tell('free', (int) substr(strrchr((string) stream_socket_get_name($free, false), ':'), 1));
        };
    }

    public static function connect(): Closure
    {
        return static fn (Run $run): bool =>
            @stream_socket_client("tcp://127.0.0.1:{$run->scene->targets()->free}", $code, $message, 1) !== false;
    }

    public static function wasReached(): Closure
    {
        return static fn (Run $run): array => $run->found === true ? ['it has let the test connect'] : [];
    }
}
