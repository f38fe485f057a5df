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
     */
    public function __construct(array $command, string $directory, int $rows, int $columns)
    {
        $script = "stty rows $rows cols $columns; exec \"\$@\"";
        $terminal = [['pty'], ['pty'], ['pty']];
        $this->process = proc_open(['sh', '-c', $script, 'sh', ...$command], $terminal, $this->pipes, $directory)
            ?: throw new RuntimeException('No process.');
        stream_set_blocking($this->pipes[1], false);
    }

    /** Waits until a text is shown after what was seen before. */
    public function waitFor(string $text): void
    {
        $until = microtime(true) + self::PATIENCE;
        while (!str_contains($this->shown, $text)) {
            if (microtime(true) > $until || !$this->read()) {
                $this->kill();
                throw new RuntimeException("'$text' is not shown, but: $this->shown");
            }
        }
        $this->shown = substr($this->shown, (int) strpos($this->shown, $text) + strlen($text));
    }

    public function type(string $keys): void
    {
        fwrite($this->pipes[0], $keys);
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
        $ready = [$this->pipes[1]];
        $none = null;
        stream_select($ready, $none, $none, 1);
        // A terminal whose program has ended gives an error.
        $chunk = @fread($this->pipes[1], 8192);
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
