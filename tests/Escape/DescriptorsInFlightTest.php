<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Escape;

use Altair\Eval\Tests\Support\Escape\Setting;
use Altair\Eval\Tests\Support\Escape\WarmHost;
use PHPUnit\Framework\TestCase;
use RuntimeException;

/**
 * Descriptors that a run sends and nobody receives are counted for its user, and with more than 256 of them no other
 * run of that user's could send one (ETOOMANYREFS, unix(7)): the next one was without `blocked` and without services,
 * an ordinary user's did not start at all, and no template came to be for as long as the host lived. They are no reason
 * for any of that.
 */
final class DescriptorsInFlightTest extends TestCase
{
    /** Sends as many as it may, 253 a message at most (SCM_MAX_FD), and holds them while it is stopped. */
    private const HOLD = <<<'PHP'
        $sent = 0;
        for ($pairs = 0; $pairs < 4; $pairs++) {
            $pair = buf(8);
            raw('socketpair', 1, 1, 0, $pair);
            [1 => $end] = unpack('V2', FFI::string($pair, 8));
            for ($count = 253; $count > 0; $count = $answer < 0 ? intdiv($count, 2) : $count) {
                $vector = buf(16);
                FFI::memcpy($vector, iov($pair, 1), 16);
                $length = 16 + 4 * $count;
                $control = buf($length + 8);
                FFI::memcpy($control, pack('PVV', $length, 1, 1) . str_repeat(pack('V', 0), $count), $length);
                $answer = raw('sendmsg', $end, pack('P7', 0, 0, addr($vector), 1, addr($control), $length, 0), 0x40);
                $sent += $answer < 0 ? 0 : $count;
            }
        }
        posix_kill(getmypid(), SIGSTOP);
        return $sent;
        PHP;

    /** What a run does of which its answer tells more than its value. */
    private const TELLING = 'file_put_contents("made.txt", "x"); raw("bpf", 0, 0, 0); return 6 * 7;';

    /** Those that are in flight where nothing keeps them from it: two messages. */
    private const HELD = 506;

    /** Seconds after which a template must be there again. */
    private const PATIENCE = 6;

    /**
     * @dataProvider settings
     */
    public function testOtherRunsOfItsUserAreAsEver(Setting $setting): void
    {
        $before = self::answers(new WarmHost($setting));
        $made = new WarmHost($setting);
        $made->evaluateWarm(self::TELLING);
        $during = null;
        $warm = null;
        $sent = self::hold($setting, static function () use ($setting, $made, &$during, &$warm): void {
            $during = self::answers(new WarmHost($setting));
            $warm = self::attempt($made, 'warm');
        });

        self::assertGreaterThan(0, $sent);
        self::assertSame($before, $during, "$sent were in flight.");
        self::assertSame($before['warm'], $warm, "$sent were in flight.");
    }

    /**
     * @dataProvider settings
     */
    public function testATemplateIsThereOnceTheyAreGone(Setting $setting): void
    {
        $host = new WarmHost($setting);
        self::hold($setting, static function () use ($host): void {
            self::attempt($host, 'warm');
        });
        $starts = [];
        $until = hrtime(true) + self::PATIENCE * 1e9;
        do {
            $starts[] = $host->evaluate(self::TELLING)['diagnostics']['start'];
        } while (end($starts) !== 'warm' && hrtime(true) < $until);

        self::assertSame('warm', end($starts), count($starts) . ' calls: ' . implode(' ', array_unique($starts)));
    }

    public static function settings(): iterable
    {
        foreach (Setting::NATIVE as $setting) {
            if ($setting->isPossible()) {
                yield $setting->value => [$setting];
            }
        }
    }

    /**
     * Calls `$meanwhile` while descriptors of a run of the same user are in flight; gives how many these were.
     */
    private static function hold(Setting $setting, callable $meanwhile): int
    {
        $host = new WarmHost($setting);
        $host->ask(['start' => 'cold'] + $host->request(self::HOLD));
        $result = $host->answered('result', static function () use ($host, $meanwhile): void {
            $stopped = $host->stopped();
            if ($stopped !== null) {
                try {
                    $meanwhile();
                } finally {
                    $stopped->release();
                }
            }
        });
        self::assertSame('returned', $result['diagnostics']['outcome'], json_encode($result));
        self::assertLessThanOrEqual(self::HELD, $result['result']['value']);

        return $result['result']['value'];
    }

    /**
     * @return array<string, mixed> what a host tells that has no template yet
     */
    private static function answers(WarmHost $host): array
    {
        $cold = self::attempt($host, 'cold');
        $first = self::attempt($host, 'warm');
        // Files that were written just before they are read make one template more.
        $warm = [];
        for ($try = 0; $try < 5 && ($warm['start'] ?? '') !== 'warm'; $try++) {
            $warm = self::attempt($host, 'warm');
        }

        return ['cold' => $cold, 'first' => $first, 'warm' => $warm];
    }

    /**
     * @return array<string, mixed> what the answer to a run tells
     */
    private static function attempt(WarmHost $host, string $start): array
    {
        try {
            $host->ask(['start' => $start] + $host->request(self::TELLING));
            $result = $host->answered('result');
        } catch (RuntimeException $exception) {
            return ['exception' => $exception->getMessage()];
        }
        $told = array_intersect_key(
            $result['diagnostics'],
            array_flip(['outcome', 'start', 'start_reason', 'blocked', 'file_changes', 'guards']),
        );
        ksort($told);

        return ['value' => $result['result']['value'] ?? null] + $told;
    }
}
