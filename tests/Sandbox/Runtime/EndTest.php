<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Sandbox\Runtime;

use Altair\Eval\Tests\Support\RuntimeTestCase;
use Altair\Sandbox\Exception;
use ErrorException;

/**
 * Entries that end by an exception, `exit` or a fatal error: the caller is told, and the runtime goes on with its
 * state.
 */
final class EndTest extends RuntimeTestCase
{
    /**
     * @dataProvider endings
     */
    public function testTheCallerIsToldAndTheRuntimeGoesOn(string $code, string $cause, string $printed): void
    {
        $runtime = $this->runtime(['display_errors' => '1']);
        $runtime->enter(static function (): void {
            define('KEPT', 'kept');
        });
        $pid = $runtime->enter(static fn (): int => getmypid());

        // Twice: the second is no other than the first.
        for ($round = 0; $round < 2; $round++) {
            [$output, $thrown] = self::printed(static fn (): mixed => $runtime->enter(
                static fn (string $code): mixed => eval($code),
                [$code],
            ));
            self::assertInstanceOf(Exception::class, $thrown, $output);
            self::assertStringMatchesFormat("sandbox bailed out: $cause", $thrown->getMessage());
            self::assertStringMatchesFormat($printed, $output);
            $kept = static fn (): array => [KEPT, getmypid()];
            self::assertSame(['kept', $pid], $runtime->enter($kept));
        }
    }

    public static function endings(): iterable
    {
        $eval = __FILE__ . "(%d) : eval()'d code";
        yield 'an exception' => [
            'echo "before\n"; throw new LogicException("why");',
            "LogicException: why in $eval:1",
            "before\n%AFatal error: Uncaught LogicException: why in $eval:1%A",
        ];
        yield 'an error' => [
            'nothing();',
            "Error: Call to undefined function nothing() in $eval:1",
            "%AFatal error: Uncaught Error: Call to undefined function nothing()%A",
        ];
        yield 'a parse error' => ['return 1 +;', "ParseError: syntax error%A in $eval:1", "%AParse error: %A"];
        yield 'exit' => ['echo "before"; exit;', 'it called exit(0)', 'before'];
        yield 'exit with a status' => ['exit(3);', 'it called exit(3)', ''];
        yield 'exit with a text, after one with a status' => ['exit("the end");', 'it called exit(0)', 'the end'];
        yield 'exit in a buffer' => ['ob_start(); echo "kept"; exit(255);', 'it called exit(255)', 'kept'];
        yield 'exit past finally' => ['try { exit(1); } finally { echo "not PHP"; }', 'it called exit(1)', ''];
        yield 'a fatal error' => [
            'trigger_error("user", E_USER_ERROR);',
            "user in $eval:1",
            "%AFatal error: user in $eval on line 1%A",
        ];
        yield 'a fatal error of the compiler' => [
            'function twice() {} function twice() {}',
            "Cannot redeclare %Stwice()%A",
            '%AFatal error: Cannot redeclare %A',
        ];
        yield 'one in a call of a function of PHP' => [
            'array_map(static fn () => trigger_error("within", E_USER_ERROR), [1]);',
            "within in $eval:1",
            '%AFatal error: within%A',
        ];
        yield 'PHP\'s time limit' => [
            'set_time_limit(1); while (true) { }',
            "Maximum execution time of 1 second exceeded in $eval:1",
            '%AFatal error: Maximum execution time of 1 second exceeded%A',
        ];
        yield 'an exception in a destructor' => [
            'return [new class { function __destruct() { throw new Exception("late"); } }][0] === 1;',
            "Exception: late in $eval:1",
            '%AFatal error: Uncaught Exception: late%A',
        ];
        yield 'an exception whose text throws' => [
            'throw new class("own") extends Exception { function __toString(): string { throw new Exception(); } };',
            "%Aown in $eval:1",
            '%AFatal error: %A',
        ];
        yield 'an exception whose text exits' => [
            'throw new class("own") extends Exception { function __toString(): string { exit(9); } };',
            "%Aown in $eval:1",
            '%AFatal error: %A',
        ];
        yield 'a text of bytes' => ['throw new Exception("a\0b\xff");', "Exception: a\\0b%A in $eval:1", '%A'];
    }

    public function testAFatalErrorLeavesNothingOfItsFramesBehind(): void
    {
        $runtime = $this->runtime();
        $deep = static function (): void {
            $GLOBALS['recurse'] = eval('return function (int $n) use (&$recurse) {
                return $n === 0 ? trigger_error("deep", E_USER_ERROR) : ($GLOBALS["recurse"])($n - 1);
            };');
            ($GLOBALS['recurse'])(2000);
        };
        $memory = static fn (): int => memory_get_usage();

        $used = [];
        for ($i = 0; $i < 20; $i++) {
            self::assertStringContainsString('deep', self::failure(static fn (): mixed => $runtime->enter($deep)));
            $used[] = $runtime->enter($memory);
        }
        // What the frames held is lost; the engine's stack (256 KiB a page) is not.
        self::assertLessThan(20 << 20, end($used) - $used[0], implode(' ', $used));
    }

    public function testATraceShowsTheNameUnderWhichTheClassIsUsed(): void
    {
        $runtime = new \sandbox\Runtime(self::INI);
        $thrown = self::printed(static fn (): mixed => $runtime->enter(static function (): void {
            throw new \Exception();
        }))[1];
        $runtime->close();
        self::assertInstanceOf(\sandbox\Exception::class, $thrown);
        self::assertInstanceOf(Exception::class, $thrown);
        self::assertInstanceOf(ErrorException::class, $thrown);
        self::assertSame(['sandbox\Runtime', '->', 'enter'], [
            $thrown->getTrace()[0]['class'], $thrown->getTrace()[0]['type'], $thrown->getTrace()[0]['function'],
        ]);
        self::assertSame(__FILE__, $thrown->getFile());
        self::assertSame(E_ERROR, $thrown->getSeverity());
    }

    public function testAnExceptionWithinIsNotChainedToTheCallers(): void
    {
        $runtime = $this->runtime();
        $thrown = self::printed(static fn (): mixed => $runtime->enter(static function (): void {
            throw new \Exception('outer', 7, new \Exception('inner'));
        }))[1];

        self::assertNull($thrown->getPrevious(), 'It is text: what an isolated PHP says is no object of the caller.');
        self::assertSame(0, $thrown->getCode());
    }
}
