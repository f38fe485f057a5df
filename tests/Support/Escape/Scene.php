<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Escape;

use Altair\Eval\Tests\Support\TemporaryApplication;

/**
 * What one attack finds: a project, files beside it and far from it, listeners and processes.
 *
 * Everything outside of the project can be read and written by everybody, so that only the guards stand before it.
 */
final class Scene
{
    public readonly string $project;

    /** A directory that everybody may write to, neither in the project nor near it. */
    public readonly string $outside;

    private readonly TemporaryApplication $directory;

    private readonly string $before;

    /** @var array<string, mixed> more for the snippet */
    private array $more = [];

    public function __construct(
        public readonly Setting $setting,
        public readonly Listeners $listeners,
        public readonly Bystander $bystander,
        public readonly int $host,
        public readonly string $secret,
        public readonly string $hostTemp,
        private readonly Surroundings $surroundings,
        string $outside,
    ) {
        $this->directory = new TemporaryApplication([
            'app/data.txt' => 'data',
            'app/src/Kept.php' => '<?php return "kept";',
            'app/vendor/autoload.php' => '<?php',
            'app/.altair/events.jsonl' => "{}\n",
            'app/.altair/more/deep' => '',
            'sibling.txt' => $secret,
        ]);
        $this->project = $this->directory->path('app');
        $this->outside = $outside . '/' . bin2hex(random_bytes(4));
        mkdir($this->outside);
        $this->directory->write('app/bin/escaped', EscapedProgram::bytes(), 0755);
        symlink($this->outside . '/secret.txt', "$this->project/link");
        symlink($this->outside, "$this->project/directory-link");
        file_put_contents("$this->outside/secret.txt", $secret);
        file_put_contents("$this->outside/secret.php", "<?php return '$secret';");
        file_put_contents("$this->outside/run", "#!/bin/sh\necho\n");
        foreach (['secret.txt' => 0666, 'secret.php' => 0666, 'run' => 0777, '' => 0777] as $name => $mode) {
            chmod("$this->outside/$name", $mode);
        }
        if (posix_geteuid() === 0) {
            $this->directory->giveTo($setting->uid(), $setting->gid());
            foreach (['secret.txt', 'secret.php', 'run'] as $name) {
                chown("$this->outside/$name", $setting->uid());
                chgrp("$this->outside/$name", $setting->gid());
            }
        }
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
        $this->before = $this->state();
    }

    /** Lets the snippet know of something more. */
    public function tell(string $name, mixed $value): void
    {
        $this->more[$name] = $value;
    }

    /** What the snippet knows, as `$s`. */
    public function targets(): object
    {
        return (object) ($this->more + [
            'project' => $this->project,
            'sibling' => $this->directory->path('sibling.txt'),
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
        [$now, $before] = [explode("\n", $this->state()), explode("\n", $this->before)];
        $changed = [...array_diff($now, $before), ...array_diff($before, $now)];

        return array_values(array_unique(array_map(static fn (string $line): string => strtok($line, "\t"), $changed)));
    }

    /** Every file with all that the kernel knows of it: the time of the last change covers content and metadata. */
    private function state(): string
    {
        return (string) shell_exec(
            'find ' . escapeshellarg($this->directory->root) . ' ' . escapeshellarg($this->outside)
                . ' -printf "%p\t%y\t%m\t%U\t%G\t%s\t%n\t%T@\t%C@\t%l\n"',
        );
    }
}
