<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Escape;

use Altair\Eval\Tests\Support\Processes;
use Altair\Eval\Tests\Support\Spare;
use Altair\Eval\Tests\Support\TemporaryApplication;
use RuntimeException;

/**
 * Where attacks are made: a host for each setting, listeners and bystanders, kept for all attacks of a test class.
 */
final class Arena
{
    /** Milliseconds that an attack may take. */
    private const TIMEOUT_MS = 20000;

    /** How often an attack is made at most until it is made as a fork of a template that was there. */
    private const TRIES = 3;

    /** Seconds for which a process that has said that it stops is waited for. */
    private const STOP_PATIENCE = 10;

    private readonly TemporaryApplication $directory;

    /** Far from every project and from the directory for temporary files. */
    private readonly string $outside;

    private readonly Listeners $listeners;

    private readonly Surroundings $surroundings;

    private readonly string $secret;

    /** @var array<string, Host> by setting */
    private array $hosts = [];

    /** @var array<string, Grounds> by setting, as long as no attack has left anything there */
    private array $grounds = [];

    /** @var array<int, Bystander> by user */
    private array $bystanders = [];

    public function __construct()
    {
        $this->secret = 'secret-' . bin2hex(random_bytes(16));
        $this->directory = new TemporaryApplication();
        mkdir($this->directory->path('tmp'));
        chmod($this->directory->path('tmp'), 01777);
        copy(__DIR__ . '/evaluating-host.php', $this->directory->path('evaluating-host.php'));
        $this->surroundings = new Surroundings($this->directory);
        $this->outside = '/var/tmp/altair-escape-' . bin2hex(random_bytes(6));
        mkdir($this->outside);
        chmod($this->outside, 0755);
        $this->listeners = new Listeners($this->outside);
    }

    public function __destruct()
    {
        $this->hosts = [];
        $this->bystanders = [];
        exec('rm -rf -- ' . escapeshellarg($this->outside));
    }

    /** Makes an attack, and tells what was seen of it. */
    public function run(Attack $attack, Setting $setting, Start $start, bool $unconfined = false): Run
    {
        for ($try = 1;; $try++) {
            $run = $this->once($attack, $setting, $start, $unconfined);
            // A template that was there a moment ago is not, where memory is short on the machine.
            if ($start !== Start::Warm || $run->start() === $start->value || $try === self::TRIES) {
                return $run;
            }
        }
    }

    private function once(Attack $attack, Setting $setting, Start $start, bool $unconfined): Run
    {
        $host = $this->hosts[$setting->value]
            ??= new Host($setting, $this->directory->root, $this->directory->path('tmp'));
        $bystander = $this->bystanders[$setting->uid()] ??= new Bystander($setting, $this->secret);
        // Where the project is another one each time, no template is ever used twice.
        $grounds = $this->grounds[$setting->value] ??= new Grounds($setting, $this->secret, $this->outside);
        $run = new Run(new Scene(
            $setting,
            $grounds,
            $this->listeners,
            $bystander,
            $host->pid,
            $this->secret,
            $this->directory->path('tmp'),
            $this->surroundings,
        ));
        if ($attack->prepare !== null) {
            ($attack->prepare)($run->scene);
        }
        $options = ['start' => $start->value, 'projectRoot' => $run->scene->project] + $run->scene->options()
            + $attack->options;
        if ($start === Start::Warm || $attack->needsTemplate) {
            $this->warmUp($host, ['start' => Start::Warm->value] + $options);
        }
        if ($attack->needsTemplate) {
            $run->scene->knowTemplates();
        }
        $run->scene->remember();
        $this->listeners->arrived();
        $hostBefore = Bystander::fingerprint($host->pid);
        $run->alreadyThere = Spare::besides($host->pid);
        $run->temporary = $this->temporary();
        $run->templates = array_map(Bystander::fingerprint(...), self::ids($run->alreadyThere));
        $began = hrtime(true);
        $host->ask(
            ($unconfined ? ['unsafe' => true] : [])
            + $options
            + [
                'snippet' => Prelude::wrap($attack->snippet, $run->scene->targets()),
                'timeoutMs' => self::TIMEOUT_MS,
            ],
        );
        try {
            $this->watch($run, $host, $attack, $hostBefore);
        } catch (RuntimeException $lost) {
            // What it still has to say is no answer to another request.
            unset($this->hosts[$setting->value]);
            throw new RuntimeException($lost->getMessage() . "\n" . $run->story(), 0, $lost);
        }
        $run->seconds = (hrtime(true) - $began) / 1e9;
        $this->takeStock($run, $host);

        return $run;
    }

    /**
     * Has the host make the template that the attack's run is to be a fork of.
     *
     * @param array<string, mixed> $options
     */
    private function warmUp(Host $host, array $options): void
    {
        for ($try = 1; $try <= self::TRIES; $try++) {
            $host->ask(['snippet' => 'return 1;', 'timeoutMs' => self::TIMEOUT_MS] + $options);
            do {
                $answer = $host->answer();
            } while (!isset($answer['result']) && !isset($answer['failure']));
            // One whose files were written just before it read them is not used again.
            if (($answer['result']['diagnostics']['start'] ?? '') === Start::Warm->value) {
                return;
            }
        }
        throw new RuntimeException('There is no template: ' . json_encode($answer));
    }

    /** Follows it to its end. */
    private function watch(Run $run, Host $host, Attack $attack, string $hostBefore): void
    {
        $unread = ['out' => '', 'err' => ''];
        // What has connected is let go, so that nothing waits for an answer that does not come.
        $meanwhile = fn () => array_push($run->arrived, ...$this->listeners->arrived());
        if ($attack->measuresMemory) {
            $meanwhile = static fn () => $run->peakBytes = max($run->peakBytes, self::residentBytes($host->pid));
        }
        do {
            $answer = $host->answer($meanwhile);
            foreach (['out' => &$run->stdout, 'err' => &$run->stderr] as $stream => &$text) {
                $unread[$stream] .= base64_decode($answer[$stream] ?? '', true);
                while (preg_match('/\A([^\x01]*)\x01([^\x02]*)\x02/', $unread[$stream], $mark) === 1) {
                    $unread[$stream] = substr($unread[$stream], strlen($mark[0]));
                    $text .= $mark[1];
                    $this->heed($mark[2], $run, $host, $attack, $hostBefore);
                }
            }
            unset($text);
        } while (!isset($answer['result']) && !isset($answer['failure']));
        $run->stdout .= $unread['out'];
        $run->stderr .= $unread['err'];
        $run->result = $answer['result'] ?? null;
        $run->failure = $answer['failure'] ?? '';
        foreach ($answer['signals'] ?? [] as $signal) {
            $run->molested[] = "the host was sent signal $signal";
        }
    }

    private function heed(string $mark, Run $run, Host $host, Attack $attack, string $hostBefore): void
    {
        [$what, $rest] = explode(' ', $mark, 2) + [1 => ''];
        if ($what === 'call') {
            [$call, $result] = explode(' ', $rest);
            $run->calls[] = [$call, (int) $result];
        } elseif ($what === 'threw') {
            $run->gaveUp = $rest;
        } else {
            $this->look($run, $host, $attack, $what, $hostBefore);
        }
    }

    /** Looks at the process that has stopped, and lets it go on. */
    private function look(Run $run, Host $host, Attack $attack, string $where, string $hostBefore): void
    {
        $until = hrtime(true) + self::STOP_PATIENCE * 1e9;
        while (($snapshot = Snapshot::take($host->pid)) === null) {
            if (hrtime(true) > $until) {
                throw new RuntimeException("The snippet says that it stops ($where), and does not.");
            }
            usleep(200);
        }
        if ($where === 'ready') {
            $run->before = $snapshot;
        } else {
            $run->escaped = $run->escaped || $where === 'escaped';
            $run->after[] = $snapshot;
            if ($attack->look !== null) {
                $run->found = ($attack->look)($run, $snapshot);
            }
            $this->askAfterBystanders($run, $host, $hostBefore);
        }
        $snapshot->release();
    }

    private function askAfterBystanders(Run $run, Host $host, string $hostBefore): void
    {
        $bystander = $run->scene->bystander;
        $seen = $bystander->seen();
        if ($seen !== $bystander->fingerprint) {
            $run->molested[] = "the bystander is $seen, and was $bystander->fingerprint";
            unset($this->bystanders[$run->scene->setting->uid()]);
        }
        $seen = Bystander::fingerprint($host->pid);
        if ($seen !== $hostBefore) {
            $run->molested[] = "the host is $seen, and was $hostBefore";
        }
        foreach ($run->templates as $pid => $before) {
            $seen = Bystander::fingerprint($pid);
            // One that ends was not needed any more, or memory was short on the machine. Its host collects it later.
            if ($seen !== $before && !Processes::isEnding($pid)) {
                $run->molested[] = "a template or its keeper is $seen, and was $before";
            }
        }
    }

    /**
     * @param array<int, mixed> $processes by id
     * @return array<int, int>
     */
    private static function ids(array $processes): array
    {
        return array_combine(array_keys($processes), array_keys($processes));
    }

    private function takeStock(Run $run, Host $host): void
    {
        $run->changes = $run->scene->changes();
        $run->arrived = array_values(array_unique([...$run->arrived, ...$this->listeners->arrived()]));
        $until = microtime(true) + self::STOP_PATIENCE;
        do {
            usleep(1000);
            $processes = array_diff_key(Snapshot::descendants($host->pid), $run->alreadyThere);
            // Its template makes the next fork now. The kernel may still be freeing this run's memory.
            $processes = Spare::without($processes);
        } while ($processes !== [] && microtime(true) < $until);
        $processes = array_column($processes, 'name');
        $files = $this->leftIn($run);
        foreach ($files as $file) {
            exec('rm -rf -- ' . escapeshellarg($this->directory->path("tmp/$file")));
        }
        if (!$run->scene->isLeftAsFound()) {
            unset($this->grounds[$run->scene->setting->value]);
        }
        $run->leftovers = [...$files, ...$processes];
    }

    /**
     * The host's temporary files, which are those of its templates between two runs. A spare comes and goes.
     *
     * @return array<string, string> path => what is known of a file; of a directory, whether it is one
     */
    private function temporary(): array
    {
        $format = '%P\t%y %m %U %s %T@ %C@ %l\n';
        $lines = (string) shell_exec(
            'find ' . escapeshellarg($this->directory->path('tmp')) . ' -mindepth 1'
                . " \\( -type d -printf '%P\t%y %m %U\n' -o -printf '$format' \\) 2>/dev/null",
        );
        preg_match_all('/^([^\t\n]*)\t(.*)$/m', $lines, $found);
        $isOfARun = fn (string $path): bool => !Spare::isDirectory($this->directory->path("tmp/$path"));

        return array_filter(array_combine($found[1], $found[2]), $isOfARun, ARRAY_FILTER_USE_KEY);
    }

    /**
     * What a run has left in the host's directory for temporary files, or changed there. A template may have come to
     * its end meanwhile, with everything that is its own.
     *
     * @return list<string>
     */
    private function leftIn(Run $run): array
    {
        $after = $this->temporary();
        $gone = array_filter(
            array_keys(array_diff_key($run->temporary, $after)),
            static fn (string $path): bool => isset($after[strtok($path, '/')]),
        );

        return [...array_keys(array_diff_assoc($after, $run->temporary)), ...$gone];
    }

    /** The most memory that one of a host's processes has now, in bytes. */
    private static function residentBytes(int $host): int
    {
        $most = 0;
        foreach (array_keys(Snapshot::descendants($host)) as $pid) {
            preg_match('/^VmRSS:\s+(\d+)/m', (string) @file_get_contents("/proc/$pid/status"), $resident);
            $most = max($most, 1024 * (int) ($resident[1] ?? 0));
        }

        return $most;
    }
}
