<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Testing;

use Altair\Eval\Testing\EvaluatesSnippets;
use Altair\Eval\Tests\Support\TemporaryApplication;
use Error;
use LogicException;
use PHPUnit\Framework\AssertionFailedError;
use PHPUnit\Framework\TestCase;
use RuntimeException;
use Shop\UserRepository;

/**
 * The trait's assertions, each where it holds and where it does not.
 */
final class EvaluatesSnippetsTest extends TestCase
{
    use EvaluatesSnippets;

    private ?string $root = null;

    protected function snippetProjectRoot(): string
    {
        return $this->root ?? dirname(__DIR__, 2) . '/examples/shop';
    }

    public function testASnippetIsEvaluatedInTheProject(): void
    {
        $class = UserRepository::class;
        $result = $this->evaluateSnippet("container($class::class)->findByEmail('ada@shop.example')->name");

        self::assertSame(['type' => 'string', 'value' => 'Ada'], $result->result);
    }

    public function testOptionsAreThoseOfARequest(): void
    {
        $application = new TemporaryApplication();
        $snippet = 'return [ini_get("memory_limit"), getcwd()];';

        $this->assertSnippetReturns(
            ['64M', $application->root],
            $snippet,
            memoryLimitMb: 64,
            projectRoot: $application->root,
        );
        $this->expectException(Error::class);
        $this->expectExceptionMessage('Unknown named parameter $memory');
        $this->evaluateSnippet($snippet, memory: 64);
    }

    public function testTheApplicationIsBootedInTheEnvironmentOfTheTests(): void
    {
        $before = [$_SERVER['APP_ENV'] ?? null, getenv('APP_ENV')];
        try {
            // What phpunit.xml's <server> does.
            $_SERVER['APP_ENV'] = 'of-the-tests';
            $this->assertSnippetReturns('of-the-tests', 'getenv("APP_ENV")');
            self::assertSame($before[1], getenv('APP_ENV'));
        } finally {
            [$_SERVER['APP_ENV']] = $before;
            if ($before[0] === null) {
                unset($_SERVER['APP_ENV']);
            }
        }
    }

    public function testTheProjectIsTheNearestAboveTheTestThatHasAnAutoloader(): void
    {
        $code = '<?php return new class ("any") extends PHPUnit\Framework\TestCase {
            use Altair\Eval\Testing\EvaluatesSnippets { snippetProjectRoot as public; }
        };';
        $application = new TemporaryApplication(['tests/Unit/test.php' => $code]);

        $test = require $application->path('tests/Unit/test.php');
        self::assertSame($application->root, $test->snippetProjectRoot());

        $application->remove('vendor');
        $before = (string) getcwd();
        try {
            chdir(dirname(__DIR__, 2) . '/examples/shop');
            self::assertSame(getcwd(), $test->snippetProjectRoot(), 'none above: the working directory');
            chdir('/');
            $this->assertItFails($test->snippetProjectRoot(...), 'override snippetProjectRoot()');
        } finally {
            chdir($before);
        }
    }

    public function testTheApplicationStaysBootedForTheClass(): void
    {
        $this->root = ($application = new TemporaryApplication())->root;

        // What was written shortly before it is read makes one template more; a busy machine may refuse one.
        $seen = [];
        do {
            $seen[] = $next = $this->evaluateSnippet('return 1;')->diagnostics;
        } while ($next['start'] !== 'warm' && count($seen) < 5 && usleep(count($seen) * 200000) === null);

        self::assertSame('warm', $next['start'], var_export($seen, true));
        self::forgetSnippetEvaluator();
        self::assertSame('cold', $this->evaluateSnippet('return 3;')->diagnostics['start']);
        unset($application);
    }

    /**
     * @dataProvider values
     */
    public function testAValueThatIsReturnedIsCompared(mixed $expected, string $snippet): void
    {
        $this->assertSnippetReturns($expected, $snippet);
    }

    /**
     * @return iterable<string, array{mixed, string}>
     */
    public static function values(): iterable
    {
        yield 'nothing' => [null, '$a = 1; if ($a) { $b = 2; }'];
        yield 'null' => [null, 'return null;'];
        yield 'a boolean' => [true, 'true'];
        yield 'an integer' => [2, '1 + 1'];
        yield 'a float' => [2.0, '1.5 + 0.5'];
        yield 'infinity' => [-INF, '-INF'];
        yield 'text' => ["é\n", '"é\n"'];
        yield 'bytes' => ["\xff\0", '"\xff\0"'];
        yield 'an empty array' => [[], '[]'];
        yield 'arrays' => [['a' => [1, 2.5, 'x'], 5 => ['b' => null]], '["a" => [1, 2.5, "x"], 5 => ["b" => null]]'];
    }

    /**
     * @dataProvider otherValues
     */
    public function testAnotherValueFails(mixed $expected, string $snippet, string ...$said): void
    {
        $this->assertItFails(fn () => $this->assertSnippetReturns($expected, $snippet), ...$said);
    }

    /**
     * @return iterable<string, list<mixed>>
     */
    public static function otherValues(): iterable
    {
        yield 'another number' => [3, '1 + 1', 'int = 2', 'is identical to 3'];
        yield 'another type' => [1.0, '1', 'int = 1'];
        yield 'an object' => [[], 'new ArrayObject()', 'cannot be compared', 'ArrayObject'];
        yield 'an object within' => [[], '["a" => [new stdClass()]]', "at ['a'][0] it is object stdClass"];
        yield 'too deep' => [[], '[[[[[1]]]]]', 'at [0][0][0] it is array, and was cut'];
        yield 'too long' => ['x', 'str_repeat("x", 20000)', 'it is string, and was cut'];
        yield 'an exception' => [
            1,
            'echo "before"; throw new LogicException("no");',
            'returned nothing',
            'outcome: threw',
            'LogicException: no',
            'before',
        ];
        yield 'an exit, and what it wrote' => [null, 'fwrite(STDERR, "oh"); exit(3);', 'outcome: exited', 'oh'];
        yield 'something refused' => [null, 'shell_exec("id"); exit(3);', 'refused: '];
    }

    public function testAnExceptionIsRecognised(): void
    {
        $snippet = 'throw new LogicException("not so");';

        $this->assertSnippetThrows(LogicException::class, $snippet);
        $this->assertSnippetThrows('\logicexception', $snippet, 'not');
        $this->assertSnippetThrows(\Exception::class, $snippet, message: 'so', timeoutMs: 20000);
        $this->assertSnippetThrows(\Throwable::class, 'this is no PHP');
        $this->assertSnippetThrows('App\Unknown', 'namespace App; class Unknown extends \Exception {} '
            . 'throw new Unknown();');
    }

    public function testAnotherExceptionFails(): void
    {
        $throws = fn (string $snippet, ?string $message = null) => fn () => $this->assertSnippetThrows(
            RuntimeException::class,
            $snippet,
            $message,
        );

        $this->assertItFails($throws('return 1;'), 'threw nothing, not RuntimeException', 'int = 1');
        $this->assertItFails($throws('exit(1);'), 'threw nothing', 'outcome: exited');
        $this->assertItFails($throws('throw new LogicException("a");'), 'LogicException, not Runtime', ': a');
        $this->assertItFails($throws('throw new RuntimeException("abc");', 'abd'), 'another message', 'abc', 'abd');
        $application = new TemporaryApplication(
            ['config/container.php' => '<?php throw new RuntimeException("boot");'],
        );
        $this->root = $application->root;
        $this->assertItFails($throws('return 1;'), 'threw nothing', 'outcome: boot_failed', 'boot');
    }

    public function testWhatIsRefusedIsRecognised(): void
    {
        $blocked = $this->evaluateSnippet('shell_exec("id");')->diagnostics['blocked'];

        $this->assertSnippetIsBlocked('shell_exec("id");');
        $this->assertSnippetIsBlocked('shell_exec("id");', $blocked[0]['guard']);
    }

    public function testWhatIsNotRefusedFails(): void
    {
        $blocked = fn (string $snippet, ?string $guard = null) => fn () => $this->assertSnippetIsBlocked(
            $snippet,
            $guard,
        );

        $this->assertItFails($blocked('return 1;'), 'Nothing that the snippet tried was refused', 'int = 1');
        $this->assertItFails($blocked('shell_exec("id");', 'moat'), 'not by moat', 'refused: ');
    }

    public function testADeadlineIsRecognised(): void
    {
        $this->assertSnippetTimesOut('while (true);', timeoutMs: 1000);
    }

    public function testAnEndBeforeTheDeadlineFails(): void
    {
        $this->assertItFails(fn () => $this->assertSnippetTimesOut('return 1;'), 'before its deadline', 'int = 1');
    }

    /** Asserts that an assertion does not hold, and what it says. */
    private function assertItFails(callable $assertion, string ...$said): void
    {
        try {
            $assertion();
        } catch (AssertionFailedError $failure) {
            $message = $failure->getMessage();
        }
        self::assertTrue(isset($message), 'The assertion held.');
        foreach ($said as $text) {
            self::assertStringContainsString($text, $message);
        }
    }
}
