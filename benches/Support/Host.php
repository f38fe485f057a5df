<?php

declare(strict_types=1);

namespace Altair\Eval\Benches\Support;

use RuntimeException;

/**
 * A process with settings of its own, which evaluates one snippet as often as it is asked.
 */
final class Host
{
    private readonly Worker $worker;

    /**
     * @param list<string> $without guards that are left out
     * @param list<string> $under a command that becomes PHP, with its arguments
     */
    public function __construct(
        string $snippet,
        string $root,
        private readonly Way $way = Way::Cold,
        private readonly array $without = [],
        array $under = [],
    ) {
        $switches = ['-d', 'altair_eval.omit=' . implode(',', $without)];
        $this->worker = new Worker('host.php', [$way->value, $snippet, $root], $switches, $under);
    }

    public function pid(): int
    {
        return $this->worker->pid;
    }

    public function evaluate(): void
    {
        $this->times(1);
    }

    /**
     * Evaluates so many times.
     *
     * @return list<float> what each took in the host itself, in milliseconds
     */
    public function times(int $times): array
    {
        return $this->ask($times)['ms'];
    }

    /**
     * Evaluates so many times.
     *
     * @return list<float> what boot took in each, in milliseconds
     */
    public function boots(int $times): array
    {
        return $this->ask($times)['boot_ms'];
    }

    /** @return array<string, mixed> */
    private function ask(int $times): array
    {
        $answer = $this->worker->ask((string) $times);
        $holds = $answer['ok'] && $answer['starts'] === [$this->way->value] && $answer['guards'] !== [];
        foreach ($answer['guards'] as $guard => $state) {
            // What is measured is what is said: nothing that is degraded, nothing that is left in.
            $holds = $holds && ($state === 'in force') === !in_array($guard, $this->without, true);
        }
        $holds || throw new RuntimeException('Not what is to be measured: ' . json_encode($answer));

        return $answer;
    }
}
