<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Sandbox\Runtime;

use Altair\Eval\Tests\Support\ClosureTestCase;
use Error;

final class ClosureRulesTest extends ClosureTestCase
{
    /** The files of the data providers know these names. */
    private const PRELUDE = "use ArrayObject as Imported;\n";

    /**
     * @dataProvider refused
     */
    public function testAClosureThatIsNoEntryPointIsRefused(string $message, string $code): void
    {
        $closure = $this->load(self::PRELUDE . $code);

        try {
            $this->runtime()->enter($closure);
            self::fail('It was entered.');
        } catch (Error $error) {
            self::assertSame($message, $error->getMessage());
        }
    }

    public static function refused(): iterable
    {
        yield from self::named(self::types());
        yield from self::named(self::lexical());
        yield from self::named(self::declarations());
        yield from self::named(self::generators());
        yield from self::named(self::callables());
        yield from self::named(self::orders());
    }

    private static function types(): iterable
    {
        $object = 'illegal type (object) accepted by sandbox at argument ';
        yield [$object . 1, 'return function (stdClass $a) {};'];
        yield [$object . 1, 'return fn (?Imported $a) => 1;'];
        yield [$object . 2, 'return function (int $a, object $b) {};'];
        yield [$object . 2, 'return function ($a, object|null $b = null) {};'];
        yield [$object . 1, 'return function (int|Unknown $a) {};'];
        yield [$object . 1, 'return function (Countable&Traversable $a) {};'];
        yield [$object . 1, 'return function (iterable|stdClass $a) {};'];
        yield [$object . 1, 'return function (Traversable|array $a) {};'];
        yield [$object . 1, 'return function (\Closure ...$a) {};'];
        yield [$object . 1, 'return function (array|bool|float|int|null|object|string $a) {};'];
        yield [$object . 1, 'enum Suit { case Hearts; } return function (Suit $a) {};'];
        yield [$object . 1, 'class Own { static function f() { return function (self $a) {}; } } return Own::f();'];
        $reference = 'illegal variable (reference) accepted by to sandbox at argument ';
        yield [$reference . 1, 'return function (&$a) {};'];
        yield [$reference . 3, 'return fn ($a, int $b, array &$c = []) => 1;'];
        yield [$reference . 2, 'return function ($a, &...$rest) {};'];
        $returned = 'illegal type (object) returned by sandbox';
        yield [$returned, 'return function (): stdClass {};'];
        yield [$returned, 'return fn (): ?Imported => null;'];
        yield [$returned, 'return function (): object {};'];
        yield [$returned, 'return function (): static {};'];
        yield [$returned, 'class Own2 { static function f() { return fn (): self => 1; } } return Own2::f();'];
        yield [$returned, 'return function (): int|Unknown {};'];
        yield [$returned, 'return function (): iterable|Unknown {};'];
        yield [$returned, 'return function (): Countable&Traversable {};'];
        yield [$returned, 'return function (): Generator { yield 1; };'];
        $by = 'illegal variable (reference) returned by sandbox';
        yield [$by, 'return function &() { static $a; return $a; };'];
        yield [$by, 'return fn &(array $a) => $a;'];
    }

    private static function lexical(): iterable
    {
        $lexical = 'illegal instruction (lexical) in entry point';
        yield [$lexical, '$a = 1; return function () use ($a) {};'];
        yield [$lexical, '$a = 1; return function () use (&$a) {};'];
        yield [$lexical, 'return @function () use ($nowhere) {};'];
        yield [$lexical, '$a = 1; return fn () => $a;'];
        yield [$lexical, '$a = null; return fn () => $a ?? 1;'];
        $in = static fn (string $code): string
            => 'return (new class extends ArrayObject { const A = 1; public $p; function f() { return ' . $code
            . '; } })->f();';
        yield [$lexical, $in('function () { return $this; }')];
        yield [$lexical, $in('fn () => $this->p')];
        yield [$lexical, $in('function () { $this->p = 1; }')];
        yield [$lexical, $in('function () { return isset($this); }')];
        yield [$lexical, $in('function () { return isset($this->p); }')];
        yield [$lexical, $in('function () { return $this->f(); }')];
        yield [$lexical, $in('function () { return clone $this; }')];
        yield [$lexical, $in('function () { if (false) { return $this; } }')];
        yield [$lexical, $in('static function () { return self::A; }')];
        yield [$lexical, $in('static function () { return static::class; }')];
        yield [$lexical, $in('static function () { return new static(); }')];
        yield [$lexical, $in('static function () { return new self(); }')];
        yield [$lexical, $in('static function ($a) { return $a instanceof self; }')];
        yield [$lexical, $in('static function () { return self::$p; }')];
        yield [$lexical, $in('static function () { return isset(static::$p); }')];
        yield [$lexical, $in('static function () { return parent::count(); }')];
        yield [$lexical, $in('static function ($a = self::A) { return $a; }')];
        yield [$lexical, $in('static function ($a = [1, [self::class => 2]]) { return $a; }')];
        yield [$lexical, $in('static function () { static $a = self::A; return $a; }')];
        yield [$lexical, 'trait T1 { static function f() { return fn () => __CLASS__; } }'
            . ' class C1 { use T1; } return C1::f();'];
    }

    private static function declarations(): iterable
    {
        yield ['illegal instruction (class) on line 0 of entry point', 'return function () { class A {} };'];
        yield ['illegal instruction (class) on line 2 of entry point',
            "return function () {\n\$a = 1;\nclass B extends C\n{\n}\n};"];
        yield ['illegal instruction (class) on line 1 of entry point', "return function () {\ninterface D {} };"];
        yield ['illegal instruction (class) on line 1 of entry point', "return function () {\ntrait E {} };"];
        yield ['illegal instruction (class) on line 1 of entry point', "return function () {\nenum F {} };"];
        yield ['illegal instruction (class) on line 1 of entry point',
            "return function () {\nif (false) { class G {} } };"];
        yield ['illegal instruction (new class) on line 0 of entry point', 'return fn () => new class {};'];
        yield ['illegal instruction (new class) on line 2 of entry point',
            "return function () {\n\nreturn new class (1) extends ArrayObject {}; };"];
        $function = 'illegal instruction (function) on line ';
        yield [$function . '0 of entry point', 'return function () { function a() {} };'];
        yield [$function . '1 of entry point', "return function () {\nreturn function () {}; };"];
        yield [$function . '3 of entry point', "return function () {\n\n\nreturn array_map(fn (\$a) => \$a, []); };"];
        yield [$function . '1 of entry point', "return function () {\nreturn; function b() {} };"];
    }

    private static function generators(): iterable
    {
        yield ['illegal instruction (yield) on line 0 of entry point', 'return function () { yield; };'];
        yield ['illegal instruction (yield) on line 2 of entry point', "return function () {\n\nyield 1 => 2; };"];
        yield ['illegal instruction (yield) on line 1 of entry point', "return fn () =>\nyield from [1];"];
        yield ['illegal instruction (yield) on line 2 of entry point', "return function () {\nreturn;\nyield; };"];
        yield ['illegal instruction (yield) on line 2 of entry point',
            "return function () {\nreturn 1;\nfalse && yield 1; };"];
    }

    private static function callables(): iterable
    {
        $callable = 'illegal instruction (callable) in entry point';
        yield [$callable, 'return strlen(...);'];
        yield [$callable, 'return Closure::fromCallable("strlen");'];
        yield [$callable, 'function own1() {} return own1(...);'];
        yield [$callable, 'function own2() {} return (new ReflectionFunction("own2"))->getClosure();'];
        yield [$callable, 'class Own3 { static function f() {} } return Own3::f(...);'];
        yield [$callable, 'return (new ArrayObject())->count(...);'];
    }

    /** What is refused for two reasons is refused for the first. */
    private static function orders(): iterable
    {
        yield ['illegal type (object) returned by sandbox', 'return function &(object $a): object { yield 1; };'];
        yield ['illegal variable (reference) returned by sandbox', 'return function &(object $a) { class H {} };'];
        yield ['illegal type (object) accepted by sandbox at argument 1', 'return function (object &$a) { yield 1; };'];
        yield ['illegal variable (reference) accepted by to sandbox at argument 1',
            'return function (&$a, object $b) { yield 1; };'];
        yield ['illegal instruction (new class) on line 1 of entry point',
            "return function () {\nnew class {};\nclass I {} };"];
        yield ['illegal instruction (lexical) in entry point', '$a = 1; return function () use ($a) { class J {} };'];
    }

    /** Each row with its code as its name. */
    private static function named(iterable $rows): iterable
    {
        foreach ($rows as [$message, $code]) {
            yield "$message: $code" => [$message, $code];
        }
    }

    /**
     * @dataProvider allowed
     */
    public function testAClosureOfScalarsAndArraysIsEntered(mixed $value, string $code, mixed ...$arguments): void
    {
        $closure = $this->load(self::PRELUDE . $code);

        self::assertSame($value, $this->enter($closure, ...$arguments));
    }

    public static function allowed(): iterable
    {
        yield 'nothing' => [null, 'return function () {};'];
        yield 'an arrow function' => [3, 'return fn ($a) => $a + 1;', 2];
        yield 'static ones' => [[1], 'return static function (array $a): array { return $a; };', [1]];
        yield 'iterable' => [[1], 'return fn (iterable $a): iterable => $a;', [1]];
        yield 'iterable or null' => [null, 'return fn (?iterable $a): ?iterable => $a;', null];
        yield 'callable' => ['strlen', 'return fn (callable $a): callable => $a;', 'strlen'];
        yield 'mixed' => [1.5, 'return fn (mixed $a): mixed => $a;', 1.5];
        yield 'a union' => ['a', 'return fn (int|string|null $a): int|string|false => $a;', 'a'];
        yield 'void' => [null, 'return function (): void {};'];
        yield 'variadic ones' => [[1, 2], 'return fn (int ...$a): array => $a;', 1, 2];
        yield 'defaults' => [[1, [2]], 'return fn (int $a = 1, $b = [PHP_INT_SIZE - 6]) => [$a, $b];'];
        yield 'objects made inside' => [2, 'return function () { return (new Imported([1, 2]))->count(); };'];
        yield 'a method that does not use $this' => [4, 'class K1 { function f() { return fn () => 4; } }'
            . ' return (new K1())->f();'];
        yield 'a bound one that does not use $this' => [5, 'return Closure::bind(fn () => 5, new ArrayObject());'];
        yield 'variables that it sets itself' => [12, 'return fn (array $a) => ($sum = array_sum($a)) * $sum / 3;',
            [2, 4]];
        yield 'a closure of a closure' => [6, '$a = fn () => 6; return $a(...);'];
        yield 'the method of a closure' => [6, '$a = fn () => 6; return $a->__invoke(...);'];
        yield 'a closure from a closure' => [7, 'return Closure::fromCallable(fn () => 7);'];
        yield 'a closure from reflection' => [8, 'return (new ReflectionFunction(fn () => 8))->getClosure();'];
        yield 'callables made inside' => [[1, 2], 'return fn () => array_map(strlen(...), ["a", "bc"]);'];
        yield 'the name of another class' => ['Own', 'return fn () => Own::class;'];
        yield 'a variable of the name this, elsewhere' => ['this', 'return fn () => "this";'];
        yield 'exceptions' => ['a', 'return function () { try { throw new Exception("a"); } catch (Exception $e) {'
            . ' return $e->getMessage(); } finally { $b = 1; } };'];
        yield 'jumps' => ['three',
            'return function ($a) { foreach ([1, 2, 3] as $i) { switch ($a) { case "x": continue 2;'
            . ' case "y": break 2; } } return match ($i) { 1 => "one", 2 => "two", 3 => "three" }; };', 'z'];
    }

    public function testAnArrowFunctionIsJudgedByWhatItHasCaptured(): void
    {
        $code = 'return function (bool $captures): Closure { if ($captures) { $a = 1; } return fn () => @$a; };';
        $make = $this->load($code);

        self::assertNull($this->enter($make(false)));
        self::assertSame('illegal instruction (lexical) in entry point', $this->refusal($make(true)));
        self::assertNull($this->enter($make(false)));
    }

    public function testStaticVariablesAreFresh(): void
    {
        $closure = $this->load('return function () { static $a = 5, $b; return [$a++, $b = [$b]]; };');
        $closure();
        $closure();

        self::assertSame([5, [null]], $this->enter($closure));
        self::assertSame([5, [null]], $this->enter($closure));
    }
}
