<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Escape;

use Altair\Eval\Tests\Support\Spare;
use Altair\Eval\Tests\Support\TemporaryApplication;
use RuntimeException;

/**
 * A host whose runs are forks of a template, one after the other in the same project.
 */
final class WarmHost
{
    /** Milliseconds that a run may take which is not meant to meet its deadline. */
    private const LONG_MS = 20000;

    /** Runs until a template is kept: one whose files were written just before it read them is not. */
    private const TRIES = 5;

    public readonly string $project;

    private readonly TemporaryApplication $application;

    private readonly Host $host;

    /** @var array<string, mixed> */
    private array $last = [];

    /** @param array<string, string> $files of the project: path => content */
    public function __construct(Setting $setting, array $files = [])
    {
        $this->application = new TemporaryApplication();
        foreach ($files + ['vendor/autoload.php' => '<?php', 'data.txt' => 'data'] as $path => $content) {
            $this->application->write("app/$path", $content);
        }
        $this->project = $this->application->path('app');
        copy((string) getenv('EXTENSION'), $this->application->path('altair_eval.so'));
        copy(__DIR__ . '/evaluating-host.php', $this->application->path('evaluating-host.php'));
        mkdir($this->application->path('tmp'));
        if (posix_geteuid() === 0) {
            $this->application->giveTo($setting->uid(), $setting->gid());
        }
        $this->host = new Host($setting, $this->application->root, $this->application->path('tmp'));
    }

    /**
     * Evaluates with the functions of {@see Prelude}. Calls `$whileStopped` each time that the snippet stops itself.
     *
     * @param array<string, mixed> $options of the request
     * @param (callable(Snapshot): void)|null $whileStopped
     * @param (callable(string): void)|null $whenPrinted called with what is written to standard output, also by a boot
     *     that comes to nothing
     * @return array<string, mixed> as EvalResult::toArray() gives it
     */
    public function evaluate(
        string $snippet,
        array $options = [],
        ?callable $whileStopped = null,
        ?callable $whenPrinted = null,
    ): array {
        $this->host->ask(['start' => 'warm'] + $this->request($snippet, $options));
        $meanwhile = $whileStopped === null ? null : function () use ($whileStopped): void {
            $snapshot = Snapshot::take($this->host->pid);
            if ($snapshot !== null) {
                $whileStopped($snapshot);
                $snapshot->release();
            }
        };

        return $this->answered('result', $meanwhile, static function (array $answer) use ($whenPrinted): void {
            if ($whenPrinted !== null && isset($answer['out'])) {
                $whenPrinted(base64_decode($answer['out'], true));
            }
        });
    }

    /**
     * Evaluates until there is a template that is kept.
     *
     * @param array<string, mixed> $options of the request
     * @return array<string, mixed> the answer of a fork of it
     */
    public function evaluateWarm(string $snippet, array $options = []): array
    {
        for ($try = 1; $try <= self::TRIES; $try++) {
            $result = $this->evaluate($snippet, $options);
            if ($result['diagnostics']['start'] === Start::Warm->value) {
                return $result;
            }
        }
        throw new RuntimeException('There is no template: ' . json_encode($result));
    }

    /**
     * @param array<string, mixed> $options
     * @return array<string, mixed> a request in the form that the host takes
     */
    public function request(string $snippet, array $options = []): array
    {
        return $options + [
            'snippet' => Prelude::functions() . $snippet,
            'projectRoot' => $this->project,
            'timeoutMs' => self::LONG_MS,
        ];
    }

    /**
     * @param array<string, mixed> $what
     */
    public function ask(array $what): void
    {
        $this->host->ask($what);
    }

    /**
     * The value under `$key` of its next answer that has one; those before it are handed to `$passed`.
     *
     * @param (callable(array<string, mixed>): void)|null $passed
     */
    public function answered(string $key, ?callable $meanwhile = null, ?callable $passed = null): mixed
    {
        do {
            $answer = $this->last = $this->host->answer($meanwhile);
            if (isset($answer['failure'])) {
                throw new RuntimeException($answer['failure']);
            }
            if ($passed !== null && !array_key_exists($key, $answer)) {
                $passed($answer);
            }
        } while (!array_key_exists($key, $answer));

        return $answer[$key];
    }

    /**
     * @return array<string, mixed> the whole of the answer that was waited for last
     */
    public function lastAnswer(): array
    {
        return $this->last;
    }

    public function pid(): int
    {
        return $this->host->pid;
    }

    /** A run that has stopped itself. */
    public function stopped(): ?Snapshot
    {
        return Snapshot::take($this->host->pid);
    }

    /**
     * @return list<Template>
     */
    public function templates(): array
    {
        return Template::of($this->host->pid);
    }

    /**
     * @return array<int, string> id => name of everything below it, but forks that wait for their task
     */
    public function processes(): array
    {
        return array_map(
            static fn (array $process): string => $process['name'],
            Spare::besides($this->host->pid),
        );
    }

    /**
     * @return array<string, int> how many descriptors it has of each kind, but those of forks that wait for their task
     */
    public function descriptors(): array
    {
        return Spare::withoutDescriptors($this->host->pid);
    }
}
