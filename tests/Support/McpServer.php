<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support;

use RuntimeException;
use stdClass;

/**
 * `altair mcp:serve` for examples/shop, on its standard input and output.
 */
final class McpServer
{
    /** How long an answer is waited for before the test fails, in seconds. */
    private const PATIENCE = 60;

    /** @var resource */
    private $process;

    /** @var array<int, resource> */
    private array $pipes;

    private int $id = 0;

    public function __construct(string ...$options)
    {
        $root = dirname(__DIR__, 2);
        $process = proc_open(
            ["$root/bin/altair", 'mcp:serve', "--root=$root/examples/shop", ...$options],
            [['pipe', 'r'], ['pipe', 'w'], ['file', '/dev/null', 'w']],
            $pipes,
        );
        $this->process = $process ?: throw new RuntimeException('No process.');
        $this->pipes = $pipes;
        $this->ask('initialize', [
            'protocolVersion' => '2025-06-18',
            'capabilities' => new stdClass(),
            'clientInfo' => ['name' => 'tests', 'version' => '1'],
        ]);
        $this->send(['method' => 'notifications/initialized']);
    }

    public function __destruct()
    {
        // Its standard input closing is its end.
        array_map(fclose(...), $this->pipes);
        proc_close($this->process);
    }

    /**
     * @param array<string, mixed> $params
     * @return array<string, mixed> the result
     */
    public function ask(string $method, array $params = []): array
    {
        $id = ++$this->id;
        $this->send(['id' => $id, 'method' => $method, 'params' => (object) $params]);
        do {
            $readable = [$this->pipes[1]];
            $none = null;
            if (stream_select($readable, $none, $none, self::PATIENCE) !== 1) {
                throw new RuntimeException("No answer to $method.");
            }
            $line = fgets($this->pipes[1]);
            if ($line === false) {
                throw new RuntimeException("The server ended at $method.");
            }
            $answer = json_decode($line, true, flags: JSON_THROW_ON_ERROR);
        } while (($answer['id'] ?? null) !== $id);

        return $answer['result'] ?? throw new RuntimeException($line);
    }

    /**
     * @param array<string, mixed> $message
     */
    private function send(array $message): void
    {
        $flags = JSON_THROW_ON_ERROR | JSON_PRESERVE_ZERO_FRACTION;
        fwrite($this->pipes[0], json_encode(['jsonrpc' => '2.0'] + $message, $flags) . "\n");
    }
}
