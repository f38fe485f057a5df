<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Servers;

use Altair\Eval\Tests\Support\TemporaryApplication;
use RuntimeException;

/**
 * Apache with mod_php, each worker a process. The workers have changed their user where root starts it.
 *
 * @see https://httpd.apache.org/docs/2.4/mod/prefork.html
 */
final class Apache implements Server
{
    /** Where distributions keep the server and its modules. */
    private const PROGRAM = '/usr/sbin/apache2';
    private const MODULES = '/usr/lib/apache2/modules';

    private const CONFIGURATION = <<<'APACHE'
        ServerRoot "%1$s"
        LoadModule mpm_prefork_module "%2$s/mod_mpm_prefork.so"
        LoadModule authz_core_module "%2$s/mod_authz_core.so"
        LoadModule php_module "%3$s"
        PHPIniDir "%1$s"
        ServerName localhost
        Listen 127.0.0.1:%4$d
        PidFile pid
        ErrorLog log
        Mutex posixsem
        %5$s
        DocumentRoot "%6$s"
        <FilesMatch "\.php$">
            SetHandler application/x-httpd-php
        </FilesMatch>
        StartServers 3
        MinSpareServers 2
        MaxRequestWorkers 4
        MaxConnectionsPerChild %7$d
        APACHE;

    /** Seconds that it may take to listen, and to end. */
    private const PATIENCE = 30;

    /** @var resource */
    private $process;

    private readonly string $address;

    /** Its configuration, its PHP's, and its log. */
    private readonly TemporaryApplication $place;

    /**
     * @param string $directory what it serves
     * @param array<string, string> $environment its own
     * @param int $requests what each worker answers before another takes its place
     */
    public function __construct(string $directory, array $environment, int $requests)
    {
        $this->place = new TemporaryApplication(['php.ini' => 'extension=' . getenv('EXTENSION')]);
        $port = self::freePort();
        $this->address = "127.0.0.1:$port";
        $user = posix_geteuid() === 0 ? "User nobody\nGroup nogroup" : '';
        $values = [$this->place->root, self::MODULES, self::program(), $port, $user, $directory, $requests];
        $configuration = $this->place->write('apache.conf', sprintf(self::CONFIGURATION . "\n", ...$values));
        // It ends by a signal to its process group, which is to be its own.
        $process = proc_open(
            ['setsid', self::PROGRAM, '-f', $configuration, '-DFOREGROUND'],
            [['file', '/dev/null', 'r'], ['file', '/dev/null', 'w'], ['file', $this->place->path('errors'), 'w']],
            $pipes,
            '/',
            $environment,
        );
        $this->process = $process ?: throw new RuntimeException('No Apache.');
        $until = microtime(true) + self::PATIENCE;
        while (!$this->listens($port)) {
            if (microtime(true) > $until || !proc_get_status($this->process)['running']) {
                throw new RuntimeException($this->said());
            }
            usleep(10_000);
        }
    }

    public function __destruct()
    {
        $this->end();
    }

    /** The module: Apache itself has no version of PHP. */
    public static function program(): ?string
    {
        $module = self::MODULES . '/libphp' . PHP_MAJOR_VERSION . '.' . PHP_MINOR_VERSION . '.so';

        return is_executable(self::PROGRAM) && is_file($module) ? $module : null;
    }

    public function pages(string $file, int $times = 1): array
    {
        return Loopback::pages($this->address, '/' . basename($file), $times);
    }

    /** Its first process ends the others, and waits for them. */
    public function end(): void
    {
        if (is_resource($this->process)) {
            proc_terminate($this->process, SIGTERM);
            proc_close($this->process);
        }
    }

    /** A port that nobody listens on now. It takes no socket that is made for it. */
    private static function freePort(): int
    {
        $socket = stream_socket_server('tcp://127.0.0.1:0') ?: throw new RuntimeException('No port.');

        return (int) substr((string) strrchr((string) stream_socket_get_name($socket, false), ':'), 1);
    }

    private function listens(int $port): bool
    {
        return file_exists($this->place->path('pid')) && @fsockopen('127.0.0.1', $port) !== false;
    }

    private function said(): string
    {
        return @file_get_contents($this->place->path('errors')) . @file_get_contents($this->place->path('log'));
    }
}
