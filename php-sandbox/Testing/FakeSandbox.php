<?php

declare(strict_types=1);

namespace Altair\Sandbox\Testing;

use Altair\Sandbox\Config\ExecutionPolicy;
use Altair\Sandbox\Contracts\CanExecuteCommand;
use Altair\Sandbox\Data\ExecResult;
use Altair\Sandbox\Value\Argv;
use InvalidArgumentException;
use RuntimeException;

/**
 * Runs nothing: it answers commands with prepared results and records them.
 *
 * Responses belong to a command line, the arguments joined with spaces: `git status`. Each is given once, in order. A
 * command without one gets the default response.
 *
 * @phpstan-type Response ExecResult|array{
 *     stdout?: string, stderr?: string, exit_code?: int, duration?: float, timed_out?: bool,
 *     truncated_stdout?: bool, truncated_stderr?: bool, success?: bool
 * }
 */
final class FakeSandbox implements CanExecuteCommand
{
    private const KEYS = [
        'stdout' => '',
        'stderr' => '',
        'exit_code' => 0,
        'duration' => 0.0,
        'timed_out' => false,
        'truncated_stdout' => false,
        'truncated_stderr' => false,
    ];

    /** @var array<string, list<ExecResult>> */
    private array $queues = [];

    /** @var list<non-empty-list<string>> */
    private array $commands = [];

    /**
     * @param array<string, Response|list<Response>> $responses what each command line is answered: a result, the keys
     *     of one's `toArray()`, of which any may be left out, or a list of these
     * @param ExecResult|null $default the answer to every other command; null: it is refused
     * @throws InvalidArgumentException if a response has a key that a result has not
     */
    public function __construct(
        private readonly ExecutionPolicy $policy,
        array $responses = [],
        private readonly ?ExecResult $default = null,
    ) {
        foreach ($responses as $command => $response) {
            foreach (is_array($response) && array_is_list($response) ? $response : [$response] as $one) {
                $this->enqueue((string) $command, $one);
            }
        }
    }

    /**
     * The same with the default policy, unless there is another.
     *
     * @param array<string, Response|list<Response>> $responses
     * @throws InvalidArgumentException if a response has a key that a result has not
     */
    public static function fromResponses(
        array $responses,
        ?ExecutionPolicy $policy = null,
        ?ExecResult $default = null,
    ): self {
        return new self($policy ?? ExecutionPolicy::default(), $responses, $default);
    }

    /**
     * Adds a response to a command, after those that it has.
     *
     * @param string|list<string> $command the command line, or its arguments
     * @param Response $response
     * @throws InvalidArgumentException if the response has a key that a result has not
     */
    public function enqueue(string|array $command, ExecResult|array $response): void
    {
        $line = is_array($command) ? self::line(Argv::of($command)) : $command;
        $this->queues[$line][] = is_array($response) ? self::result($response) : $response;
    }

    /** The policy that it was given, of which it keeps nothing. */
    public function policy(): ExecutionPolicy
    {
        return $this->policy;
    }

    /**
     * Answers a command, and gives its whole output to `$onOutput`.
     *
     * @throws InvalidArgumentException if a real sandbox would refuse the arguments
     * @throws RuntimeException if there is no response
     */
    public function execute(array $argv, ?string $stdin = null, ?callable $onOutput = null): ExecResult
    {
        $argv = Argv::of($argv);
        $this->commands[] = $argv->toArray();
        $line = self::line($argv);
        $result = isset($this->queues[$line]) ? array_shift($this->queues[$line]) : null;
        $result ??= $this->default;
        if ($result === null) {
            throw new RuntimeException("FakeSandbox has no response for command: $line");
        }
        if ($onOutput !== null) {
            foreach (['out' => $result->stdout(), 'err' => $result->stderr()] as $stream => $output) {
                if ($output !== '') {
                    $onOutput($stream, $output);
                }
            }
        }

        return $result;
    }

    /**
     * The commands that it was given, in order, also those that had no response.
     *
     * @return list<non-empty-list<string>>
     */
    public function commands(): array
    {
        return $this->commands;
    }

    private static function line(Argv $argv): string
    {
        return implode(' ', $argv->toArray());
    }

    /**
     * @param array<string, mixed> $response
     */
    private static function result(array $response): ExecResult
    {
        $unknown = array_diff_key($response, self::KEYS, ['success' => null]);
        if ($unknown !== []) {
            throw new InvalidArgumentException(sprintf(
                'A response of FakeSandbox has no key "%s", but: %s, success',
                array_key_first($unknown),
                implode(', ', array_keys(self::KEYS)),
            ));
        }
        // In the order of the constructor's parameters.
        $values = array_intersect_key($response, self::KEYS);
        $result = new ExecResult(...array_values(array_replace(self::KEYS, $values)));
        if (isset($response['success']) && $response['success'] !== $result->success()) {
            throw new InvalidArgumentException(sprintf(
                'A response of FakeSandbox says success: %s, but exit_code and timed_out say the opposite',
                var_export($response['success'], true),
            ));
        }

        return $result;
    }
}
