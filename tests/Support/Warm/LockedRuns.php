<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Warm;

use Altair\Eval\EvalRequest;
use Altair\Eval\Tests\Support\TemporaryApplication;

/**
 * Runs that wait until the test lets them go: for a lock of a file outside of the project, which is the same to both.
 */
trait LockedRuns
{
    private ?TemporaryApplication $outside = null;

    protected function tearDown(): void
    {
        parent::tearDown();
        $this->outside = null;
    }

    private function request(string $snippet, int $timeoutMs = self::LONG_MS): EvalRequest
    {
        $readable = $this->outside === null ? [] : [$this->outside->root];

        return new EvalRequest($snippet, $this->application()->root, $timeoutMs, readablePaths: $readable);
    }

    /** A snippet that waits until a lock is free; then it lasts no moment longer. */
    private function wait(string $name): string
    {
        return "return (int) flock(fopen('{$this->outside->path($name)}', 'r'), LOCK_SH);";
    }

    /**
     * Waits until so many runs are at their snippet and wait for a lock.
     *
     * @param resource $lock
     */
    private function untilWaitingFor($lock, int $runs): void
    {
        // Of who waits, proc(5) has a line with an arrow, and the number of the file's inode.
        $line = '/-> FLOCK .*:' . fstat($lock)['ino'] . ' /';
        self::waitUntil(
            static fn (): bool => preg_match_all($line, (string) file_get_contents('/proc/locks')) === $runs,
            "$runs runs wait for a lock.",
        );
    }

    /**
     * @param list<string> $names
     * @return array<string, resource> held locks
     */
    private function locks(array $names, string $boot = ''): array
    {
        $this->outside = new TemporaryApplication(array_fill_keys($names, ''));
        $this->booting($boot);
        $this->warmed(readablePaths: [$this->outside->root]);
        $locks = [];
        foreach ($names as $name) {
            $locks[$name] = fopen($this->outside->path($name), 'r');
            self::assertTrue(flock($locks[$name], LOCK_EX));
        }

        return $locks;
    }
}
