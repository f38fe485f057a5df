<?php

declare(strict_types=1);

namespace Altair\Eval\Cli;

/**
 * Converts repeatable options of commands for a request.
 *
 * @internal
 */
final class RequestOptions
{
    private function __construct()
    {
    }

    /**
     * The items of an option, separated by commas.
     *
     * @return list<string>
     */
    public static function list(?string $items): array
    {
        $items = explode(',', $items ?? '');

        return array_values(array_filter($items, static fn (string $item): bool => $item !== ''));
    }

    /**
     * @param list<string> $services `host:port` or paths of sockets; a single `none` means no services
     * @return list<string>|null null means those that the application declares
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
     * Makes paths absolute from this working directory, since that of a run is the project.
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
