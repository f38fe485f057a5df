<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\Tests\Support\EvaluationTestCase;

/**
 * `container()` in a snippet, and where the container comes from.
 */
final class ContainerTest extends EvaluationTestCase
{
    /** A container that tells its name, and what it was asked for. */
    private const CONTAINER = <<<'PHP'
        <?php
        return new class {
            public string $name = 'NAME';
            public function has(string $id): bool
            {
                return $id !== 'missing';
            }
            public function get(string $id): mixed
            {
                return $id === 'missing' ? throw new OutOfBoundsException("no $id") : "$this->name $id";
            }
        };
        PHP;

    public function testItGivesTheContainerOrOneOfItsServices(): void
    {
        $this->application(['config/container.php' => self::named('configured')]);

        self::assertSame('configured', $this->value('container()->name'));
        self::assertSame('configured', $this->value('container(null)->name'));
        self::assertSame('configured x', $this->value('container("x")'));
        self::assertSame('configured x', $this->value('container(id: "x")'));
        self::assertSame('configured x', $this->value('return \container("x");'));
        self::assertSame('configured x', $this->value('return CONTAINER("x");'));
        self::assertSame('configured 7', $this->value('function f() { return container("7"); } return f();'));
        self::assertSame('configured x', $this->value('namespace A; return (fn () => container("x"))();'));
        self::assertSame('configured x', $this->value(
            'return (new class { function f() { return container("x"); } })->f();',
        ));
        self::assertSame(['configured a', 'configured b'], $this->value('array_map(container(...), ["a", "b"])'));
        self::assertTrue($this->value('container() === container()'));
    }

    public function testAnExceptionOfTheContainerIsTheSnippets(): void
    {
        $this->application(['config/container.php' => self::named('configured')]);

        $result = $this->evaluate("\nreturn container('missing');");

        self::assertOutcome('threw', $result, 1, exception: true);
        self::assertSame('no missing', $result->exception['message']);
        self::assertSame('caught', $this->value(
            'try { container("missing"); } catch (OutOfBoundsException) { return "caught"; }',
        ));
    }

    public function testItRefusesWhatIsNoName(): void
    {
        $result = $this->evaluate('return container([]);');

        self::assertSame('TypeError', $result->exception['class']);
        self::assertStringContainsString('container()', $result->exception['message']);
        self::assertStringContainsString('?string, array given', $result->exception['message']);
    }

    public function testAnApplicationsOwnFunctionDoesNotCollide(): void
    {
        $this->application([
            'config/container.php' => self::named('configured'),
            'vendor/autoload.php' => '<?php function container(...$a) { return "own"; }'
                . ' function own() { return container(); }',
        ]);

        self::assertSame(['configured x', 'own'], $this->value('return [container("x"), own()];'));
    }

    /**
     * @dataProvider waysToCall
     */
    public function testItIsAFunctionByEveryWayToCallOne(string $snippet): void
    {
        $this->application([
            'config/container.php' => self::named('configured'),
            'src/Each.php' => '<?php namespace App; class Each { static function of(callable $f) { return $f("x"); } }',
        ]);

        foreach (['', 'namespace Some\Space; '] as $namespace) {
            foreach ([false, true] as $unsafe) {
                self::assertSame('configured x', $this->value($namespace . $snippet, unsafe: $unsafe));
            }
        }
    }

    public static function waysToCall(): iterable
    {
        yield 'variable' => ['$f = "container"; return $f("x");'];
        yield 'variable with a backslash' => ['$f = "\\\\Container"; return $f("x");'];
        yield 'array_map' => ['return \array_map("container", ["x"])[0];'];
        yield 'call_user_func' => ['return \call_user_func("container", "x");'];
        yield 'call_user_func_array' => ['return \call_user_func_array("container", ["id" => "x"]);'];
        yield 'first-class callable' => ['$f = container(...); return $f("x");'];
        yield 'of a variable' => ['$f = "container"; return ($f(...))("x");'];
        yield 'Closure::fromCallable' => ['return (\Closure::fromCallable("container"))("x");'];
        yield 'reflection' => ['return (new \ReflectionFunction("container"))->invoke("x");'];
        yield 'code of the application' => ['return \App\Each::of("container");'];
        yield 'that knows it' => [
            'return \function_exists("container") && \function_exists("\\\\container") && \is_callable("container")'
            . ' ? container("x") : "unknown";',
        ];
        yield 'a shutdown function' => [
            'static $last; $last = new class { function __destruct() { echo \array_map("container", ["x"])[0]; } };'
            . ' return container("x");',
        ];
    }

    public function testItIsNotThereForTheApplicationsOwnCode(): void
    {
        $knows = 'return function_exists("container") || is_callable("container");';
        $this->application(['vendor/autoload.php' => "<?php function f() { $knows }"
            . ' function g() { return container(); } function e() { return eval("return container();"); }']);

        self::assertFalse($this->value('f()'));
        foreach (['g()', 'e()'] as $call) {
            foreach ([false, true] as $unsafe) {
                $result = $this->evaluate($call, unsafe: $unsafe);
                self::assertSame('Call to undefined function container()', $result->exception['message'] ?? null);
            }
        }
    }

    public function testAStringMeansTheApplicationsFunctionWhereItHasOne(): void
    {
        $this->application([
            'config/container.php' => self::named('configured'),
            'vendor/autoload.php' => '<?php function container(...$a) { return "own"; }',
        ]);

        self::assertSame(['configured x', 'own', ['own'], 'own'], $this->value(
            '$f = "container"; return [container("x"), $f("x"), array_map($f, ["x"]), call_user_func($f)];',
        ));
    }

    /**
     * @dataProvider laterDeclarations
     */
    public function testAFileThatDeclaresOneLaterReplacesIt(string $file): void
    {
        $this->application([
            'config/container.php' => self::named('configured'),
            'helpers.php' => $file,
            'src/Loaded.php' => '<?php namespace App; require __DIR__ . "/../helpers.php"; class Loaded {}',
            'src/Calls.php' => '<?php namespace App; class Calls { static function it() { return container(); } }',
        ]);

        foreach (['require "helpers.php";', 'new App\Loaded();'] as $load) {
            foreach ([false, true] as $unsafe) {
                $result = $this->evaluate(
                    "\$f = 'container'; \$before = \$f('x');"
                    . ' try { App\Calls::it(); } catch (Error $e) { $error = $e->getMessage(); } ' . $load
                    . ' return [$before, $error, container("x"), $f("x"), array_map($f, ["x"]), App\Calls::it()];',
                    unsafe: $unsafe,
                );

                self::assertSame('', $result->stderr);
                self::assertSame(
                    ['configured x', 'Call to undefined function container()', 'configured x', 'own', ['own'], 'own'],
                    self::plain($result->result),
                );
            }
        }
    }

    public static function laterDeclarations(): iterable
    {
        yield 'at the top level' => ['<?php function container() { return "own"; }'];
        yield 'unless there is one' => [
            '<?php if (!function_exists("container")) { function container() { return "own"; } }',
        ];
        yield 'in a block' => ['<?php if (true) { function Container() { return "own"; } }'];
        yield 'in a function' => [
            '<?php (function () { if (!function_exists("container")) { function container() { return "own"; } } })();',
        ];
        yield 'from a string' => ['<?php eval("function container() { return \"own\"; }");'];
    }

    public function testAFileOfTheApplicationThatIsLoadedAtTheEndMayDeclareOne(): void
    {
        $this->application(['vendor/autoload.php' => '<?php function later() { register_shutdown_function('
            . 'function () { if (!function_exists("container")) { function container() { return "own"; } }'
            . ' echo container(); }); }']);

        $result = $this->evaluate('later(); return 1;');

        self::assertOutcome('returned', $result, 0, value: true);
        self::assertSame(['own', ''], [$result->stdout, $result->stderr]);
    }

    /**
     * @dataProvider ownContainers
     */
    public function testASnippetMayDeclareAContainerOfItsOwn(string $snippet): void
    {
        $this->application(['config/container.php' => self::named('configured')]);

        self::assertSame('own', $this->value($snippet));
    }

    public static function ownContainers(): iterable
    {
        yield 'before' => ['function container() { return "own"; } return container();'];
        yield 'after' => ['return container(); function container() { return "own"; }'];
        yield 'in a block' => ['if (true) { function container() { return "own"; } } return container();'];
        yield 'by a string' => ['function container() { return "own"; } return array_map("container", [1])[0];'];
        yield 'in a namespace' => ['namespace A; function container() { return "own"; } return container();'];
        yield 'imported' => ['namespace A { function f() { return "own"; } }'
            . ' namespace { use function A\f as container; return container(); }'];
        yield 'method' => ['return (new class { function container() { return "own"; } })->container();'];
        yield 'static method' => ['class A { static function container() { return "own"; } } return A::container();'];
        yield 'variable' => ['$container = fn () => "own"; return $container();'];
    }

    public function testARequestsBootstrapComesFirst(): void
    {
        $this->application([
            'config/container.php' => self::named('configured'),
            'a.php' => self::named('requested'),
            'b.php' => self::named('of the environment'),
        ]);
        $this->setVariable('ALTAIR_EVAL_BOOTSTRAP', 'b.php');

        self::assertSame('requested', $this->value('container()->name', bootstrap: 'a.php'));
        $absolute = $this->application()->path('a.php');
        self::assertSame('requested', $this->value('container()->name', bootstrap: $absolute));
        self::assertSame('of the environment', $this->value('container()->name'));
        $this->setVariable('ALTAIR_EVAL_BOOTSTRAP', $this->application()->path('b.php'));
        self::assertSame('of the environment', $this->value('container()->name'));
        $this->setVariable('ALTAIR_EVAL_BOOTSTRAP', null);
        self::assertSame('configured', $this->value('container()->name'));
    }

    public function testTheFrameworksContainerIsUsedWhereNoneIsConfigured(): void
    {
        $this->application(['vendor/autoload.php' => '<?php namespace Altair\Container; class Container {'
            . ' public $name = "framework"; function has($id) { return true; } function get($id) { return $id; } }']);

        self::assertSame('framework', $this->value('container()->name'));
    }

    public function testElseAMinimalOneInstantiatesWhatNeedsNothing(): void
    {
        $this->application([
            'src/Plain.php' => '<?php namespace App; class Plain { public function __construct(public int $n = 3) {} }',
            'src/Needy.php' => '<?php namespace App; class Needy { public function __construct(Plain $plain) {} }',
            'src/Absent.php' => '<?php namespace App; abstract class Absent {}',
        ]);

        self::assertSame([3, true], $this->value(
            'return [container(App\Plain::class)->n, container("App\Plain") === container("App\Plain")];',
        ));
        self::assertSame([true, false, false, false], $this->value(
            'array_map(container()->has(...), ["App\Plain", "App\Needy", "App\Absent", "App\None"])',
        ));
        $reasons = ['Needy' => 'requires 1 argument', 'Absent' => 'instantiated', 'None' => 'no such class'];
        foreach ($reasons as $name => $why) {
            $result = $this->evaluate("container('App\\$name')");
            self::assertOutcome('threw', $result, 1, exception: true);
            self::assertStringContainsString("App\\$name", $result->exception['message']);
            self::assertStringContainsString($why, $result->exception['message']);
            self::assertStringContainsString('config/container.php', $result->exception['message']);
        }
    }

    public function testTheMinimalContainerIsAPsr11ContainerWhereThatIsKnown(): void
    {
        $this->application(['vendor/autoload.php' => '<?php namespace Psr\Container; interface ContainerInterface {'
            . ' public function get(string $id); public function has(string $id): bool; }'
            . ' interface ContainerExceptionInterface extends \Throwable {}'
            . ' interface NotFoundExceptionInterface extends ContainerExceptionInterface {}']);

        self::assertTrue($this->value('container() instanceof Psr\Container\ContainerInterface'));
        self::assertSame('not found', $this->value('try { container("None"); }'
            . ' catch (Psr\Container\NotFoundExceptionInterface) { return "not found"; }'));
    }

    private static function named(string $name): string
    {
        return str_replace('NAME', $name, self::CONTAINER);
    }
}
