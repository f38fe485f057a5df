<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support;

use RuntimeException;

/**
 * A PHP program in a process of its own, with the extension, that a test talks to while it runs.
 *
 * `$root` is examples/shop in it, `say()` tells the test a line, and `request()` makes an EvalRequest for the shop.
 */
final class Script
{
    /** Seconds that the end of what a host has started may take after its own. */
    private const ENDING = 5.0;

    /** How long a line or the end is waited for before the test fails, in seconds. */
    private const PATIENCE = 60;

    private const PRELUDE = <<<'PHP'
        use Altair\Eval\EvalRequest;
        use Altair\Eval\EvalResult;
        use Altair\Eval\Evaluator;
        use Altair\Eval\Runner\SubprocessRunner;
        $root = getenv('ALTAIR_TEST_SHOP');
        function say(mixed $what): void { fwrite(STDOUT, (is_string($what) ? $what : json_encode($what)) . "\n"); }
        function request(string $snippet, int $timeoutMs = 60000): EvalRequest {
            return new EvalRequest($snippet, getenv('ALTAIR_TEST_SHOP'), $timeoutMs);
        }
        PHP;

    /** @var resource */
    private $process;

    /** @var resource */
    private $output;

    /** @var resource */
    private $errors;

    private string $read = '';

    /** @var array<int, string|null> what it was seen to start, each with its identity */
    private array $seen = [];

    private readonly int $pid;

    /** Is in the environment of every process that it starts. */
    private readonly string $mark;

    /**
     * @param list<string> $options of the `php` command
     */
    public function __construct(string $code, array $options = [])
    {
        $this->mark = bin2hex(random_bytes(12));
        $extension = getenv('EXTENSION');
        $this->errors = tmpfile() ?: throw new RuntimeException('No temporary file.');
        $process = proc_open(
            [
                PHP_BINARY,
                ...($extension === false ? [] : ['-d', "extension=$extension"]),
                '-d', 'display_errors=stderr', '-d', 'log_errors=0', '-d', 'html_errors=0',
                ...$options, '-r', self::PRELUDE . $code,
            ],
            [['file', '/dev/null', 'r'], ['pipe', 'w'], $this->errors],
            $pipes,
            null,
            [
                'ALTAIR_TEST_MARK' => $this->mark,
                'ALTAIR_TEST_SHOP' => dirname(__DIR__, 2) . '/examples/shop',
            ] + getenv(),
        );
        $this->process = $process ?: throw new RuntimeException('No process.');
        $this->output = $pipes[1];
        $this->pid = proc_get_status($process)['pid'];
    }

    public function __destruct()
    {
        if (is_resource($this->process)) {
            proc_terminate($this->process, SIGKILL);
            proc_close($this->process);
        }
    }

    public function signal(int $signal): void
    {
        proc_terminate($this->process, $signal);
    }

    /**
     * Waits for its next line.
     */
    public function line(): string
    {
        while (!str_contains($this->read, "\n")) {
            $this->read .= $this->more() ?? throw new RuntimeException('It ended: ' . $this->errors());
        }
        [$line, $this->read] = explode("\n", $this->read, 2);

        return $line;
    }

    /**
     * Waits for its end.
     *
     * @return array{int, string, string} exit code or 128 + signal, the rest of the output, errors
     */
    public function end(): array
    {
        while (($more = $this->more()) !== null) {
            $this->read .= $more;
        }
        // The pipe closes before the process has ended: its exit code is known only then.
        $deadline = microtime(true) + self::PATIENCE;
        while (($status = proc_get_status($this->process))['running'] && microtime(true) < $deadline) {
            usleep(1000);
        }
        proc_close($this->process);

        return [
            $status['signaled'] ? 128 + $status['termsig'] : $status['exitcode'],
            $this->read,
            $this->errors(),
        ];
    }

    /**
     * By its environment, where this user may read it, by parentage, and by what was seen before.
     *
     * @return list<int> what it has started and what still runs
     */
    public function processes(): array
    {
        $parents = [];
        foreach (array_filter(scandir('/proc'), ctype_digit(...)) as $pid) {
            $parents[(int) $pid] = (int) (Processes::stat($pid)[1] ?? 0);
        }
        $family = [$this->pid];
        do {
            $known = count($family);
            $family = array_values(array_unique([...$family, ...array_keys(array_filter(
                $parents,
                static fn (int $parent): bool => in_array($parent, $family, true),
            ))]));
        } while (count($family) > $known);
        $marked = array_map(intval(...), Processes::startedWith($this->mark));
        foreach (array_diff([...$family, ...$marked], [$this->pid]) as $pid) {
            $this->seen[$pid] ??= $this->identity($pid);
        }

        return array_keys(array_filter(
            $this->seen,
            fn (?string $identity, int $pid): bool => $identity !== null && $identity === $this->identity($pid),
            ARRAY_FILTER_USE_BOTH,
        ));
    }

    /**
     * Waits a moment until nothing is left: a host that returns does not wait for the end of its templates.
     *
     * @return list<int> what it has started and what does not end
     */
    public function left(): array
    {
        $until = microtime(true) + self::ENDING;
        while (($left = $this->processes()) !== [] && microtime(true) < $until) {
            usleep(1000);
        }

        return $left;
    }

    /** When a process was started, which tells it from a later one of the same number; null once it has ended. */
    private function identity(int $pid): ?string
    {
        $stat = Processes::stat($pid) + ['gone', ''];
        // A zombie of the script's own is a leak; one that has lost its parent waits for the system's init.
        $hasEnded = $stat[0] === 'Z' && (int) $stat[1] !== $this->pid;

        return $hasEnded ? null : $stat[19] ?? null;
    }

    private function errors(): string
    {
        rewind($this->errors);

        return (string) stream_get_contents($this->errors);
    }

    private function more(): ?string
    {
        $readable = [$this->output];
        $none = null;
        if (stream_select($readable, $none, $none, self::PATIENCE) !== 1) {
            throw new RuntimeException('It says nothing: ' . $this->errors());
        }
        $more = fread($this->output, 65536);

        return $more === '' || $more === false ? null : $more;
    }
}
