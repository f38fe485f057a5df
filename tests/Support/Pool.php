<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support;

use RuntimeException;

/**
 * A pool in a directory of its own, and calls from beside it and from within sandboxes. It ends with {@see stop()}.
 */
final class Pool
{
    /** Seconds that it may take to start or to end. */
    private const PATIENCE = 20.0;

    private readonly TemporaryApplication $application;

    /** @var array<string, string> */
    private readonly array $environment;

    private ?int $pid = null;

    /**
     * @param list<string> $beside a command that the pool and every caller is run by
     */
    public function __construct(private readonly array $beside = [])
    {
        $this->application = new TemporaryApplication();
        $this->environment = [
            'ALTAIR_EVAL_EXTENSION' => Without::extension(),
            'XDG_RUNTIME_DIR' => $this->application->path('run'),
        ];
        mkdir($this->application->path('run'), 0755);
        $started = $this->altair(['pool', '--start', $this->application->path('run/altair')]);
        if ($started->exitCode !== 0) {
            throw new RuntimeException($started->errors);
        }
        $this->pid = $this->await(fn (): ?int => $this->state()['pid'] ?? null);
    }

    /**
     * The complete answer of `altair eval` to a calculation, whose value is 42.
     *
     * @param list<string> $inside a command that it is run by
     * @return array<string, mixed>
     */
    public function ask(array $inside = []): array
    {
        $root = '--root=' . $this->application->root;
        $asked = $this->altair(['eval', $root, '--format=json', '--verbose', '--', 'return 6 * 7;'], $inside);
        if ($asked->output === '') {
            throw new RuntimeException($asked->errors);
        }

        return $asked->json();
    }

    /** How many runs it has carried out, by its own word. */
    public function served(): int
    {
        return $this->state()['served'] ?? throw new RuntimeException('No pool is running.');
    }

    /** A place of a test's own, which the pool's end removes. */
    public function path(string $name): string
    {
        return $this->application->path($name);
    }

    /** Ends it, and waits until it is gone. */
    public function stop(): void
    {
        if ($this->pid !== null) {
            posix_kill($this->pid, SIGTERM);
            $this->await(fn (): bool => !in_array((string) $this->pid, Processes::all(), true));
            $this->pid = null;
        }
    }

    /**
     * What `altair pool` tells of it, if there is one.
     *
     * @return array<string, mixed>|null
     */
    private function state(): ?array
    {
        $said = $this->altair(['pool', '--format=json']);

        return $said->exitCode === 0 ? $said->json()['pool'] : throw new RuntimeException($said->errors);
    }

    /**
     * @param list<string> $arguments
     * @param list<string> $inside
     */
    private function altair(array $arguments, array $inside = []): Command
    {
        $native = Command::native();
        $clean = ['env', '-u', 'CI', '-u', 'ALTAIR_EVAL_POOL', '-u', 'ALTAIR_POOL_LOG'];

        return Command::of(
            [...$clean, ...$this->beside, ...$inside, $native, ...$arguments],
            environment: $this->environment,
        );
    }

    /**
     * @template T
     * @param callable(): (T|null|false) $what
     * @return T
     */
    private function await(callable $what): mixed
    {
        $until = microtime(true) + self::PATIENCE;
        do {
            $found = $what();
            if ($found !== null && $found !== false) {
                return $found;
            }
            usleep(10_000);
        } while (microtime(true) < $until);
        throw new RuntimeException('The pool has not started, or not ended.');
    }
}
