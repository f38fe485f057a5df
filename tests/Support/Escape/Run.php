<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Escape;

/**
 * One attack as it was seen from outside.
 */
final class Run
{
    /** What it wrote, without marks. */
    public string $stdout = '';

    public string $stderr = '';

    /** @var array<string, mixed>|null the host's answer */
    public ?array $result = null;

    /** The exception that the host got instead. */
    public string $failure = '';

    /** Why the snippet gave up, in its own words: for the message of a failed test only. */
    public string $gaveUp = '';

    /** @var list<array{string, int}> native calls and what they returned */
    public array $calls = [];

    public ?Snapshot $before = null;

    /** @var list<Snapshot> at the end of the attack, and of what escaped */
    public array $after = [];

    /** @var array<int, array{parent: int, state: string, name: string}> its host's templates and their keepers */
    public array $alreadyThere = [];

    /** @var array<string, string> its host's temporary files before it: path => what is known of each */
    public array $temporary = [];

    /** @var array<int, string> what is known of each of them, as of a {@see Bystander} */
    public array $templates = [];

    /** Whether the program that nothing may start has run. */
    public bool $escaped = false;

    /** The most resident memory that was seen of one process of the run, in bytes. */
    public int $peakBytes = 0;

    /** From the request to the answer, in seconds. */
    public float $seconds = 0.0;

    /** @var list<string> what is another than before, in the scene */
    public array $changes = [];

    /** @var list<string> what arrived at the listeners */
    public array $arrived = [];

    /** @var list<string> what became of the processes that a run has to leave alone */
    public array $molested = [];

    /** @var list<string> what it left in the host's temporary directory, and processes that outlived it */
    public array $leftovers = [];

    /** @var mixed what a look of the attack's own has found while it was stopped */
    public mixed $found = null;

    public function __construct(public readonly Scene $scene)
    {
    }

    /** How a snippet tells the test that it has come somewhere. */
    public static function mark(string $what): string
    {
        return "\x01$what\x02";
    }

    /** Whether the attack came to its end, and was looked at there. */
    public function isComplete(): bool
    {
        return $this->before !== null && $this->after !== [];
    }

    public function outcome(): string
    {
        return $this->result['diagnostics']['outcome'] ?? 'none';
    }

    /** How it came to be, in the words of {@see Start}. */
    public function start(): string
    {
        return $this->result['diagnostics']['start'] ?? 'none';
    }

    /** Everything that came out of it. */
    public function output(): string
    {
        return $this->stdout . $this->stderr . json_encode($this->result, JSON_UNESCAPED_SLASHES);
    }

    /** What it was, for the message of a failed test. */
    public function story(): string
    {
        $calls = array_map(static fn (array $call): string => "$call[0] = $call[1]", array_slice($this->calls, 0, 40));

        return implode("\n", [
            'Outcome: ' . $this->outcome() . ' ' . $this->failure . ', ' . $this->start(),
            'Gave up: ' . $this->gaveUp,
            'Calls: ' . implode(', ', $calls),
            'Complete: ' . var_export($this->isComplete(), true),
            'Output: ' . substr($this->stdout, 0, 2000),
            'Errors: ' . substr($this->stderr, 0, 2000),
            'Result: ' . substr((string) json_encode($this->result), 0, 3000),
        ]);
    }
}
