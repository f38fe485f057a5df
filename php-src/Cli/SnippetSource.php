<?php

declare(strict_types=1);

namespace Altair\Eval\Cli;

use Altair\Eval\Exception\InvalidRequestException;

/**
 * Reads the snippet of a command line: an argument or a file.
 *
 * @internal
 */
final class SnippetSource
{
    private function __construct()
    {
    }

    /**
     * @param string|null $snippet the snippet
     * @param string|null $file a path, or `-` for standard input
     * @throws InvalidRequestException if not exactly one of the two is given, or if the file cannot be read
     */
    public static function read(?string $snippet, ?string $file): string
    {
        return match (true) {
            $snippet !== null && $file !== null => throw new InvalidRequestException(
                'both a snippet and --file are given; leave one of them out',
            ),
            $snippet !== null => $snippet,
            $file !== null => self::contents($file),
            default => throw new InvalidRequestException(
                "nothing to run: give a snippet, as in eval 'return 1;', or --file=<path>",
            ),
        };
    }

    private static function contents(string $file): string
    {
        if ($file === '' || str_contains($file, "\0")) {
            throw new InvalidRequestException('--file needs a path, or - for standard input');
        }
        // Starts with `/` or `./`, so that it is never read as a URL.
        $path = str_starts_with($file, '/') ? $file : "./$file";
        error_clear_last();
        // PHP would open a directory and read nothing from it.
        $contents = is_dir($path) ? false : @file_get_contents($file === '-' ? 'php://stdin' : $path);
        if ($contents !== false) {
            return $contents;
        }
        $reason = is_dir($path) ? 'is a directory' : error_get_last()['message'] ?? 'it cannot be opened';
        $reason = lcfirst((string) preg_replace('/^.*: /s', '', $reason));
        throw new InvalidRequestException("cannot read the snippet from --file=$file: $reason");
    }
}
