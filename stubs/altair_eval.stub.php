<?php

/**
 * Signatures of the native classes of the extension altair_eval, for IDEs and static analysers.
 *
 * This file is never loaded, since the extension provides the classes. tests/StubTest.php compares the two.
 *
 * Times are milliseconds, sizes are bytes, unless a name says otherwise.
 */

declare(strict_types=1);

namespace Altair\Eval {

    /**
     * What to evaluate, where, and with which permissions. It is checked when it is evaluated, not when it is created.
     */
    final readonly class EvalRequest
    {
        /** Default deadline, in milliseconds. */
        public const DEFAULT_TIMEOUT_MS = 5000;
        /** Minimum deadline, in milliseconds. Lower values are raised to it. */
        public const MIN_TIMEOUT_MS = 100;
        /** Maximum deadline, in milliseconds. Higher values are lowered to it. */
        public const MAX_TIMEOUT_MS = 60000;
        /** Default memory limit, in MiB. */
        public const DEFAULT_MEMORY_MB = 128;
        /** Minimum memory limit, in MiB. Lower values are raised to it. */
        public const MIN_MEMORY_MB = 16;
        /** Maximum memory limit, in MiB. Higher values are lowered to it. */
        public const MAX_MEMORY_MB = 512;

        /** The PHP code, unchanged. */
        public string $snippet;

        /** The directory of the application, which holds `vendor/autoload.php`. */
        public string $projectRoot;

        /** Deadline of the whole call, including boot, in milliseconds; clamped to 100…60000. */
        public int $timeoutMs;

        /** PHP's `memory_limit` for the snippet, in MiB; clamped to 16…512. */
        public int $memoryLimitMb;

        /** Whether writes to the project are real. */
        public bool $allowWrites;

        /** Whether outbound connections are allowed. */
        public bool $allowNetwork;

        /** Whether the run has no guards. Such a run is written to the audit log. */
        public bool $unsafe;

        /** The file below the project root that returns the container; null looks in the usual places. */
        public ?string $bootstrap;

        /**
         * Services that the run may connect to while the network is off: `host:port`, `address:port`,
         * `[address]:port` or the absolute path of a Unix socket. Null means those in `extra.altair-eval.services` of
         * the project's `composer.json`, or otherwise those in the application's environment and its `.env` files
         * (`DATABASE_URL`, `DB_HOST`, `REDIS_URL`, …).
         *
         * @var list<string>|null
         */
        public ?array $services;

        /**
         * Absolute paths of files and directories that may be read, besides the project and the files that PHP needs.
         *
         * @var list<string>
         */
        public array $readablePaths;

        /** Whether the values of variables with secret-looking names are replaced in the answer. */
        public bool $redact;

        /**
         * What database sessions may do: `read-only`, `rollback` or `write`; null is `write` with
         * {@see $allowWrites}, else `read-only`.
         */
        public ?string $database;

        /**
         * Whether `diagnostics.queries` lists database statements. With `rollback` it always does.
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

        /** @var list<string> */
        public array $env;

        /**
         * @param string $snippet PHP code; a leading `<?php` is accepted. The result is what `return` gives, else the
         *     value of the last statement if that is an expression. `container()` is the application's container.
         * @param string $projectRoot the directory of the application
         * @param int $timeoutMs deadline of the whole call in milliseconds, clamped to 100…60000
         * @param int $memoryLimitMb memory limit in MiB, clamped to 16…512
         * @param bool $allowWrites make writes to the project real, and do not restrict database sessions
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
         * @param list<string> $env names of variables of this process's environment that the run gets, although they
         *     would be withheld: tokens of agents, forges and registries, and what a run of another user does not get
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
            array $env = [],
        ) {
        }
    }

    /**
     * How a run ended: with a value, with an exception, or with neither and the reason in {@see $diagnostics}.
     */
    final readonly class EvalResult
    {
        /**
         * The value as encoded by {@see Encoder\ValueEncoder::encode()}; null unless the snippet returned.
         *
         * @var array<string, mixed>|null
         */
        public ?array $result;

        /** The first bytes of standard output, at most 16384, then `\n...(truncated)`. */
        public string $stdout;

        /** The first bytes of standard error, truncated in the same way. */
        public string $stderr;

        /**
         * The exception as encoded by {@see Encoder\ExceptionEncoder::encode()}; null unless one was thrown.
         *
         * @var array<string, mixed>|null
         */
        public ?array $exception;

        /** The snippet's own time in milliseconds; the elapsed time if the child did not report. */
        public int $durationMs;

        /** PHP's real memory peak in the child, in bytes. */
        public int $memoryPeakBytes;

        /** 0, the status of `exit`, 1 after an exception, 2 if boot failed, 124 at the deadline, 128 + signal, 255. */
        public int $exitCode;

        /** Whether the deadline ended the run. */
        public bool $timedOut;

        /**
         * What else is known, complete: `outcome`, `phase`, `message`, `location`, `timings_ms`, `blocked`, `guards`, …
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
         * Returns whether the run was clean: no timeout, no exception, exit code 0.
         */
        public function ok(): bool
        {
        }

        /**
         * The result as an array for {@see Support\Json::encode()}, in which an empty `diagnostics` is an object.
         *
         * Unless it is verbose, `diagnostics` leaves out what is as it should be: guards in force, `timings_ms`, empty
         * lists, and `start` unless the run was to start in a template and could not. {@see $diagnostics} is complete.
         *
         * @param bool $verbose whether `diagnostics` is complete
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
        public function toArray(bool $verbose = false): array
        {
        }
    }

    /**
     * Evaluates requests, each in a confined PHP process of its own that ends with the run.
     *
     * A warm evaluator keeps templates: processes that have booted an application and fork a process for each run.
     * The first request of a kind starts without one, and its template boots after the answer.
     * They end with this object, after five minutes without a request, and when memory is short.
     */
    final readonly class Evaluator
    {
        /** The interpreter of the child, unchanged. */
        public string $phpBinary;

        /** Whether templates are kept. `diagnostics.start` of each result tells how the run was started. */
        public bool $warm;

        /**
         * @param object|null $runner accepted but not used
         * @param object|null $builder accepted but not used
         * @param string $phpBinary the interpreter of the child; `php` is the running one on the command line, else
         *     the first on the `PATH` of PHP's start, or without one in `PHP_BINDIR` and the usual places
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
         * Runs one request to its end. The result reports errors inside the child.
         *
         * Signal handlers and `max_execution_time` of the host work meanwhile. If one throws, the child is ended.
         *
         * @param EvalRequest $request what to evaluate
         * @param (callable(string, string): mixed)|null $onOutput called with `out` or `err` and each piece of output
         *     while the snippet runs; if it throws, the child is ended and the exception passed to the caller
         * @throws Exception\InvalidRequestException if the request can never run
         * @throws Exception\LaunchException if the child cannot be started, a required guard is unavailable, or
         *     `altair_eval.programs` forbids the run
         */
        public function evaluate(EvalRequest $request, ?callable $onOutput = null): EvalResult
        {
        }

        /**
         * Runs several requests concurrently. Each request is fetched when there is room for its run. With a
         * concurrency above 1, up to the same number again (at most 16) start or shut down meanwhile. With 1, each is
         * fetched when the previous result has been taken. A request's time counts from its turn. Leaving the loop
         * ends the remaining runs.
         *
         * @template TKey
         * @param iterable<TKey, EvalRequest> $requests what to evaluate
         * @param int $concurrency how many snippets run concurrently; 0 is one per core
         * @return \Iterator<TKey, EvalResult> each result under its request's key, in order of completion
         * @throws \ValueError if the concurrency is negative
         */
        public function evaluateMany(iterable $requests, int $concurrency = 0): \Iterator
        {
        }
    }

    /**
     * The iterator of {@see Evaluator::evaluateMany()}. It can be iterated only once.
     *
     * @implements \Iterator<mixed, EvalResult>
     */
    final class Evaluations implements \Iterator
    {
        /**
         * Only the extension creates one.
         */
        private function __construct()
        {
        }

        /**
         * The current result; null if there is none.
         *
         * @return EvalResult|null
         */
        public function current(): mixed
        {
        }

        /**
         * The key of its request, of any type, as from a generator.
         */
        public function key(): mixed
        {
        }

        /**
         * Waits for the next result.
         *
         * @throws Exception\EvalException if a request can never run or its child cannot be started
         * @throws \TypeError if a request is not an EvalRequest
         */
        public function next(): void
        {
        }

        /**
         * Waits for the first result.
         *
         * @throws \Exception if the results were already iterated
         */
        public function rewind(): void
        {
        }

        /**
         * Returns whether there is a result.
         */
        public function valid(): bool
        {
        }
    }
}

namespace Altair\Eval\Exception {

    /**
     * An evaluation could not be started.
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
     * The child could not be started, or a required guard is unavailable.
     */
    class LaunchException extends \RuntimeException implements EvalException
    {
    }
}

namespace Altair\Eval\Runner {

    use Altair\Eval\EvalRequest;

    /**
     * The switches that restrict a plain `php` like a confined run. A run itself is also guarded by the kernel.
     */
    final readonly class SecurityProfile
    {
        /** The request with the permissions. */
        public EvalRequest $request;

        public function __construct(EvalRequest $request)
        {
        }

        /**
         * The switches as arguments: `['-d', 'memory_limit=128M', '-d', 'open_basedir=…', …]`; none if unsafe.
         *
         * Functions in the host's own `disable_functions` stay disabled.
         *
         * @param string $allowedBaseDir the value of `open_basedir`
         * @return list<string>
         */
        public function phpFlags(string $allowedBaseDir): array
        {
        }

        /**
         * Variables that tell the run its permissions: `1` or `0` each.
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
        /** The number of bytes kept from the start of each stream; the rest is read and dropped. */
        public const OUTPUT_LIMIT = 16384;

        /**
         * Runs a command without a shell. If it cannot be started, the exit code is 127 and `stderr` has the reason.
         *
         * @param list<string|int|float|bool> $command the program, looked up on the `PATH` of PHP's start if it
         *     has no slash, and its arguments
         * @param string|null $cwd its working directory; null is the host's
         * @param array<string, string|int|float|bool> $env its whole environment
         * @param int $timeoutMs the deadline in milliseconds; then it is killed with everything that it started
         * @throws \TypeError if an argument is not a scalar
         * @throws \ValueError if the command is empty
         * @throws \RuntimeException if `altair_eval.programs` forbids it
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
        /** Its status, 128 + signal, 124 after the deadline, 127 if it could not be started. */
        public int $exitCode;

        /** The first bytes of its standard output. */
        public string $stdout;

        /** The first bytes of its standard error, or why it could not be started. */
        public string $stderr;

        /** Whether the deadline ended it. */
        public bool $timedOut;

        /** Its duration in milliseconds. */
        public int $durationMs;

        public function __construct(int $exitCode, string $stdout, string $stderr, bool $timedOut, int $durationMs)
        {
        }
    }
}

namespace Altair\Eval\Encoder {

    /**
     * Encodes any value as a bounded description for JSON.
     */
    final class ValueEncoder
    {
        /** Containers nested this deep below the value, which is at depth 0, are named, not shown. */
        public const MAX_DEPTH = 3;
        /** Maximum items of a Traversable that are shown. */
        public const ITERABLE_PREVIEW = 50;
        /** Maximum bytes of a string that are shown. */
        public const STRING_MAX = 10000;

        /**
         * Returns for example `['type' => 'int', 'value' => 1]`. The JSON has at most 1 MiB.
         *
         * Runs `__debugInfo()`, iterators and `count()` of the value. If one throws, that place has an `error`.
         *
         * @param array<array-key, mixed> $seen objects that enclose the value, which are shown as references: each
         *     the object, its id, or its id as a key of `true`
         * @param int $depth how many containers enclose the value
         * @return array<string, mixed>
         */
        public static function encode(mixed $value, array $seen = [], int $depth = 0): array
        {
        }
    }

    /**
     * Encodes an exception as a bounded description, without the values of arguments.
     */
    final class ExceptionEncoder
    {
        /** Maximum previous exceptions that are shown. */
        public const MAX_PREVIOUS_CHAIN = 10;
        /** Maximum frames of the trace that are shown. */
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
     * The JSON format of this package's answers.
     */
    final class Json
    {
        /**
         * Pretty-printed, with unescaped slashes and Unicode and a final newline. Invalid UTF-8 is replaced.
         *
         * @param array<array-key, mixed> $data
         */
        public static function encode(array $data): string
        {
        }
    }

    /**
     * The text that `altair eval` prints for people.
     */
    final class HumanOutput
    {
        /**
         * The headline, the value as a tree, timings, and diagnostics.
         *
         * Every line ends with a line feed. Control characters of the snippet, and characters that reorder a line
         * (bidi embeddings, overrides and isolates), are escaped as in PHP: `\x1b`, `\u{202e}`.
         *
         * @param bool $color whether to use colours, for a terminal
         */
        public static function render(\Altair\Eval\EvalResult $result, bool $color = false): string
        {
        }

        /**
         * The outcome, without a line feed: `int = 2`, `RuntimeException: boom`.
         */
        public static function headline(\Altair\Eval\EvalResult $result): string
        {
        }

        /**
         * A text as one line that is safe for a terminal: line feeds and tabs are escaped, too, and invalid UTF-8 is
         * replaced.
         */
        public static function line(string $text): string
        {
        }
    }

    /**
     * A result as it is answered to agents and programs.
     *
     * @internal
     */
    final class Answer
    {
        /**
         * What the tool of `altair mcp:serve` answers: without the keys that hold their defaults, and with the value in
         * the compact encoding, in 16 KiB at most. What lifts a refusal is named by arguments of the tool.
         *
         * @param bool $verbose whether all ten keys are there, and complete
         * @param bool $typed whether the value is in the typed encoding, as it is
         * @return array<string, mixed>
         */
        public static function toAgent(
            \Altair\Eval\EvalResult $result,
            bool $verbose = false,
            bool $typed = false,
        ): array {
        }

        /**
         * What `altair eval` prints with `--format=json` or `--format=compact`.
         *
         * @param bool $compact whether it is what an agent is answered, of a value of any size
         * @param bool $verbose whether it is complete
         * @param bool $pretty whether it is laid out for a terminal, and not in one line
         */
        public static function toJson(
            \Altair\Eval\EvalResult $result,
            bool $compact = false,
            bool $verbose = false,
            bool $pretty = false,
        ): string {
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
         * `--php=php`, the default, is the running PHP. Signal handlers of this process are delayed until the end.
         *
         * @param list<string> $arguments the arguments after the program's name
         * @return int the exit code 0, 1 or 2, or that of the command of `altair run`; see `altair --help`
         * @throws \TypeError if an argument is not a string
         * @throws \Altair\Eval\Exception\LaunchException inside a snippet, which cannot evaluate
         * @throws \RuntimeException if `altair_eval.programs` forbids it
         */
        public static function run(array $arguments): int
        {
        }
    }
}
