<?php

declare(strict_types=1);

namespace Altair\Eval\Cli;

use Altair\Eval\Exception\InvalidRequestException;
use JsonException;

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
     * Variables of a snippet.
     *
     * @param list<string> $texts each `name=text`
     * @param list<string> $json each `name=` and JSON
     * @return array<string, mixed>
     * @throws InvalidRequestException for one that has no value, whose value is no JSON, or that is given twice
     */
    public static function arguments(array $texts, array $json): array
    {
        $arguments = [];
        $all = [
            ...array_map(static fn (string $text): array => [$text, false], $texts),
            ...array_map(static fn (string $text): array => [$text, true], $json),
        ];
        foreach ($all as [$given, $isJson]) {
            $option = $isJson ? '--arg-json' : '--arg';
            [$name, $value] = [...explode('=', $given, 2), null];
            if ($value === null) {
                $form = $isJson ? 'name=json' : 'name=text';
                throw new InvalidRequestException("$option=$given has no value: write $option $form");
            }
            if (array_key_exists($name, $arguments)) {
                throw new InvalidRequestException("The argument \$$name is given twice.");
            }
            try {
                $arguments[$name] = $isJson ? json_decode($value, true, 512, JSON_THROW_ON_ERROR) : $value;
            } catch (JsonException $error) {
                $why = lcfirst($error->getMessage());
                throw new InvalidRequestException("the value of --arg-json $name=… is no JSON: $why");
            }
        }

        return $arguments;
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
