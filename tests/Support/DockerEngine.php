<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support;

use Altair\Eval\Tests\Support\Database\ServerProcess;
use RuntimeException;
use Throwable;

/**
 * A Docker engine for the tests, one for a test process: started at first use, and gone with the tests, however they
 * end. It knows no other engine's images and has one of its own, which is BusyBox and nothing else.
 *
 * It has no bridge, so its containers have no network at all. Only root can start it. `scripts/setup.sh drivers`
 * installs what it needs.
 */
final class DockerEngine
{
    /** The image. Its programs are in /bin. */
    public const IMAGE = 'altair-busybox';

    /** How long the engine may take to answer for the first time, in seconds. */
    private const PATIENCE = 30;

    private const PROGRAMS = [
        'docker', 'dockerd', 'containerd', 'runc', 'busybox', 'bash', 'setpriv', 'setsid', 'tail', 'tar', 'unshare',
    ];

    private static ?self $shared = null;

    private readonly ServerProcess $process;

    private readonly int $maker;

    private function __construct()
    {
        $this->maker = (int) getmypid();
        // Before the engine ends: it gives a container 10 s for that.
        register_shutdown_function($this->removeContainers(...));
        $this->process = new ServerProcess(['root']);
        try {
            $this->process->start([$this->command()], 'TERM');
            $this->awaitAnswer();
            $this->import();
        } catch (Throwable $e) {
            $log = $this->process->log();
            $this->process->end();

            throw new RuntimeException("The Docker engine has not started: {$e->getMessage()}\n$log", 0, $e);
        }
    }

    /** The engine of this process, started where there is none. */
    public static function shared(): self
    {
        return self::$shared ??= new self();
    }

    /** What is not there that it needs; null where everything is. */
    public static function whyMissing(): ?string
    {
        $missing = array_filter(
            self::PROGRAMS,
            static fn (string $program): bool => self::run("command -v $program")[0] !== 0,
        );

        return $missing === [] ? null
            : 'Not installed: ' . implode(', ', $missing) . '. `scripts/setup.sh drivers` would.';
    }

    /** The value of DOCKER_HOST for its clients, which have to be root, too. */
    public function host(): string
    {
        return 'unix://' . $this->socket();
    }

    /**
     * @return list<string> the names of sandboxes' containers, those that do not run included
     */
    public function containers(): array
    {
        return $this->docker("ps --all --filter=name='^/altair-sandbox-' --format '{{.Names}}'");
    }

    /**
     * Runs a command of the client's.
     *
     * @return list<string> the lines of its output
     */
    public function docker(string $arguments): array
    {
        [$status, $lines] = self::run("docker --host={$this->host()} $arguments");

        return $status === 0 ? $lines : throw new RuntimeException("docker $arguments: " . implode("\n", $lines));
    }

    private function removeContainers(): void
    {
        // A fork of the process that has made it has no right to end it.
        if ($this->maker === getmypid() && $this->process->runs()) {
            $docker = "docker --host={$this->host()}";
            self::run("$docker ps --all --quiet | xargs --no-run-if-empty $docker rm --force --volumes");
        }
    }

    private function socket(): string
    {
        return $this->process->path('docker.sock');
    }

    /**
     * Its mounts and the processes of its containers are in namespaces of their own, and so gone with it even if it is
     * killed. What others mount later is seen there.
     *
     * @return non-empty-list<string>
     */
    private function command(): array
    {
        return [
            'unshare', '--mount', '--propagation=slave', '--pid', '--fork', '--kill-child', '--mount-proc', 'dockerd',
            "--host={$this->host()}",
            "--data-root={$this->process->path('data')}",
            "--exec-root={$this->process->path('exec')}",
            "--pidfile={$this->process->path('pid')}",
            // Nothing of the machine's network changes.
            '--bridge=none', '--iptables=false', '--ip6tables=false', '--ip-forward=false', '--ip-masq=false',
        ];
    }

    private function awaitAnswer(): void
    {
        $deadline = microtime(true) + self::PATIENCE;
        while (microtime(true) < $deadline) {
            $socket = @stream_socket_client($this->host());
            if ($socket !== false) {
                fwrite($socket, "GET /_ping HTTP/1.0\r\n\r\n");
                if (str_ends_with((string) stream_get_contents($socket), 'OK')) {
                    return;
                }
            }
            if ($this->process->pid() !== 0 && !$this->process->runs()) {
                throw new RuntimeException('it has ended.');
            }
            usleep(5000);
        }

        throw new RuntimeException('it does not answer.');
    }

    /** Makes the image of the machine's BusyBox, a link for each of its programs. */
    private function import(): void
    {
        $make = <<<'SH'
            set -eu
            mkdir -p "$0/bin" && cd "$0/bin" && cp "$(command -v busybox)" busybox
            for name in $(./busybox --list); do [ -e "$name" ] || ln -s busybox "$name"; done
            SH;
        $root = $this->process->path('image');
        [$status, $lines] = self::run('sh -c ' . escapeshellarg($make) . " $root");
        if ($status !== 0) {
            throw new RuntimeException(implode("\n", $lines));
        }
        $this->docker('import - ' . self::IMAGE . " < <(tar --create --directory=$root .)");
    }

    /**
     * @return array{int, list<string>} its exit code and the lines of its output
     */
    private static function run(string $command): array
    {
        // Ordinary users' PATH may be without the directories of what only root starts.
        exec('PATH="$PATH:/usr/sbin:/sbin" bash -c ' . escapeshellarg($command) . ' 2>&1', $lines, $status);

        return [$status, $lines];
    }
}
