<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Escape;

use Altair\Eval\Tests\Support\TemporaryApplication;
use RuntimeException;

/**
 * A host with an empty project, started by a command that gives it something else than the tests have: limits, mounts.
 */
final class WrappedHost
{
    /** Seconds for which an answer is waited for. */
    private const PATIENCE = 60;

    /** Milliseconds that a run may take. */
    private const TIMEOUT_MS = 20000;

    /** Runs until a template is kept: one whose files were written just before it read them is not. */
    private const TRIES = 5;

    public readonly int $pid;

    /** Its directory for temporary files. */
    public readonly string $temp;

    private readonly TemporaryApplication $application;

    /** @var resource */
    private $process;

    /** @var array<int, resource> */
    private array $pipes;

    /**
     * @param list<string> $wrapper what becomes the command that follows it
     * @param list<string> $omitted guards
     */
    public function __construct(Setting $setting, array $wrapper, array $omitted = ['ini'])
    {
        $this->application = new TemporaryApplication([
            'app/vendor/autoload.php' => '<?php',
            'app/data.txt' => 'data',
        ]);
        copy((string) getenv('EXTENSION'), $this->application->path('altair_eval.so'));
        copy(__DIR__ . '/evaluating-host.php', $this->application->path('evaluating-host.php'));
        $this->temp = $this->application->path('tmp');
        mkdir($this->temp);
        if (posix_geteuid() === 0) {
            $this->application->giveTo($setting->uid(), $setting->gid());
        }
        $command = [
            PHP_BINARY,
            '-d', 'extension=' . $this->application->path('altair_eval.so'),
            '-d', 'altair_eval.omit=' . implode(',', $omitted),
            $this->application->path('evaluating-host.php'),
        ];
        $process = proc_open(
            [...$wrapper, ...$setting->hostCommand($command)],
            [['pipe', 'r'], ['pipe', 'w'], STDERR],
            $pipes,
            '/',
            ['TMPDIR' => $this->temp] + getenv(),
        );
        $this->process = $process ?: throw new RuntimeException('No host.');
        $this->pipes = $pipes;
        $this->pid = $this->answer()['pid'] ?? throw new RuntimeException('The host cannot be had.');
    }

    public function __destruct()
    {
        fclose($this->pipes[0]);
        proc_terminate($this->process, SIGKILL);
        proc_close($this->process);
    }

    /**
     * Evaluates with the functions of {@see Prelude}; where it is to be warm, as the fork of a template that was there.
     *
     * @param (callable(): void)|null $meanwhile called every few milliseconds
     * @return array<string, mixed> as EvalResult::toArray() gives it
     */
    public function evaluate(string $snippet, Start $start, ?callable $meanwhile = null): array
    {
        for ($try = 1; $start === Start::Warm && $try <= self::TRIES; $try++) {
            if ($this->ask('return 1;', $start)['diagnostics']['start'] === $start->value) {
                break;
            }
        }

        return $this->ask(Prelude::functions() . $snippet, $start, $meanwhile);
    }

    /**
     * Evaluates once.
     *
     * @param (callable(): void)|null $meanwhile called every few milliseconds
     * @return array<string, mixed> as EvalResult::toArray() gives it
     */
    public function ask(string $snippet, Start $start, ?callable $meanwhile = null): array
    {
        fwrite($this->pipes[0], json_encode([
            'start' => $start->value,
            'snippet' => $snippet,
            'projectRoot' => $this->application->path('app'),
            'timeoutMs' => self::TIMEOUT_MS,
        ], JSON_THROW_ON_ERROR) . "\n");

        return $this->result($meanwhile);
    }

    /**
     * @return array<string, mixed>
     */
    private function result(?callable $meanwhile = null): array
    {
        do {
            $answer = $this->answer($meanwhile);
            if (isset($answer['failure'])) {
                throw new RuntimeException($answer['failure']);
            }
        } while (!isset($answer['result']));

        return $answer['result'];
    }

    /**
     * @return array<string, mixed> its next line
     */
    private function answer(?callable $meanwhile = null): array
    {
        $until = hrtime(true) + self::PATIENCE * 1e9;
        do {
            $readable = [$this->pipes[1]];
            $none = null;
            if (stream_select($readable, $none, $none, 0, 5000) === 1) {
                $line = fgets($this->pipes[1]);

                return json_decode(
                    $line === false ? throw new RuntimeException('The host has ended.') : $line,
                    true,
                    flags: JSON_THROW_ON_ERROR,
                );
            }
            if ($meanwhile !== null) {
                $meanwhile();
            }
        } while (hrtime(true) < $until);
        throw new RuntimeException('The host does not answer.');
    }
}
