<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Servers;

use RuntimeException;

/**
 * PHP's own server, with one process or with workers.
 */
final class BuiltIn implements Server
{
    /** @var resource */
    private $process;

    /** @var resource what it says of requests */
    private $errors;

    private readonly string $address;

    /**
     * @param string $directory what it serves
     * @param array<string, string> $environment its own
     */
    public function __construct(string $directory, array $environment, int $workers = 0)
    {
        $this->errors = tmpfile() ?: throw new RuntimeException('No temporary file.');
        // The workers share one socket, so any of them may answer, and the first lines say where it is.
        $workers = $workers > 0 ? ['PHP_CLI_SERVER_WORKERS' => (string) $workers] : [];
        $process = proc_open(
            [self::program(), '-d', 'extension=' . getenv('EXTENSION'), '-S', '127.0.0.1:0', '-t', $directory],
            [['file', '/dev/null', 'r'], ['file', '/dev/null', 'w'], $this->errors],
            $pipes,
            '/',
            $workers + $environment,
        );
        $this->process = $process ?: throw new RuntimeException('No server.');
        $this->address = $this->listening();
    }

    public function __destruct()
    {
        $this->end();
    }

    public static function program(): string
    {
        return PHP_BINARY;
    }

    public function pages(string $file, int $times = 1): array
    {
        return Loopback::pages($this->address, '/' . basename($file), $times);
    }

    public function end(): void
    {
        if (is_resource($this->process)) {
            // The workers do not end with their parent, which does not wait for them either.
            $pid = proc_get_status($this->process)['pid'];
            $children = explode(' ', (string) @file_get_contents("/proc/$pid/task/$pid/children"));
            foreach (array_filter(array_map(intval(...), $children)) as $worker) {
                posix_kill($worker, SIGTERM);
            }
            proc_terminate($this->process, SIGTERM);
            proc_close($this->process);
        }
    }

    private function listening(): string
    {
        $until = microtime(true) + 30;
        do {
            usleep(5000);
            rewind($this->errors);
            $said = (string) stream_get_contents($this->errors);
            if (preg_match('~\(http://([^)]+)\) started~', $said, $found)) {
                return $found[1];
            }
        } while (microtime(true) < $until && proc_get_status($this->process)['running']);
        throw new RuntimeException($said);
    }
}
