<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support;

use RuntimeException;

/**
 * A program on a terminal, as a person sees it.
 */
final class Terminal
{
    /** Seconds to wait for what a test expects. */
    private const PATIENCE = 20;

    /** @var resource */
    private $process;

    /** @var array<int, resource> */
    private array $pipes = [];

    private string $shown = '';

    private int $exitCode = -1;

    /**
     * @param list<string> $command
     * @param bool $piped whether its standard output goes to a pipe, which nobody reads before the end
     */
    public function __construct(array $command, string $directory, int $rows, int $columns, bool $piped = false)
    {
        $script = "export TERM=xterm; stty rows $rows cols $columns <&2; exec \"\$@\"";
        $terminal = [['pty'], $piped ? ['pipe', 'w'] : ['pty'], ['pty']];
        $this->process = proc_open(['sh', '-c', $script, 'sh', ...$command], $terminal, $this->pipes, $directory)
            ?: throw new RuntimeException('No process.');
        stream_set_blocking($this->pipes[2], false);
    }

    /** Waits until a text is shown after what was seen before. Returns what was shown before it. */
    public function waitFor(string $text): string
    {
        $until = microtime(true) + self::PATIENCE;
        while (!str_contains($this->shown, $text)) {
            if (microtime(true) > $until || !$this->read()) {
                $this->kill();
                throw new RuntimeException("'$text' is not shown, but: $this->shown");
            }
        }
        [$before, $this->shown] = explode($text, $this->shown, 2);

        return $before;
    }

    public function type(string $keys): void
    {
        fwrite($this->pipes[0], $keys);
    }

    public function signal(int $signal): void
    {
        proc_terminate($this->process, $signal);
    }

    /** Ends with what is still shown, and the exit code. @return array{string, int} */
    public function end(): array
    {
        $until = microtime(true) + self::PATIENCE;
        while ($this->read()) {
            if (microtime(true) > $until) {
                $this->kill();
                throw new RuntimeException("It does not end: $this->shown");
            }
        }

        proc_close($this->process);

        return [$this->shown, $this->exitCode];
    }

    /** Reads what comes next; false at the end. */
    private function read(): bool
    {
        $ready = [$this->pipes[2]];
        $none = null;
        stream_select($ready, $none, $none, 1);
        // A terminal whose program has ended gives an error.
        $chunk = @fread($this->pipes[2], 8192);
        $this->shown .= (string) $chunk;

        if ($chunk !== '' && $chunk !== false) {
            return true;
        }
        $status = proc_get_status($this->process);
        if (!$status['running'] && $this->exitCode < 0) {
            $this->exitCode = $status['exitcode'];
        }

        return $status['running'];
    }

    private function kill(): void
    {
        proc_terminate($this->process, SIGKILL);
        proc_close($this->process);
    }
}
