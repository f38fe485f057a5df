<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support;

/**
 * What this process holds, as the kernel tells it.
 */
final class Footprint
{
    /**
     * @param list<string> $descriptors
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
        // Waits for what is collected in the background.
        $children = Processes::children();
        $status = Processes::status((int) getmypid());

        return new self(
            (int) $status['VmRSS'] * 1024,
            (int) $status['Threads'],
            array_values(Processes::descriptors()),
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
            ...array_values(array_diff($this->descriptors, $before->descriptors)),
            ...array_values(array_diff($this->children, $before->children)),
            ...array_values(array_diff($this->files, $before->files)),
            ...($more > 0 ? ["$more threads"] : []),
        ];
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
