<?php

declare(strict_types=1);

namespace Altair\Eval\Benches\Support;

use Closure;
use FFI;
use RuntimeException;

/**
 * A program, started by posix_spawn(3), which copies nothing of this process: what is measured is the program's time.
 */
final class Spawned
{
    private const LIBC = <<<'C'
        int posix_spawn(int *pid, const char *path, const void *actions, const void *attributes,
            char **argv, char **envp);
        int posix_spawn_file_actions_init(void *actions);
        int posix_spawn_file_actions_addopen(void *actions, int fd, const char *path, int flags, unsigned int mode);
        int waitpid(int pid, int *status, int options);
        C;

    /** More than a `posix_spawn_file_actions_t` has anywhere. */
    private const ACTIONS_BYTES = 256;

    /**
     * Runs it to its end, with nothing to read, and nobody who reads what it says.
     *
     * @param list<string> $command the first one is a path
     * @return Closure(): void
     */
    public static function of(array $command): Closure
    {
        $libc = FFI::cdef(self::LIBC);
        $actions = $libc->new('char[' . self::ACTIONS_BYTES . ']');
        $libc->posix_spawn_file_actions_init($actions);
        foreach ([0 => 0, 1 => 1, 2 => 1] as $descriptor => $flags) {
            $libc->posix_spawn_file_actions_addopen($actions, $descriptor, '/dev/null', $flags, 0);
        }
        $variables = array_map(static fn (string $name): string => "$name=" . getenv($name), array_keys(getenv()));
        [$argv, $arguments] = self::vector($libc, $command);
        [$envp, $environment] = self::vector($libc, $variables);
        $pid = $libc->new('int');
        $status = $libc->new('int');
        $path = $command[0];
        // The texts live as long as this does.
        $texts = [$arguments, $environment];

        return static function () use ($libc, $path, $actions, $argv, $envp, $pid, $status, $texts): void {
            $failed = $libc->posix_spawn(FFI::addr($pid), $path, $actions, null, $argv, $envp);
            $failed === 0 && $libc->waitpid($pid->cdata, FFI::addr($status), 0) === $pid->cdata
                || throw new RuntimeException("$path was not spawned.");
            $status->cdata === 0 || throw new RuntimeException("$path ended with status $status->cdata.");
        };
    }

    /**
     * @param list<string> $texts
     * @return array{FFI\CData, list<FFI\CData>} a list that ends with a null pointer, and what it points to
     */
    private static function vector(FFI $libc, array $texts): array
    {
        $vector = $libc->new('char *[' . (count($texts) + 1) . ']');
        $kept = [];
        foreach ($texts as $index => $text) {
            $kept[] = $bytes = $libc->new('char[' . (strlen($text) + 1) . ']');
            FFI::memcpy($bytes, $text . "\0", strlen($text) + 1);
            $vector[$index] = FFI::addr($bytes[0]);
        }

        return [$vector, $kept];
    }
}
