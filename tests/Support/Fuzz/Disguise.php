<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Fuzz;

/**
 * Writes a statement in another way, which the server reads the same, or at least may read the same.
 */
final class Disguise
{
    private const SPACES = [' ', '  ', "\t", "\n", "\r\n", "\v", "\f"];

    private const COMMENTS = [
        'mysql' => [
            '/**/', '/* x */', '/* ; */', "/* ' */", '/* " */', '/* ` */', '/* -- */', "-- x\n", "--\n", "-- '\n",
            "# x\n", "#\n", "#'\n", '/*!*/', '/*!50000 */', '/*!99999 x */', '/*M!999999 x */', '/*+ x */', '/* /* */',
            '/*!99999 /* x */ */', '/*/ */', '/***/', '/*!999999 SELECT 1; */', "-- \0\n", '/* [ */', "/*\xe0*/",
        ],
        'pgsql' => [
            '/**/', '/* x */', '/* ; */', "/* ' */", '/* " */', '/* $$ */', '/* -- */', "-- x\n", "--\n", "--'\n",
            '/* /* x */ */', '/*/**/*/', "--\r", "-- $$\r\n", '/*+ x */', '/*!50000 x */', '/* */ /* */', "/*\n*/",
            "/*--*/", "--/*\n", '/* E\' */',
        ],
    ];

    private const BEFORE = [
        'mysql' => [
            ';', '; ;', '(', ' ', "\n", '/**/', "-- x\n", "#\n", '/*!*/', '/*!99999 x */', '*/', "\xef\xbb\xbf", "\xa0",
            '/*!50000 SELECT 1 */;', '/*!99999 SELECT 1 */', "\x1a", '/*!', '/* /*! */', "\0", '/*! */ /*! */',
            '/*M! */', '/*!99999 /*! x */', '<<x>> ', 'x: ',
        ],
        'pgsql' => [
            ';', '; ;', '(', ' ', "\n", '/**/', "-- x\n", '/* /* */ */', "--\r", "\xef\xbb\xbf", "\xc2\xa0", '/*',
            "--\r\n", 'SELECT 1;', '/*!', '/* */ /* */',
        ],
    ];

    private const AFTER = [
        'mysql' => [
            ';', '; ;', '; -- ', ' -- x', ' #', ' /*', ' /* x */', ' /*!', "\0", ';/*', '; SELECT 1', ' */', "\n", ')',
            ' FOR UPDATE', ' LIMIT 1', '; COMMIT', ' /*! ; */', "\\", "'", ' READ ONLY',
        ],
        'pgsql' => [
            ';', '; ;', '; --', ' -- x', ' /* x */', ';/**/', '; SELECT 1', "\n", ')', ' /*', ' FOR UPDATE', ' LIMIT 1',
            '; COMMIT', ' -- on', " /* on */", ' $$', "'", ' -- STDOUT', ' /* TO STDOUT */',
        ],
    ];

    /** Bytes and words that are put anywhere. */
    private const PIECES = [
        "'", '"', '`', '\\', '$$', '$a$', '--', '/*', '*/', ';', '#', '[', ']', '(', ')', ',', "\0", "\n", "\r", "\t",
        "\x1a", "\xa0", "\xbf", "\x81", "\x95", "\xe3\x80\x80", "\xc3\xa9", '?', ':a', '$1', '@', '@@', '{', '}', '.',
        '1e5', '0x', '/*!', '/*!50000', '\\N', "E'", "U&'", 'U&"', "N'", "_utf8'", "X'", ' AND CHAIN', ' OR REPLACE ',
        ' TEMPORARY ', ' SESSION ', ' GLOBAL ', ' INTO ', ' FOR ', '::text', '=', ' STATEMENT ', '\\\'', "''", '""',
    ];

    /** Those for which a letter of a name may stand by a collation. */
    private const ACCENTS = [
        'a' => 'á', 'e' => 'é', 'i' => 'í', 'o' => 'ô', 'u' => 'ü', 's' => 'ß', 'n' => 'ñ', 'k' => "\u{212a}",
    ];

    public function __construct(private readonly Dice $dice, private readonly string $kind)
    {
    }

    /**
     * @return array{string, list<string>} the text, and what has been done to it
     */
    public function of(string $text): array
    {
        $done = [];
        if (!$this->dice->falls(45)) {
            return [$text, $done];
        }
        $ways = ['comments' => 26, 'spaces' => 10, 'case' => 12, 'before' => 14, 'after' => 14, 'quotes' => 12];
        $ways += $this->kind === 'mysql' ? ['versioned' => 12, 'numbers' => 3, 'accent' => 4] : ['names' => 12];
        for ($times = $this->dice->between(1, 3); $times > 0; $times--) {
            $way = $this->dice->weighed($ways);
            $text = $this->$way($text);
            $done[] = $way;
        }
        if ($this->dice->falls(22)) {
            $text = $this->bytes($text);
            $done[] = 'bytes';
        }

        return [$text, $done];
    }

    /** In a way that no server and no guard is to stumble over. */
    public function harmless(string $text): string
    {
        $comments = array_slice(self::COMMENTS[$this->kind], 0, 2);
        $text = $this->dice->falls(30) ? $this->case($text) : $text;
        $text = $this->dice->falls(30) ? $this->between($text, [...$comments, "\n", "\t", '  ']) : $text;

        return $text . $this->dice->one(['', '', ';', ' ', "\n", ' -- x', ";\n"]);
    }

    private function comments(string $text): string
    {
        return $this->between($text, self::COMMENTS[$this->kind]);
    }

    private function spaces(string $text): string
    {
        return $this->between($text, self::SPACES);
    }

    /**
     * Puts something in the place of spaces outside of strings.
     *
     * @param list<string> $what
     */
    private function between(string $text, array $what): string
    {
        $every = $this->dice->one([15, 40, 100]);

        return (string) preg_replace_callback(
            '~\'[^\']*\'|"[^"]*"|`[^`]*`|\$\w*\$.*\$\w*\$| ~s',
            fn (array $at): string => $at[0] !== ' ' || !$this->dice->falls($every) ? $at[0]
                : $this->dice->one(['', ' ']) . $this->dice->one($what),
            $text,
        );
    }

    private function case(string $text): string
    {
        return (string) preg_replace_callback(
            '~\'[^\']*\'|"[^"]*"|`[^`]*`|\$\w*\$|(?<![A-Z_])[A-Z]{2,}(?![A-Z_])~',
            fn (array $at): string => !ctype_upper($at[0]) ? $at[0]
                : $this->dice->one([strtolower($at[0]), ucfirst(strtolower($at[0])), lcfirst($at[0])]),
            $text,
        );
    }

    private function before(string $text): string
    {
        return $this->dice->one(self::BEFORE[$this->kind]) . $text;
    }

    private function after(string $text): string
    {
        return $text . $this->dice->one(self::AFTER[$this->kind]);
    }

    /** Quotes strings and names in other ways. */
    private function quotes(string $text): string
    {
        return (string) preg_replace_callback(
            '~\'((?:[^\'\\\\]|\'\')*)\'|"([^"]*)"|(?<![\w`"$&\'])(users|log|isam|shop|numbers|name|id)(?![\w`"$\'])~',
            fn (array $at): string => $this->dice->falls(50) ? $at[0]
                : (isset($at[3]) ? $this->name($at[3]) : $this->string(str_replace("''", "'", $at[2] ?? '') ?: $at[1])),
            $text,
        );
    }

    private function string(string $inside): string
    {
        $inside = str_replace("''", "'", $inside);
        $doubled = str_replace("'", "''", $inside);
        $tag = $this->dice->one(['$$', '$a$', '$_1$', '$é$']);
        $hex = bin2hex($inside);

        return $this->dice->one($this->kind === 'mysql' ? [
            "'$doubled'", '"' . str_replace('"', '""', $inside) . '"', "N'$doubled'", "_utf8mb4'$doubled'", "X'$hex'",
            $hex === '' ? "''" : "0x$hex", "'" . str_replace("'", "\\'", $inside) . "'", "_latin1 '$doubled'",
            "n\"$inside\"", "'' '$doubled'", "_binary'$doubled'",
        ] : [
            "'$doubled'", $tag . $inside . $tag, "E'" . str_replace(["\\", "'"], ["\\\\", "\\'"], $inside) . "'",
            "U&'$doubled'", "e'$doubled'", "''\n'$doubled'", "'' || '$doubled'", "N'$doubled'",
            "u&'$doubled' UESCAPE '!'",
        ]);
    }

    private function name(string $name): string
    {
        return $this->dice->one($this->kind === 'mysql'
            ? ["`$name`", "\"$name\"", "[$name]", "shop.$name", "`shop`.`$name`", ".$name", strtoupper($name)]
            : ["\"$name\"", "public.$name", "U&\"$name\"", "u&\"" . sprintf('\\%04x', ord($name)) . substr($name, 1)
                . '"', strtoupper($name)]);
    }

    /** Writes names of functions in other ways. */
    private function names(string $text): string
    {
        return (string) preg_replace_callback(
            '~(?<![\w"\'$])([a-z][a-z0-9_]+)\(~',
            fn (array $at): string => $this->dice->one([
                "\"{$at[1]}\"(", "pg_catalog.{$at[1]}(", strtoupper($at[1]) . '(', "{$at[1]} (", "{$at[1]}/**/(",
                'U&"' . $at[1] . '"(', 'U&"' . sprintf('\\%04x', ord($at[1])) . substr($at[1], 1) . '"(',
                "{$at[1]}--\n(", "pg_catalog . \"{$at[1]}\" (", "shop.public.{$at[1]}(", "1{$at[1]}(",
            ]),
            $text,
        );
    }

    /** Hides part of it in a comment for versions. */
    private function versioned(string $text): string
    {
        $open = $this->dice->one(['/*!', '/*!50000 ', '/*!50000', '/*M!', '/*M!100100 ', '/*!100100', '/*!99999 ']);
        $words = explode(' ', $text);
        $from = $this->dice->between(0, count($words) - 1);
        $to = $this->dice->falls(50) ? $this->dice->between($from, count($words) - 1) : count($words) - 1;
        $words[$from] = $open . $words[$from];
        $words[$to] .= $this->dice->one([' */', '*/', ' */', '']);

        return implode(' ', $words);
    }

    /** Has a number and a word stand together. */
    private function numbers(string $text): string
    {
        return (string) preg_replace('~(\bSELECT) (\*|1)? ?~i', '$1.1', $text, 1);
    }

    private function accent(string $text): string
    {
        $at = $this->dice->between(0, max(0, strlen($text) - 1));
        $letter = self::ACCENTS[strtolower($text[$at] ?? '')] ?? null;

        return $letter === null ? $text : substr_replace($text, $letter, $at, 1);
    }

    private function bytes(string $text): string
    {
        for ($times = $this->dice->one([1, 1, 1, 2, 3]); $times > 0; $times--) {
            $at = $this->dice->between(0, strlen($text));
            $length = $this->dice->one([1, 1, 2, 5, 12]);
            $text = match ($this->dice->between(1, 6)) {
                1, 2 => substr_replace($text, $this->dice->one(self::PIECES), $at, 0),
                3 => substr_replace($text, '', $at, $length),
                4 => substr_replace($text, substr($text, $at, $length), $at, 0),
                5 => substr_replace($text, chr($this->dice->between(0, 255)), $at, 0),
                default => substr_replace($text, $this->dice->one(self::PIECES), $at, $length),
            };
        }

        return $text;
    }
}
