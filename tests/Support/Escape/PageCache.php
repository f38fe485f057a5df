<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Escape;

use FFI;

/**
 * Which pages of a file the machine has in memory: what its processes have read lately.
 */
final class PageCache
{
    private const PAGE = 4096;
    private const RANDOM = 1;
    private const DONTNEED = 4;

    private const LIBC = 'void *mmap(void *, size_t, int, int, int, long); int munmap(void *, size_t);'
        . ' int mincore(void *, size_t, char *); int posix_fadvise(int, long, long, int); int fsync(int);'
        . ' long pread(int, void *, size_t, long);'
        . ' int open(const char *, int); int close(int);';

    /** Makes a file that is not in memory but for its first page, or all of it. */
    public static function make(string $file, int $pages, bool $all): void
    {
        file_put_contents($file, random_bytes($pages * self::PAGE));
        chmod($file, 0644);
        $libc = FFI::cdef(self::LIBC);
        $descriptor = $libc->open($file, 0);
        $libc->fsync($descriptor);
        if (!$all) {
            // The whole of it: the pages of a folio go together.
            $libc->posix_fadvise($descriptor, 0, 0, self::DONTNEED);
            $libc->posix_fadvise($descriptor, 0, 0, self::RANDOM);
            $libc->pread($descriptor, $libc->new('char[1]'), 1, 0);
        }
        $libc->close($descriptor);
    }

    /** How many pages of a file there are in memory. */
    public static function pages(string $file): int
    {
        $libc = FFI::cdef(self::LIBC);
        clearstatcache();
        $bytes = (int) filesize($file);
        $pages = intdiv($bytes + self::PAGE - 1, self::PAGE);
        $told = $libc->new("char[$pages]");
        $descriptor = $libc->open($file, 0);
        $mapping = $libc->mmap(null, $bytes, 1, 1, $descriptor, 0);
        $libc->close($descriptor);
        $libc->mincore($mapping, $bytes, $told);
        $libc->munmap($mapping, $bytes);

        return count(array_filter(unpack('C*', FFI::string($told, $pages)), static fn (int $page): bool
            => ($page & 1) === 1));
    }
}
