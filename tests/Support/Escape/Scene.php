<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Escape;

/**
 * What one attack finds: files, listeners and processes.
 */
final class Scene
{
    public readonly string $project;

    /** A directory that everybody may write to, neither in the project nor near it. */
    public readonly string $outside;

    private string $before = '';

    private string $after = '';

    /** @var array<string, mixed> more for the snippet */
    private array $more = [];

    /** @var array<string, mixed> */
    private array $options = [];

    public function __construct(
        public readonly Setting $setting,
        public readonly Grounds $grounds,
        public readonly Listeners $listeners,
        public readonly Bystander $bystander,
        public readonly int $host,
        public readonly string $secret,
        public readonly string $hostTemp,
        private readonly Surroundings $surroundings,
    ) {
        $this->project = $grounds->project;
        $this->outside = $grounds->outside;
    }

    public function keepSurroundings(): void
    {
        $this->surroundings->keep();
    }

    /**
     * @return list<string> what of the files that PHP starts from is another than it was kept; it is put back
     */
    public function surroundings(): array
    {
        return $this->surroundings->changes();
    }

    /** Called when everything is prepared: what is another than now has been changed by the run. */
    public function remember(): void
    {
        $this->before = $this->grounds->state();
    }

    /** Lets the snippet know of something more. */
    public function tell(string $name, mixed $value): void
    {
        $this->more[$name] = $value;
    }

    /** Adds an option to the request, that is not known before there is a scene. */
    public function request(string $option, mixed $value): void
    {
        $this->options[$option] = $value;
    }

    /**
     * @return array<string, mixed> the options that were added
     */
    public function options(): array
    {
        return $this->options;
    }

    /** Lets the snippet know of the host's templates. */
    public function knowTemplates(): void
    {
        $templates = Template::of($this->host);
        $this->tell('templates', array_column($templates, 'pid'));
        $this->tell('keepers', array_column($templates, 'keeper'));
        $this->tell('templateEnvironment', end($templates)->environment());
        $this->tell('writable', end($templates)->writableMemory());
    }

    /** What the snippet knows, as `$s`. */
    public function targets(): object
    {
        return (object) ($this->more + [
            'project' => $this->project,
            'sibling' => $this->grounds->sibling,
            'outside' => $this->outside,
            'file' => "$this->outside/secret.txt",
            'script' => "$this->outside/secret.php",
            'program' => "$this->project/bin/escaped",
            'host' => $this->host,
            'hostTemp' => $this->hostTemp,
            'configuration' => $this->surroundings->configuration,
            'extension' => $this->surroundings->extension,
            'bystander' => $this->bystander->pid,
            'environment' => $this->bystander->environment,
            'tcp' => $this->listeners->port('tcp'),
            'tcp6' => $this->listeners->port('tcp6'),
            'udp' => $this->listeners->port('udp'),
            'udp6' => $this->listeners->port('udp6'),
            'unix' => $this->listeners->path('unix'),
            'unixgram' => $this->listeners->path('unixgram'),
            'abstract' => $this->listeners->abstract,
        ]);
    }

    /**
     * @return list<string> paths that are there, are not there or are otherwise than before, one a change
     */
    public function changes(): array
    {
        $this->after = $this->grounds->state();
        [$now, $before] = [explode("\n", $this->after), explode("\n", $this->before)];
        $changed = [...array_diff($now, $before), ...array_diff($before, $now)];

        return array_values(array_unique(array_map(static fn (string $line): string => strtok($line, "\t"), $changed)));
    }

    /** Whether the next attack may be made here, too: neither this one nor its preparation has left anything. */
    public function isLeftAsFound(): bool
    {
        return $this->grounds->isUntouched($this->after);
    }
}
