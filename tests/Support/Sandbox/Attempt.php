<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Sandbox;

use RuntimeException;

/**
 * An attack while it is made: as a command of the driver `native`, or without anything that holds it.
 */
final class Attempt
{
    /** How long a line or the end is waited for before the test fails, in seconds. */
    private const PATIENCE = 60;

    /** The process that was started: `altair`, where the attack is confined. */
    public readonly int $pid;

    /** @var resource */
    private $process;

    /** @var array<int, resource> */
    private array $pipes = [];

    /** @var resource */
    private $errors;

    private string $output = '';

    /**
     * @param list<string> $attack its name and arguments
     * @param list<string>|null $options of `altair run`; null: nothing holds the attack
     * @param mixed $input a descriptor for its standard input, as proc_open() takes it
     * @param list<string> $before commands that start it
     */
    public function __construct(
        private readonly Ground $ground,
        array $attack,
        ?array $options = [],
        mixed $input = ['pipe', 'r'],
        array $before = [],
    ) {
        $tools = Tools::shared();
        $setting = $ground->caller->setting();
        $command = [$tools->attack(), ...$attack];
        $confined = $options !== null;
        if ($confined) {
            $read = ["--read=$tools->directory"];
            $command = [$tools->altair(), 'run', ...$read, ...$options, '--', ...$command];
        }
        $command = [...$before, ...$command];
        $this->errors = tmpfile() ?: throw new RuntimeException('No temporary file.');
        $process = proc_open(
            // What holds nothing is made as whom the command would run.
            $confined ? $setting->hostCommand($command) : $setting->command($command),
            [$input, ['pipe', 'w'], $this->errors],
            $this->pipes,
            $ground->place,
            ['PATH' => getenv('PATH'), 'ALTAIR_SECRET' => $ground->secret],
        );
        $this->process = $process ?: throw new RuntimeException('No process.');
        $this->pid = proc_get_status($process)['pid'];
    }

    public function __destruct()
    {
        if (is_resource($this->process)) {
            proc_terminate($this->process, SIGKILL);
            proc_close($this->process);
        }
    }

    /** Waits until it says that it is where it is to be looked at. */
    public function awaitReady(): self
    {
        while (!str_contains($this->output, "ready\n")) {
            $this->output .= $this->more() ?? throw new RuntimeException("It ended: {$this->story()}");
        }

        return $this;
    }

    /** Lets it go on and end. Returns what it printed. */
    public function end(): string
    {
        if (isset($this->pipes[0])) {
            fclose($this->pipes[0]);
            unset($this->pipes[0]);
        }
        while (($more = $this->more()) !== null) {
            $this->output .= $more;
        }
        proc_close($this->process);

        return $this->output;
    }

    public function story(): string
    {
        rewind($this->errors);

        return "{$this->ground->caller->value}:\n$this->output" . stream_get_contents($this->errors);
    }

    private function more(): ?string
    {
        $readable = [$this->pipes[1]];
        $none = null;
        if (stream_select($readable, $none, $none, self::PATIENCE) !== 1) {
            throw new RuntimeException("It says nothing: {$this->story()}");
        }
        $more = fread($this->pipes[1], 65536);

        return $more === '' || $more === false ? null : $more;
    }
}
