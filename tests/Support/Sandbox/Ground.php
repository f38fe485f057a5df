<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Sandbox;

use Altair\Eval\Tests\Support\Escape\Bystander;
use Altair\Eval\Tests\Support\Escape\Listeners;

/**
 * Where an attack is made, and what it is made on. All of it belongs to the user as whom the command runs, so that
 * nothing but the sandbox keeps the command from it.
 */
final class Ground
{
    /** The descriptor of the secret that the holder has open. */
    public const HELD = 9;

    private readonly string $directory;

    /** Where the command works. */
    public readonly string $place;

    /** What the command must neither read nor change. */
    public readonly string $secretFile;

    public readonly string $secret;

    /** In the arguments of every process of the attack. */
    public readonly string $mark;

    private ?Bystander $bystander = null;

    private ?Listeners $listeners = null;

    /** @var resource|null a process that has the secret open */
    private $holder = null;

    private readonly string $before;

    public function __construct(public readonly Caller $caller)
    {
        $this->secret = 'secret-' . bin2hex(random_bytes(12));
        $this->mark = 'mark-' . bin2hex(random_bytes(12));
        $this->directory = '/var/tmp/altair-ground-' . bin2hex(random_bytes(6));
        $this->place = "$this->directory/place";
        $this->secretFile = "$this->directory/outside/secret";
        foreach ([$this->directory, $this->place, dirname($this->secretFile)] as $directory) {
            mkdir($directory);
            chmod($directory, 0755);
            $this->giveAway($directory);
        }
        file_put_contents($this->secretFile, $this->secret);
        chmod($this->secretFile, 0600);
        $this->giveAway($this->secretFile);
        $this->before = $this->outside();
    }

    public function __destruct()
    {
        $this->endAttack();
        if ($this->holder !== null) {
            proc_terminate($this->holder, SIGKILL);
            proc_close($this->holder);
        }
        Tools::run('rm -rf ' . escapeshellarg($this->directory));
    }

    /** Makes something the command's user's own. */
    public function giveAway(string $path): void
    {
        if (posix_geteuid() === 0) {
            chown($path, $this->caller->uid()) && chgrp($path, $this->caller->uid());
        }
    }

    public function bystander(): Bystander
    {
        return $this->bystander ??= new Bystander($this->caller->setting(), $this->secret);
    }

    /** A process of the command's user that has the secret open. */
    public function holder(): int
    {
        $this->holder ??= proc_open(
            $this->caller->setting()->command(['sh', '-c', 'echo; exec sleep 60']),
            [['file', '/dev/null', 'r'], ['pipe', 'w'], STDERR, self::HELD => ['file', $this->secretFile, 'r']],
            $pipes,
        ) ?: null;
        // By then it is that user's.
        fgets($pipes[1]);

        return proc_get_status($this->holder)['pid'];
    }

    public function listeners(): Listeners
    {
        return $this->listeners ??= $this->listening();
    }

    /**
     * @return list<int> the processes of the attack that are there, by their arguments
     */
    public function processes(): array
    {
        $found = [];
        foreach (glob('/proc/[0-9]*/cmdline') as $file) {
            $words = explode("\0", (string) @file_get_contents($file));
            if (basename($words[0]) === 'attack' && in_array($this->mark, $words, true)) {
                $found[] = (int) basename(dirname($file));
            }
        }

        return $found;
    }

    /** Ends what nothing has ended. */
    public function endAttack(): void
    {
        foreach ($this->processes() as $pid) {
            posix_kill($pid, SIGKILL);
        }
    }

    /** The processes and threads of the attack. */
    public function tasks(): int
    {
        $tasks = 0;
        foreach ($this->processes() as $pid) {
            $tasks += count(@scandir("/proc/$pid/task") ?: []) - 2;
        }

        return $tasks;
    }

    /**
     * @return list<string> what came out, or was changed outside
     */
    public function harm(string $output): array
    {
        $harm = str_contains($output, $this->secret) ? ['the secret came out'] : [];
        if ($this->outside() !== $this->before) {
            $harm[] = "what is outside has changed from $this->before to {$this->outside()}";
        }
        if ($this->bystander !== null && ($seen = $this->bystander->seen()) !== $this->bystander->fingerprint) {
            $harm[] = "another process has changed from {$this->bystander->fingerprint} to $seen";
        }
        foreach ($this->listeners?->arrived() ?? [] as $kind) {
            $harm[] = "$kind was reached";
        }

        return $harm;
    }

    private function listening(): Listeners
    {
        $listeners = new Listeners($this->directory);
        foreach (['unix', 'unixgram'] as $kind) {
            chmod($listeners->path($kind), 0777);
        }

        return $listeners;
    }

    /** Names, contents and properties of what is outside. */
    private function outside(): string
    {
        clearstatcache();
        $found = [];
        foreach (array_diff(scandir(dirname($this->secretFile)), ['.', '..']) as $name) {
            $path = dirname($this->secretFile) . "/$name";
            $found[$name] = [decoct((int) fileperms($path)), fileowner($path), filemtime($path), md5_file($path)];
        }

        return json_encode($found, JSON_THROW_ON_ERROR);
    }
}
