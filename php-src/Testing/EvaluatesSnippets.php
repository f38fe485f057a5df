<?php

declare(strict_types=1);

namespace Altair\Eval\Testing;

use Altair\Eval\EvalRequest;
use Altair\Eval\EvalResult;
use Altair\Eval\Evaluator;
use Altair\Eval\Support\HumanOutput;
use Altair\Eval\Support\Variables;
use PHPUnit\Framework\Attributes\AfterClass;
use ReflectionClass;

/**
 * Assertions on what PHP snippets do in the application, each in a confined process of its own. For test cases of
 * PHPUnit 9.6 to 13.
 *
 * The application stays booted for the test class, in the environment of the tests: `APP_ENV`, `APP_DEBUG` and
 * `KERNEL_CLASS` are passed on as phpunit.xml sets them. Options are those of {@see EvalRequest}, by name:
 * `$this->assertSnippetReturns(1, 'User::count()', timeoutMs: 20000)`.
 */
trait EvaluatesSnippets
{
    private static ?Evaluator $snippetEvaluator = null;

    /**
     * Ends the template of the class.
     *
     * @afterClass
     */
    #[AfterClass]
    public static function forgetSnippetEvaluator(): void
    {
        self::$snippetEvaluator = null;
    }

    /**
     * The directory of the application. The default is the nearest directory with `vendor/autoload.php` above the
     * test's file, or otherwise the working directory. Override it to use another one.
     */
    protected function snippetProjectRoot(): string
    {
        $directory = dirname((string) (new ReflectionClass(static::class))->getFileName());
        while (!is_file("$directory/vendor/autoload.php")) {
            if ($directory === dirname($directory)) {
                $directory = (string) getcwd();
                if (!is_file("$directory/vendor/autoload.php")) {
                    self::fail('There is no vendor/autoload.php above ' . static::class . ' or in the working '
                        . 'directory: override snippetProjectRoot(), or give projectRoot.');
                }
                break;
            }
            $directory = dirname($directory);
        }

        return $directory;
    }

    /**
     * Runs a snippet and returns its result.
     *
     * @param string $snippet PHP code; its last expression or `return` is the result
     * @param mixed ...$options by name: those of {@see EvalRequest}, such as `timeoutMs` or `allowWrites`
     */
    protected function evaluateSnippet(string $snippet, mixed ...$options): EvalResult
    {
        $options['projectRoot'] ??= $this->snippetProjectRoot();
        $evaluator = self::$snippetEvaluator ??= new Evaluator();
        $request = new EvalRequest(...['snippet' => $snippet] + $options);

        return Variables::with(Variables::chosen(), static fn (): EvalResult => $evaluator->evaluate($request));
    }

    /**
     * Asserts that a snippet returns exactly this value: null, a scalar, or arrays of them.
     *
     * Objects stay in the snippet's process. Let the snippet return the parts to compare.
     *
     * @param mixed $expected compared as by assertSame()
     * @param mixed ...$options see {@see evaluateSnippet()}
     */
    protected function assertSnippetReturns(mixed $expected, string $snippet, mixed ...$options): void
    {
        $result = $this->evaluateSnippet($snippet, ...$options);
        $answer = self::snippetAnswer($result);
        if ($result->result === null) {
            self::fail("The snippet returned nothing.\n$answer");
        }
        try {
            $returned = PlainValue::of($result->result);
        } catch (NotPlainException $notPlain) {
            self::fail("What the snippet returned cannot be compared: {$notPlain->getMessage()}\n$answer");
        }
        self::assertSame($expected, $returned, "The snippet returned another value.\n$answer");
    }

    /**
     * Asserts that a snippet throws an exception of this class, or of a subclass if the test can load both.
     *
     * @param string $class the class or an interface
     * @param string|null $message a part of the exception's message; null is any
     * @param mixed ...$options see {@see evaluateSnippet()}
     */
    protected function assertSnippetThrows(
        string $class,
        string $snippet,
        ?string $message = null,
        mixed ...$options,
    ): void {
        $result = $this->evaluateSnippet($snippet, ...$options);
        $answer = self::snippetAnswer($result);
        $class = ltrim($class, '\\');
        $thrown = ($result->diagnostics['outcome'] ?? null) === 'threw' ? $result->exception['class'] ?? '' : '';
        self::assertTrue($thrown !== '', "The snippet threw nothing, not $class.\n$answer");
        self::assertTrue(
            strcasecmp($thrown, $class) === 0 || is_a($thrown, $class, true),
            "The snippet threw $thrown, not $class.\n$answer",
        );
        if ($message !== null) {
            self::assertStringContainsString(
                $message,
                $result->exception['message'],
                "The snippet threw $thrown with another message.\n$answer",
            );
        }
    }

    /**
     * Asserts that something in a snippet was refused.
     *
     * @param string|null $guard the guard that refused it, as `diagnostics.blocked` names it; null is any
     * @param mixed ...$options see {@see evaluateSnippet()}
     */
    protected function assertSnippetIsBlocked(string $snippet, ?string $guard = null, mixed ...$options): void
    {
        $result = $this->evaluateSnippet($snippet, ...$options);
        $answer = self::snippetAnswer($result);
        $guards = array_values(array_unique(array_column($result->diagnostics['blocked'] ?? [], 'guard')));
        self::assertTrue($guards !== [], "Nothing that the snippet tried was refused.\n$answer");
        if ($guard !== null) {
            $names = implode(', ', $guards);
            self::assertContains($guard, $guards, "It was refused by $names, not by $guard.\n$answer");
        }
    }

    /**
     * Asserts that a snippet is still running at its deadline.
     *
     * @param mixed ...$options see {@see evaluateSnippet()}; `timeoutMs` is the deadline
     */
    protected function assertSnippetTimesOut(string $snippet, mixed ...$options): void
    {
        $result = $this->evaluateSnippet($snippet, ...$options);
        self::assertTrue(
            $result->timedOut,
            "The snippet ended before its deadline.\n" . self::snippetAnswer($result),
        );
    }

    /** The whole answer, for the message of an assertion. */
    private static function snippetAnswer(EvalResult $result): string
    {
        $outcome = $result->diagnostics['outcome'] ?? 'unknown';

        return "outcome: $outcome\n" . HumanOutput::render($result);
    }
}
