<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Fuzz;

/**
 * Plays sequences without guards, in a process of its own that has not the extension: what they would come to.
 */
final class Control
{
    /** Seconds that a sequence may take. */
    private const PATIENCE = 10;

    private const NOBODY = 65534;

    /** @var resource|null */
    private $process;

    /** @var array<int, resource> */
    private array $pipes = [];

    /** How often it has ended by itself, or had to be ended. */
    public int $ends = 0;

    public function __construct(private readonly string $script)
    {
    }

    public function __destruct()
    {
        $this->end();
    }

    /** Is the process that plays. */
    public static function serve(): void
    {
        class_exists(Player::class);
        if (posix_geteuid() === 0) {
            // A text that is changed is to reach no file of others.
            posix_setgid(self::NOBODY);
            posix_setuid(self::NOBODY);
        }
        while (($line = fgets(STDIN)) !== false) {
            [$server, $sequence] = unserialize((string) base64_decode($line));
            $said = (new Player($server))->play($sequence);
            fwrite(STDOUT, json_encode($said, JSON_INVALID_UTF8_SUBSTITUTE) . "\n");
        }
    }

    /**
     * @param array<string, mixed> $server
     * @param array<string, mixed> $sequence
     * @return list<string>|null what each step came to; null where it has not come to its end
     */
    public function play(array $server, array $sequence): ?array
    {
        $this->process ??= $this->begin();
        @fwrite($this->pipes[0], base64_encode(serialize([$server, $sequence])) . "\n");
        $readable = [$this->pipes[1]];
        $none = null;
        $line = stream_select($readable, $none, $none, self::PATIENCE) === 1 ? fgets($this->pipes[1]) : false;
        if ($line === false || isset($sequence['open'][0]['persistent'])) {
            $this->ends += $line === false ? 1 : 0;
            $this->end();
        }

        return $line === false ? null : json_decode($line, true);
    }

    /**
     * @return resource
     */
    private function begin()
    {
        $errors = ['file', '/dev/null', 'w'];
        // Neither its memory nor what it waits for is bounded by ours.
        $command = [PHP_BINARY, '-d', 'memory_limit=512M', $this->script, '--control'];

        return proc_open($command, [['pipe', 'r'], ['pipe', 'w'], $errors], $this->pipes);
    }

    private function end(): void
    {
        if ($this->process !== null) {
            array_map(fclose(...), $this->pipes);
            proc_terminate($this->process, SIGKILL);
            proc_close($this->process);
            $this->process = null;
        }
    }
}
