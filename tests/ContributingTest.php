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
}
