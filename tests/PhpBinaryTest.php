<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\EvalRequest;
use Altair\Eval\EvalResult;
use Altair\Eval\Evaluator;
use Altair\Eval\Exception\EvalException;
use Altair\Eval\Exception\InvalidRequestException;
use Altair\Eval\Exception\LaunchException;
use Altair\Eval\Tests\Support\EvaluationTestCase;
use Altair\Eval\Tests\Support\Without;

/**
 * Which PHP the child is, and what is said of one that cannot be it.
 */
final class PhpBinaryTest extends EvaluationTestCase
{
    public function testByDefaultItIsTheOneThatRunsTheHost(): void
    {
        $this->setVariable('PATH', '/nowhere');

        [$binary, $version] = $this->value('[PHP_BINARY, PHP_VERSION]');

        self::assertSame([realpath(PHP_BINARY), PHP_VERSION], [realpath($binary), $version]);
    }

    public function testAnotherNameIsLookedUpOnThePathThatTheHostWasStartedWith(): void
    {
        $script = "#!/bin/sh\nexec '" . PHP_BINARY . "' -d user_agent=mine \"\$@\"\n";
        $path = $this->application()->write('bin/my-php', $script, 0755);
        $directory = dirname($path);

        $code = 'echo (new Altair\Eval\Evaluator(phpBinary: "my-php"))->evaluate(new Altair\Eval\EvalRequest('
            . '"ini_get(\'user_agent\')", $argv[1], 60000))->result["value"];';
        $command = [PHP_BINARY, '-d', 'extension=' . Without::extension(), '-r', $code, '--'];
        $command[] = $this->application()->root;
        $ran = Without::command([], $command, ['PATH' => "$directory:" . getenv('PATH')]);
        self::assertSame([0, 'mine', ''], $ran);
        self::assertSame('mine', $this->evaluateWith($path, 'ini_get("user_agent")')->result['value']);

        $this->setVariable('PATH', "$directory:" . getenv('PATH'));
        $this->assertNotLaunched(['no executable `my-php` on PATH'], 'my-php');
    }

    public function testARelativePathIsRelativeToTheHost(): void
    {
        $before = (string) getcwd();
        $this->application()->write('my-php', "#!/bin/sh\nexec '" . PHP_BINARY . "' \"\$@\"\n", 0755);
        chdir($this->application()->root);
        try {
            self::assertSame(2, $this->evaluateWith('./my-php', '1 + 1')->result['value']);
        } finally {
            chdir($before);
        }
    }

    public function testAMissingBinaryIsNamed(): void
    {
        $this->assertNotLaunched(['/nowhere/php', 'does not exist', '--php'], '/nowhere/php');
        $this->assertNotLaunched(['no-such-php', 'PATH'], 'no-such-php');
        $this->assertNotLaunched(['empty'], '');
        $this->assertNotLaunched(['NUL byte'], "php\0");
    }

    public function testABinaryThatIsNoFileOrNotExecutableIsNamed(): void
    {
        $file = $this->application()->write('php', '');

        $this->assertNotLaunched([$file, 'not executable'], $file);
        $this->assertNotLaunched([$this->application()->root, 'not a file'], $this->application()->root);
    }

    public function testABinaryThatTheKernelDoesNotStartIsNamed(): void
    {
        $file = $this->application()->write('php', "\x7fELF no program", 0755);
        $this->assertNotLaunched([$file], $file);

        $file = $this->application()->write('php', "#!/nowhere/interpreter\n", 0755);
        $this->assertNotLaunched([$file], $file);
    }

    /**
     * @dataProvider strangers
     */
    public function testAProgramThatIsNoPhpIsNamedWithWhatItDid(string $binary, string $found): void
    {
        $this->assertNotLaunched([$binary, 'is no PHP command line', $found], $binary);
    }

    public static function strangers(): iterable
    {
        yield 'true' => [self::program('true'), 'status 0'];
        yield 'false' => [self::program('false'), 'status 1'];
        yield 'cat' => [self::program('cat'), 'invalid option'];
        yield 'echo' => [self::program('echo'), 'status 0'];
    }

    public function testAScriptThatIsNoPhpIsNamedWithWhatItSaid(): void
    {
        $script = $this->application()->write('php', "#!/bin/sh\necho 'I am a teapot' >&2\nexit 7\n", 0755);
        $this->assertNotLaunched([$script, 'no PHP command line', 'status 7', 'I am a teapot'], $script);

        $script = $this->application()->write('php', "#!/bin/sh\nkill -SEGV \$\$\n", 0755);
        $this->assertNotLaunched([$script, 'signal 11'], $script);
    }

    public function testAPhpWithoutTheExtensionIsNamedWithItsVersion(): void
    {
        // What such a PHP does with the arguments that it is given: it runs the code, and ignores what it cannot load.
        $script = $this->application()->write('php', "#!/bin/sh\nfor a; do last=\$a; done\nexec '" . PHP_BINARY
            . "' -n -r \"\$last\"\n", 0755);

        $this->assertNotLaunched([$script, 'is PHP ' . PHP_VERSION, 'NTS', 'cli', 'does not load'], $script);
    }

    public function testAPhpOfAnotherApiIsNamedWithWhatItIs(): void
    {
        $says = json_encode(['version' => '7.4.33', 'sapi' => 'cgi-fcgi', 'zts' => 1, 'debug' => 1, 'loaded' => false]);
        $script = $this->application()->write('php', "#!/bin/sh\nexec '" . PHP_BINARY
            . "' -n -r 'file_put_contents(\"php://fd/3\", \$argv[1]);' '$says'\n", 0755);

        $this->assertNotLaunched([$script, 'is PHP 7.4.33', 'ZTS', 'debug', 'cgi-fcgi', 'built for this PHP'], $script);
    }

    public function testAProgramThatNeverAnswersMeetsTheDeadline(): void
    {
        $script = $this->application()->write('php', "#!/bin/sh\nsleep 1000\n", 0755);

        $result = $this->evaluateWith($script, 'return 1;', self::SHORT_MS);

        self::assertOutcome('timed_out', $result, 124, timedOut: true);
        self::assertSame('boot', $result->diagnostics['phase']);
    }

    public function testNothingIsAskedOfABinaryWhoseRequestIsBad(): void
    {
        $this->expectException(InvalidRequestException::class);

        (new Evaluator(phpBinary: '/nowhere'))->evaluate(new EvalRequest('', $this->application()->root));
    }

    /**
     * @param list<string> $parts what the message has to hold
     */
    private function assertNotLaunched(array $parts, string $binary): void
    {
        try {
            $this->evaluateWith($binary, 'echo "ran";');
            self::fail('It ran.');
        } catch (EvalException $failure) {
            self::assertInstanceOf(LaunchException::class, $failure);
            self::assertInstanceOf(\RuntimeException::class, $failure);
            foreach ($parts as $part) {
                self::assertStringContainsString($part, $failure->getMessage());
            }
            self::assertStringNotContainsString("\n", $failure->getMessage());
        }
        self::assertSame([], $this->processes());
    }

    private function evaluateWith(string $binary, string $snippet, int $timeoutMs = self::LONG_MS): EvalResult
    {
        $request = new EvalRequest($snippet, $this->application()->root, $timeoutMs);

        return (new Evaluator(phpBinary: $binary))->evaluate($request);
    }

    private static function program(string $name): string
    {
        foreach (explode(':', (string) getenv('PATH')) as $directory) {
            if (is_executable("$directory/$name")) {
                return "$directory/$name";
            }
        }
        throw new \RuntimeException("There is no $name on PATH.");
    }
}
