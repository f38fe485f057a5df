<?php

declare(strict_types=1);

namespace Altair\Eval\Cli;

use Altair\Cli\Attribute\Argument;
use Altair\Cli\Attribute\Command;
use Altair\Cli\Attribute\Option;
use Altair\Eval\EvalRequest;
use Altair\Eval\EvalResult;
use Altair\Eval\Evaluator;
use Altair\Eval\Exception\EvalException;
use Altair\Eval\Exception\InvalidRequestException;
use Altair\Eval\Support\HumanOutput;
use Altair\Events\Actor;
use Altair\Events\Contracts\RecorderInterface;
use Altair\Events\Event;
use Altair\Events\EventKind;
use Altair\Events\EventStatus;
use Throwable;

/**
 * `eval` on the command line of the Univeros framework, for the application in the working directory.
 *
 * It prints the same as `altair eval`, without colour and through PHP's output buffers.
 */
#[Command(name: 'eval', description: 'Evaluate a PHP snippet in the application, confined, in a process of its own.')]
final class EvalCommand
{
    private const CLEAN = 0;

    private const NOT_CLEAN = 1;

    private const USAGE = 2;

    /** What the framework's own command says. */
    private const NOTHING_TO_RUN = 'Provide a snippet as the first argument or --file=<path>.';

    /**
     * @param Evaluator|null $evaluator what evaluates; null is one of its own
     * @param RecorderInterface|null $recorder is told of each unsafe run, beside the audit log that every unsafe run is
     *     written to
     */
    public function __construct(
        private readonly ?Evaluator $evaluator = null,
        private readonly ?RecorderInterface $recorder = null,
    ) {
    }

    /**
     * Evaluates and prints. The framework's own command has the parameters up to `$format`, in this order.
     *
     * @return int 0 after a clean run, 1 after an exception, a timeout or another exit code, and 2 for wrong usage and
     *     where nothing could be run, with one line on standard error; where nothing was given, on standard output
     */
    public function __invoke(
        #[Argument(description: 'PHP code; its last expression or return is the result')]
        ?string $snippet = null,
        #[Option(description: 'Read the snippet from this file; - is standard input', name: 'file')]
        ?string $file = null,
        #[Option(description: 'Deadline in milliseconds, boot included', name: 'timeout-ms')]
        int $timeoutMs = EvalRequest::DEFAULT_TIMEOUT_MS,
        #[Option(description: 'Memory limit in MiB', name: 'memory-mb')]
        int $memoryMb = EvalRequest::DEFAULT_MEMORY_MB,
        #[Option(description: 'Make writes to the project and its databases real', name: 'writes')]
        bool $writes = false,
        #[Option(description: 'Open outbound connections', name: 'network')]
        bool $network = false,
        #[Option(description: 'Run without guards; audited', name: 'unsafe')]
        bool $unsafe = false,
        #[Option(description: 'The file in the project that returns the container', name: 'bootstrap')]
        ?string $bootstrap = null,
        #[Option(description: 'human, json or compact', name: 'format')]
        string $format = 'human',
        #[Option(description: 'What may be connected to, host:port or a socket, by commas; none', name: 'service')]
        ?string $service = null,
        #[Option(description: 'Files and directories that may be read beside the project, by commas', name: 'read')]
        ?string $read = null,
        #[Option(description: 'Show the values of variables whose names look secret', name: 'no-redact')]
        bool $noRedact = false,
        #[Option(description: 'Let database sessions write, and roll all of it back', name: 'rollback')]
        bool $rollback = false,
        #[Option(description: 'What database sessions may do: read-only, rollback or write', name: 'database')]
        ?string $database = null,
        #[Option(description: 'Tell what databases were asked, and from where', name: 'queries')]
        bool $queries = false,
        #[Option(description: 'A variable of the snippet and its text, as in id=7', name: 'arg')]
        ?string $arg = null,
        #[Option(description: 'A variable of the snippet as JSON, as in ids=[1,2]', name: 'arg-json')]
        ?string $argJson = null,
        #[Option(description: 'How deep arrays and objects are shown, 1 to 10', name: 'depth')]
        ?int $depth = null,
        #[Option(description: 'How many items of each array, object or iterable are shown', name: 'max-items')]
        ?int $maxItems = null,
        #[Option(description: 'How many bytes of each string are shown', name: 'max-string')]
        ?int $maxString = null,
        #[Option(description: 'Show what changed in text files as a diff', name: 'diff')]
        bool $diff = false,
        #[Option(description: 'Variables that the run gets, although they would be withheld, by commas', name: 'env')]
        ?string $env = null,
        #[Option(description: 'Show what is as it should be, too, with json and compact', name: 'verbose')]
        bool $verbose = false,
    ): int {
        if ($snippet === null && $file === null) {
            echo self::NOTHING_TO_RUN, "\n";

            return self::USAGE;
        }
        try {
            $answer = Format::named($format);
            $request = new EvalRequest(
                SnippetSource::read($snippet, $file),
                (string) getcwd(),
                $timeoutMs,
                $memoryMb,
                $writes,
                $network,
                $unsafe,
                $bootstrap,
                RequestOptions::services(RequestOptions::list($service)),
                RequestOptions::readable(RequestOptions::list($read)),
                redact: !$noRedact,
                database: $rollback ? 'rollback' : $database,
                queries: $queries,
                arguments: RequestOptions::arguments($arg === null ? [] : [$arg], $argJson === null ? [] : [$argJson]),
                depth: $depth,
                maxItems: $maxItems,
                maxString: $maxString,
                diff: $diff,
                env: RequestOptions::list($env),
            );
            $result = $this->evaluate($request);
        } catch (EvalException $refused) {
            self::say($refused->getMessage());

            return self::USAGE;
        }
        echo $answer->render($result, verbose: $verbose, terminal: defined('STDOUT') && stream_isatty(STDOUT));

        return $result->ok() ? self::CLEAN : self::NOT_CLEAN;
    }

    /**
     * @throws EvalException
     */
    private function evaluate(EvalRequest $request): EvalResult
    {
        // This process ends, but the pool may have a template.
        $evaluator = $this->evaluator ?? new Evaluator();
        $began = hrtime(true);
        try {
            $result = $evaluator->evaluate($request);
        } catch (InvalidRequestException $neverRan) {
            throw $neverRan;
        } catch (Throwable $broken) {
            $this->record($request, intdiv(hrtime(true) - $began, 1_000_000), $broken->getMessage());
            throw $broken;
        }
        $error = $result->ok() ? null : HumanOutput::headline($result);
        $this->record($request, $result->durationMs, $error, $result);

        return $result;
    }

    /**
     * Tells the recorder of an unsafe run, as the framework's own command does. The code itself stands in the audit log
     * alone, which knows how to keep secrets out.
     *
     * @param EvalResult|null $result null for a run that could not be made
     */
    private function record(EvalRequest $request, int $durationMs, ?string $error, ?EvalResult $result = null): void
    {
        if (!$request->unsafe || $this->recorder === null) {
            return;
        }
        $extra = [
            'unsafe' => true,
            'allow_writes' => $request->allowWrites,
            'allow_network' => $request->allowNetwork,
            'snippet_length' => strlen($request->snippet),
            'timed_out' => $result?->timedOut ?? false,
        ];
        try {
            $this->recorder->record(Event::create(
                Actor::Cli,
                'eval',
                EventKind::Eval,
                $error === null ? EventStatus::Ok : EventStatus::Fail,
                $durationMs,
                // A failure needs words.
                error: $error === '' ? 'The run could not be made.' : $error,
                extra: $result === null ? [...$extra, 'infrastructure_failure' => true] : $extra,
            ));
        } catch (Throwable $failed) {
            // The run is in the audit log. A failing recorder must not lose its result.
            self::say('the unsafe run is in .altair/events.jsonl, and was not recorded by '
                . get_debug_type($this->recorder) . ": {$failed->getMessage()}");
        }
    }

    private static function say(string $message): void
    {
        file_put_contents('php://stderr', 'altair: ' . HumanOutput::line(rtrim($message)) . "\n");
    }
}
