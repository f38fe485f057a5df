<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support;

use FFI;
use RuntimeException;

/**
 * A Unix socket that everybody may connect to, and that asks the kernel who did (SO_PEERCRED), which PHP cannot.
 */
final class PeerListener
{
    private const CALLS = <<<'C'
        struct address { unsigned short family; char path[108]; };
        struct credentials { int pid; unsigned int uid; unsigned int gid; };
        int socket(int domain, int type, int protocol);
        int bind(int fd, struct address *address, unsigned int length);
        int listen(int fd, int backlog);
        int accept(int fd, void *address, void *length);
        int getsockopt(int fd, int level, int name, struct credentials *value, unsigned int *length);
        int close(int fd);
        C;

    private const AF_UNIX = 1;

    /** SOCK_STREAM, SOCK_NONBLOCK and SOCK_CLOEXEC. */
    private const TYPE = 1 | 04000 | 02000000;

    private const SOL_SOCKET = 1;

    private const SO_PEERCRED = 17;

    private readonly FFI $ffi;

    private readonly int $listener;

    public function __construct(public readonly string $path)
    {
        $this->ffi = FFI::cdef(self::CALLS);
        $this->listener = $this->ffi->socket(self::AF_UNIX, self::TYPE, 0);
        $address = $this->ffi->new('struct address');
        $address->family = self::AF_UNIX;
        FFI::memcpy($address->path, $path, strlen($path));
        $bound = $this->ffi->bind($this->listener, FFI::addr($address), FFI::sizeof($address));
        if ($bound !== 0 || $this->ffi->listen($this->listener, 100) !== 0) {
            throw new RuntimeException("Nothing can listen at $path.");
        }
        chmod($path, 0777);
    }

    public function __destruct()
    {
        $this->ffi->close($this->listener);
        @unlink($this->path);
    }

    /**
     * @return list<int> the users of the connections that have come since the last time
     */
    public function users(): array
    {
        $users = [];
        while (($connection = $this->ffi->accept($this->listener, null, null)) >= 0) {
            $peer = $this->ffi->new('struct credentials');
            $length = $this->ffi->new('unsigned int');
            $length->cdata = FFI::sizeof($peer);
            $name = self::SO_PEERCRED;
            $this->ffi->getsockopt($connection, self::SOL_SOCKET, $name, FFI::addr($peer), FFI::addr($length));
            $users[] = $peer->uid;
            $this->ffi->close($connection);
        }

        return $users;
    }
}
