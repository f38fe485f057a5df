<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support;

use RuntimeException;

/**
 * A file system in user space (FUSE) whose server answers nothing for some seconds: whoever looks at it waits. Then the
 * server is gone, and so is what was there.
 */
final class HungMount
{
    private const SERVER = <<<'PHP'
        [, $at, $seconds] = $argv;
        $ffi = FFI::cdef('int open(const char *, int);'
            . ' int mount(const char *, const char *, const char *, unsigned long, const char *);');
        $mode = decoct(fileperms($at));
        $fd = $ffi->open('/dev/fuse', 2);
        $options = "fd=$fd,rootmode=$mode,user_id=0,group_id=0,allow_other";
        echo $fd >= 0 && $ffi->mount('altair-hung', $at, 'fuse', 0, $options) === 0 ? "ready\n" : "failed\n";
        $streams = [STDIN];
        stream_select($streams, $none, $none, (int) $seconds);
        PHP;

    /** @var resource */
    private $server;

    /** @var array<int, resource> */
    private readonly array $pipes;

    /** Null where it cannot be had. */
    public static function at(string $path, int $seconds): ?self
    {
        return is_writable('/dev/fuse') && ($mount = new self($path, $seconds))->isThere ? $mount : null;
    }

    private readonly bool $isThere;

    private function __construct(private readonly string $path, int $seconds)
    {
        $this->server = proc_open(
            [PHP_BINARY, '-d', 'ffi.enable=1', '-r', self::SERVER, '--', $path, (string) $seconds],
            [['pipe', 'r'], ['pipe', 'w'], ['file', '/dev/null', 'w']],
            $pipes,
        ) ?: throw new RuntimeException('No process.');
        $this->pipes = $pipes;
        $this->isThere = fgets($this->pipes[1]) === "ready\n";
    }

    public function __destruct()
    {
        array_map(fclose(...), $this->pipes);
        proc_close($this->server);
        if ($this->isThere) {
            exec('umount -l ' . escapeshellarg($this->path));
        }
    }
}
