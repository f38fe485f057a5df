<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Sandbox\Runtime;

use Altair\Eval\Tests\Support\RuntimeTestCase;

/**
 * What an isolated PHP keeps between entries, and what is fresh at each of them.
 */
final class StateTest extends RuntimeTestCase
{
    private const INCLUDED = <<<'PHP'
        <?php
        namespace Kept;
        const NUMBER = 6;
        function counted(): int { static $count = 0; return ++$count; }
        final class Counter { public static int $count = 0; }
        $inIncluded = 'local to who includes it';
        PHP;

    public function testConstantsAndGlobalVariablesStay(): void
    {
        $runtime = $this->runtime();
        $runtime->enter(static function (): void {
            global $count;
            $count = 1;
            define('KEPT', ['a' => 1]);
        });

        $again = static function (): array {
            global $count;
            $count++;

            return [$count, KEPT, $GLOBALS['count']];
        };
        self::assertSame([2, ['a' => 1], 2], $runtime->enter($again));
        self::assertSame([3, ['a' => 1], 3], $runtime->enter($again));
    }

    public function testWhatIncludedFilesDeclareStaysAndSoDoTheirStatics(): void
    {
        $file = $this->application(['included.php' => self::INCLUDED])->path('included.php');
        $runtime = $this->runtime(root: $this->application()->root);

        self::assertSame(1, $runtime->enter(static function (string $file): int {
            require $file;
            \Kept\Counter::$count = 40;

            return \Kept\counted();
        }, [$file]));
        $use = static function (): array {
            return [\Kept\NUMBER, \Kept\counted(), ++\Kept\Counter::$count, isset($inIncluded)];
        };
        self::assertSame([6, 2, 41, false], $runtime->enter($use));
        self::assertSame([6, 3, 42, false], $runtime->enter($use));
        $files = $runtime->enter(static fn (): array => array_map('basename', get_included_files()));
        self::assertSame(['included.php'], $files);
    }

    public function testStaticsOfTheClosureAreFreshAtEveryEntry(): void
    {
        $runtime = $this->runtime();
        $count = static function (): array {
            static $count = 10, $list = ['a'];
            $list[] = 'b';

            return [++$count, $list];
        };

        self::assertSame([11, ['a', 'b']], $runtime->enter($count));
        self::assertSame([11, ['a', 'b']], $runtime->enter($count));
        $count();
        self::assertSame([11, ['a', 'b']], $runtime->enter($count), 'Nor are they those of the caller.');
    }

    public function testSettingsDirectoryAndHandlersStay(): void
    {
        $runtime = $this->runtime();
        $runtime->enter(static function (): void {
            ini_set('precision', '5');
            set_include_path('/nowhere');
            chdir('/');
            putenv('ALTAIR_KEPT=yes');
            set_error_handler('printf');
        });

        [$output, $seen] = self::printed(static fn (): array => $runtime->enter(static function (): array {
            trigger_error('handled', E_USER_NOTICE);

            return [ini_get('precision'), get_include_path(), getcwd(), getenv('ALTAIR_KEPT')];
        }));
        self::assertSame(['5', '/nowhere', '/', 'yes'], $seen);
        self::assertSame((string) E_USER_NOTICE, $output, 'printf() of the number, the first argument of a handler.');
    }

    public function testStateOfACallerIsNotThatOfARuntime(): void
    {
        $runtime = $this->runtime();
        $GLOBALS['ofTheCaller'] = 1;
        try {
            self::assertFalse($runtime->enter(static fn (): bool => isset($GLOBALS['ofTheCaller'])));
            $runtime->enter(static function (): void {
                $GLOBALS['ofTheCaller'] = 2;
                define('OF_THE_RUNTIME', 1);
            });
            self::assertSame(1, $GLOBALS['ofTheCaller']);
            self::assertFalse(defined('OF_THE_RUNTIME'));
            self::assertFalse($runtime->enter(static fn (string $class) => class_exists($class, false), [self::class]));
        } finally {
            unset($GLOBALS['ofTheCaller']);
        }
    }
}
