<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Sandbox\Runtime;

use Altair\Eval\Tests\Support\ClosureTestCase;
use Altair\Eval\Tests\Support\Skip;

/**
 * The same closures where opcache has optimised the caller's copy of them, and where they became machine code.
 */
final class ClosureOptimisedTest extends ClosureTestCase
{
    private const ON = ['-d', 'opcache.enable_cli=1'];

    /** Prints a line for each closure: what it returned, or the message. */
    private const CLOSURES = <<<'PHP'
        namespace App;
        use ArrayObject as Imported;
        const LOCAL = 'local';
        define('GLOBAL_ONE', 5);
        function helper(array $a, int &$b = 0) { return $b = count($a); }
        class Own {
            const A = 'a'; const B = self::A . 'b';
            private static $closures = [];
            static function closures() { return self::$closures ?: self::$closures = [
                fn () => __CLASS__,
                static fn () => [__METHOD__ !== '', __LINE__],
                static function () { return self::A; },
            ]; }
        }
        $one = 1;
        $all = [
            fn () => 1,
            function () { return PHP_INT_SIZE * 2 + strlen('four'); },
            function (int $a = 3, $b = PHP_VERSION_ID . 'x', $c = ['a' => [1, 2.5]]) { return [$a, $b, $c]; },
            function () { if (false) { return 1; } $unused = 5; return 2; echo 'never'; },
            function () { while (true) { try { return strtoupper('a') . DIRECTORY_SEPARATOR; } finally { $a = 1; } } },
            function () { static $n = 0, $a = [1, 2]; return [++$n, array_sum($a)]; },
            function ($a = 'x') { return match ($a) { 'x', 'y' => [__NAMESPACE__, Imported::class], 'z' => 2 }; },
            function ($a = 'b') { switch ($a) { case 'a': return 1; case 'b': $r = 2; break; case 'c': return 3;
                case 'd': return 4; case 'e': return 5; }
                foreach ([1, 2, 3] as $k => $v) { $r += $k * $v; } return $r; },
            fn () => function_exists('strlen') && \defined('PHP_EOL') && extension_loaded('Core'),
            fn (array $v = [1, 2]) => ($sum = array_sum($v)) * $sum,
            function (int ...$a) { [$x, [, $y]] = [1, [2, 3]]; return compact('x', 'y') + $a; },
            function () { $a = ['k' => ['l' => 1]]; $a['k']['m'] ??= 2; unset($a['k']['l']); return $a; },
            function () { $o = new Imported([3, 1, 2]); $o->uasort('strcmp'); return array_values((array) $o); },
            function (): iterable { return [1]; }, function (): int { return (int) '12'; },
            function () { try { throw new \LogicException('thrown'); } catch (\RuntimeException | \LogicException $e) {
                return $e->getMessage(); } },
            function () { $s = ''; for ($i = 0; $i < 300; $i++) { $s .= $i % 7 ? '' : chr(65 + $i % 26); } return $s; },
            ...Own::closures(),
            // What is not allowed, some of it where nothing ever comes.
            function () { return;
                class Unreached {} },
            function () { return 1;

                return new class {}; },
            function () { if (0) {
                return fn () => 1; } return 1; },
            function () { return 1;
                yield 2; },
            function () use ($one) { return 2; },
            fn () => $one,
            function () { if (false) { return static::class; } return 1; },
            function (object $a) { return 1; },
            // Neighbours.
            fn () => \PHP_INT_SIZE, fn () => 8,
            fn () => 7, fn () => 7,
            function () { return 1 + 1; }, function () { return 2; },
        ];
        define('LATER', 6);
        $all[] = fn () => \strlen(\LATER);
        foreach ($all as $number => $closure) {
            for ($i = 0; $i < 3; $i++) { // the third is what a compiler to machine code may have changed
                echo $number, ' ', json_encode(\enter($closure)), "\n";
                if ($number === 16) { for ($j = 0; $j < 200; $j++) { $closure(); } }
            }
        }
        PHP;

    /**
     * @dataProvider optimisers
     *
     * @param list<string> $options
     */
    public function testWhatIsSentIsTheSameWhereItWasOptimised(array $options, bool $isCached = true): void
    {
        if (!function_exists('opcache_get_status')) {
            Skip::NotInstalled->because('opcache is not installed.');
        }
        $plain = $this->printedByFile(self::CLOSURES, ['-d', 'opcache.enable_cli=0']);
        $optimised = $this->printedByFile(
            self::CLOSURES . "\necho 'cached: ', json_encode(\\opcache_is_script_cached(__FILE__));",
            [...self::ON, ...$options]
        );

        self::assertSame(0, substr_count($plain, 'has changed'), $plain);
        self::assertSame([...self::lines($plain), 'cached: ' . json_encode($isCached)], self::lines($optimised));
    }

    /** @return list<string> what was printed, without the name of the file */
    private static function lines(string $printed): array
    {
        return explode("\n", trim(preg_replace('~main\d+~', 'main', $printed)));
    }

    public static function optimisers(): iterable
    {
        yield 'opcache' => [[]];
        yield 'every pass' => [['-d', 'opcache.optimization_level=0x7FFFFFFF']];
        yield 'no pass' => [['-d', 'opcache.optimization_level=0']];
        yield 'without comments' => [['-d', 'opcache.save_comments=0']];
        yield 'machine code of functions' => [['-d', 'opcache.jit=function', '-d', 'opcache.jit_buffer_size=32M']];
        yield 'machine code of traces' => [['-d', 'opcache.jit=tracing', '-d', 'opcache.jit_buffer_size=32M',
            '-d', 'opcache.jit_hot_loop=2', '-d', 'opcache.jit_hot_func=2']];
        yield 'files not cached' => [['-d', 'opcache.file_update_protection=86400'], false];
    }
}
