<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\EvalRequest;
use Altair\Eval\EvalResult;
use Altair\Eval\Runner\SecurityProfile;
use Altair\Eval\Tests\Support\EvaluationTestCase;

/**
 * Functions that are taken away once boot is over: some from everyone, some from the snippet's own code only.
 */
final class DisabledFunctionTest extends EvaluationTestCase
{
    /** Refused in the snippet's own code, allowed in the application's. */
    private const SNIPPET_ONLY = ['ini_set', 'ini_alter', 'ini_restore', 'putenv', 'assert'];

    /**
     * @dataProvider disabledFunctions
     */
    public function testItIsRefusedInASnippetWithAnErrorThatNamesTheFlag(string $function, string $flag): void
    {
        $result = $this->evaluate("echo 'kept'; \$f = '$function'; \$f();");

        $this->assertRefused($function, $result);
        self::assertSame('kept', $result->stdout);
        self::assertStringContainsString("$flag allows it", $result->exception['message']);
        self::assertSame(
            [['what' => $function, 'guard' => 'ini', 'lift' => $flag]],
            array_map(self::withoutBrackets(...), $result->diagnostics['blocked']),
        );
        self::assertFalse($this->value("function_exists('$function')"));
    }

    /** All that the profile lists, as far as this PHP has it. */
    public static function disabledFunctions(): iterable
    {
        $listed = static function (bool $network): array {
            $flags = (new SecurityProfile(new EvalRequest('1', '/', allowNetwork: $network)))->phpFlags('/');

            return explode(',', substr(current(preg_grep('/^disable_functions=/', $flags)), 18));
        };
        $always = $listed(true);
        foreach (array_filter($listed(false), function_exists(...)) as $function) {
            yield $function => [$function, in_array($function, $always, true) ? '--unsafe' : '--network'];
        }
    }

    /**
     * @dataProvider waysToCall
     */
    public function testItIsRefusedHoweverItIsCalled(string $snippet): void
    {
        $this->assertRefused('shell_exec', $this->evaluate($snippet));
    }

    public static function waysToCall(): iterable
    {
        yield 'by name in capitals' => ['return SHELL_EXEC("id");'];
        yield 'fully qualified' => ['return \shell_exec("id");'];
        yield 'from a namespace' => ['namespace A; return shell_exec("id");'];
        yield 'backticks' => ['return `id`;'];
        yield 'variable' => ['$f = "shell_exec"; return $f("id");'];
        yield 'call_user_func' => ['return call_user_func("shell_exec", "id");'];
        yield 'call_user_func_array' => ['return call_user_func_array("shell_exec", ["id"]);'];
        yield 'array_map' => ['return array_map("shell_exec", ["id"]);'];
        yield 'first-class callable' => ['return shell_exec(...)("id");'];
        yield 'Closure::fromCallable' => ['return Closure::fromCallable("shell_exec")("id");'];
        yield 'reflection' => ['return (new ReflectionFunction("shell_exec"))->invoke("id");'];
        yield 'closure of reflection' => ['return (new ReflectionFunction("shell_exec"))->getClosure()("id");'];
        yield 'shutdown function' => ['register_shutdown_function("shell_exec", "id");'];
        yield 'generator' => ['return iterator_to_array((function () { yield shell_exec("id"); })());'];
        yield 'output callback' => ['ob_start("shell_exec"); echo "id"; ob_end_flush();'];
        yield 'sort' => ['$a = ["id", "ls"]; usort($a, "shell_exec");'];
    }

    public function testItIsRefusedInTheApplicationsCodeAndInClosuresMadeBeforeToo(): void
    {
        $this->application([
            'src/Shell.php' => '<?php namespace App;'
                . ' class Shell { static function run() { return shell_exec("id"); } }',
            'config/container.php' => <<<'PHP'
                <?php
                App\Shell::class;
                return new class {
                    public function __construct()
                    {
                        $this->made = [
                            'callable' => Closure::fromCallable('shell_exec'),
                            'first-class' => shell_exec(...),
                            'reflected' => (new ReflectionFunction('shell_exec'))->getClosure(),
                            'arrow' => fn () => shell_exec('id'),
                            'nested' => [[(object) ['f' => shell_exec(...)]]],
                        ];
                    }
                    public array $made;
                    public function has($id) { return true; }
                    public function get($id) { return $this->made[$id]; }
                };
                PHP,
        ]);

        foreach (['callable', 'first-class', 'reflected', 'arrow'] as $made) {
            $this->assertRefused('shell_exec', $this->evaluate("container('$made')('id')"));
        }
        $this->assertRefused('shell_exec', $this->evaluate('(container("nested")[0][0]->f)("id")'));
        $this->assertRefused('shell_exec', $this->evaluate('array_map(container("callable"), ["id"])'));
        $this->assertRefused('shell_exec', $this->evaluate('App\Shell::run()'));
        $this->assertRefused('shell_exec', $this->evaluate('container("arrow")->__invoke()'));
    }

    public function testBootMayCallWhatTheSnippetMayNot(): void
    {
        $this->application(['vendor/autoload.php' => '<?php ini_set("precision", "5"); putenv("BOOTED=yes");'
            . ' assert(true); eval("function evaluated() { return 4; }");'
            . ' define("HAD", function_exists("shell_exec"));']);

        self::assertSame(['5', 'yes', 4, true], $this->value(
            'return [ini_get("precision"), getenv("BOOTED"), evaluated(), HAD];',
        ));
    }

    public function testTheApplicationsOwnCodeMayStillChangeSettings(): void
    {
        $this->application(['src/Lazy.php' => <<<'PHP'
            <?php
            namespace App;
            final class Lazy
            {
                public static function work(): array
                {
                    $before = ini_set('precision', '6');
                    ini_alter('precision', '7');
                    $now = ini_get('precision');
                    ini_restore('precision');
                    putenv('LAZY=yes');
                    assert(true);
                    $each = array_map('ini_set', ['precision'], ['8']);
                    return [$now, getenv('LAZY'), eval('return 3;'), ini_get('precision'), function_exists('ini_set')];
                }
                public static function call(callable $f): mixed
                {
                    return $f('precision', '9');
                }
            }
            PHP]);

        self::assertSame(['7', 'yes', 3, '8', true], $this->value('App\Lazy::work()'));
        self::assertArrayNotHasKey('blocked', $this->evaluate('App\Lazy::work()')->diagnostics);
        $this->assertRefused('ini_set', $this->evaluate('App\Lazy::work(); return ini_set("precision", "9");'));
        $this->assertRefused('ini_set', $this->evaluate('App\Lazy::call(fn ($n, $v) => ini_set($n, $v))'));
    }

    /**
     * @dataProvider snippetsOwnCode
     */
    public function testTheSnippetsFunctionsClassesAndClosuresAreTheSnippet(string $snippet): void
    {
        $this->assertRefused('ini_set', $this->evaluate($snippet));
    }

    public static function snippetsOwnCode(): iterable
    {
        $call = 'ini_set("precision", "5");';
        yield 'function' => ["function f() { $call } f();"];
        yield 'closure' => ["(function () { $call })();"];
        yield 'method' => ["class A { function f() { $call } } (new A())->f();"];
        yield 'generator' => ["foreach ((function () { $call yield 1; })() as \$x);"];
        yield 'fiber' => ["(new Fiber(function () { $call }))->start();"];
        yield 'through native code' => ['array_map("ini_set", ["precision"], ["5"]);'];
        yield 'call_user_func' => ['call_user_func("ini_set", "precision", "5");'];
        yield 'shutdown function without any code' => ['register_shutdown_function("ini_set", "precision", "5");'];
        yield 'shutdown closure' => ["register_shutdown_function(function () { $call });"];
        yield 'destructor' => ["class A { function __destruct() { $call } } \$a = new A();"];
        yield 'fiber without any code' => ['(new Fiber("ini_set"))->start("precision", "5");'];
    }

    public function testARefusalThatTheSnippetCatchesIsStillReported(): void
    {
        $result = $this->evaluate('try { shell_exec("id"); } catch (Error) { } return "went on";');

        self::assertOutcome('returned', $result, 0, value: true);
        self::assertSame('went on', $result->result['value']);
        self::assertCount(1, $result->diagnostics['blocked']);
    }

    public function testTheNetworkLiftsItsFunctionsAndNoOthers(): void
    {
        self::assertSame([true, true, false], $this->value(
            'array_map(function_exists(...), ["fsockopen", "stream_socket_client", "shell_exec"])',
            allowNetwork: true,
        ));
        self::assertSame(['0', '1'], [
            $this->value('ini_get("allow_url_fopen")'),
            $this->value('ini_get("allow_url_fopen")', allowNetwork: true),
        ]);
    }

    public function testAnUnsafeRunIsRefusedNothing(): void
    {
        self::assertSame(["ok\n", '5', 3], $this->value(
            'ini_set("precision", "5"); return [shell_exec("echo ok"), ini_get("precision"), eval("return 3;")];',
            unsafe: true,
        ));
    }

    private function assertRefused(string $function, EvalResult $result): void
    {
        self::assertOutcome('threw', $result, 1, exception: true);
        self::assertSame('Error', $result->exception['class']);
        self::assertStringStartsWith("$function() is refused in a confined run", $result->exception['message']);
    }

    private static function withoutBrackets(array $blocked): array
    {
        return ['what' => rtrim($blocked['what'], '()')] + $blocked;
    }
}
