<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Fuzz;

use Random\Engine\Xoshiro256StarStar;
use Random\Randomizer;

/**
 * Chance that a seed decides.
 */
final class Dice
{
    private readonly Randomizer $randomizer;

    public function __construct(string $seed)
    {
        $this->randomizer = new Randomizer(new Xoshiro256StarStar(hash('sha256', $seed, true)));
    }

    public function between(int $least, int $most): int
    {
        return $this->randomizer->getInt($least, $most);
    }

    /** Whether what happens in so many of a hundred cases happens. */
    public function falls(int $percent): bool
    {
        return $this->between(1, 100) <= $percent;
    }

    /**
     * @template T
     * @param non-empty-array<T> $things
     * @return T
     */
    public function one(array $things): mixed
    {
        $things = array_values($things);

        return $things[$this->between(0, count($things) - 1)];
    }

    /**
     * One of the keys, each as often as its weight says.
     *
     * @param non-empty-array<string, int> $weights
     */
    public function weighed(array $weights): string
    {
        $at = $this->between(1, array_sum($weights));
        foreach ($weights as $key => $weight) {
            $at -= $weight;
            if ($at <= 0) {
                break;
            }
        }

        return (string) $key;
    }
}
