<?php

declare(strict_types=1);

namespace Altair\Eval\Benches\Support;

use RuntimeException;

/**
 * A client of `altair mcp:serve` on pipes, as small as one can be.
 */
final class McpClient
{
    /** @var resource */
    private $process;

    /** @var array<int, resource> */
    private array $pipes = [];

    private int $id = 0;

    public function __construct(private readonly string $snippet, string $altair, string $root)
    {
        $process = proc_open(
            [$altair, 'mcp:serve', "--root=$root"],
            [['pipe', 'r'], ['pipe', 'w'], ['file', '/dev/null', 'w']],
            $this->pipes,
        );
        $this->process = $process ?: throw new RuntimeException('No process.');
        $hello = ['protocolVersion' => '2025-06-18', 'capabilities' => (object) []];
        $this->ask('initialize', $hello + ['clientInfo' => ['name' => 'bench', 'version' => '1']]);
        $this->send(['method' => 'notifications/initialized']);
        // The first runs are not warm. One is cold, one boots, and files as new as this moment are not yet trusted.
        for ($i = 0; $i < 5 && $this->call()['diagnostics']['start'] !== 'warm'; ++$i);
    }

    public function __destruct()
    {
        // At the end of its input it ends.
        array_map(fclose(...), $this->pipes);
        proc_close($this->process);
    }

    /**
     * Calls so many times.
     *
     * @return list<float> what each took, from the line that is sent to the answer that is read, in milliseconds
     */
    public function times(int $times): array
    {
        $ms = [];
        for ($i = 0; $i < $times; ++$i) {
            $began = hrtime(true);
            $result = $this->call();
            $ms[] = (hrtime(true) - $began) / 1e6;
            if (!$result['ok'] || $result['diagnostics']['start'] !== 'warm') {
                throw new RuntimeException('Not what is to be measured: ' . json_encode($result));
            }
        }

        return $ms;
    }

    /** @return array<string, mixed> */
    private function call(): array
    {
        $arguments = ['snippet' => $this->snippet, 'timeout_ms' => 60000, 'verbose' => true];
        $call = ['name' => 'framework__eval', 'arguments' => $arguments];

        return $this->ask('tools/call', $call)['structuredContent'];
    }

    /**
     * @param array<string, mixed> $params
     * @return array<string, mixed>
     */
    private function ask(string $method, array $params): array
    {
        $this->send(['id' => ++$this->id, 'method' => $method, 'params' => $params]);
        $answer = (string) fgets($this->pipes[1]);

        return json_decode($answer, true)['result'] ?? throw new RuntimeException("No answer to $method: $answer");
    }

    /** @param array<string, mixed> $message */
    private function send(array $message): void
    {
        fwrite($this->pipes[0], json_encode(['jsonrpc' => '2.0'] + $message) . "\n");
    }
}
