<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use PHPUnit\Framework\TestCase;

/**
 * CONTRIBUTING.md is a map: what it names is there.
 */
final class ContributingTest extends TestCase
{
    public function testEachFileThatItNamesIsThere(): void
    {
        $root = dirname(__DIR__);
        $text = (string) file_get_contents("$root/CONTRIBUTING.md");
        // In the list of how to add something each path is whole, as in `engine/guards.rs`.
        preg_match_all('~`((?:engine|sandbox|cli|mcp|src|tests|php-src|crates)/[\w./-]+)`~', $text, $found);
        $missing = [];
        foreach (array_unique($found[1]) as $path) {
            [$first, $rest] = explode('/', $path, 2);
            $is = static fn (string $whole): bool => file_exists("$root/$whole");
            if (!$is($path) && !$is("crates/$path") && !$is("crates/$first/src/$rest")) {
                $missing[] = $path;
            }
        }

        self::assertGreaterThan(20, count($found[1]));
        self::assertSame([], $missing);
    }

    /** A file that is added beside others of its kind and forgotten in their list would do nothing. */
    public function testEachContainerAndEachRowOfTheBenchIsInItsList(): void
    {
        $root = dirname(__DIR__);
        foreach (
            [
                'src/child/containers/*.php' => ['src/child/boot.rs', 'include_str!("containers/%s.php")'],
                'benches/Rows/*.php' => ['benches/bench.php', '%s::measure('],
            ] as $files => [$list, $entry]
        ) {
            $text = (string) file_get_contents("$root/$list");
            $found = (array) glob("$root/$files");
            self::assertNotCount(0, $found);
            foreach ($found as $file) {
                $expected = sprintf($entry, basename($file, '.php'));
                self::assertStringContainsString($expected, $text, "$file is not in $list");
            }
        }
    }
}
