<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Forgery;

use Error;
use FFI;
use FFI\CData;
use RuntimeException;

/**
 * Native code that speaks to the host as the child does, with the run's own secret.
 *
 * It is made in boot, where FFI is there, and goes on working in the snippet: PHP's switches refuse to make such code,
 * not to call it. Needs nothing but PHP: it is copied into the application that a test evaluates in.
 */
final class Wire
{
    /** The descriptor under which a child has its channel. */
    private const CHANNEL = 3;

    /** What is written to stderr when the first packet has been sent. */
    public const SENT = "The first packet is sent.\n";

    private const SECRET_BYTES = 32;

    /** Bytes of a packet's content. */
    private const PACKET_BYTES = 32 * 1024;

    private const WHOLE = "\0";
    private const MORE = "\1";
    private const LAST = "\2";
    private const PART = "\3";

    private const NATIVE = <<<'C'
        int socketpair(int, int, int, int *);
        int dup(int);
        int dup2(int, int);
        int close(int);
        int kill(int, int);
        int getpid(void);
        long recv(int, void *, size_t, int);
        long send(int, const char *, size_t, int);
        long write(int, size_t, size_t);
        char *sbrk(long);
        void _exit(int);
        C;

    private readonly FFI $libc;

    private readonly CData $pair;

    private readonly CData $room;

    private string $secret = '';

    private bool $hasSent = false;

    public function __construct()
    {
        // Nothing can be made any more once boot is over.
        $this->libc = FFI::cdef(self::NATIVE);
        $this->pair = $this->libc->new('int[2]');
        $this->room = $this->libc->new('char[65536]');
    }

    /**
     * The run's secret: for a moment the channel is a socket of our own, and PHP is made to say something on it.
     */
    public function secret(): string
    {
        if ($this->secret !== '') {
            return $this->secret;
        }
        if ($this->libc->socketpair(1, 5, 0, $this->pair) !== 0) {
            throw new RuntimeException('No pair of sockets.');
        }
        [$ours, $theirs] = [$this->pair[0], $this->pair[1]];
        $kept = $this->libc->dup(self::CHANNEL);
        $this->libc->dup2($theirs, self::CHANNEL);
        try {
            symlink('nothing', 'nowhere');
        } catch (Error) {
            // It is refused, and the host is told so.
        }
        $this->libc->dup2($kept, self::CHANNEL);
        // Without waiting, where nothing has been said.
        $length = $this->libc->recv($ours, $this->room, 65536, 0x40);
        foreach ([$ours, $theirs, $kept] as $descriptor) {
            $this->libc->close($descriptor);
        }
        if ($length <= self::SECRET_BYTES) {
            throw new RuntimeException('PHP has said nothing.');
        }
        for ($at = 0; $at < self::SECRET_BYTES; $at++) {
            $this->secret .= $this->room[$at];
        }

        return $this->secret;
    }

    /**
     * What may be the secret, by what stands beside it in memory: the channel's number and the process's own. For
     * boot, which cannot make PHP say anything.
     *
     * @return list<string>
     */
    public function secretsInMemory(): array
    {
        $heap = $this->heap();
        [$channel, $own] = [pack('V', self::CHANNEL), pack('V', $this->libc->getpid())];
        $secret = '.{' . self::SECRET_BYTES . '}';
        $found = [];
        // In which order they stand is the compiler's affair.
        foreach ([[$channel, $own], [$own, $channel]] as $two) {
            [$one, $other] = array_map(static fn (string $bytes): string => preg_quote($bytes, '~'), $two);
            foreach (["$one$other($secret)", "$one($secret)$other", "($secret)$one$other"] as $order) {
                preg_match_all("~$order~s", $heap, $matches);
                $found = [...$found, ...$matches[1]];
            }
        }
        // What is random has hardly a zero.
        $found = array_filter($found, static fn (string $bytes): bool => substr_count($bytes, "\0") < 4);

        return array_values(array_unique($found));
    }

    /** The memory that malloc(3) gives out first. */
    private function heap(): string
    {
        $this->libc->socketpair(1, 5, 0, $this->pair);
        $end = $first = FFI::cast('size_t', $this->libc->sbrk(0))->cdata;
        // Where nothing is, nothing can be sent from.
        while ($this->libc->write($this->pair[0], $first - 4096, 1) === 1) {
            $first -= 4096;
            $this->libc->recv($this->pair[1], $this->room, 1, 0);
        }
        $this->libc->close($this->pair[0]);
        $this->libc->close($this->pair[1]);

        return FFI::string(FFI::cast('char *', $first), $end - $first);
    }

    /** Has it speak under this secret. */
    public function under(string $secret): self
    {
        $this->secret = $secret;

        return $this;
    }

    /** Says these, each in as many packets as it takes; gives the number of packets. */
    public function say(string ...$messages): int
    {
        $secret = $this->secret();
        $sent = 0;
        foreach ($messages as $message) {
            $length = strlen($message);
            for ($at = 0; $at < $length; $at += self::PACKET_BYTES) {
                $isLast = $at + self::PACKET_BYTES >= $length;
                $flag = $isLast ? ($at === 0 ? self::WHOLE : self::LAST) : self::MORE;
                $sent += $this->packet($secret . $flag . substr($message, $at, self::PACKET_BYTES));
            }
        }

        return $sent;
    }

    /** Sends a part of a value, in one packet. */
    public function part(string $bytes): int
    {
        return $this->packet($this->secret() . self::PART . $bytes);
    }

    /** Sends one packet as it is; gives whether that was possible. The first is said on stderr. */
    public function packet(string $packet): int
    {
        $isSent = $this->libc->send(self::CHANNEL, $packet, strlen($packet), 0x4000) >= 0;
        if ($isSent && !$this->hasSent) {
            $this->hasSent = true;
            file_put_contents('php://stderr', self::SENT);
        }

        return (int) $isSent;
    }

    /** Has it say nothing on stderr. */
    public function quietly(): void
    {
        $this->hasSent = true;
    }

    /** Closes the channel. */
    public function close(): void
    {
        $this->libc->close(self::CHANNEL);
    }

    public function signal(int $signal): void
    {
        $this->libc->kill($this->libc->getpid(), $signal);
    }

    /** Ends the process at once; nothing of PHP's says anything. */
    public function leave(int $status): never
    {
        $this->libc->_exit($status);
        throw new RuntimeException('It lives.');
    }
}
