<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Escape;

use RuntimeException;

/**
 * A daemon that does what anybody tells it who can connect, as tmux, a session's bus and debuggers do: here it makes a
 * file, outside of every run. Where and as whom it listens is said by whoever starts it.
 */
final class Daemon
{
    /** Answers each line, and makes the file that is called as the number of the listener which has got it. */
    private const PROGRAM = <<<'PHP'
        umask(0);
        [, $directory] = $argv;
        $sockets = [];
        foreach (array_slice($argv, 2) as $address) {
            $sockets[] = stream_socket_server($address, $code, $why) ?: throw new RuntimeException("$address: $why");
        }
        echo json_encode(array_map(static fn ($socket) => stream_socket_get_name($socket, false), $sockets)), "\n";
        $clients = [];
        while (true) {
            $ready = [STDIN, ...$sockets, ...array_column($clients, 0)];
            [$none, $nor] = [[], []];
            stream_select($ready, $none, $nor, null);
            if (in_array(STDIN, $ready, true)) {
                exit;
            }
            foreach ($sockets as $number => $socket) {
                if (in_array($socket, $ready, true)) {
                    $clients[] = [stream_socket_accept($socket), $number];
                }
            }
            foreach ($clients as $key => [$client, $number]) {
                if (in_array($client, $ready, true)) {
                    if ((string) fgets($client) === '') {
                        unset($clients[$key]);
                    } else {
                        touch("$directory/$number");
                        fwrite($client, "done\n");
                    }
                }
            }
        }
        PHP;

    /** @var list<string> where it listens, as services are declared */
    public readonly array $services;

    /** @var resource */
    private $process;

    /** @var array<int, resource> */
    private array $pipes;

    /**
     * @param string $directory for what it is told to make
     * @param list<string> $addresses
     */
    public function __construct(int $uid, private readonly string $directory, array $addresses)
    {
        mkdir($directory);
        chmod($directory, 0755);
        $command = [PHP_BINARY, '-n', '-r', self::PROGRAM, '--', $directory, ...$addresses];
        if ($uid !== posix_geteuid()) {
            chown($directory, $uid);
            $command = ['setpriv', "--reuid=$uid", "--regid=$uid", '--clear-groups', '--', ...$command];
        }
        $process = proc_open($command, [['pipe', 'r'], ['pipe', 'w'], STDERR], $pipes, '/', ['PATH' => getenv('PATH')]);
        $this->process = $process ?: throw new RuntimeException('No daemon.');
        $this->pipes = $pipes;
        $this->services = json_decode((string) fgets($pipes[1]), true) ?? throw new RuntimeException('No daemon.');
    }

    public function __destruct()
    {
        array_map('fclose', $this->pipes);
        proc_close($this->process);
        $sockets = array_filter($this->services, static fn (string $service): bool => $service[0] === '/');
        exec('rm -rf -- ' . implode(' ', array_map(escapeshellarg(...), [$this->directory, ...$sockets])));
    }

    /**
     * Which of its services have done what they were told since this was last asked.
     *
     * @return list<string>
     */
    public function told(): array
    {
        $told = [];
        foreach ($this->services as $number => $service) {
            if (is_file("$this->directory/$number")) {
                unlink("$this->directory/$number");
                $told[] = $service;
            }
            clearstatcache();
        }

        return $told;
    }
}
