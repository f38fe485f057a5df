<?php

declare(strict_types=1);

namespace Altair\Eval\Benches\Support;

use RuntimeException;

/**
 * Another PHP process that runs one of the programs next to this directory: it does one thing for each line that it is
 * sent, and answers with a line of JSON.
 */
final class Worker
{
    public readonly int $pid;

    /** @var resource */
    private $process;

    /** @var array<int, resource> */
    private array $pipes = [];

    /**
     * @param string $program the name of a file in `programs/`
     * @param list<string> $arguments
     * @param list<string> $switches those of `php`
     * @param list<string> $under a command that becomes PHP, with its arguments
     */
    public function __construct(string $program, array $arguments, array $switches = [], array $under = [])
    {
        $process = proc_open(
            [
                ...$under,
                PHP_BINARY, '-d', 'extension=' . getenv('EXTENSION'), ...$switches,
                dirname(__DIR__) . "/programs/$program", ...$arguments,
            ],
            [['pipe', 'r'], ['pipe', 'w'], STDERR],
            $this->pipes,
        );
        $this->process = $process ?: throw new RuntimeException('No process.');
        $this->pid = proc_get_status($this->process)['pid'];
    }

    public function __destruct()
    {
        // At the end of its input it ends.
        array_map(fclose(...), $this->pipes);
        proc_close($this->process);
    }

    /** @return array<string, mixed> */
    public function ask(string $line): array
    {
        fwrite($this->pipes[0], "$line\n");
        $answer = (string) fgets($this->pipes[1]);

        return json_decode($answer, true) ?? throw new RuntimeException("No answer to $line: $answer");
    }
}
