<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Escape;

use RuntimeException;

/**
 * A long-lived PHP process that evaluates in one setting, as whoever that says.
 */
final class Host
{
    /** Seconds for which an answer is waited for before the test fails. */
    private const PATIENCE = 60;

    public readonly int $pid;

    /** @var resource */
    private $process;

    /** @var array<int, resource> */
    private array $pipes;

    private string $read = '';

    /**
     * @param string $directory where everybody may read the host's files
     * @param string $temp its directory for temporary files
     */
    public function __construct(Setting $setting, string $directory, string $temp)
    {
        $extension = getenv('EXTENSION');
        $options = ['-d', 'display_errors=stderr', '-d', 'log_errors=0'];
        if ($extension !== false) {
            array_push($options, '-d', "extension=$directory/altair_eval.so");
        }
        if ($setting->omitted() !== []) {
            array_push($options, '-d', 'altair_eval.omit=' . implode(',', $setting->omitted()));
        }
        $process = proc_open(
            $setting->hostCommand([PHP_BINARY, ...$options, "$directory/evaluating-host.php"]),
            [['pipe', 'r'], ['pipe', 'w'], STDERR],
            $pipes,
            '/',
            ['TMPDIR' => $temp, 'PHP_INI_SCAN_DIR' => getenv('PHP_INI_SCAN_DIR') . ":$directory/ini"] + getenv(),
        );
        $this->process = $process ?: throw new RuntimeException('No host.');
        $this->pipes = $pipes;
        $this->pid = $this->answer()['pid'];
    }

    public function __destruct()
    {
        fclose($this->pipes[0]);
        proc_terminate($this->process, SIGKILL);
        proc_close($this->process);
    }

    /**
     * @param array<string, mixed> $request
     */
    public function ask(array $request): void
    {
        fwrite($this->pipes[0], json_encode($request, JSON_THROW_ON_ERROR) . "\n");
    }

    /**
     * Its next line; calls `$meanwhile` every few milliseconds until there is one.
     *
     * @return array<string, mixed>
     */
    public function answer(?callable $meanwhile = null): array
    {
        $until = hrtime(true) + self::PATIENCE * 1e9;
        while (($end = strpos($this->read, "\n")) === false) {
            $readable = [$this->pipes[1]];
            $none = null;
            if (stream_select($readable, $none, $none, 0, $meanwhile === null ? 1_000_000 : 5_000) === 1) {
                $more = fread($this->pipes[1], 1 << 20);
                if ($more === '' || $more === false) {
                    throw new RuntimeException('The host has ended.');
                }
                $this->read .= $more;
            } elseif ($meanwhile !== null) {
                $meanwhile();
            }
            if (hrtime(true) > $until) {
                throw new RuntimeException('The host does not answer.');
            }
        }
        $line = substr($this->read, 0, $end);
        $this->read = substr($this->read, $end + 1);

        return json_decode($line, true, flags: JSON_THROW_ON_ERROR);
    }
}
