<?php

declare(strict_types=1);

namespace Altair\Eval\Mcp;

use Altair\Eval\EvalRequest;
use Altair\Eval\Evaluator;
use Altair\Eval\Exception\EvalException;
use Altair\Eval\Exception\InvalidRequestException;
use Altair\Eval\Support\Answer;
use Altair\Mcp\Attribute\McpTool as FrameworkTool;
use InvalidArgumentException;
use Mcp\Capability\Attribute\McpTool as SdkTool;
use Throwable;

// What the tool is for, for the model that calls it: attributes take constants.
define(__NAMESPACE__ . '\DESCRIPTION', (string) file_get_contents(__DIR__ . '/description.txt'));

/**
 * Evaluates PHP for an agent, in the application of an MCP server that is written in PHP: the Univeros framework's, or
 * one on PHP's own MCP SDK. What it takes, gives and refuses is what the tool of `altair mcp:serve` does.
 *
 * The application is kept booted for as long as this object lives. There is no way to ask for an unsafe run.
 */
#[FrameworkTool(
    name: self::NAME,
    description: DESCRIPTION,
    inputSchema: self::INPUT_SCHEMA,
    outputSchema: self::OUTPUT_SCHEMA,
)]
final class EvalTool implements ToolContract
{
    /** What it is called. */
    public const NAME = 'framework__eval';

    /** The file of the JSON schema of what it takes. */
    public const INPUT_SCHEMA = __DIR__ . '/input-schema.json';

    /** The file of the JSON schema of what it gives. */
    public const OUTPUT_SCHEMA = __DIR__ . '/output-schema.json';

    private readonly Evaluator $evaluator;

    /**
     * @param Evaluator|null $evaluator what evaluates; null is a warm one of its own
     * @param string|null $projectRoot the directory of the application; null is the working directory of each call
     * @param bool $allowWrites whether calls may ask for real writes to the project
     * @param bool $allowNetwork whether calls may ask for outbound connections
     * @param bool $allowRollback whether calls may ask for database sessions that write and are rolled back
     */
    public function __construct(
        ?Evaluator $evaluator = null,
        private readonly ?string $projectRoot = null,
        private readonly bool $allowWrites = false,
        private readonly bool $allowNetwork = false,
        private readonly bool $allowRollback = false,
    ) {
        $this->evaluator = $evaluator ?? new Evaluator(warm: true);
    }

    /**
     * Runs what a call asks for.
     *
     * A run that went wrong is an answer as any other, with `ok` false. What could not be run at all, because the
     * input is refused or no child can be started, is `['ok' => false, 'error' => …]`: sentences for the agent, and
     * nothing that could be taken for a result. A server passes both on with `isError`.
     *
     * @param array<array-key, mixed> $input as {@see INPUT_SCHEMA} describes it; checked here
     * @return array<string, mixed> the keys of {@see \Altair\Eval\EvalResult::toArray()} that do not hold their
     *     defaults, with the value in the compact encoding unless `typed` is true; or `ok` and `error`
     */
    public function call(array $input): array
    {
        try {
            $arguments = Arguments::read($input, $this->allowWrites, $this->allowNetwork, $this->allowRollback);
        } catch (InvalidArgumentException $refused) {
            return self::error($refused);
        }
        $request = new EvalRequest(
            $arguments->snippet,
            $this->projectRoot ?? (string) getcwd(),
            $arguments->timeoutMs,
            allowWrites: $arguments->allowWrites,
            allowNetwork: $arguments->allowNetwork,
            database: $arguments->database,
            queries: $arguments->queries,
            arguments: $arguments->arguments,
            depth: $arguments->depth,
            maxItems: $arguments->maxItems,
            maxString: $arguments->maxString,
            diff: $arguments->diff,
        );
        try {
            $result = $this->evaluator->evaluate($request);

            return Answer::toAgent($result, $arguments->verbose, $arguments->typed);
        } catch (InvalidRequestException $refused) {
            return self::error(new InvalidArgumentException("Nothing was run. {$refused->getMessage()}"));
        } catch (EvalException $notStarted) {
            return self::error($notStarted);
        }
    }

    /**
     * The same for PHP's own MCP SDK, which passes arguments by name and makes the schema from this signature.
     *
     * Reference for the attribute: `Mcp\Capability\Attribute\McpTool(name, description, …)` of the package mcp/sdk, on
     * a public method. Its discovery takes `__invoke` for a class's own tool only, hence a method with a name.
     *
     * @param string $snippet PHP code; a leading <?php is accepted.
     * @param int $timeout_ms Deadline of the run in milliseconds, boot included; from 100 to 60000.
     * @param bool $allow_writes Write to the project and its databases for real. Only where the server permits it.
     * @param bool $allow_network Connect to any address. Only where the server permits it.
     * @param string|null $database What database sessions may do: read-only, rollback or write, as the server permits.
     * @param bool $queries Tell which statements databases were asked, and what they changed.
     * @param array<string, mixed> $arguments Variables of the snippet, by name.
     * @param int|null $depth How deep the value is shown, 1 to 10.
     * @param int|null $max_items How many items of a container are shown, 1 to 10000.
     * @param int|null $max_string How many bytes of a string are shown, 100 to 1000000.
     * @param bool $diff Tell what changed in text files as a diff.
     * @param bool $verbose Tell all diagnostics, also what is as it should be.
     * @param bool $typed Give values with their PHP types.
     * @return array<string, mixed> see {@see call()}
     */
    #[SdkTool(name: self::NAME, description: DESCRIPTION)]
    public function evaluate(
        string $snippet,
        int $timeout_ms = EvalRequest::DEFAULT_TIMEOUT_MS,
        bool $allow_writes = false,
        bool $allow_network = false,
        ?string $database = null,
        bool $queries = false,
        array $arguments = [],
        ?int $depth = null,
        ?int $max_items = null,
        ?int $max_string = null,
        bool $diff = false,
        bool $verbose = false,
        bool $typed = false,
    ): array {
        // What is null was left out.
        return $this->call(array_filter(get_defined_vars(), static fn (mixed $value): bool => $value !== null));
    }

    /**
     * @return array{ok: false, error: string}
     */
    private static function error(Throwable $why): array
    {
        return ['ok' => false, 'error' => $why->getMessage()];
    }
}
