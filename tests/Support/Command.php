<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support;

use RuntimeException;

/**
 * Runs `bin/altair` as a user does, and tells how it ended.
 */
final class Command
{
    /** Seconds after which a command that hangs is killed, so that it fails its test. */
    private const PATIENCE = '90';

    private function __construct(
        public readonly int $exitCode,
        public readonly string $output,
        public readonly string $errors,
    ) {
    }

    /**
     * @param list<string> $arguments
     * @param array<string, string> $environment in addition to the test's own
     */
    public static function run(
        array $arguments,
        string $directory = '/',
        string $input = '',
        array $environment = [],
    ): self {
        return self::of([dirname(__DIR__, 2) . '/bin/altair', ...$arguments], $directory, $input, $environment);
    }

    /**
     * Runs any command.
     *
     * @param list<string> $command
     * @param array<string, string> $environment in addition to the test's own
     */
    public static function of(
        array $command,
        string $directory = '/',
        string $input = '',
        array $environment = [],
    ): self {
        $file = static fn () => tmpfile() ?: throw new RuntimeException('No temporary file.');
        $streams = [$file(), $file(), $file()];
        fwrite($streams[0], $input);
        rewind($streams[0]);
        $process = proc_open(
            ['timeout', '--kill-after=1', self::PATIENCE, ...$command],
            $streams,
            $pipes,
            $directory,
            $environment + getenv(),
        );
        $exitCode = proc_close($process ?: throw new RuntimeException('No process.'));
        $read = static function ($stream): string {
            rewind($stream);

            return (string) stream_get_contents($stream);
        };

        return new self($exitCode, $read($streams[1]), $read($streams[2]));
    }

    /** The native command: the one that is named, else what was built with the extension. */
    public static function native(): string
    {
        return getenv('ALTAIR_NATIVE') ?: dirname((string) getenv('EXTENSION')) . '/altair';
    }

    /** The first line of what it printed. */
    public function headline(): string
    {
        return strtok($this->output, "\n") ?: '';
    }

    /**
     * @return array<string, mixed>
     */
    public function json(): array
    {
        return json_decode($this->output, true, flags: JSON_THROW_ON_ERROR);
    }
}
