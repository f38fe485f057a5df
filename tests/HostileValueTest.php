<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\Tests\Support\EvaluationTestCase;

/**
 * Values that are huge, deep or hostile to whoever looks at them.
 */
final class HostileValueTest extends EvaluationTestCase
{
    private const METHODS = [
        '__debugInfo' => 'return new class { function __debugInfo() { %s } };',
        'iterator' => 'return new class implements IteratorAggregate { function getIterator(): Iterator { %s } };',
        'current' => 'return new class extends ArrayIterator {'
            . ' function __construct() { parent::__construct([1]); } function current(): mixed { %s } };',
        'generator' => 'return (function () { yield 1; %s })();',
        'count' => 'return new class([1]) extends ArrayObject { function count(): int { %s } };',
    ];

    /**
     * @dataProvider methods
     */
    public function testWhatThrowsWhileItIsEncodedIsNotedAtItsPlace(string $snippet): void
    {
        $result = $this->evaluate(sprintf($snippet, 'throw new DomainException("boom");'));

        self::assertOutcome('returned', $result, 0, value: true);
        self::assertSame(['class' => 'DomainException', 'message' => 'boom'], $result->result['error']);
        self::assertArrayHasKey('class', $result->result);
    }

    /**
     * @dataProvider methods
     */
    public function testWhatExitsWhileItIsEncodedEndsTheRun(string $snippet): void
    {
        $result = $this->evaluate(sprintf($snippet, 'exit(3);'));

        self::assertOutcome('exited', $result, 3);
        self::assertSame('encode', $result->diagnostics['phase']);
    }

    /**
     * @dataProvider methods
     */
    public function testWhatLoopsWhileItIsEncodedEndsAtTheDeadline(string $snippet): void
    {
        $result = $this->evaluate(sprintf($snippet, 'while (true) { }'), timeoutMs: self::SHORT_MS);

        self::assertOutcome('timed_out', $result, 124, timedOut: true);
        self::assertSame('encode', $result->diagnostics['phase']);
    }

    /**
     * @dataProvider methods
     */
    public function testWhatKillsItselfWhileItIsEncodedIsReported(string $snippet): void
    {
        $result = $this->evaluate(sprintf($snippet, 'posix_kill(getmypid(), SIGKILL);'));

        self::assertOutcome('signalled', $result, 137);
    }

    public static function methods(): iterable
    {
        foreach (self::METHODS as $name => $snippet) {
            yield $name => [$snippet];
        }
    }

    public function testAHundredMegabytesAreCutNotSent(): void
    {
        $result = $this->evaluate('return str_repeat("x", 100 << 20);', memoryLimitMb: 512);

        self::assertOutcome('returned', $result, 0, value: true);
        self::assertSame(100 << 20, $result->result['length']);
        self::assertTrue($result->result['truncated']);
        self::assertSame(str_repeat('x', 10000) . '...(truncated)', $result->result['value']);
    }

    public function testAHundredMegabytesInManyPiecesStayBelowAMegabyte(): void
    {
        $result = $this->evaluate(
            'return array_map(fn ($i) => array_fill(0, 100, str_repeat(chr(65 + $i % 26), 10000) . $i),'
                . ' range(1, 900));',
            memoryLimitMb: 512,
        );

        self::assertOutcome('returned', $result, 0, value: true);
        self::assertSame(900, $result->result['count']);
        self::assertLessThanOrEqual(1 << 20, strlen(json_encode($result->result, JSON_THROW_ON_ERROR)));
        self::assertStringContainsString('"truncated":true', json_encode($result->result, JSON_THROW_ON_ERROR));
    }

    public function testAHugeExceptionMessageComesThrough(): void
    {
        $result = $this->evaluate('throw new Exception(str_repeat("x", 50 << 20));', memoryLimitMb: 512);

        self::assertOutcome('threw', $result, 1, exception: true);
        self::assertStringStartsWith('xxx', $result->exception['message']);
        self::assertLessThan(1 << 20, strlen($result->exception['message']));
    }

    public function testDeepNestingIsCut(): void
    {
        $snippet = '$a = []; for ($i = 0; $i < 100000; $i++) { $a = [$a]; } return $a;';

        $result = $this->evaluate($snippet, memoryLimitMb: 512);

        self::assertOutcome('returned', $result, 0, value: true);
        self::assertStringContainsString('"truncated":true', json_encode($result->result, JSON_THROW_ON_ERROR));
    }

    public function testAnEndlessIteratorIsPreviewed(): void
    {
        $result = $this->evaluate('return (function () { while (true) { yield 1; } })();');

        self::assertOutcome('returned', $result, 0, value: true);
        self::assertCount(50, $result->result['preview']);
        self::assertFalse($result->result['exhausted']);
    }

    public function testRecursionOnTheNativeStackEndsTheChildOnly(): void
    {
        // Each call goes through native code. Since PHP 8.3 the engine notices before the stack is used up.
        $result = $this->evaluate(
            "class A { function __toString(): string { return 'x' . new A(); } }\nreturn (string) new A();",
            memoryLimitMb: 512,
        );
        $thrown = PHP_VERSION_ID >= 80300;

        self::assertOutcome($thrown ? 'threw' : 'signalled', $result, $thrown ? 1 : 139, exception: $thrown);
        self::assertSame($thrown ? null : SIGSEGV, $result->diagnostics['signal'] ?? null);
    }

    public function testANativeRecursionWhileItIsEncodedEndsTheChildOnly(): void
    {
        $result = $this->evaluate(
            'class A { function __debugInfo() { return [(string) $this]; }'
                . ' function __toString(): string { return "x$this"; } }'
                . ' return new A();',
            memoryLimitMb: 512,
        );

        if (PHP_VERSION_ID < 80300) {
            self::assertOutcome('signalled', $result, 139);
            self::assertSame('snippet', $result->diagnostics['phase']);
        } else {
            self::assertStringContainsString('stack', $result->result['error']['message']);
        }
    }

    public function testUnserializingDeepInputDoesNoHarm(): void
    {
        $snippet = 'return unserialize(str_repeat("a:1:{i:0;", 200000) . "N;" . str_repeat("}", 200000)) === false;';

        self::assertTrue($this->value($snippet, memoryLimitMb: 512));
    }
}
