<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Forgery;

use RuntimeException;

/**
 * Things that native code in a snippet may do on its channel, in an order that a seed decides; then some end.
 *
 * It says on standard output what it does. Needs nothing but PHP: it is copied into the application.
 */
final class Mischief
{
    private const STEPS_MAX = 24;

    /** Bytes of all that one run says: what takes longer than its deadline shows nothing new. */
    private const BYTES_MAX = 48 << 20;

    private const LONGEST = 15_000_000;

    /** Bytes that are random of many. */
    private const RANDOM = 512;

    private const GUARDS = [
        'process', 'environment', 'ini', 'limits', 'privileges', 'filesystem', 'landlock', 'seccomp', 'deadline',
    ];

    /** JSON that a long one is made of. */
    private const ITEMS = [
        '0', '[0]', '{}', '{"a":{}}', '""', '{"type":"array","value":{"a":1}}', '-1e308', '"\ud800"', '[[[[]]]]',
    ];

    private int $said = 0;

    public function __construct(int $seed, private readonly Wire $wire)
    {
        mt_srand($seed);
    }

    /** Gives what the snippet is to return, if it comes to that. */
    public function run(): mixed
    {
        for ($steps = mt_rand(0, self::STEPS_MAX); $steps > 0 && $this->said < self::BYTES_MAX; $steps--) {
            $this->step();
        }

        return $this->end();
    }

    private function step(): void
    {
        match (mt_rand(0, 11)) {
            0 => $this->send('a mutation', self::mutated($this->message())),
            1 => $this->send('a part', self::cut($this->message())),
            2 => $this->send('more than a message', $this->message() . self::bytes(mt_rand(1, 64))),
            3 => $this->packet('garbage', self::bytes(mt_rand(0, 70_000))),
            4 => $this->packet(
                'garbage under the secret',
                $this->wire->secret() . chr(mt_rand(0, 4)) . self::bytes(mt_rand(0, 40_000)),
            ),
            5 => $this->packet(
                'a part of the secret',
                substr($this->wire->secret(), 0, mt_rand(0, 31)) . self::bytes(mt_rand(0, 40)),
            ),
            6 => $this->unfinished(),
            7 => $this->repeated(),
            default => $this->send('a message', $this->message()),
        };
    }

    private function end(): mixed
    {
        $statuses = [0, 0, 0, 1, 2, 3, 70, 99, 124, 137, 254, 255];
        $status = $statuses[mt_rand(0, count($statuses) - 1)];
        $signals = [SIGKILL, SIGTERM, SIGSEGV, SIGABRT, SIGSTOP, SIGPIPE, 34, 49, 64];
        $signal = $signals[mt_rand(0, count($signals) - 1)];
        $end = mt_rand(0, 11);
        echo 'end ', $end, ' ', $status, ' ', $signal, "\n";
        switch ($end) {
            case 0:
            case 1:
            case 2:
            case 3:
                $this->wire->leave($status);
                // No break: it has left.
            case 4:
                return self::value();
            case 5:
                throw new RuntimeException(self::words());
            case 6:
                exit($status);
            case 7:
                $this->wire->signal($signal);
                return 'it lives';
            case 8:
                pcntl_sigprocmask(SIG_BLOCK, range(34, 64));
                for (;;) {
                    usleep(1000);
                }
                // No break: the deadline ends it.
            case 9:
                $this->wire->close();
                return 'unheard';
            case 10:
                trigger_error(self::words(), E_USER_ERROR);
                return null;
            default:
                // What is said while it ends.
                register_shutdown_function(fn () => $this->step());
                return self::value();
        }
    }

    private function send(string $what, string $message): void
    {
        $this->note($what . ' of kind ' . (($message[0] ?? '') === '' ? 'none' : ord($message[0])), $message);
        $this->wire->say($message);
    }

    private function packet(string $what, string $packet): void
    {
        $this->note($what, $packet);
        $this->wire->packet($packet);
    }

    private function note(string $what, string $bytes): void
    {
        $this->said += strlen($bytes);
        echo $what, ', ', strlen($bytes), "\n";
    }

    /** Packets of which more are to come, and perhaps another message between them. */
    private function unfinished(): void
    {
        $chunk = self::bytes(mt_rand(0, 32 << 10));
        for ($packets = mt_rand(1, 600); $packets > 0; $packets--) {
            $this->said += strlen($chunk);
            $this->wire->packet($this->wire->secret() . "\1" . $chunk);
        }
        echo 'an unfinished message of ', strlen($chunk), "\n";
        if (mt_rand(0, 1) === 1) {
            $this->send('a message in between', $this->message());
            $this->packet('its end', $this->wire->secret() . "\2" . $chunk);
        }
    }

    private function repeated(): void
    {
        $message = $this->message();
        $times = mt_rand(2, 80);
        echo $times, " times\n";
        for (; $times > 0 && $this->said < self::BYTES_MAX; $times--) {
            $at = mt_rand(0, min(strlen($message) - 1, 200));
            $message[$at > 0 ? $at : -1] = chr(mt_rand(32, 126));
            $this->send('again', $message);
        }
    }

    private function message(): string
    {
        return match (mt_rand(0, 13)) {
            0 => Messages::entered(self::number()),
            1 => Messages::ready(self::guards(), self::number(), self::option(self::number(...))),
            2 => Messages::stopped(mt_rand(0, 3), self::option(self::location(...)), self::number()),
            3 => Messages::guarded(self::guards()),
            4 => Messages::refused(self::words(), self::words(), self::option(self::words(...))),
            5 => Messages::outside(self::path(), mt_rand(0, 1) === 1, self::errno()),
            6 => Messages::variables([self::words() => self::words(), 'APP_SECRET' => self::words()]),
            7 => Messages::booted(self::pid(), self::words(), self::number()),
            8 => Messages::unable(self::words()),
            9 => Messages::secondThread(self::pid()),
            default => Messages::report(
                self::ending(),
                mt_rand(0, 3),
                self::option(self::number(...)),
                self::option(self::number(...)),
                self::number(),
                array_map(self::words(...), array_fill(0, mt_rand(0, 7), 1024)),
            ),
        };
    }

    private static function ending(): string
    {
        return match (mt_rand(0, 6)) {
            0, 1 => Messages::returned(self::json()),
            2 => Messages::threw(self::json()),
            3 => Messages::exited(mt_rand(0, 255)),
            4 => Messages::fatal(self::words(), self::location()),
            5 => Messages::outOfMemory(self::words(), self::option(self::location(...))),
            6 => Messages::bootFailed(self::words(), self::option(self::json(...))),
        };
    }

    private static function json(): string
    {
        $item = self::ITEMS[mt_rand(0, count(self::ITEMS) - 1)];
        $times = intdiv(self::length(), strlen($item) + 1);

        return match (mt_rand(0, 5)) {
            0 => json_encode(['type' => 'string', 'value' => self::words()], JSON_INVALID_UTF8_SUBSTITUTE),
            1 => '[' . str_repeat("$item,", $times) . "$item]",
            2 => '{"type":"array","value":[' . str_repeat("$item,", $times) . "$item]}",
            3 => str_repeat('[', $depth = mt_rand(1, 300)) . str_repeat(']', $depth),
            4 => self::words(),
            5 => self::mutated('{"class":"E","message":"m","code":0,"file":"f","line":1,"trace":[],"previous":null}'),
        };
    }

    /**
     * @return array<string, string>
     */
    private static function guards(): array
    {
        $states = ['in force', 'missing: forged', 'degraded to nothing', '', self::words()];
        $guards = [];
        for ($count = mt_rand(0, 5); $count > 0; $count--) {
            $name = mt_rand(0, 4) === 0 ? self::words() : self::GUARDS[mt_rand(0, count(self::GUARDS) - 1)];
            $guards[$name] = $states[mt_rand(0, count($states) - 1)];
        }

        return $guards;
    }

    private static function location(): string
    {
        $frame = self::words(64);

        return Messages::location(self::words(), self::number(), $frame, intdiv(self::length(), strlen($frame) + 1));
    }

    private static function path(): string
    {
        return match (mt_rand(0, 4)) {
            0 => '/etc/shadow',
            1 => str_repeat('/..', mt_rand(0, 2000)) . '/proc/1/environ',
            2 => str_repeat('/x', intdiv(self::length(), 2)),
            3 => '/' . self::words(),
            4 => self::words(),
        };
    }

    private static function words(int $most = self::LONGEST): string
    {
        $length = min($most, self::length());

        return match (mt_rand(0, 4)) {
            0 => str_repeat('x', $length),
            1 => self::bytes($length),
            2 => str_repeat("\u{20ac}", intdiv($length, 3)),
            3 => str_repeat("\n", $length),
            4 => 'forged',
        };
    }

    /** Mostly short. */
    private static function length(): int
    {
        return match (true) {
            mt_rand(0, 14) === 0 => mt_rand(1 << 20, self::LONGEST),
            mt_rand(0, 9) === 0 => mt_rand(1 << 10, 1 << 18),
            default => mt_rand(0, 60),
        };
    }

    private static function number(): int
    {
        $numbers = [0, 1, 1000, 300_000, 3_600_000_000, 1 << 31, 1 << 32, PHP_INT_MAX, PHP_INT_MIN, -1];

        return $numbers[mt_rand(0, count($numbers) - 1)] + mt_rand(0, 1);
    }

    private static function pid(): int
    {
        $pids = [0, 1, -1, 2, mt_rand(2, 40000), 0x7FFFFFFF, -0x80000000];

        return $pids[mt_rand(0, count($pids) - 1)];
    }

    private static function errno(): int
    {
        $numbers = [0, 1, 2, 13, 30, 75, 18, -1, 4096];

        return $numbers[mt_rand(0, count($numbers) - 1)];
    }

    private static function option(callable $make): mixed
    {
        return mt_rand(0, 2) === 0 ? null : $make();
    }

    private static function mutated(string $bytes): string
    {
        for ($times = mt_rand(1, 6); $times > 0 && $bytes !== ''; $times--) {
            $at = mt_rand(0, min(strlen($bytes) - 1, 100));
            $bytes = match (mt_rand(0, 2)) {
                0 => substr_replace($bytes, chr(mt_rand(0, 255)), $at, 1),
                1 => substr_replace($bytes, self::bytes(mt_rand(1, 9)), $at, 0),
                2 => substr_replace($bytes, '', $at, mt_rand(1, 9)),
            };
        }

        return $bytes;
    }

    private static function cut(string $bytes): string
    {
        return substr($bytes, 0, mt_rand(0, min(strlen($bytes), 1 << 20)));
    }

    private static function value(): mixed
    {
        return match (mt_rand(0, 3)) {
            0 => null,
            1 => str_repeat('x', mt_rand(0, 20_000)),
            2 => array_fill(0, mt_rand(0, 2000), 'x'),
            3 => 'the truth',
        };
    }

    /** Bytes that the seed decides; of long ones only the first are different. */
    private static function bytes(int $length): string
    {
        $bytes = '';
        while (strlen($bytes) < min($length, self::RANDOM)) {
            $bytes .= pack('V', mt_rand());
        }

        return substr(str_repeat($bytes, intdiv($length, self::RANDOM) + 1), 0, $length);
    }
}
