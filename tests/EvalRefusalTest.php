<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\EvalResult;
use Altair\Eval\Tests\Support\EvaluationTestCase;

/**
 * Code that is compiled from a string: refused to code of the snippet, free to the application's own.
 */
final class EvalRefusalTest extends EvaluationTestCase
{
    /** A stream wrapper whose every file is PHP code. */
    private const WRAPPER = <<<'PHP'
        class Made
        {
            public $context;
            private string $code = '<?php return "made up";';
            public function stream_open() { return true; }
            public function stream_read($n) { [$code, $this->code] = [$this->code, '']; return $code; }
            public function stream_eof() { return $this->code === ''; }
            public function stream_stat() { return []; }
            public function stream_set_option() { return false; }
            public function url_stat() { return []; }
        }
        PHP;

    /**
     * @dataProvider evals
     */
    public function testEvalIsRefusedInCodeOfTheSnippet(string $snippet): void
    {
        $this->assertRefused('eval()', $this->evaluate("echo 'before'; $snippet"));
    }

    public static function evals(): iterable
    {
        $eval = 'eval("echo \"ran\";");';
        yield 'at the top' => ["return $eval"];
        yield 'function' => ["function f() { $eval } f();"];
        yield 'closure' => ["(function () { $eval })();"];
        yield 'arrow function' => ['(fn () => eval("echo \"ran\";"))();'];
        yield 'closure that native code calls' => ["array_map(function () { $eval }, [1]);"];
        yield 'closure that the application calls' => ["App\\Calls::now(function () { $eval });"];
        yield 'closure bound to the application' => [
            "Closure::bind(function () { $eval }, new App\\Calls(), App\\Calls::class)();",
        ];
        yield 'method' => ["class A { function f() { $eval } } (new A())->f();"];
        yield 'method of a class below one of the application' => [
            "class A extends App\\Calls { function hook() { $eval } } (new A())->run();",
        ];
        yield 'trait' => ["trait T { function f() { $eval } } (new class { use T; })->f();"];
        yield 'generator' => ["foreach ((function () { $eval yield 1; })() as \$x);"];
        yield 'fiber' => ["(new Fiber(function () { $eval }))->start();"];
        yield 'destructor' => ["class A { function __destruct() { $eval } } new A();"];
        yield 'destructor at the end' => ["class A { function __destruct() { $eval } } \$a = new A();"];
        yield 'shutdown function' => ["register_shutdown_function(function () { $eval });"];
        yield 'shutdown function of a shutdown function' => [
            "register_shutdown_function(fn () => register_shutdown_function(function () { $eval }));",
        ];
        yield 'autoloader' => ["spl_autoload_register(function () { $eval }); new Unknown();"];
        yield 'error handler' => ["set_error_handler(function () { $eval }); echo \$undefined;"];
        yield 'output callback' => ["ob_start(function () { $eval }); echo 'x'; ob_end_flush();"];
        yield 'tick' => ["declare(ticks=1); register_tick_function(function () { $eval }); \$a = 1;"];
        yield 'magic method' => ["class A { function __get(\$n) { $eval } } (new A())->x;"];
    }

    /**
     * @dataProvider includes
     */
    public function testAnIncludeOfWhatIsNoFileIsRefusedInCodeOfTheSnippet(string $scheme, string $snippet): void
    {
        $this->assertRefused("include of a $scheme: URL", $this->evaluate("echo 'before'; $snippet"));
    }

    public static function includes(): iterable
    {
        foreach (['include', 'include_once', 'require', 'require_once'] as $include) {
            yield "$include of a filter" => [
                'php', "$include 'php://filter/read=string.rot13/resource=vendor/autoload.php';",
            ];
        }
        yield 'data' => ['data', 'include "data:text/plain,<?php echo \"ran\";";'];
        yield 'data with slashes' => ['data', 'include "data://text/plain,<?php echo \"ran\";";'];
        yield 'data in capitals' => ['data', 'include "DATA://text/plain,<?php echo \"ran\";";'];
        yield 'input' => ['php', 'include "php://input";'];
        yield 'memory' => ['php', 'include "php://memory";'];
        yield 'temp' => ['php', 'include "php://temp";'];
        yield 'standard input' => ['php', 'include "PHP://stdin";'];
        yield 'http' => ['http', 'include "http://127.0.0.1/x.php";'];
        yield 'in a function' => ['php', 'function f() { return include "php://memory"; } f();'];
        yield 'in a closure that native code calls' => ['php', 'array_map(fn ($f) => include $f, ["php://memory"]);'];
        yield 'in a shutdown function' => ['php', 'register_shutdown_function(fn () => include "php://memory");'];
        $made = self::WRAPPER;
        yield 'a wrapper of the snippet' => [
            'made', "stream_wrapper_register('made', 'Made'); include 'made://x'; $made",
        ];
        yield 'by the alias' => ['made', "stream_register_wrapper('made', 'Made'); include 'Made://x'; $made"];
        yield 'a wrapper in place of files' => [
            'file',
            "stream_wrapper_unregister('file'); stream_wrapper_register('file', 'Made'); include 'x.php'; $made",
        ];
        yield 'a wrapper in place of one of PHP' => [
            'glob',
            "stream_wrapper_unregister('glob'); stream_wrapper_register('glob', 'Made'); include 'glob://x'; $made",
        ];
    }

    public function testTheApplicationsOwnCodeMayCompileStrings(): void
    {
        $this->application(['src/Calls.php' => <<<'PHP'
            <?php
            namespace App;
            final class Calls
            {
                public static function all(string $code): array
                {
                    $nested = eval("return eval('return \"nested\";');");
                    $closure = eval('return function () { return eval("return 4;"); };');
                    eval('class Proxy { public function make() { return eval("return 5;"); } }');
                    return [eval($code), $nested, $closure(), (new \Proxy())->make(),
                        array_map(eval('return fn ($x) => eval("return \$x;");'), [6])];
                }
                public static function filtered(string $file): mixed
                {
                    return include "php://filter/read=string.toupper/resource=$file";
                }
            }
            PHP, 'upper.php' => '<?php return "lower";']);

        $result = $this->evaluate('App\Calls::all("return 3;")');

        self::assertSame([3, 'nested', 4, 5, [6]], self::plain($result->result));
        self::assertArrayNotHasKey('blocked', $result->diagnostics);
        self::assertSame('LOWER', $this->value('App\Calls::filtered("upper.php")'));
        self::assertSame(5, $this->value('App\Calls::all("1;"); return (new Proxy())->make();'));
    }

    public function testAFileOfTheApplicationIsNotTheSnippetWhateverItsName(): void
    {
        $code = '<?php return eval("return __FILE__;");';
        $this->application(['snippet' => $code, 'src/snippet' => $code]);

        self::assertStringContainsString('/snippet(1) : eval()\'d code', $this->value('include "snippet"'));
        self::assertStringContainsString('/snippet(1)', $this->value('chdir("src"); return include "./snippet";'));
    }

    public function testFilesAndTheApplicationsOwnWrappersAreIncludedAsEver(): void
    {
        $this->application([
            'vendor/autoload.php' => '<?php stream_wrapper_register("made", "Made"); ' . self::WRAPPER,
            'plain.php' => '<?php return "plain";',
        ]);

        self::assertSame('plain', $this->value('include "plain.php"'));
        self::assertSame('plain', $this->value('require "file://" . __DIR__ . "/plain.php"'));
        self::assertSame('made up', $this->value('include "made://anything"'));
        $temporary = 'file_put_contents($f = tempnam(sys_get_temp_dir(), "a"), "<?php return 7;"); return include $f;';
        self::assertSame(7, $this->value($temporary));
        self::assertSame('plain', $this->value(
            'stream_wrapper_unregister("file"); stream_wrapper_register("file", "Made");'
            . ' stream_wrapper_restore("file"); return include "plain.php";',
        ));
    }

    public function testWhatOlderPhpCompiledIsNoCodeAnyMore(): void
    {
        self::assertFalse($this->value('function_exists("create_function")'));
        self::assertSame('', $this->evaluate('@preg_replace("/a/e", "print(1)", "a"); return 1;')->stdout);
        self::assertSame('', $this->evaluate('try { assert("print(1)"); } catch (Error) { } return 1;')->stdout);
    }

    public function testAnUnsafeRunCompilesStrings(): void
    {
        self::assertSame([3, 1], $this->value('return [eval("return 3;"), include "php://memory"];', unsafe: true));
    }

    protected function setUp(): void
    {
        parent::setUp();
        $this->application(['src/Calls.php' => <<<'PHP'
            <?php
            namespace App;
            class Calls
            {
                public static function now(callable $f): mixed { return $f(); }
                public function run(): mixed { return $this->hook(); }
                protected function hook() { }
            }
            PHP]);
    }

    private function assertRefused(string $what, EvalResult $result): void
    {
        self::assertOutcome('threw', $result, 1, exception: true);
        self::assertSame('Error', $result->exception['class']);
        self::assertSame(
            "$what is refused in a confined run to code of the snippet; --unsafe allows it",
            $result->exception['message'],
        );
        self::assertStringStartsWith('before', $result->stdout);
        self::assertStringNotContainsString('ran', $result->stdout);
        self::assertSame(
            [['what' => $what, 'guard' => 'ini', 'lift' => '--unsafe']],
            $result->diagnostics['blocked'],
        );
    }
}
