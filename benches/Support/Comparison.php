<?php

declare(strict_types=1);

namespace Altair\Eval\Benches\Support;

use Closure;

/**
 * Times a subject and its reference by turns, so that what else the machine does hits both.
 */
final class Comparison
{
    /** Rounds that are not counted: files come into the page cache, code is compiled. */
    private const WARM_UP = 3;

    /**
     * @param list<list<float>> $subject milliseconds, by round or block
     * @param list<list<float>> $reference milliseconds, by round or block
     */
    private function __construct(private readonly array $subject, private readonly array $reference)
    {
    }

    /**
     * @param Closure(): void $subject
     * @param Closure(): void $reference
     */
    public static function of(Closure $subject, Closure $reference, int $rounds): self
    {
        $times = [[], []];
        for ($round = -self::WARM_UP; $round < $rounds; ++$round) {
            // Each goes first in every second round: what the one before leaves behind hits both.
            foreach ($round % 2 === 0 ? [0, 1] : [1, 0] as $which) {
                $time = self::time($which === 0 ? $subject : $reference);
                if ($round >= 0) {
                    $times[$which][] = [$time];
                }
            }
        }

        return new self(...$times);
    }

    /**
     * The same where subject and reference time themselves, `$each` runs in a row: what one run leaves in the
     * processor's caches is then its own. The first block is not counted.
     *
     * @param Closure(int): list<float> $subject milliseconds of so many runs
     * @param Closure(int): list<float> $reference milliseconds of so many runs
     */
    public static function ofBlocks(Closure $subject, Closure $reference, int $blocks, int $each): self
    {
        $times = [[], []];
        for ($block = -1; $block < $blocks; ++$block) {
            foreach ($block % 2 === 0 ? [0, 1] : [1, 0] as $which) {
                $run = $which === 0 ? $subject : $reference;
                $seen = $run($each);
                if ($block >= 0) {
                    $times[$which][] = $seen;
                }
            }
        }

        return new self(...$times);
    }

    /** The same, with a quantile of the subject instead of all of its times. */
    public function atQuantile(float $part): self
    {
        $times = array_merge(...$this->subject);
        sort($times);

        return new self([[$times[(int) ($part * (count($times) - 1))]]], [array_merge(...$this->reference)]);
    }

    public function subjectMs(): float
    {
        return self::median(array_merge(...$this->subject));
    }

    public function referenceMs(): float
    {
        return self::median(array_merge(...$this->reference));
    }

    /** The median of the ratios in one round: a machine may be twice as fast a second later. */
    public function ratio(): float
    {
        return self::median($this->eachRound(static fn (float $subject, float $reference) => $subject / $reference));
    }

    /** The median of what the subject took longer in the same round. */
    public function differenceMs(): float
    {
        return self::median($this->eachRound(static fn (float $subject, float $reference) => $subject - $reference));
    }

    /**
     * @param Closure(float, float): float $compare
     * @return list<float>
     */
    private function eachRound(Closure $compare): array
    {
        return array_map(
            static fn (array $subject, array $reference): float => $compare(
                self::median($subject),
                self::median($reference),
            ),
            $this->subject,
            $this->reference,
        );
    }

    private static function time(Closure $run): float
    {
        $began = hrtime(true);
        $run();

        return (hrtime(true) - $began) / 1e6;
    }

    /**
     * @param list<float> $values
     */
    private static function median(array $values): float
    {
        sort($values);
        $middle = intdiv(count($values), 2);

        return count($values) % 2 === 1 ? $values[$middle] : ($values[$middle - 1] + $values[$middle]) / 2;
    }
}
