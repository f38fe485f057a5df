<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support;

/**
 * What this process holds, as the kernel tells it.
 */
final class Footprint
{
    /** Threads that wait for more work: one acts on files as the user, and one makes forks. */
    private const LINGERING = ['altair-files', 'altair-spares'];

    /** Seconds for which they may wait. */
    private const PATIENCE = 5;

    /**
     * @param array<string, int> $descriptors how many there are of each kind, but those of spares
     * @param list<string> $children zombies included
     * @param list<string> $files the paths below a directory
     */
    private function __construct(
        public readonly int $residentBytes,
        public readonly int $threads,
        public readonly array $descriptors,
        public readonly array $children,
        public readonly array $files,
    ) {
    }

    /**
     * @param string $directory where nothing is to be left, next to what the process itself holds
     */
    public static function take(string $directory): self
    {
        // What waits for the cycle collector is the application's, and comes and goes.
        gc_collect_cycles();
        self::awaitLingering();
        // Waits for what is collected in the background.
        $children = Processes::children();
        $status = Processes::status((int) getmypid());

        return new self(
            (int) $status['VmRSS'] * 1024,
            (int) $status['Threads'],
            Spare::withoutDescriptors((int) getmypid()),
            // Whether it runs or sleeps just now is nothing to count; a zombie is.
            preg_replace('/ [A-Y]$/', '', $children),
            self::below($directory),
        );
    }

    /**
     * @return list<string> what is there now and was not there before, in words
     */
    public function beyond(self $before): array
    {
        $more = $this->threads - $before->threads;

        return [
            ...$this->descriptorsBeyond($before),
            ...array_values(array_diff($this->children, $before->children)),
            ...array_values(array_diff($this->files, $before->files)),
            ...($more > 0 ? ["$more threads"] : []),
        ];
    }

    /**
     * @return list<string>
     */
    private function descriptorsBeyond(self $before): array
    {
        $more = [];
        foreach ($this->descriptors as $kind => $count) {
            $count -= $before->descriptors[$kind] ?? 0;
            $more = $count > 0 ? [...$more, "$count $kind"] : $more;
        }

        return $more;
    }

    /** Waits until no thread lingers: from then on no fork is made. */
    private static function awaitLingering(): void
    {
        $until = microtime(true) + self::PATIENCE;
        $name = static fn (string $thread): string => trim((string) @file_get_contents("$thread/comm"));
        while (array_intersect(self::LINGERING, array_map($name, glob('/proc/self/task/*'))) !== []) {
            if (microtime(true) > $until) {
                return;
            }
            usleep(1000);
        }
    }

    /**
     * @return list<string>
     */
    private static function below(string $directory): array
    {
        $files = new \RecursiveIteratorIterator(
            new \RecursiveDirectoryIterator($directory, \FilesystemIterator::SKIP_DOTS),
            \RecursiveIteratorIterator::SELF_FIRST,
        );
        $paths = array_map(static fn (\SplFileInfo $file): string => $file->getPathname(), iterator_to_array($files));
        sort($paths);

        return $paths;
    }
}
