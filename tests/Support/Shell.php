<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support;

use RuntimeException;

/**
 * `altair shell` without a terminal, that a test talks to line by line.
 */
final class Shell
{
    /** Seconds to wait for an answer. */
    private const PATIENCE = 30;

    /** A command that says always the same, so that what comes before it is the whole answer. */
    private const END_OF_ANSWER = "  no history is kept without a terminal\n";

    /** @var resource */
    private $process;

    /** @var array<int, resource> */
    private array $pipes = [];

    private string $read = '';

    private int $exitCode = -1;

    /**
     * @param list<string> $options
     */
    public function __construct(string $root, array $options = [])
    {
        $command = [dirname(__DIR__, 2) . '/bin/altair', 'shell', "--root=$root", ...$options];
        $streams = [['pipe', 'r'], ['pipe', 'w'], ['redirect', 1]];
        $this->process = proc_open($command, $streams, $this->pipes, $root)
            ?: throw new RuntimeException('No process.');
    }

    public function __destruct()
    {
        if (is_resource($this->process)) {
            proc_terminate($this->process, SIGKILL);
            $this->end();
        }
    }

    /** The whole answer to a line, but for its figures, with what the shell has to say of the session. */
    public function ask(string $line): string
    {
        fwrite($this->pipes[0], "$line\n:history\n");
        while (!str_ends_with($this->read, self::END_OF_ANSWER)) {
            if (!$this->more()) {
                throw new RuntimeException("It ended: $this->read");
            }
        }
        $answer = substr($this->read, 0, -strlen(self::END_OF_ANSWER));
        $this->read = '';

        return (string) preg_replace('/^  duration=\d+ms  memory=\d+ KB  exit=\d+\n/m', '', $answer);
    }

    /**
     * Asks one line after the other.
     *
     * @param list<string> $lines
     * @return list<string> the first line of each answer
     */
    public function headlines(array $lines): array
    {
        return array_map(fn (string $line): string => strtok($this->ask($line), "\n") ?: '', $lines);
    }

    /** The process that the lines run in. */
    public function child(): int
    {
        if (preg_match('/^✓ int = (\d+)$/m', $this->ask('getmypid()'), $match) !== 1) {
            throw new RuntimeException('It has no process.');
        }

        return (int) $match[1];
    }

    /** The shell itself. */
    public function pid(): int
    {
        return proc_get_status($this->process)['pid'];
    }

    /** Types without waiting for an answer. */
    public function type(string $text): void
    {
        fwrite($this->pipes[0], $text);
    }

    /** Closes its input. @return array{int, string} its exit code, and what it said since the last answer */
    public function end(): array
    {
        if (!is_resource($this->process)) {
            return [$this->exitCode, ''];
        }
        fclose($this->pipes[0]);
        while ($this->more()) {
        }
        fclose($this->pipes[1]);

        $this->exitCode = proc_close($this->process);

        return [$this->exitCode, $this->read];
    }

    private function more(): bool
    {
        $ready = [$this->pipes[1]];
        $none = null;
        if (stream_select($ready, $none, $none, self::PATIENCE) !== 1) {
            throw new RuntimeException("It says no more than: $this->read");
        }
        $more = fread($this->pipes[1], 65536);
        $this->read .= $more;

        return $more !== '' && $more !== false;
    }
}
