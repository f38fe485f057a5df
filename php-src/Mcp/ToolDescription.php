<?php

declare(strict_types=1);

namespace Altair\Eval\Mcp;

use Altair\Eval\EvalRequest;

/**
 * The tool as a client is told of it, in the words of `altair mcp:serve`: tests/Mcp/EvalToolTest.php compares
 * the two.
 */
final class ToolDescription
{
    /** What it is called. */
    public const NAME = 'framework__eval';

    /** What it is for, for the model that calls it. */
    public const DESCRIPTION = 'Runs a few lines of PHP against this application, booted as it is now, in a confined '
        . 'one-shot process, and tells what they return, print or throw. Use it to check a hypothesis about the code '
        . 'instead of guessing: what a method returns for an input, which exception is thrown, what a '
        . 'configuration value or a query is, whether a class autoloads.'
        . "\n\n"
        . 'The code is a function body: `return` gives the result; a single expression needs none. '
        . '`container()` is the application\'s PSR-11 container, `container($id)` an entry of it. Nothing is '
        . 'kept between calls: each starts from the application as it is on disk, and what it writes to the '
        . 'project is thrown away and listed in `diagnostics.file_changes`, unless the server permits '
        . '`allow_writes`. There are no processes, and no connections but to the application\'s own services (its '
        . 'database, its cache), unless the server permits `allow_network`; database sessions are read-only '
        . 'unless it permits `allow_writes`, or `database` with `rollback`: then they write, and all of it is '
        . 'rolled back. What was refused is in `diagnostics.blocked`, with the switch '
        . 'that lifts it. Output is cut at 16 KiB a stream, values at a depth of 3.';

    /** The schema of what it takes. */
    public const INPUT = [
        'type' => 'object',
        'properties' => [
            'snippet' => [
                'type' => 'string',
                'minLength' => 1,
                'description' => 'PHP code; a leading <?php is accepted.',
            ],
            'timeout_ms' => [
                'type' => 'integer',
                'minimum' => EvalRequest::MIN_TIMEOUT_MS,
                'maximum' => EvalRequest::MAX_TIMEOUT_MS,
                'default' => EvalRequest::DEFAULT_TIMEOUT_MS,
                'description' => 'Deadline of the run in milliseconds, boot included.',
            ],
            'allow_writes' => [
                'type' => 'boolean',
                'default' => false,
                'description' => 'Make writes to the project and its databases real. '
                    . 'Only where the server was started with --allow-writes.',
            ],
            'allow_network' => [
                'type' => 'boolean',
                'default' => false,
                'description' => 'Open outbound connections. Only where the server was started with --allow-network.',
            ],
            'database' => [
                'enum' => ['read-only', 'rollback', 'write'],
                'description' => 'What database sessions may do; rollback: write, and all of it is rolled back. '
                    . 'Only where the server was started with --allow-rollback; write with --allow-writes. '
                    . 'By default they only read, or write with allow_writes.',
            ],
            'queries' => [
                'type' => 'boolean',
                'default' => false,
                'description' => 'Tell in `diagnostics.queries` which statements databases were asked: how often, '
                    . 'rows, time, and the line that asks; and in `diagnostics.database_changes` what they changed. '
                    . 'Always told with rollback.',
            ],
        ],
        'required' => ['snippet'],
        'additionalProperties' => false,
    ];

    /** How long something took. */
    private const MILLISECONDS = ['type' => 'number', 'minimum' => 0];

    /** How many, or how much. */
    private const COUNT = ['type' => 'integer', 'minimum' => 0];

    /** What became of files of the project. */
    private const CHANGES = [
        'type' => 'array',
        'items' => [
            'type' => 'object',
            'properties' => ['path' => ['type' => 'string'], 'size' => self::COUNT],
            'required' => ['path', 'size'],
        ],
    ];

    /** The schema of what it gives: {@see \Altair\Eval\EvalResult::toArray()}. */
    public const OUTPUT = [
        'type' => 'object',
        'properties' => [
            'ok' => ['type' => 'boolean', 'description' => 'No timeout, no exception, exit code 0.'],
            'result' => [
                'anyOf' => [
                    [
                        'type' => 'object',
                        'description' => 'The encoded value that the code returned.',
                        'properties' => [
                            'type' => [
                                'enum' => [
                                    'null',
                                    'bool',
                                    'int',
                                    'float',
                                    'string',
                                    'array',
                                    'object',
                                    'iterable',
                                    'resource',
                                    'reference',
                                ],
                            ],
                        ],
                        'required' => ['type'],
                    ],
                    ['type' => 'null'],
                ],
            ],
            'stdout' => ['type' => 'string'],
            'stderr' => ['type' => 'string', 'description' => 'PHP\'s warnings and notices too.'],
            'exception' => [
                'anyOf' => [
                    [
                        'type' => 'object',
                        'properties' => [
                            'class' => ['type' => 'string'],
                            'message' => ['type' => 'string'],
                            'file' => ['type' => 'string'],
                            'line' => ['type' => 'integer'],
                            'code' => ['type' => ['integer', 'string']],
                            'stack_trace' => ['type' => 'array', 'items' => ['type' => 'string']],
                            'previous' => ['type' => 'array', 'items' => ['type' => 'object']],
                        ],
                        'required' => ['class', 'message', 'file', 'line', 'code', 'stack_trace'],
                    ],
                    ['type' => 'null'],
                ],
            ],
            'duration_ms' => self::COUNT,
            'memory_peak_bytes' => self::COUNT,
            'exit_code' => ['type' => 'integer'],
            'timed_out' => ['type' => 'boolean'],
            'diagnostics' => [
                'type' => 'object',
                'properties' => [
                    'outcome' => [
                        'enum' => [
                            'returned',
                            'threw',
                            'exited',
                            'fatal',
                            'out_of_memory',
                            'timed_out',
                            'signalled',
                            'boot_failed',
                            'no_report',
                        ],
                    ],
                    'phase' => ['enum' => ['boot', 'snippet', 'encode']],
                    'message' => ['type' => 'string'],
                    'location' => [
                        'type' => 'object',
                        'properties' => [
                            'file' => ['type' => 'string'],
                            'line' => ['type' => 'integer'],
                            'stack_trace' => ['type' => 'array', 'items' => ['type' => 'string']],
                        ],
                        'required' => ['file', 'line', 'stack_trace'],
                    ],
                    'signal' => ['type' => 'integer'],
                    'timings_ms' => [
                        'type' => 'object',
                        'properties' => [
                            'start' => self::MILLISECONDS,
                            'boot' => self::MILLISECONDS,
                            'snippet' => self::MILLISECONDS,
                            'encode' => self::MILLISECONDS,
                            'total' => self::MILLISECONDS,
                        ],
                        'required' => ['total'],
                    ],
                    'start' => ['enum' => ['cold', 'first', 'warm', 'booted']],
                    'start_reason' => ['type' => 'string'],
                    'blocked' => [
                        'type' => 'array',
                        'items' => [
                            'type' => 'object',
                            'properties' => [
                                'what' => ['type' => 'string'],
                                'guard' => ['type' => 'string'],
                                'lift' => ['type' => ['string', 'null']],
                            ],
                            'required' => ['what', 'guard', 'lift'],
                        ],
                    ],
                    'file_changes' => [
                        'type' => 'object',
                        'properties' => [
                            'created' => self::CHANGES,
                            'modified' => self::CHANGES,
                            'deleted' => self::CHANGES,
                            'more' => self::COUNT,
                            'incomplete' => ['type' => 'boolean'],
                        ],
                        'required' => ['created', 'modified', 'deleted'],
                    ],
                    'queries' => [
                        'type' => 'array',
                        'items' => [
                            'type' => 'object',
                            'properties' => [
                                'sql' => ['type' => 'string'],
                                'times' => self::COUNT,
                                'rows' => self::COUNT,
                                'ms' => self::MILLISECONDS,
                                'at' => ['type' => 'string'],
                            ],
                            'required' => ['sql', 'times', 'rows', 'ms'],
                        ],
                    ],
                    'queries_more' => [
                        'type' => 'object',
                        'properties' => [
                            'times' => self::COUNT,
                            'rows' => self::COUNT,
                            'ms' => self::MILLISECONDS,
                        ],
                        'required' => ['times', 'rows', 'ms'],
                    ],
                    'database_changes' => [
                        'type' => 'object',
                        'additionalProperties' => [
                            'type' => 'object',
                            'properties' => [
                                'inserted' => self::COUNT,
                                'updated' => self::COUNT,
                                'deleted' => self::COUNT,
                            ],
                            'required' => ['inserted', 'updated', 'deleted'],
                        ],
                    ],
                    'output_truncated' => [
                        'type' => 'object',
                        'properties' => ['stdout' => self::COUNT, 'stderr' => self::COUNT],
                        'required' => ['stdout', 'stderr'],
                    ],
                    'resolved' => ['type' => 'object', 'additionalProperties' => ['type' => 'string']],
                    'redacted' => ['type' => 'array', 'items' => ['type' => 'string']],
                    'guards' => ['type' => 'object', 'additionalProperties' => ['type' => 'string']],
                ],
                'required' => ['outcome', 'timings_ms', 'start'],
            ],
        ],
        'required' => [
            'ok',
            'result',
            'stdout',
            'stderr',
            'exception',
            'duration_ms',
            'memory_peak_bytes',
            'exit_code',
            'timed_out',
            'diagnostics',
        ],
        'additionalProperties' => false,
    ];

    private function __construct()
    {
    }
}
