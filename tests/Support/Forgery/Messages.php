<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Forgery;

/**
 * What a child says to its host, as it is on the wire (crates/engine/src/channel.rs, in the format of postcard).
 *
 * Needs nothing but PHP: it is copied into the application that a test evaluates in.
 */
final class Messages
{
    public const BOOT = 0;
    public const SNIPPET = 1;
    public const ENCODE = 2;

    public static function entered(int $atNs): string
    {
        return self::number(0) . self::number($atNs);
    }

    /**
     * @param array<string, string> $guards
     */
    public static function ready(array $guards, int $bootUs = 1, ?int $enteredNs = null): string
    {
        return self::number(1) . self::number($bootUs) . self::guards($guards)
            . self::option($enteredNs, self::number(...));
    }

    public static function stopped(int $phase, ?string $location = null, int $peak = 1): string
    {
        return self::number(2) . self::number($phase) . self::option($location, strval(...)) . self::number($peak);
    }

    /**
     * A report; `$ending` is one of those below.
     *
     * @param list<string> $hints
     */
    public static function report(
        string $ending,
        int $phase = self::SNIPPET,
        ?int $snippetUs = 1,
        ?int $encodeUs = 1,
        int $peak = 1,
        array $hints = [],
    ): string {
        return self::number(3) . $ending . self::number($phase) . self::number($peak)
            . self::option($snippetUs, self::number(...)) . self::option($encodeUs, self::number(...))
            . self::number(count($hints)) . implode('', array_map(self::text(...), $hints));
    }

    /**
     * @param array<string, string> $guards
     */
    public static function guarded(array $guards): string
    {
        return self::number(4) . self::guards($guards);
    }

    public static function refused(string $what, string $guard = 'ini', ?string $lift = '--unsafe'): string
    {
        return self::number(5) . self::text($what) . self::text($guard) . self::option($lift, self::text(...));
    }

    public static function outside(string $path, bool $write = false, int $errno = 13): string
    {
        return self::number(6) . self::text($path) . chr((int) $write) . self::signed($errno);
    }

    /**
     * @param array<string, string> $variables
     */
    public static function variables(array $variables): string
    {
        return self::number(7) . self::guards($variables);
    }

    /** One whose boot could not be watched. */
    public static function booted(int $pid, string $why, int $bootUs = 1): string
    {
        return self::number(8) . self::signed($pid) . self::number($bootUs) . self::number(1) . self::text($why)
            . self::number(0);
    }

    public static function unable(string $why): string
    {
        return self::number(9) . self::text($why);
    }

    public static function secondThread(int $pid): string
    {
        return self::number(10) . self::signed($pid);
    }

    /** An entry of a runtime is over: its value came before, in parts. */
    public static function left(): string
    {
        return self::number(13) . self::number(0);
    }

    /** The same, by an ending. */
    public static function leftBy(string $ending): string
    {
        return self::number(13) . self::number(1) . $ending;
    }

    /** The closure was not entered. */
    public static function leftUnentered(string $why): string
    {
        return self::number(13) . self::number(2) . self::text($why);
    }

    /** An ending: the value as JSON. */
    public static function returned(string $json): string
    {
        return self::number(0) . self::text($json);
    }

    /** An ending: the exception as JSON. */
    public static function threw(string $json): string
    {
        return self::number(1) . self::text($json);
    }

    /** An ending. */
    public static function exited(int $status): string
    {
        return self::number(2) . chr($status);
    }

    /** An ending. */
    public static function fatal(string $message, ?string $location = null): string
    {
        return self::number(3) . self::text($message) . ($location ?? self::location('snippet', 1));
    }

    /** An ending. */
    public static function outOfMemory(string $message, ?string $location = null): string
    {
        return self::number(4) . self::text($message) . self::option($location, strval(...));
    }

    /** An ending. */
    public static function bootFailed(string $message, ?string $json = null): string
    {
        return self::number(5) . self::text($message) . self::option($json, self::text(...));
    }

    /** A place; `$frames` as often as `$times` says. */
    public static function location(string $file, int $line, string $frame = '', int $times = 0): string
    {
        return self::text($file) . self::number($line) . self::number($times)
            . str_repeat(self::text($frame), $times);
    }

    /** The JSON of a string that a snippet returned. */
    public static function string(string $value): string
    {
        return json_encode(['type' => 'string', 'value' => $value], JSON_THROW_ON_ERROR);
    }

    /** A varint of at most 64 bits. */
    public static function number(int $number): string
    {
        $bytes = '';
        while (($rest = ($number >> 7) & (PHP_INT_MAX >> 6)) !== 0) {
            $bytes .= chr($number & 0x7F | 0x80);
            $number = $rest;
        }

        return $bytes . chr($number & 0x7F);
    }

    /** A varint of a signed number, in zigzag. */
    public static function signed(int $number): string
    {
        return self::number(($number << 1) ^ ($number >> 63));
    }

    public static function text(string $text): string
    {
        return self::number(strlen($text)) . $text;
    }

    /**
     * @param array<string, string> $guards
     */
    private static function guards(array $guards): string
    {
        $bytes = self::number(count($guards));
        foreach ($guards as $name => $state) {
            $bytes .= self::text((string) $name) . self::text($state);
        }

        return $bytes;
    }

    private static function option(mixed $value, callable $encode): string
    {
        return $value === null ? "\0" : "\1" . $encode($value);
    }
}
