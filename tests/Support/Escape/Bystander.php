<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Escape;

use Altair\Eval\Tests\Support\Processes;
use RuntimeException;

/**
 * A process of the same user that has nothing to do with a run, and holds a secret in its environment.
 */
final class Bystander
{
    /** Blocks what attacks send, so that a signal that arrives stays pending and can be seen. */
    private const PROGRAM = 'pcntl_sigprocmask(SIG_BLOCK, [SIGURG, SIGUSR1, SIGIO, SIGWINCH]);'
        . ' do { $stat = explode(" ", strrchr(file_get_contents("/proc/self/stat"), ")"));'
        . ' echo $stat[48], " ", md5_file("/proc/self/environ"), "\n"; } while (fgets(STDIN) !== false);';

    /** Seconds for which it is waited for; it does not answer where an attack has stopped it. */
    private const PATIENCE = 2;

    public readonly int $pid;

    /** Where its environment lies in its memory. */
    public readonly int $environment;

    public readonly string $fingerprint;

    /** What it says of itself. */
    private readonly string $own;

    /** @var resource */
    private $process;

    /** @var array<int, resource> */
    private array $pipes;

    public function __construct(Setting $setting, string $secret)
    {
        $process = proc_open(
            $setting->command([PHP_BINARY, '-n', '-r', self::PROGRAM]),
            [['pipe', 'r'], ['pipe', 'w'], STDERR],
            $pipes,
            '/',
            ['SECRET' => $secret, 'PATH' => getenv('PATH')],
        );
        $this->process = $process ?: throw new RuntimeException('No bystander.');
        $this->pipes = $pipes;
        // env_start, field 50 of proc_pid_stat(5), which a root without capabilities is not told of others.
        $this->own = (string) fgets($pipes[1]);
        $this->environment = (int) $this->own;
        $this->pid = proc_get_status($process)['pid'];
        $this->fingerprint = self::fingerprint($this->pid) . $this->own;
    }

    /** What it is like now: as anybody sees it, and as it sees itself. */
    public function seen(): string
    {
        $seen = self::fingerprint($this->pid);
        @fwrite($this->pipes[0], "\n");
        [$readable, $none] = [[$this->pipes[1]], null];
        $answers = stream_select($readable, $none, $none, self::PATIENCE) === 1;

        return $seen . ($answers ? fgets($this->pipes[1]) : 'It does not answer.');
    }

    public function __destruct()
    {
        fclose($this->pipes[0]);
        proc_terminate($this->process, SIGKILL);
        proc_close($this->process);
    }

    /**
     * What an attack on a process could change of it.
     */
    public static function fingerprint(int $pid): string
    {
        $status = array_intersect_key(
            is_dir("/proc/$pid") ? Processes::status($pid) : [],
            array_flip(['TracerPid', 'SigPnd', 'ShdPnd', 'Cpus_allowed_list', 'Uid']),
        );
        // The end of a child is what a keeper waits for.
        foreach (array_intersect(['SigPnd', 'ShdPnd'], array_keys($status)) as $pending) {
            $status[$pending] = dechex(hexdec($status[$pending]) & ~(1 << (SIGCHLD - 1)));
        }
        $stat = Processes::stat($pid) + array_fill(0, 50, '');

        // Whether it runs, sleeps or waits is its own affair; that it is stopped or traced is not.
        return json_encode([
            $status,
            'stopped' => in_array($stat[0], ['T', 't', 'Z', 'X', ''], true),
            'group' => $stat[2],
            'nice' => $stat[16],
            'policy' => $stat[38],
            'environment' => md5((string) @file_get_contents("/proc/$pid/environ")),
            'limits' => md5((string) @file_get_contents("/proc/$pid/limits")),
            'oom' => trim((string) @file_get_contents("/proc/$pid/oom_score_adj")),
        ], JSON_THROW_ON_ERROR);
    }
}
