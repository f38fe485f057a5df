<?php

declare(strict_types=1);

namespace Altair\Eval\Support;

/**
 * Makes text of a snippet fit to be shown: a terminal acts on none of it.
 *
 * Control characters and what reorders a line (bidi embeddings, overrides and isolates) are written as PHP would write
 * them: `\x1b`, `\u{202e}`. This is what the native command line does.
 *
 * @internal
 */
final class Text
{
    private const UNSAFE = '/[\x{0}-\x{1f}\x{7f}-\x{9f}\x{202a}-\x{202e}\x{2066}-\x{2069}]/u';

    private const NAMED = ["\n" => '\n', "\r" => '\r', "\t" => '\t'];

    private function __construct()
    {
    }

    /**
     * In one line: line feeds and tabs are written out, too.
     */
    public static function line(string $text): string
    {
        return self::escape($text, []);
    }

    /**
     * With its lines and tabs.
     */
    public static function block(string $text): string
    {
        return self::escape($text, ["\n", "\t"]);
    }

    /**
     * As a literal in single quotes, in one line.
     */
    public static function quoted(string $text): string
    {
        return "'" . self::line(addcslashes($text, "'\\")) . "'";
    }

    /**
     * @param list<string> $kept
     */
    private static function escape(string $text, array $kept): string
    {
        $escape = static function (array $match) use ($kept): string {
            $char = $match[0];
            $code = (int) mb_ord($char, 'UTF-8');

            return match (true) {
                in_array($char, $kept, true) => $char,
                isset(self::NAMED[$char]) => self::NAMED[$char],
                $code < 0x80 => sprintf('\x%02x', $code),
                default => sprintf('\u{%x}', $code),
            };
        };

        // Not UTF-8 it is only where somebody else has made the result; then nothing of it is shown raw.
        return preg_replace_callback(self::UNSAFE, $escape, $text) ?? addcslashes($text, "\0..\37\177..\377");
    }
}
