<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\EvalRequest;
use Altair\Eval\Evaluator;
use Altair\Eval\Tests\Support\EvaluationTestCase;
use Altair\Eval\Tests\Support\Library;
use Altair\Eval\Tests\Support\Without;

/**
 * A run that failed says what may have been meant, without running code of the application for it.
 */
final class HintsTest extends EvaluationTestCase
{
    private const ORDERS = <<<'PHP'
        <?php
        namespace App;
        final class Orders
        {
            const OPEN = 'open';
            public static int $made = 0;
            public string $customerName = '';
            private string $secret = '';
            public function find(int $id, ?User $for = null): ?Order {}
            public function findAll(string|int $by = 'id', bool $all = true, array $more = [], &$out = null) {}
            public static function of(\Countable&\Traversable $items, self ...$others): static {}
            protected function hidden() {}
            public function __call($name, $arguments) {
                throw new \BadMethodCallException("Call to undefined method App\Orders::$name()");
            }
            public function inside() { return $this->secrt; }
        }
        PHP;

    /**
     * @dataProvider mistakes
     * @param list<string> $hints
     */
    public function testItSaysWhatMayHaveBeenMeant(string $snippet, array $hints): void
    {
        $this->application(['src/Orders.php' => self::ORDERS]);

        self::assertSame($hints, $this->hints($snippet));
    }

    public static function mistakes(): iterable
    {
        $orders = 'App\Orders has: find(int $id, ?User $for = null), '
            . "findAll(string|int \$by = 'id', bool \$all = true, array \$more = [], &\$out = null), "
            . 'of(Countable&Traversable $items, self ...$others), inside()';
        yield 'function' => ['strlenn("x");', ['did you mean strlen()?']];
        yield 'function in a namespace' => ['namespace A; strlenn("x");', ['did you mean strlen()?']];
        yield 'function of the snippet' => ['function totalOf() { } total_off();', ['did you mean totalOf()?']];
        yield 'callback' => ['array_map("strtouper", []);', ['did you mean strtoupper()?']];
        yield 'method' => [
            '(new App\Orders())->fnd(1);',
            ['did you mean find(int $id, ?User $for = null)?', $orders],
        ];
        yield 'method that is like none' => ['App\Orders::total();', [$orders]];
        yield 'method of a native class' => [
            '(new DateTime())->fromat("Y");',
            ['did you mean format(string $format)?'],
        ];
        yield 'class' => ['class_exists(App\Orders::class); new App\Order();', ['did you mean App\Orders?']];
        yield 'class of another namespace' => ['class_exists(App\Orders::class); new Orders();', [
            'did you mean App\Orders?',
        ]];
        yield 'interface' => ['new class implements JsonSerialisable { };', ['did you mean JsonSerializable?']];
        yield 'constant' => ['return PHP_VERSON;', ['did you mean PHP_VERSION?']];
        yield 'class constant' => ['return App\Orders::OPNE;', ['did you mean OPEN?']];
        yield 'enum case' => ['enum E { case Paid; case Open; } return E::Shipped;', ['E has: Paid, Open']];
        yield 'static property' => ['return App\Orders::$mode;', ['did you mean $made?']];
        yield 'variable' => ['$created = 1; return $craeted;', ['did you mean $created?']];
        yield 'variable of a function' => [
            '$totel = 1; return (function () { $total = 1; return $totl; })();',
            ['did you mean $total?'],
        ];
        yield 'variable of compact' => ['$total = 1; return compact("totl");', ['did you mean $total?']];
        yield 'array key' => ['$row = ["id" => 1, "created_at" => 2]; return $row["creatd_at"];', [
            'did you mean created_at?',
        ]];
        yield 'array key in an expression' => ['return array_flip(["id", "name"])["nmae"];', ['did you mean name?']];
        yield 'array key that is like none' => ['return ["id" => 1, "name" => 2]["x"];', [
            'instead of x there is: id, name',
        ]];
        yield 'array key of an array inside' => ['$a["b"]["c"] = ["count" => 1]; return $a["b"]["c"]["cuont"];', [
            'did you mean count?',
        ]];
        yield 'array key by reference' => ['$a = ["count" => 1]; $b = &$a; $b["cuont"]++;', ['did you mean count?']];
        yield 'array key of a destructured array' => ['["nmae" => $name] = ["name" => 1];', ['did you mean name?']];
        yield 'array key of a constant' => ['const A = ["name" => 1]; return A["nmae"];', ['did you mean name?']];
        yield 'index' => ['return [1, 2, 3][3];', ['the list has the keys 0 to 2']];
        yield 'index of nothing' => ['return [][0];', ['the array is empty']];
        yield 'property' => ['return (new App\Orders())->customer_nme;', ['did you mean customerName?']];
        yield 'property that is dynamic' => ['$o = (object) ["total" => 1]; return $o->totl;', ['did you mean total?']];
        yield 'property that only the class may use' => ['return (new App\Orders())->secrt;', [
            'instead of App\Orders::$secrt there is: customerName',
        ]];
        yield 'property of its own class' => ['(new App\Orders())->inside();', []];
        yield 'property of $this' => [
            'class A { private $total = 1; function f() { return $this->totl; } } (new A())->f();',
            ['did you mean total?'],
        ];
        yield 'several' => ['$total = ["count" => 1]; $a = $totl; return $total["cuont"];', [
            '$totl: did you mean $total?',
            'cuont: did you mean count?',
        ]];
        yield 'one in a loop' => ['$total = 1; for ($i = 0; $i < 9; $i++) { $b = $totl; }', ['did you mean $total?']];
        yield 'an exception that was thrown because of another' => [
            'try { strlenn(1); } catch (Error $e) { throw new LogicException("no", 0, $e); }',
            ['did you mean strlen()?'],
        ];
        yield 'what is silenced' => ['$total = ["a" => 1]; return @$total["b"] ?? @$totl;', []];
        yield 'what is asked for' => ['$total = ["a" => 1]; return $total["b"] ?? $totl ?? isset($total->a);', []];
        yield 'an exception that was caught' => ['try { strlenn(1); } catch (Error) { } return 1;', []];
        yield 'any exception' => ['throw new Exception("strlenn");', []];
        yield 'nothing wrong' => ['return 1;', []];
    }

    public function testWarningsThatAHandlerMakesExceptionsOfHaveHintsWhoseverCodeRaisesThem(): void
    {
        $handler = '<?php return new class { function has($id) { return false; } function get($id) { return null; } };';
        $this->application([
            'config/container.php' => str_replace('return', 'set_error_handler(function ($type, $message) {
                throw new ErrorException("Warning: $message"); }); return', $handler),
            'src/Row.php' => '<?php namespace App; class Row { static function name($row) { return $row["nmae"]; } }',
        ]);

        self::assertSame(['did you mean name?'], $this->hints('return ["name" => 1]["nmae"];'));
        self::assertSame(['did you mean name?'], $this->hints('return App\Row::name(["name" => 1]);'));
        $caught = 'try { App\Row::name(["name" => 1]); } catch (Exception) { }';
        self::assertSame([], $this->hints("$caught return 1;"));
        self::assertSame([], $this->hints("$caught throw new Exception('another');"));
    }

    public function testWarningsOfTheApplicationThatChangeNothingHaveNone(): void
    {
        $this->application([
            'src/Row.php' => '<?php namespace App; class Row { static function name($row) { return $row["nmae"]; } }',
        ]);

        self::assertSame([], $this->hints('return App\Row::name(["name" => 1]);'));
    }

    public function testAParseErrorShowsItsLine(): void
    {
        self::assertSame(['line 2, column 6: $a = ;'], $this->hints("\$b = 1;\n\$a = ;\n\$c = 2;"));
        self::assertSame(['line 1, column 25: <?php return [1, 2, 3, 4'], $this->hints('<?php return [1, 2, 3, 4'));
        self::assertSame(['line 1, column 14: $ä = "€"; $b c;'], $this->hints("\$ä = \"€\";\t\$b c;"));
        [$long] = $this->hints(str_repeat('$a = 1; ', 10_000) . ') ' . str_repeat('$b = 2; ', 10_000));
        self::assertStringStartsWith('line 1, column 80001: …1; $a = 1; ', $long);
        self::assertSame(') $b', mb_substr(explode(': ', $long)[1], 60, 4));
        self::assertLessThan(200, strlen($long));
        self::assertSame([], $this->hints('throw new ParseError("without a semicolon")'));
        $elsewhere = $this->application(['src/Broken.php' => "<?php\nclass {"]);
        self::assertSame([], $this->hints('return new App\Broken();'), $elsewhere->root);
    }

    public function testClassesAreFoundInComposersTablesAndTheDirectoryOfTheirNamespace(): void
    {
        $this->composer(['src/Models/Invoice.php' => '<?php not to be loaded']);

        self::assertSame(['did you mean App\Models\Invoice?'], $this->hints('new App\Models\Invioce();'));
        self::assertSame(['did you mean Mapped\Customer?'], $this->hints('new Mapped\Custmer();'));
        self::assertSame(['did you mean Mapped\Customer?'], $this->hints('new Customer();'));
        // An extra directory, or one that is none, is no matter.
        $more = '(Composer\Autoload\ClassLoader::getRegisteredLoaders())["x"]->addPsr4("App\\\\", "/nonexistent\0");';
        self::assertSame(['did you mean App\Models\Invoice?'], $this->hints($more . 'new App\Models\Invioce();'));
    }

    public function testADirectoryThatTheRunMayNotReadIsNotRead(): void
    {
        $this->composer();
        $elsewhere = sys_get_temp_dir() . '/altair-hints-' . bin2hex(random_bytes(4));
        mkdir("$elsewhere/Models", recursive: true);
        touch("$elsewhere/Models/Invoice.php");
        $loader = '(Composer\Autoload\ClassLoader::getRegisteredLoaders())["x"]';
        $snippet = "{$loader}->addPsr4('App\\\\', '$elsewhere'); new App\\Models\\Invioce();";
        try {
            self::assertSame(['did you mean App\Models\Invoice?'], $this->hints($snippet, readablePaths: [$elsewhere]));
            self::assertSame([], $this->hints($snippet));
            // With the kernel's guards away, PHP's own is left.
            $request = ['snippet' => $snippet, 'projectRoot' => $this->application()->root];
            $result = Without::evaluate([], $request, ['altair_eval.omit' => 'filesystem,landlock']);
            self::assertSame('left out: altair_eval.omit', $result['diagnostics']['guards']['landlock']);
            self::assertSame('Error', $result['exception']['class']);
            self::assertArrayNotHasKey('hints', $result['diagnostics']);
            $result = Without::evaluate([], $request, ['altair_eval.omit' => 'filesystem,landlock,ini']);
            self::assertSame(['did you mean App\Models\Invoice?'], $result['diagnostics']['hints']);
        } finally {
            unlink("$elsewhere/Models/Invoice.php");
            rmdir("$elsewhere/Models");
            rmdir($elsewhere);
        }
    }

    public function testNoCodeOfTheApplicationRunsForThem(): void
    {
        $autoloader = 'spl_autoload_register(function ($class) { echo "$class "; });';
        $class = 'class Talker extends ArrayObject { public $total = 1;'
            . ' function __get($n) { echo "get "; return parent::$n; } function __isset($n) { echo "isset "; }'
            . ' function __debugInfo() { echo "debug "; return []; } function count(): int { echo "count "; return 1; }'
            . ' function offsetExists($k): bool { echo "exists "; return true; }'
            . ' function getIterator(): Iterator { echo "iterator "; return parent::getIterator(); } }';
        $result = $this->evaluate("$autoloader $class \$o = new Talker(['name' => 1]); \$o['nmae']; \$o->totl(); ");

        self::assertSame('', $result->stdout);
        self::assertSame('Error', $result->exception['class']);

        $result = $this->evaluate("$autoloader new Missing\\Thing();");
        self::assertSame('Missing\Thing ', $result->stdout);
    }

    public function testTheyAreThereWhereverTheRunEnds(): void
    {
        $this->application(['src/Orders.php' => self::ORDERS]);
        $hint = ['did you mean strlen()?'];

        self::assertSame($hint, $this->hints('register_shutdown_function(fn () => strlenn(1));'));
        self::assertSame($hint, $this->hints('class A { function __destruct() { strlenn(1); } } $a = new A();'));
        self::assertSame($hint, $this->hints('class A { function __destruct() { strlenn(1); } } return new A();'));
        self::assertSame($hint, $this->hints('(function () { strlenn(1); })();', unsafe: true));
        // The first that ends it counts.
        $late = 'register_shutdown_function(fn () => strtouper(1)); strlenn(1);';
        self::assertSame($hint, $this->hints($late));
    }

    public function testAfterMemoryRanOutThereAreNone(): void
    {
        $result = $this->evaluate('$total = 1; $a = $totl; while (true) { $b[] = str_repeat("x", 1 << 20); }');

        self::assertOutcome('out_of_memory', $result, 255);
        self::assertArrayNotHasKey('hints', $result->diagnostics);
    }

    public function testWithLittleMemoryLeftTheExceptionIsTold(): void
    {
        $snippet = '$a = []; try { while (true) { $a[] = str_repeat("x", 4096);'
            . ' if (memory_get_usage(true) > 15 << 20) { strlenn($a); } } } finally { }';
        $result = $this->evaluate($snippet, memoryLimitMb: 16);

        self::assertOutcome('threw', $result, 1, exception: true);
        self::assertSame(['did you mean strlen()?'], $result->diagnostics['hints']);
    }

    /**
     * @dataProvider hostile
     */
    public function testHostileNamesAreBounded(string $snippet): void
    {
        $this->composer();
        $result = $this->evaluate($snippet);

        self::assertContains($result->diagnostics['outcome'], ['returned', 'threw'], json_encode($result->diagnostics));
        $hints = $result->diagnostics['hints'] ?? [];
        self::assertLessThanOrEqual(5, count($hints));
        foreach ($hints as $hint) {
            self::assertLessThanOrEqual(400, strlen($hint));
            self::assertSame(0, preg_match('/[\x00-\x1f\x7f]|\xc2[\x80-\x9f]/', $hint), $hint);
        }
    }

    public static function hostile(): iterable
    {
        yield 'long property names' => ['$o = new stdClass(); for ($i = 0; $i < 8; $i++) {'
            . ' $o->{str_repeat(chr(97 + $i), 1 << 20)} = 1; } return $o->total;'];
        yield 'a long property' => ['return (new stdClass())->{str_repeat("a", 1 << 20)};'];
        yield 'a long key' => ['return ["a" => 1][str_repeat("a", 1 << 20)];'];
        yield 'control characters in keys' => [
            "return [\"na\\nme\" => 1, \"\\x1b[31m\" => 2, \"\\xc2\\x85\" => 3]['name'];"];
        yield 'control characters asked for' => ["return ['name' => 1][\"na\\n\\x1bme\"];"];
        yield 'keys that are no text' => ['return ["\xff\xfe\xfd\xfc" => 1, "\xff\xfe\xfd" => 2]["\xff\xfe\xfd\xfa"];'];
        yield 'properties with NUL' => ['$o = new stdClass(); $o->{"na\\0me"} = 1; return $o->name;'];
        yield 'a class alias' => ['class_alias("ArrayObject", "Array\nObjekt"); new Array\Objekt();'];
        yield 'many variables' => ['for ($i = 0; $i < 99999; $i++) { ${"name$i"} = 1; } return $nmae;'];
        yield 'a large array' => ['$a = []; for ($i = 0; $i < 500000; $i++) { $a["name$i"] = 1; } return $a["nmae"];'];
        yield 'many warnings' => [str_repeat('$total = $toatl; unset($total);', 999)];
        yield 'many methods with many parameters' => ['class A { ' . implode(' ', array_map(
            static fn (int $n): string => "function name$n(" . implode(', ', array_map(
                static fn (int $p): string => "?string \$parameter$p = 'default $p'",
                range(0, 99),
            )) . ') { }',
            range(0, 13),
        )) . '} (new A())->nmae();'];
        yield 'a message' => ['throw new Error("Call to undefined method " . str_repeat("A", 1 << 20) . "::b()");'];
        yield 'an empty name' => ['throw new Error("Call to undefined method ::()");'];
        yield 'loaders that are none' => ['Closure::bind(function () { self::$registeredLoaders = [1, new stdClass(),'
            . ' "x" => (function () { $l = new Composer\Autoload\ClassLoader(); (function () {'
            . ' $this->classMap = 7; $this->prefixDirsPsr4 = ["A\\\\" => [new stdClass(), 1, "a\0b", []], "B" => 1];'
            . ' })->call($l);'
            . ' return $l; })()]; }, null, "Composer\Autoload\ClassLoader")(); new A\Bcdef();'];
    }

    public function testSecretsInThemAreRedacted(): void
    {
        $this->setVariable('SHOP_API_KEY', 'k3y-of-the-shop-42');

        $result = $this->evaluate('return ["k3y-of-the-shop-42" => 1]["x"];');

        self::assertSame(['instead of x there is: [redacted:SHOP_API_KEY]'], $result->diagnostics['hints']);
        self::assertSame(['SHOP_API_KEY'], $result->diagnostics['redacted']);
    }

    public function testLaravelsContainerSaysWhatItKnows(): void
    {
        $this->application(Library::laravel());

        self::assertSame(['container knows: greeting'], $this->hints('return container("greetng");'));
        $row = $this->hints('return ["name" => 1]["nmae"];');
        self::assertSame(['did you mean name?'], $row);
    }

    public function testSymfonysContainerSaysWhatItKnows(): void
    {
        $root = $this->application(Library::symfony())->root;
        foreach (['App\Greter' => 'App\Greeter', 'kernl' => 'kernel'] as $wanted => $known) {
            $request = new EvalRequest("return container('$wanted');", $root, self::LONG_MS);
            $result = (new Evaluator(warm: false))->evaluate($request);
            self::assertSame(["container knows: $known"], $result->diagnostics['hints'] ?? []);
        }
    }

    /** An application with Composer's own class loader. */
    private function composer(array $files = []): void
    {
        $loader = dirname(__DIR__) . '/examples/shop/vendor/composer/ClassLoader.php';
        $this->application($files + [
            'vendor/composer/ClassLoader.php' => (string) file_get_contents($loader),
            'vendor/autoload.php' => '<?php require __DIR__ . "/composer/ClassLoader.php";
                $loader = new Composer\Autoload\ClassLoader("x");
                $loader->addPsr4("App\\\\", dirname(__DIR__) . "/src");
                $loader->addClassMap(["Mapped\\\\Customer" => "/nonexistent.php"]);
                $loader->register();',
        ]);
    }

    /**
     * The hints of a run, from the fork of a template and from a process of its own: they are the same.
     *
     * @return list<string>
     */
    private function hints(string $snippet, mixed ...$options): array
    {
        $hints = $this->evaluate($snippet, ...$options)->diagnostics['hints'] ?? [];
        $options += ['projectRoot' => $this->application()->root, 'timeoutMs' => self::LONG_MS];
        $cold = (new Evaluator(warm: false))->evaluate(new EvalRequest($snippet, ...$options));
        self::assertSame($hints, $cold->diagnostics['hints'] ?? []);

        return $hints;
    }
}
