<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Servers;

use Altair\Eval\Tests\Support\TemporaryApplication;
use RuntimeException;

/**
 * A php-fpm of a test's own, which the test asks over FastCGI as a web server does. It ends with this object.
 *
 * @see https://fastcgi-archives.github.io/FastCGI_Specification.html the records and their numbers
 */
final class Fpm implements Server
{
    private const VERSION = 1;
    private const BEGIN_REQUEST = 1;
    private const END_REQUEST = 3;
    private const PARAMS = 4;
    private const STDIN = 5;
    private const STDOUT = 6;
    private const RESPONDER = 1;

    /** Seconds that it may take to listen, and to answer. */
    private const PATIENCE = 30;

    /** @var resource */
    private $process;

    /** Its socket and its log. */
    private readonly TemporaryApplication $place;

    /**
     * @param array<string, string> $settings of its pool of workers
     */
    public function __construct(array $settings)
    {
        $this->place = new TemporaryApplication();
        $user = posix_geteuid() === 0 ? ['user' => 'nobody', 'group' => 'nogroup'] : [];
        $settings += $user + ['listen' => $this->place->path('sock'), 'pm' => 'static', 'pm.max_children' => '4'];
        $lines = ['[global]', 'daemonize = no', "error_log = {$this->place->path('log')}", '[www]'];
        foreach ($settings as $name => $value) {
            $lines[] = "$name = $value";
        }
        $configuration = $this->place->write('fpm.conf', implode("\n", $lines) . "\n");
        $process = proc_open(
            [self::program(), '-F', '-n', '-y', $configuration, '-d', 'extension=' . getenv('EXTENSION')],
            [['file', '/dev/null', 'r'], ['file', '/dev/null', 'w'], ['file', '/dev/null', 'w']],
            $pipes,
        );
        $this->process = $process ?: throw new RuntimeException('No php-fpm.');
        $until = microtime(true) + self::PATIENCE;
        while (!file_exists($this->place->path('sock'))) {
            if (microtime(true) > $until || !proc_get_status($this->process)['running']) {
                throw new RuntimeException((string) @file_get_contents($this->place->path('log')));
            }
            usleep(10_000);
        }
    }

    public function __destruct()
    {
        $this->end();
    }

    public function end(): void
    {
        if (is_resource($this->process)) {
            proc_terminate($this->process, SIGTERM);
            proc_close($this->process);
        }
    }

    public static function program(): ?string
    {
        $version = PHP_MAJOR_VERSION . '.' . PHP_MINOR_VERSION;
        foreach (["/usr/sbin/php-fpm$version", PHP_BINDIR . '/../sbin/php-fpm'] as $program) {
            if (is_executable($program)) {
                return $program;
            }
        }

        return null;
    }

    public function pages(string $file, int $times = 1): array
    {
        $connections = [];
        while (count($connections) < $times) {
            $connections[] = $this->request($file);
        }

        return array_map(self::page(...), $connections);
    }

    /** @return resource a connection over which a page was asked for */
    private function request(string $file)
    {
        $until = microtime(true) + self::PATIENCE;
        // Its socket is there a moment before it listens.
        while (!$stream = @stream_socket_client("unix://{$this->place->path('sock')}", $code, $message)) {
            if (microtime(true) > $until) {
                throw new RuntimeException($message);
            }
            usleep(1000);
        }
        stream_set_timeout($stream, self::PATIENCE);
        $parameters = '';
        foreach (['SCRIPT_FILENAME' => $file, 'REQUEST_METHOD' => 'GET', 'SCRIPT_NAME' => '/'] as $name => $value) {
            $parameters .= chr(strlen($name)) . chr(strlen($value)) . $name . $value;
        }
        $begin = pack('nCx5', self::RESPONDER, 0);
        $records = [
            [self::BEGIN_REQUEST, $begin], [self::PARAMS, $parameters], [self::PARAMS, ''], [self::STDIN, ''],
        ];
        foreach ($records as [$type, $content]) {
            fwrite($stream, pack('CCnnCx', self::VERSION, $type, 1, strlen($content), 0) . $content);
        }

        return $stream;
    }

    /** @param resource $stream */
    private static function page($stream): string
    {
        $output = '';
        while (strlen((string) $header = stream_get_contents($stream, 8)) === 8) {
            ['type' => $type, 'length' => $length, 'padding' => $padding]
                = unpack('Cversion/Ctype/nid/nlength/Cpadding', $header);
            $content = $length + $padding > 0 ? (string) stream_get_contents($stream, $length + $padding) : '';
            if ($type === self::STDOUT) {
                $output .= substr($content, 0, $length);
            }
            if ($type === self::END_REQUEST) {
                break;
            }
        }

        return explode("\r\n\r\n", $output, 2)[1] ?? throw new RuntimeException("No page: $output");
    }
}
