<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use PHPUnit\Framework\TestCase;
use RuntimeException;

/**
 * An extension that was built for one patch release of PHP loads in every other one of the same minor version: it uses
 * nothing of the engine that was not there from the first.
 */
final class EngineSymbolsTest extends TestCase
{
    /** What the last patch releases of 8.2 have added; their headers' inline functions call it (older_patches.c). */
    private const ADDED = '/^_(safe_)?f\w+alloc2?$|^smart_str_fe?realloc$|^object_finit$'
        . '|^zend_hash_(\w+_)?f(add|convert|extend|grow|init|insert|lookup|update)/';

    public function testTheExtensionUsesNothingThatALaterPatchReleaseHasAdded(): void
    {
        $used = self::used();

        self::assertContains('zend_throw_exception', $used, 'It uses the engine.');
        self::assertSame([], array_values(preg_grep(self::ADDED, $used) ?: []));
    }

    public function testTheExtensionUsesNothingButWhatTheFirstReleaseHas(): void
    {
        $list = __DIR__ . '/Support/engine-symbols-' . PHP_MAJOR_VERSION . '.' . PHP_MINOR_VERSION . '.txt';
        if (!is_file($list)) {
            // Known for the oldest version alone: the others' tests are those above.
            self::assertGreaterThanOrEqual(80300, PHP_VERSION_ID);

            return;
        }
        $known = file($list, FILE_IGNORE_NEW_LINES) ?: [];

        $new = array_values(array_diff(self::used(), $known));

        self::assertSame([], $new, "Has the first release of this minor version got these? Then they go to $list.");
    }

    /**
     * The names that the engine has to have; those of libraries have a version (`read@GLIBC_2.2.5`).
     *
     * @return list<string>
     */
    private static function used(): array
    {
        $extension = getenv('EXTENSION') ?: throw new RuntimeException('EXTENSION names no extension.');
        exec('nm --dynamic --undefined-only ' . escapeshellarg($extension) . ' 2>&1', $lines, $status);
        self::assertSame(0, $status, implode("\n", $lines));
        $needed = preg_filter('/^\s*U (\w+)$/', '$1', $lines);

        return array_values($needed);
    }
}
