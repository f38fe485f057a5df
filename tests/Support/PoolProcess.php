<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support;

use RuntimeException;

/**
 * A pool of a test's own, in a directory of its own, and `altair` as its hosts call it. It ends with this object.
 */
final class PoolProcess
{
    /** Seconds that something may take before the test fails. */
    private const PATIENCE = 20.0;

    /** Seconds after which one that does not serve has given up. */
    private const IN_VAIN = 3.0;

    public readonly string $directory;

    /** @var array<string, string> what a host needs to find it */
    public readonly array $environment;

    private readonly int $maker;

    /** Removes itself. */
    private readonly TemporaryApplication $place;

    /**
     * @param list<string> $beside a command that the pool and every caller is run by
     */
    public function __construct(private readonly array $beside = [])
    {
        $this->maker = (int) getmypid();
        $this->place = new TemporaryApplication();
        $this->directory = $this->place->root;
        $this->environment = [
            'ALTAIR_EVAL_POOL' => 'auto',
            'ALTAIR_EVAL_EXTENSION' => Without::extension(),
            'XDG_RUNTIME_DIR' => $this->directory,
        ];
    }

    public function __destruct()
    {
        if ($this->maker === getmypid()) {
            $this->end();
        }
    }

    /** Ends it, if there is one, and with it what it has started. */
    public function end(): void
    {
        $pid = $this->pid();
        if ($pid !== null) {
            posix_kill($pid, SIGCONT);
            posix_kill($pid, SIGKILL);
            $this->await(fn (): bool => $this->pid() === null);
        }
    }

    /**
     * Starts it, and waits until it serves.
     *
     * @param list<string> $through a command that starts it
     */
    public function start(array $through = []): int
    {
        $tried = -INF;

        return $this->await(function () use ($through, &$tried): ?int {
            // One that was killed has the place until its last process has ended, and another ends in vain.
            if (microtime(true) - $tried > self::IN_VAIN) {
                $started = $this->altair(['pool', '--start', "$this->directory/altair"], [], $through);
                if ($started->exitCode !== 0) {
                    throw new RuntimeException($started->errors);
                }
                $tried = microtime(true);
            }

            return $this->pid();
        });
    }

    /**
     * What `altair pool` tells of it, where there is one.
     *
     * @return array<string, mixed>
     */
    public function told(): array
    {
        return $this->await($this->state(...));
    }

    /** Its process id, if there is one. */
    public function pid(): ?int
    {
        return $this->state()['pid'] ?? null;
    }

    /**
     * What `altair pool` tells of it; null: there is none, or it does not answer.
     *
     * @return array<string, mixed>|null
     */
    public function state(): ?array
    {
        $shown = $this->altair(['pool', '--format=json']);

        return $shown->exitCode === 0 ? $shown->json()['pool'] : null;
    }

    /**
     * Runs `altair`, with no variable `CI` but what is given.
     *
     * @param list<string> $arguments
     * @param array<string, string> $environment
     * @param list<string> $through a command that runs it
     */
    public function altair(array $arguments, array $environment = [], array $through = []): Command
    {
        $unset = isset($environment['CI']) ? [] : ['env', '-u', 'CI'];

        return Command::of(
            [...$unset, ...$this->beside, ...$through, Command::native(), ...$arguments],
            environment: $environment + $this->environment,
        );
    }

    /**
     * Evaluates in a project, and returns the complete answer.
     *
     * @param list<string> $options
     * @param array<string, string> $environment
     * @param list<string> $through
     * @return array<string, mixed>
     */
    public function evaluate(
        TemporaryApplication $in,
        string $snippet,
        array $options = [],
        array $environment = [],
        array $through = [],
    ): array {
        $arguments = ['eval', "--root=$in->root", '--format=json', '--verbose', ...$options, '--', $snippet];
        $answer = $this->altair($arguments, $environment, $through);
        if ($answer->output === '') {
            throw new RuntimeException($answer->errors);
        }

        return $answer->json();
    }

    /**
     * Waits until something is there.
     *
     * @template T
     * @param callable(): (T|null|false) $what
     * @return T
     */
    public function await(callable $what): mixed
    {
        $until = microtime(true) + self::PATIENCE;
        do {
            $found = $what();
            if ($found !== null && $found !== false) {
                return $found;
            }
            usleep(10_000);
        } while (microtime(true) < $until);
        throw new RuntimeException('It has not come.');
    }
}
