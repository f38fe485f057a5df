<?php

/**
 * Signatures of the native classes of the extension altair_eval, for IDEs and static analysers.
 *
 * Nothing loads this file: the extension brings the classes. tests/StubTest.php compares the two.
 *
 * Times are milliseconds, sizes are bytes, unless a name says otherwise.
 */

declare(strict_types=1);

namespace Altair\Eval {

    /**
     * What to evaluate, where, and with which permissions. Checked when it is evaluated, not when it is made.
     */
    final readonly class EvalRequest
    {
        /** Deadline where none is given, in milliseconds. */
        public const DEFAULT_TIMEOUT_MS = 5000;
        /** Shortest deadline, in milliseconds: less is raised to it. */
        public const MIN_TIMEOUT_MS = 100;
        /** Longest deadline, in milliseconds: more is lowered to it. */
        public const MAX_TIMEOUT_MS = 60000;
        /** Memory limit where none is given, in MiB. */
        public const DEFAULT_MEMORY_MB = 128;
        /** Lowest memory limit, in MiB: less is raised to it. */
        public const MIN_MEMORY_MB = 16;
        /** Highest memory limit, in MiB: more is lowered to it. */
        public const MAX_MEMORY_MB = 512;

        /** The PHP code, as it was given. */
        public string $snippet;

        /** The directory of the application, which holds `vendor/autoload.php`. */
        public string $projectRoot;

        /** Deadline of the whole call, boot included, in milliseconds; clamped to 100…60000. */
        public int $timeoutMs;

        /** PHP's `memory_limit` for the snippet, in MiB; clamped to 16…512. */
        public int $memoryLimitMb;

        /** Whether writes to the project are real. */
        public bool $allowWrites;

        /** Whether outbound connections are allowed. */
        public bool $allowNetwork;

        /** Whether the run is made without guards. Such a run is written to the audit log. */
        public bool $unsafe;

        /** The file below the project root that returns the container; null for the usual places. */
        public ?string $bootstrap;

        /**
         * Services that the run may connect to while the network is off: `host:port`, `address:port`,
         * `[address]:port` or the absolute path of a Unix socket. Null: what `extra.altair-eval.services` of the
         * project's `composer.json` declares, else what the application's environment and its `.env` files name
         * (`DATABASE_URL`, `DB_HOST`, `REDIS_URL`, …).
         *
         * @var list<string>|null
         */
        public ?array $services;

        /**
         * Files and directories, absolute, that may be read beside the project and what PHP needs to run.
         *
         * @var list<string>
         */
        public array $readablePaths;

        /** Whether the values of variables whose names look secret are replaced in the answer. */
        public bool $redact;

        /**
         * What database sessions may do: `read-only`, `rollback` or `write`; null: `write` where
         * {@see $allowWrites} says so, else `read-only`.
         */
        public ?string $database;

        /**
         * Whether statements of databases are told of in `diagnostics.queries`. Those of a run that is rolled back
         * always are.
         */
        public bool $queries;

        /**
         * Variables of the snippet: null, booleans, numbers, strings, and arrays of these.
         *
         * @var array<string, mixed>
         */
        public array $arguments;

        /** How deeply arrays and objects are shown; null: {@see \Altair\Eval\Encoder\ValueEncoder::MAX_DEPTH}. */
        public ?int $depth;

        /** How many items of each array, object or iterable are shown; null: 1000, of an iterable 50. */
        public ?int $maxItems;

        /** How many bytes of each string are shown; null: 10000. */
        public ?int $maxString;

        /** Whether `diagnostics.file_changes` has what changed in text files as a unified diff. */
        public bool $diff;

        /**
         * @param string $snippet PHP code; a leading `<?php` is accepted. The result is what `return` gives, else the
         *     value of the last statement if that is an expression. `container()` is the application's container.
         * @param string $projectRoot the directory of the application
         * @param int $timeoutMs deadline of the whole call in milliseconds, clamped to 100…60000
         * @param int $memoryLimitMb memory limit in MiB, clamped to 16…512
         * @param bool $allowWrites make writes to the project real, and database sessions what the database allows
         * @param bool $allowNetwork open outbound connections
         * @param bool $unsafe run without guards; audited
         * @param string|null $bootstrap the file that returns the container, below the project root
         * @param list<string>|null $services what may be connected to while the network is off, in place of what the
         *     application declares: `host:port` or absolute paths of Unix sockets, 1000 at most; null: what it declares
         * @param list<string> $readablePaths absolute paths of files and directories that may be read, too
         * @param bool $redact replace the values of variables whose names look secret, in the answer and in the output
         *     as it is written, by `[redacted:NAME]`; `diagnostics.redacted` has the names
         * @param string|null $database what database sessions may do: `read-only`; `rollback`, to write and have all of
         *     it rolled back at the end; `write`; null: `write` with `$allowWrites`, else `read-only`
         * @param bool $queries tell in `diagnostics.queries` what databases were asked, each statement with how often,
         *     its rows, its milliseconds and the line that asks, and in `diagnostics.database_changes` what they
         *     changed
         * @param array<string, mixed> $arguments variables of the snippet: null, booleans, numbers, strings, and arrays
         *     of these, 1 MiB in all; nothing of them becomes code
         * @param int|null $depth how deeply arrays and objects are shown, clamped to 1…10; the value itself is the
         *     first level
         * @param int|null $maxItems how many items of each array, object or iterable are shown, clamped to 1…10000
         * @param int|null $maxString how many bytes of each string are shown, clamped to 100…1000000
         * @param bool $diff tell in `diagnostics.file_changes` what changed in text files, as a unified diff
         */
        public function __construct(
            string $snippet,
            string $projectRoot,
            int $timeoutMs = 5000,
            int $memoryLimitMb = 128,
            bool $allowWrites = false,
            bool $allowNetwork = false,
            bool $unsafe = false,
            ?string $bootstrap = null,
            ?array $services = null,
            array $readablePaths = [],
            bool $redact = true,
            ?string $database = null,
            bool $queries = false,
            array $arguments = [],
            ?int $depth = null,
            ?int $maxItems = null,
            ?int $maxString = null,
            bool $diff = false,
        ) {
        }
    }

    /**
     * How a run ended: a value, an exception, or neither and the reason in {@see $diagnostics}.
     */
    final readonly class EvalResult
    {
        /**
         * The value as {@see Encoder\ValueEncoder::encode()} shapes it; null unless the snippet returned.
         *
         * @var array<string, mixed>|null
         */
        public ?array $result;

        /** The head of what was written to standard output, 16384 bytes at most, then `\n...(truncated)`. */
        public string $stdout;

        /** The head of what was written to standard error, cut alike. */
        public string $stderr;

        /**
         * The exception as {@see Encoder\ExceptionEncoder::encode()} shapes it; null unless one was thrown.
         *
         * @var array<string, mixed>|null
         */
        public ?array $exception;

        /** The snippet's own time in milliseconds; the elapsed time where the child did not report. */
        public int $durationMs;

        /** PHP's real memory peak in the child, in bytes. */
        public int $memoryPeakBytes;

        /** 0, what `exit` was given, 1 after an exception, 2 without boot, 124 after the deadline, 128 + signal, 255. */
        public int $exitCode;

        /** Whether the deadline ended the run. */
        public bool $timedOut;

        /**
         * What else is known: `outcome`, `phase`, `message`, `location`, `timings_ms`, `blocked`, `guards`, …
         *
         * @var array<string, mixed>
         */
        public array $diagnostics;

        /**
         * @param array<string, mixed>|null $result
         * @param array<string, mixed>|null $exception
         * @param array<string, mixed> $diagnostics
         */
        public function __construct(
            ?array $result,
            string $stdout,
            string $stderr,
            ?array $exception,
            int $durationMs,
            int $memoryPeakBytes,
            int $exitCode,
            bool $timedOut,
            array $diagnostics = [],
        ) {
        }

        /**
         * Whether the run was clean: no timeout, no exception, exit code 0.
         */
        public function ok(): bool
        {
        }

        /**
         * The public shape, ready for {@see Support\Json::encode()}: an empty `diagnostics` is an object there.
         *
         * @return array{
         *     ok: bool,
         *     result: array<string, mixed>|null,
         *     stdout: string,
         *     stderr: string,
         *     exception: array<string, mixed>|null,
         *     duration_ms: int,
         *     memory_peak_bytes: int,
         *     exit_code: int,
         *     timed_out: bool,
         *     diagnostics: array<string, mixed>|object,
         * }
         */
        public function toArray(): array
        {
        }
    }

    /**
     * Evaluates requests, each in a confined PHP process of its own that ends with the run.
     *
     * Where it is warm it keeps templates: processes that have booted an application and fork the process of each run.
     * They end with this object, after five minutes without a request, and when memory is short.
     */
    final readonly class Evaluator
    {
        /** The interpreter of the child, as it was given. */
        public string $phpBinary;

        /** Whether templates are kept: `diagnostics.start` says of each result how it was started. */
        public bool $warm;

        /**
         * @param object|null $runner accepted for callers that pass one, and not used
         * @param object|null $builder accepted for callers that pass one, and not used
         * @param string $phpBinary the interpreter of the child; `php` is the running one on the command line, else
         *     the first on `PATH`
         * @param bool|null $warm whether templates are kept; null is the ini setting `altair_eval.warm`, which is on
         * @throws Exception\LaunchException inside a snippet, which cannot evaluate
         */
        public function __construct(
            ?object $runner = null,
            ?object $builder = null,
            string $phpBinary = 'php',
            ?bool $warm = null,
        ) {
        }

        /**
         * Runs one request to its end. What goes wrong inside the child is told by the result.
         *
         * Signal handlers and `max_execution_time` of the host work meanwhile; an exception of theirs ends the child.
         *
         * @param EvalRequest $request what to evaluate
         * @param (callable(string, string): mixed)|null $onOutput called with `out` or `err` and each piece of output
         *     while the snippet runs; an exception of it ends the child and goes on to the caller
         * @throws Exception\InvalidRequestException when the request can never run
         * @throws Exception\LaunchException when the child cannot be started, or a required guard is not to be had
         */
        public function evaluate(EvalRequest $request, ?callable $onOutput = null): EvalResult
        {
        }

        /**
         * Runs several requests side by side. They are asked for as there is room: with more than one side by side,
         * as many again get ready or end meanwhile; with one, each is asked for when the result before it has been
         * taken. A request's time counts from its turn. Leaving the loop ends what runs.
         *
         * @template TKey
         * @param iterable<TKey, EvalRequest> $requests what to evaluate
         * @param int $concurrency how many snippets run side by side; 0 is one per core
         * @return \Iterator<TKey, EvalResult> each result under its request's key, in order of completion
         * @throws \ValueError when the concurrency is negative
         */
        public function evaluateMany(iterable $requests, int $concurrency = 0): \Iterator
        {
        }
    }

    /**
     * What {@see Evaluator::evaluateMany()} returns; can be gone through once.
     *
     * @implements \Iterator<mixed, EvalResult>
     */
    final class Evaluations implements \Iterator
    {
        /**
         * Not for callers: only the extension makes one.
         */
        private function __construct()
        {
        }

        /**
         * The result that has just come; null where there is none.
         *
         * @return EvalResult|null
         */
        public function current(): mixed
        {
        }

        /**
         * The key of its request, of any type that a generator can give.
         */
        public function key(): mixed
        {
        }

        /**
         * Waits for the next result.
         *
         * @throws Exception\EvalException when a request can never run or its child cannot be started
         * @throws \TypeError when what is to be evaluated is no EvalRequest
         */
        public function next(): void
        {
        }

        /**
         * Waits for the first result.
         *
         * @throws \Exception when the results have been gone through
         */
        public function rewind(): void
        {
        }

        /**
         * Whether there is a result.
         */
        public function valid(): bool
        {
        }
    }
}

namespace Altair\Eval\Exception {

    /**
     * What an evaluation could not be started for.
     */
    interface EvalException extends \Throwable
    {
    }

    /**
     * The request can never run: no snippet, no such project root, a bootstrap outside of it, a NUL in a path.
     */
    class InvalidRequestException extends \InvalidArgumentException implements EvalException
    {
    }

    /**
     * The child could not be started, or a guard that the caller requires is not to be had.
     */
    class LaunchException extends \RuntimeException implements EvalException
    {
    }
}

namespace Altair\Eval\Runner {

    use Altair\Eval\EvalRequest;

    /**
     * What a plain `php` would take to be switched as a confined run is. The run itself is guarded by the kernel too.
     */
    final readonly class SecurityProfile
    {
        /** The request whose permissions these are. */
        public EvalRequest $request;

        public function __construct(EvalRequest $request)
        {
        }

        /**
         * The switches as arguments: `['-d', 'memory_limit=128M', '-d', 'open_basedir=…', …]`; none when unsafe.
         *
         * What the host's own `disable_functions` names stays disabled.
         *
         * @param string $allowedBaseDir what `open_basedir` is set to
         * @return list<string>
         */
        public function phpFlags(string $allowedBaseDir): array
        {
        }

        /**
         * What tells the run what it is allowed: `1` or `0` each.
         *
         * @return array{
         *     ALTAIR_EVAL_ALLOW_WRITES: string,
         *     ALTAIR_EVAL_ALLOW_NETWORK: string,
         *     ALTAIR_EVAL_UNSAFE: string,
         * }
         */
        public function envVars(): array
        {
        }
    }

    /**
     * Runs any command to its end, with a deadline and bounded output. Not confined.
     */
    final class SubprocessRunner
    {
        /** Bytes of each stream that are kept, from the head; the rest is read and dropped. */
        public const OUTPUT_LIMIT = 16384;

        /**
         * Runs a command without a shell. One that cannot be started gives exit code 127 and the reason in `stderr`.
         *
         * @param list<string|int|float|bool> $command the program, looked up on `PATH` where it has no
         *     slash, and its arguments
         * @param string|null $cwd its working directory; null is the host's
         * @param array<string, string|int|float|bool> $env its whole environment
         * @param int $timeoutMs how long it may take, in milliseconds; then it is killed with all that it started
         * @throws \TypeError when a word is neither string nor scalar
         * @throws \ValueError when the command is empty
         */
        public function run(array $command, ?string $cwd, array $env, int $timeoutMs): SubprocessResult
        {
        }
    }

    /**
     * How a command ended.
     */
    final readonly class SubprocessResult
    {
        /** Its status, 128 + signal, 124 after the deadline, 127 where it could not be started. */
        public int $exitCode;

        /** The head of its standard output. */
        public string $stdout;

        /** The head of its standard error, or why it could not be started. */
        public string $stderr;

        /** Whether the deadline ended it. */
        public bool $timedOut;

        /** How long it took, in milliseconds. */
        public int $durationMs;

        public function __construct(int $exitCode, string $stdout, string $stderr, bool $timedOut, int $durationMs)
        {
        }
    }
}

namespace Altair\Eval\Encoder {

    /**
     * Turns any value into a bounded description of it that can be printed as JSON.
     */
    final class ValueEncoder
    {
        /** Containers nested deeper than this below the value are named, not shown. */
        public const MAX_DEPTH = 3;
        /** Items of a Traversable that are shown. */
        public const ITERABLE_PREVIEW = 50;
        /** Bytes of a string that are shown. */
        public const STRING_MAX = 10000;

        /**
         * `['type' => 'int', 'value' => 1]` and its richer kin. Its JSON has at most 1 MiB.
         *
         * `__debugInfo()`, iterators and `count()` of the value run; where they throw, `error` stands at that place.
         *
         * @return array<string, mixed>
         */
        public static function encode(mixed $value): array
        {
        }
    }

    /**
     * Turns an exception into a bounded description of it. It never holds the values of arguments.
     */
    final class ExceptionEncoder
    {
        /** Previous exceptions that are shown. */
        public const MAX_PREVIOUS_CHAIN = 10;
        /** Frames of the trace that are shown. */
        public const MAX_TRACE_FRAMES = 30;

        /**
         * @return array{
         *     class: string,
         *     message: string,
         *     file: string,
         *     line: int,
         *     code: int|string,
         *     stack_trace: list<string>,
         *     previous?: list<array{class: string, message: string, file: string, line: int}>,
         * }
         */
        public static function encode(\Throwable $throwable): array
        {
        }
    }
}

namespace Altair\Eval\Support {

    /**
     * JSON as the answers of this package are written.
     */
    final class Json
    {
        /**
         * Pretty, slashes and Unicode as they are, with a final newline; invalid UTF-8 is replaced.
         *
         * @param array<array-key, mixed> $data
         */
        public static function encode(array $data): string
        {
        }
    }

    /**
     * What `altair eval` prints for people, as text.
     */
    final class HumanOutput
    {
        /**
         * A line that says what happened, the value as a tree, figures, and what else there is to say.
         *
         * Every line ends with a line feed. Control characters of the snippet, and what reorders a line (bidi
         * embeddings, overrides and isolates), are written out as PHP would write them: `\x1b`, `\u{202e}`.
         *
         * @param bool $color whether it is set off with colours, for a terminal
         */
        public static function render(\Altair\Eval\EvalResult $result, bool $color = false): string
        {
        }

        /**
         * What happened, without a line feed: `int = 2`, `RuntimeException: boom`.
         */
        public static function headline(\Altair\Eval\EvalResult $result): string
        {
        }

        /**
         * A text in one line that a terminal acts on nothing of: line feeds and tabs are written out, too; what is no
         * UTF-8 is replaced.
         */
        public static function line(string $text): string
        {
        }
    }

    /**
     * The command `altair`, for `bin/altair` where the native one is not built.
     */
    final class CommandLine
    {
        /**
         * Runs a command line to its end, on this process's own standard input, output and error.
         *
         * `--php=php`, which is the default, is the running PHP. Signal handlers of this process wait meanwhile.
         *
         * @param list<string> $arguments what follows the program's name
         * @return int the exit code: 0, 1 or 2, as `altair --help` tells
         * @throws \TypeError when an argument is no string
         * @throws \Altair\Eval\Exception\LaunchException inside a snippet, which cannot evaluate
         */
        public static function run(array $arguments): int
        {
        }
    }
}
