<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Sandbox\Runtime;

use Altair\Eval\Tests\Support\ClosureTestCase;
use Closure;
use Throwable;

// phpcs:disable PSR1.Methods.CamelCapsMethodName -- PHP calls them by these names.

/**
 * What runs elsewhere is the closure that was given, never a neighbour; and looking for it leaves no trace.
 */
final class ClosureSourceTest extends ClosureTestCase
{
    private const CHANGED = 'its file has changed since it was loaded';

    private int $archives = 0;

    /**
     * @dataProvider placesInCode
     */
    public function testAClosureIsFoundWhereverItIsWritten(mixed $value, string $code): void
    {
        self::assertSame($value, $this->enter($this->load($code)));
    }

    public static function placesInCode(): iterable
    {
        yield 'a function' => [1, 'function place1() { return fn () => 1; } return place1();'];
        yield 'a function that is declared later' => [2, 'if (true) { function place2() { return fn () => 2; } }'
            . ' return place2();'];
        yield 'another closure' => [3, 'return (function () { return (fn () => fn () => 3)(); })();'];
        yield 'a method' => [[4, 'Place4'], 'class Place4 { function f() { return fn () => [4, __CLASS__]; } }'
            . ' return (new Place4())->f();'];
        yield 'a method of a class with a parent' => [5, 'class Place5 extends ArrayObject { function f() {'
            . ' return fn () => 5; } } return (new Place5())->f();'];
        yield 'an inherited method' => [6, 'class Place6 { function f() { return fn () => 6; } }'
            . ' class Place6b extends Place6 {} return (new Place6b())->f();'];
        yield 'a static property' => [7, 'class Place7 { static $p; static function f() { self::$p = fn () => 7; } }'
            . ' Place7::f(); return Place7::$p;'];
        yield 'a trait' => [8, 'trait Place8 { function f() { return fn () => 8; } }'
            . ' return (new class { use Place8; })->f();'];
        yield 'an enum' => [9, 'enum Place9 { case A; function f() { return fn () => 9; } } return Place9::A->f();'];
        yield 'an anonymous class' => [10, 'return (new class { function f() { return fn () => 10; } })->f();'];
        yield 'a class in a function' => [11, 'function place11() { return new class { function f() {'
            . ' return fn () => 11; } }; } return place11()->f();'];
        yield 'an argument' => [12, 'return (fn (Closure $a) => $a)(static fn () => 12);'];
        yield 'an array' => [13, 'return ["a" => [fn () => 12, "b" =>' . "\n" . 'fn () => 13]]["a"]["b"];'];
        yield 'a namespace' => ['A\B', 'namespace A\B; return fn () => __NAMESPACE__;'];
        yield 'the second namespace' => [['B', 'C\E', 'Iterator'], 'namespace A { } namespace B {' . "\n"
            . ' use C\D as E; use Iterator;'
            . ' return fn () => [__NAMESPACE__, strtr(E::class, "D", "E"), Iterator::class]; }'];
        yield 'imported functions' => [2, 'namespace A; use function strlen as len; return fn () => len("ab");'];
        yield 'an attribute on it' => [14, 'return #[Some("thing", 1 + 2)] fn () => 14;'];
        yield 'a comment on it' => [15, 'return /** Says 15. */ function () { return 15; };'];
        yield 'behind text' => [16, '?>' . "\n" . '<?php return fn () => 16;'];
        yield 'before text' => [17, 'return fn () => 17; ?> text'];
        yield 'before __halt_compiler' => [18, 'return fn () => 18; __halt_compiler(); <?php fn () => 19;'];
        yield 'a condition that is never true' => [19, 'false && fn () => 18; return' . "\n" . 'fn () => 19;'];
        yield 'defaults that are evaluated late' => [[20, 'A', [1 => -1]], 'const LATE = 20;'
            . ' class Place20 { const A = "A"; }'
            . ' return fn ($a = \PHP_INT_SIZE + 12, $b = "A", $c = [1 => -1]) => [$a, $b, $c];'];
    }

    public function testWhereItIsWrittenIsWhereItRuns(): void
    {
        $file = $this->file("declare(strict_types=1);\nreturn function () {\ntry { strlen(1); } catch (TypeError) {"
            . " return [__FILE__, __DIR__, __LINE__,\n__LINE__]; } };", 'dir/place.php');

        self::assertSame([$file, dirname($file), 4, 5], $this->enter(require $file));
    }

    public function testAFileWithoutStrictTypesCoerces(): void
    {
        self::assertSame(1, $this->enter($this->load('return fn () => strlen(1);')));
    }

    public function testAFirstLineOfAShellIsSkipped(): void
    {
        $printed = $this->printedByFile(
            "declare(strict_types=1);\nnamespace A;\nvar_dump(enter(fn () => __LINE__));",
            [],
            "#!/usr/bin/env php\n<?php\n"
        );
        self::assertStringContainsString('int(5)', $printed);
    }

    // ---- a compilation leaves no trace

    public function testAFileThatNoLongerCompilesIsNoFatalError(): void
    {
        $broken = [
            'a parse error' => 'return fn () => 1; }',
            'a compile error' => 'return fn () => 1; class A { abstract function f(); }',
            'a function that is there' => 'return fn () => 1; function strlen() {}',
            'a class twice' => 'return fn () => 1; class Twice { const A = 1; const A = 2; }',
            'one in the middle of many' => 'foreach ([] as $a) { switch (1) { case $b ??= fn () => 2: ' . "\n"
                . 'return fn () => 1; break 4; } }',
            'a heredoc without end' => "return fn () => 1; \$a = <<<A\n{\$b",
        ];
        foreach ($broken as $what => $code) {
            $file = $this->file('return fn () => 1;');
            $closure = require $file;
            $this->application()->write(basename($file), "<?php\n" . $code);
            $this->assertLeavesNoTrace(
                fn () => $this->assertNotSent('its file cannot be compiled again', $closure),
                $what
            );
        }
    }

    public function testWarningsAndDeprecationsOfACompilationAreNobodysBusiness(): void
    {
        $code = 'return fn () => 1; function trace(int $a = null, $b = 1, $c) {}'
            . ' switch (1) { case 2: continue; } class Trace { private final function f() {} } "${a}";';
        $file = $this->file('return fn () => 1;');
        $closure = require $file;
        $this->application()->write(basename($file), "<?php\n" . $code);

        // Now it is another file, in which the same closure stands on the same line.
        $this->assertLeavesNoTrace(fn () => self::assertSame(1, $this->enter($closure)), 'warnings');
    }

    public function testTheFileOfAClosureIsNotRunAndDeclaresNothing(): void
    {
        $file = $this->file('const TRACE1 = 1; function trace1() {} class Trace1 {} echo "never"; return fn () => 1;');
        ob_start();
        $closure = require $file;
        ob_end_clean();
        $this->application()->write(basename($file), "<?php\n"
            . 'const TRACE2 = 1; function trace2() {} class Trace2 {} interface Trace2b {} echo "never";'
            . ' return' . "\n" . 'fn () => 1;');
        $before = [get_defined_functions()['user'], get_declared_classes(), get_declared_interfaces(),
            array_keys(get_defined_constants()), get_included_files()];
        $this->refusal($closure);

        self::assertSame($before, [get_defined_functions()['user'], get_declared_classes(), get_declared_interfaces(),
            array_keys(get_defined_constants()), get_included_files()]);
    }

    public function testAHaltedFileKeepsItsOffset(): void
    {
        $file = $this->file("\$a = fn () => 1; return [__COMPILER_HALT_OFFSET__, \$a, fn () =>\n"
            . "__COMPILER_HALT_OFFSET__]; __halt_compiler();");
        [$offset, $first, $second] = require $file;

        $this->assertLeavesNoTrace(fn () => self::assertSame(1, $this->enter($first)), 'the offset');
        self::assertSame($offset, $this->enter($second));
    }

    private function assertLeavesNoTrace(Closure $do, string $what): void
    {
        $called = [];
        set_error_handler(static function (int $type, string $message) use (&$called): bool {
            $called[] = $message;

            return true;
        });
        set_exception_handler(static function () use (&$called): void {
            $called[] = 'exception';
        });
        error_clear_last();
        $reporting = error_reporting();
        ob_start();
        try {
            $do();
        } finally {
            $printed = ob_get_clean();
            restore_exception_handler();
            restore_error_handler();
        }
        self::assertSame(['', [], null, $reporting], [$printed, $called, error_get_last(), error_reporting()], $what);
        // The compiler works, and so does collecting cycles.
        self::assertSame(3, eval('namespace Trace; return (fn ($a) => $a + 1)(2);'), $what);
        $cycle = new \stdClass();
        $cycle->self = $cycle;
        unset($cycle);
        self::assertGreaterThan(0, gc_collect_cycles(), $what);
    }

    // ---- what PHP knew when the file was loaded

    public function testNamesThatBecameKnownLaterOrWereKnownBefore(): void
    {
        $name = 'Known' . bin2hex(random_bytes(4));
        $this->load("define('{$name}_BEFORE', 'before'); function {$name}_before(&\$a) {}"
            . " class {$name}Before { const A = 'a', B = self::A . 'b'; }");
        $closures = $this->load(<<<PHP
            return [
                fn () => {$name}_BEFORE,
                fn () => {$name}_LATER,
                fn () => [{$name}_BEFORE, {$name}_LATER],
                fn () => {$name}_before(\$a[1]),
                fn () => {$name}_later(\$a[1]),
                fn () => [{$name}_before(\$a[1]), {$name}_later(\$a[1])],
                fn () => {$name}Before::A,
                fn () => {$name}Later::A,
                fn () => [{$name}Before::A, {$name}Later::A, {$name}Before::B],
                fn () => [defined('{$name}_BEFORE'), defined('{$name}_LATER'), defined('PHP_VERSION')],
                fn (\$a = {$name}_LATER . 'x', \$b = {$name}_BEFORE . 'x') => 1,
                fn (\$a = {$name}Later::A, \$b = {$name}Before::A) => 1,
                fn () => strtolower({$name}_BEFORE) . strlen('{$name}') . function_exists('{$name}_later'),
            ];
            PHP);
        $this->load("define('{$name}_LATER', 'later'); function {$name}_later(&\$a) {}"
            . " class {$name}Later { const A = 'a'; }");
        foreach ($closures as $closure) {
            // It is missing there. What matters is that it was sent.
            self::assertStringNotContainsString('cannot be sent', $this->answer($closure));
        }
    }

    /** What it returned or threw. */
    private function answer(Closure $closure): string
    {
        try {
            return var_export($this->enter($closure), true);
        } catch (Throwable $thrown) {
            return $thrown->getMessage();
        }
    }

    public function testTheFunctionsOfTheFileItselfAreNotThere(): void
    {
        $closure = $this->load('function own_of_file() { return 1; } return fn () => function_exists("own_of_file")'
            . ' ? "there" : own_of_file();');

        self::assertStringContainsString('Call to undefined function own_of_file()', $this->answer($closure));
    }

    // ---- neighbours

    /**
     * @dataProvider neighbours
     */
    public function testNeighboursThatDifferAreToldApart(array $values, string $code): void
    {
        $closures = $this->load($code);

        self::assertSame($values, array_map(fn (Closure $closure) => $this->enter($closure), $closures));
    }

    public static function neighbours(): iterable
    {
        yield 'values' => [[1, 2, 3], 'return [fn () => 1, fn () => 2, fn () => 3];'];
        yield 'types of values' => [[1, '1', 1.0, true],
            'return [fn () => 1, fn () => "1", fn () => 1.0, fn () => true];'];
        yield 'equal ones' => [[1, 1], 'return [fn () => 1, fn () => 1];'];
        yield 'equal ones with calls' => [['AB', 'AB'],
            'return [fn () => strtoupper("ab"), fn () => strtoupper("ab")];'];
        yield 'many equal lines' => [[7, 7], 'return [function () { $a = [1, [2]]; foreach ($a as $k => $b) {'
            . ' if (!$k) { continue; } $b[0] .= "x"; } return count($a) + 5; }, function () { $a = [1, [2]];'
            . ' foreach ($a as $k => $b) { if (!$k) { continue; } $b[0] .= "x"; } return count($a) + 5; }];'];
        yield 'constants of arrays' => [[[1], [2]], 'return [fn () => [1], fn () => [2]];'];
        yield 'defaults' => [[1, 2], 'return [fn ($a = 1) => $a, fn ($a = 2) => $a];'];
        yield 'defaults that are constants' => [[8, 8, 1],
            'return [fn ($a = PHP_INT_SIZE) => $a, fn ($a = 8) => $a, fn ($a = PHP_VERSION_ID) => 1];'];
        yield 'operators' => [[3, 2], 'return [fn ($a = 1, $b = 2) => $a + $b, fn ($a = 1, $b = 2) => $a * $b];'];
        yield 'jumps' => [[1, 2], 'return [fn ($a = 0) => $a ?: 1, fn ($a = 2) => $a ?: 1];'];
        yield 'nested ones' => [[1, 2], 'return [(fn () => fn () => 1)(), (fn () => fn () => 2)()];'];
        yield 'unary ones' => [[1, -1], 'return [fn ($a = 1) => +$a, fn ($a = 1) => -$a];'];
        yield 'casts' => [[1, '1'], 'return [fn ($a = 1.0) => (int) $a, fn ($a = 1.0) => (string) $a];'];
        yield 'names of variables' => [['a', 'b'], 'return [function () { $a = 1; return key(get_defined_vars()); },'
            . ' function () { $b = 1; return key(get_defined_vars()); }];'];
        yield 'isset and empty' => [[true, false],
            'return [fn ($a = [1]) => isset($a[0]), fn ($a = [1]) => empty($a[0])];'];
    }

    public function testANeighbourThatMayBeAnotherElsewhereIsNotTaken(): void
    {
        $name = 'NEIGHBOUR_' . bin2hex(random_bytes(4));
        define($name, 5);
        $same = [
            // Here, `5` and the constant are the same code; where the constant is missing, they are not.
            "return [fn () => $name, fn () => 5];",
            "return [fn () => PHP_INT_SIZE, fn () => 8];",
            'return [fn () => PHP_EOL, fn () => "\n"];',
            'return [fn () => \strlen("abc"), fn () => 3];',
            'return [function () { static $a = 1; return $a; }, function () { static $a = 2; return $a; }];',
            'return [#[A(1)] fn () => 1, #[A(2)] fn () => 1];',
            'return [/** A */ function () { return 1; }, /** B */ function () { return 1; }];',
        ];
        foreach ($same as $code) {
            foreach ($this->load($code) as $closure) {
                $this->assertNotSent('cannot be told apart', $closure);
            }
        }
    }

    public function testWhatAClosureHasDoneToItsStaticVariablesSaysNothing(): void
    {
        [$one, $two] = $this->load('return [function () { static $a = 1; return $a++; },' . "\n"
            . 'function () { static $a = 2; return $a++; }];');
        $one();

        self::assertSame([1, 2], [$this->enter($one), $this->enter($two)]);
    }

    // ---- the file

    public function testAClosureThatWasFoundBeforeItsFileChangedIsStillEntered(): void
    {
        $file = $this->file("return [fn () => 1,\nfn () => 2];");
        [$one, $two] = require $file;
        self::assertSame(1, $this->enter($one));
        $this->application()->write(basename($file), "<?php\nreturn [fn () => 3,\nfn () => 4];");

        self::assertSame(1, $this->enter($one));
        $this->assertNotSent(self::CHANGED, $two);
        unlink($file);
        self::assertSame(1, $this->enter($one));
        $this->assertNotSent('its file cannot be read: No such file or directory', $two);
    }

    public function testAFileThatIsLoadedAgainWithOtherContentHasOtherClosures(): void
    {
        $file = $this->file('return fn () => 1;');
        $one = require $file;
        self::assertSame(1, $this->enter($one));
        $this->application()->write(basename($file), "<?php\nreturn fn () => 2;");
        $two = require $file;

        self::assertSame([1, 2], [$this->enter($one), $this->enter($two)]);
    }

    public function testAClosureThatMovedIsNotSent(): void
    {
        $file = $this->file('return fn () => 1;');
        $closure = require $file;
        $this->application()->write(basename($file), "<?php\n\nreturn fn () => 1;");

        $this->assertNotSent(self::CHANGED, $closure);
        $this->application()->write(basename($file), "<?php\nreturn fn () => 1;");
        self::assertSame(1, $this->enter($closure));
    }

    public function testWhatIsNoRegularFileAnyMoreIsNotWaitedFor(): void
    {
        $file = $this->file('return fn () => 1;');
        $closure = require $file;
        unlink($file);
        posix_mkfifo($file, 0600);
        $this->assertNotSent('is no regular file any more', $closure);
        unlink($file);
        mkdir($file);
        $this->assertNotSent('is no regular file any more', $closure);
        rmdir($file);
        symlink('/dev/zero', $file);
        $this->assertNotSent('is no regular file any more', $closure);
        unlink($file);
    }

    public function testAHugeFileIsNotRead(): void
    {
        $file = $this->file('return fn () => 1;');
        $closure = require $file;
        $handle = fopen($file, 'r+');
        ftruncate($handle, (64 << 20) + 1);
        fclose($handle);

        $this->assertNotSent('its file is larger than 64 MiB', $closure);
    }

    public function testCodeThatIsInNoFileIsNotSent(): void
    {
        $this->assertNotSent('it is of evaluated code, which is in no file', eval('return fn () => 1;'));
        $nested = eval('return eval("return fn () => 1;");');
        $this->assertNotSent('it is of evaluated code, which is in no file', $nested);
    }

    public function testCodeOfAnotherStreamIsNotSent(): void
    {
        $wrapper = new class {
            public $context;
            private string $code = '<?php return fn () => 1;';

            public function stream_open(): bool
            {
                return true;
            }

            public function stream_read(): string
            {
                [$code, $this->code] = [$this->code, ''];

                return $code;
            }

            public function stream_eof(): bool
            {
                return $this->code === '';
            }

            public function stream_stat(): array
            {
                return [];
            }

            public function stream_set_option(): bool
            {
                return false;
            }
        };
        stream_wrapper_register('altair-closure', $wrapper::class);
        try {
            $closure = include 'altair-closure://code';
        } finally {
            stream_wrapper_unregister('altair-closure');
        }

        $this->assertNotSent('its code is from altair-closure://', $closure);
    }

    public function testCodeOfTheCommandLineAndOfStandardInputIsNotSent(): void
    {
        $enter = 'try { (new Altair\Sandbox\Runtime())->enter(fn () => 1); }'
            . ' catch (Throwable $e) { echo $e->getMessage(); }';
        self::assertStringContainsString('its code is of the command line', $this->printedBy($enter, ['-r', $enter]));
        self::assertStringContainsString('its code was read from standard input', $this->printedBy("<?php $enter", []));
    }

    /** @param list<string> $arguments */
    private function printedBy(string $input, array $arguments): string
    {
        $extension = getenv('EXTENSION');
        $options = $extension === false ? [] : ['-d', "extension=$extension"];
        $process = proc_open([PHP_BINARY, ...$options, ...$arguments], [['pipe', 'r'], ['pipe', 'w']], $pipes);
        fwrite($pipes[0], $input);
        fclose($pipes[0]);
        $printed = (string) stream_get_contents($pipes[1]);
        fclose($pipes[1]);
        proc_close($process);

        return $printed;
    }

    public function testAClosureInAPharIsSent(): void
    {
        $archive = $this->phar("<?php return [fn () => 21,\nfn () => __FILE__];");
        [$one, $two] = require "phar://$archive/closure.php";

        self::assertSame(21, $this->enter($one));
        self::assertSame("phar://$archive/closure.php", $this->enter($two));
    }

    public function testAPharThatIsGoneIsNoWarning(): void
    {
        $archive = $this->phar('<?php return fn () => 21;');
        $printed = $this->printedByFile("\$f = require 'phar://$archive/closure.php'; Phar::unlinkArchive('$archive');"
            . " set_error_handler(function () { echo 'called'; }); echo enter(\$f);", ['-d', 'phar.readonly=0']);

        self::assertStringEndsWith('cannot be sent: its archive cannot be read any more.', $printed);
        self::assertStringStartsWith('The closure', $printed);
    }

    /** An archive with this file as closure.php. */
    private function phar(string $code): string
    {
        $archive = $this->application()->path('archive' . ++$this->archives . '.phar');
        $file = $this->application()->write('in-archive.php', $code);
        $made = "\$phar = new Phar('$archive'); \$phar->addFile('$file', 'closure.php');";
        $this->printedByFile($made, ['-d', 'phar.readonly=0']);

        return $archive;
    }

    public function testAWrapperOfTheApplicationRunsNoCode(): void
    {
        $archive = $this->phar('<?php return fn () => 21;');
        $closure = require "phar://$archive/closure.php";
        $wrapper = new class {
            public static bool $isCalled = false;
            public $context;

            public function stream_open(): bool
            {
                self::$isCalled = true;

                return false;
            }
        };
        stream_wrapper_unregister('phar');
        stream_wrapper_register('phar', $wrapper::class);
        try {
            $this->assertNotSent('its archive cannot be read any more', $closure);
        } finally {
            stream_wrapper_restore('phar');
        }
        self::assertFalse($wrapper::$isCalled);
    }

    public function testOpenBasedirHoldsForTheFile(): void
    {
        $file = $this->file('return fn () => 1;', 'outside/closure.php');
        $inside = $this->application()->path('inside');
        mkdir($inside);
        $printed = $this->printedByFile("\$f = require '$file'; ini_set('open_basedir', '$inside'); echo enter(\$f);");

        self::assertStringContainsString('open_basedir does not let its file be read', $printed);
    }

    public function testShortTagsAreReadAsTheCallerReadsThem(): void
    {
        $file = $this->application()->write('short.php', "<? return fn () => 1;\n?>text <?php return fn () => 2;");
        $code = "ob_start(); \$f = require '$file'; ob_end_clean(); var_dump(enter(\$f));";

        self::assertStringContainsString('int(1)', $this->printedByFile($code, ['-d', 'short_open_tag=1']));
        self::assertStringContainsString('int(2)', $this->printedByFile($code, ['-d', 'short_open_tag=0']));
    }

    public function testAFileInAnotherEncodingIsNotSent(): void
    {
        $printed = $this->printedByFile('echo enter(fn () => 1);', ['-d', 'zend.multibyte=1']);

        self::assertStringContainsString('zend.multibyte may read its file in another encoding', $printed);
    }

    // ---- memory and time

    public function testManyClosuresOfOneFileAreOneCompilationAndLeaveNoMemory(): void
    {
        $code = 'return [';
        for ($i = 0; $i < 300; $i++) {
            $code .= "static function () { class_exists('A$i'); return ['k$i' => $i, 'b' => [1, 2, 3]]; },\n";
        }
        $closures = $this->load($code . '];');
        $this->enter($closures[0]);
        $before = memory_get_usage();
        $peak = memory_get_peak_usage();
        foreach ($closures as $closure) {
            $this->enter($closure);
        }
        self::assertLessThan(200_000, memory_get_usage() - $before);
        self::assertLessThan($peak + 2_000_000, memory_get_peak_usage());
    }

    public function testAnotherCompilationOfTheSameFileLeavesNoMemory(): void
    {
        $closure = 'return [function () { return [new ArrayObject(), Unknown%1$d::A, $a->b, strlen("x%1$d")]; }, 1];'
            . ' class Memory%1$d extends ArrayObject { const A = 1; static $b = [2]; function f(self $a): ?B {} }';
        $file = $this->file('return [fn () => 1, 1];');
        $given = require $file;
        for ($i = 0; $i < 40; $i++) {
            $this->application()->write(basename($file), "<?php\n" . sprintf($closure, $i));
            $this->assertNotSent('', $given[0]);
            $i === 10 && $before = memory_get_usage();
        }
        self::assertLessThan(40_000, memory_get_usage() - $before);
    }

    public function testAFileThatIsMadeOfManyFilesIsForgottenInTime(): void
    {
        for ($i = 0; $i < 100; $i++) {
            $closures[] = $this->load("return fn () => $i;");
        }
        foreach ($closures as $i => $closure) {
            $this->assertSame($i, $this->enter($closure));
        }
        self::assertSame(0, $this->enter($closures[0]));
    }

    public function testMemoryThatIsUsedAgainIsNotAnotherClosure(): void
    {
        $file = $this->application()->path('again.php');
        for ($i = 0; $i < 50; $i++) {
            $this->application()->write('again.php', "<?php\nreturn fn () => $i;");
            self::assertSame($i, $this->enter(require $file));
        }
    }
}
