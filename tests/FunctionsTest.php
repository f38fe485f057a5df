<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\EvalRequest;
use Altair\Eval\Runner\SecurityProfile;
use PHPUnit\Framework\TestCase;

/**
 * Each function of PHP's own extensions was looked at: it is refused in a run, or it may be called, as the kernel's
 * guards hold what it does. A new PHP, or an extension more, brings a list to read.
 */
final class FunctionsTest extends TestCase
{
    /** What has no functions that a run could call: it is not there, or stands for itself. */
    private const OTHERS = ['altair_eval', 'igbinary', 'redis', 'xdebug', 'pcov'];

    public function testEachFunctionIsRefusedOrKnown(): void
    {
        $known = self::known();
        $refused = self::refused();
        $new = [];
        foreach (array_diff(array_map(strtolower(...), get_loaded_extensions()), self::OTHERS) as $extension) {
            $functions = get_extension_funcs($extension) ?: [];
            $unknown = array_diff($functions, $known[$extension] ?? [], $refused);
            if ($unknown !== []) {
                $new[] = "$extension: " . implode(' ', $unknown);
            }
        }

        self::assertSame(
            [],
            $new,
            "Read what these do. What starts a process, loads code or reaches others belongs into\n"
            . 'crates/engine/src/profile.rs, the rest into tests/Support/known-functions.txt.',
        );
    }

    public function testNoFunctionIsBothRefusedAndKnown(): void
    {
        $known = array_merge(...array_values(self::known()));

        self::assertSame([], array_values(array_intersect(self::refused(), $known)));
    }

    /**
     * @return array<string, list<string>> extension => functions
     */
    private static function known(): array
    {
        $known = [];
        foreach (file(__DIR__ . '/Support/known-functions.txt', FILE_IGNORE_NEW_LINES) ?: [] as $line) {
            if ($line !== '' && $line[0] !== '#') {
                [$extension, $functions] = explode(': ', $line, 2);
                $known[$extension] = [...$known[$extension] ?? [], ...explode(' ', $functions)];
            }
        }

        return $known;
    }

    /**
     * Those that are refused in a run without permissions.
     *
     * @return list<string>
     */
    private static function refused(): array
    {
        foreach ((new SecurityProfile(new EvalRequest('1', '/')))->phpFlags('/') as $flag) {
            if (str_starts_with($flag, 'disable_functions=')) {
                return explode(',', substr($flag, strlen('disable_functions=')));
            }
        }
        self::fail('There is no list of refused functions.');
    }
}
