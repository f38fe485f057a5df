<?php

declare(strict_types=1);

namespace Shop;

/**
 * Reports that take their time.
 */
final class ReportService
{
    public function __construct(private readonly UserRepository $users)
    {
    }

    /**
     * A report that waits for something else.
     *
     * @param int $ms how long, in milliseconds
     * @return int how many users there are
     */
    public function slow(int $ms = 2000): int
    {
        usleep($ms * 1000);

        return $this->users->count();
    }

    /**
     * A report that keeps the processor busy.
     *
     * @return string a checksum over all rounds
     */
    public function crunch(int $rounds = 300_000_000): string
    {
        $sum = 0;
        for ($round = 0; $round < $rounds; ++$round) {
            $sum = ($sum * 31 + $round) % 1_000_003;
        }

        return dechex($sum);
    }
}
