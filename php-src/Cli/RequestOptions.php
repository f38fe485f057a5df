<?php

declare(strict_types=1);

namespace Altair\Eval\Cli;

/**
 * What options of commands that may be given several times mean to a request.
 *
 * @internal
 */
final class RequestOptions
{
    private function __construct()
    {
    }

    /**
     * The items of an option that has them in one text, parted by commas.
     *
     * @return list<string>
     */
    public static function list(?string $items): array
    {
        $items = explode(',', $items ?? '');

        return array_values(array_filter($items, static fn (string $item): bool => $item !== ''));
    }

    /**
     * @param list<string> $services `host:port` or paths of sockets; `none` alone is none
     * @return list<string>|null null: what the application declares
     */
    public static function services(array $services): ?array
    {
        return match ($services) {
            [] => null,
            ['none'] => [],
            default => $services,
        };
    }

    /**
     * Paths as a run sees them, whose working directory is the project: absolute, from here.
     *
     * @param list<string> $paths
     * @return list<string>
     */
    public static function readable(array $paths): array
    {
        return array_map(
            static fn (string $path): string => str_starts_with($path, '/') ? $path : getcwd() . '/' . $path,
            $paths,
        );
    }
}
