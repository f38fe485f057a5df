<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\EvalResult;
use Altair\Eval\Tests\Support\EvaluationTestCase;

/**
 * An application that cannot be booted is an outcome that says why, and the snippet does not run.
 */
final class BootFailureTest extends EvaluationTestCase
{
    public function testItSaysThatTheAutoloaderIsMissing(): void
    {
        $this->application()->remove('vendor/autoload.php');

        $result = $this->boot();

        self::assertOutcome('boot_failed', $result, 2);
        self::assertStringContainsString(
            $this->application()->path('vendor/autoload.php') . ' does not exist',
            $result->diagnostics['message'],
        );
        self::assertStringContainsString('composer install', $result->diagnostics['message']);
    }

    public function testItSaysThatTheAutoloaderIsADirectory(): void
    {
        $this->application()->remove('vendor/autoload.php');
        mkdir($this->application()->path('vendor/autoload.php'));

        $result = $this->boot();

        self::assertOutcome('boot_failed', $result, 2);
        self::assertStringContainsString('is not a file', $result->diagnostics['message']);
    }

    /**
     * @dataProvider files
     */
    public function testItEncodesWhatAFileOfBootThrew(string $file): void
    {
        $this->application([$file => "<?php\n\nthrow new DomainException('boom', 4);"]);

        $result = $this->boot();

        self::assertOutcome('boot_failed', $result, 2, exception: true);
        self::assertSame('DomainException', $result->exception['class']);
        self::assertSame(['boom', 4, 3], [
            $result->exception['message'],
            $result->exception['code'],
            $result->exception['line'],
        ]);
        self::assertSame($this->application()->path($file), $result->exception['file']);
    }

    /**
     * @dataProvider files
     */
    public function testItEncodesAParseErrorInAFileOfBoot(string $file): void
    {
        $this->application([$file => "<?php\nreturn 1 +;"]);

        $result = $this->boot();

        self::assertOutcome('boot_failed', $result, 2, exception: true);
        self::assertSame(['ParseError', $this->application()->path($file), 2], [
            $result->exception['class'],
            $result->exception['file'],
            $result->exception['line'],
        ]);
    }

    /**
     * @dataProvider files
     */
    public function testItSaysThatAFileOfBootCalledExit(string $file): void
    {
        $this->application([$file => '<?php echo "kept"; exit(0);']);

        $result = $this->boot();

        self::assertOutcome('boot_failed', $result, 2);
        self::assertStringContainsString('exit(0)', $result->diagnostics['message']);
        self::assertSame('kept', $result->stdout);
    }

    /**
     * @dataProvider files
     */
    public function testAFatalErrorInAFileOfBootIsReportedAsSuchWithItsPlace(string $file): void
    {
        $this->application([$file => "<?php\ntrigger_error('gone', E_USER_ERROR);"]);

        $result = $this->boot();

        self::assertOutcome('fatal', $result, 255);
        self::assertSame('gone', $result->diagnostics['message']);
        self::assertSame($this->application()->path($file), $result->diagnostics['location']['file']);
        self::assertSame(2, $result->diagnostics['location']['line']);
    }

    public static function files(): iterable
    {
        yield 'autoloader' => ['vendor/autoload.php'];
        yield 'container' => ['config/container.php'];
    }

    /**
     * @dataProvider noContainers
     */
    public function testItSaysWhatTheBootstrapReturnedInsteadOfAContainer(string $code, string $found): void
    {
        $this->application(['config/container.php' => "<?php $code"]);

        $result = $this->boot();

        self::assertOutcome('boot_failed', $result, 2);
        self::assertStringContainsString('config/container.php', $result->diagnostics['message']);
        self::assertStringContainsString($found, $result->diagnostics['message']);
        self::assertStringContainsString('get() and has()', $result->diagnostics['message']);
    }

    public static function noContainers(): iterable
    {
        yield 'nothing' => ['', 'integer'];
        yield 'null' => ['return null;', 'null'];
        yield 'array' => ['return [];', 'array'];
        yield 'false' => ['return false;', 'boolean'];
        yield 'string' => ['return "container";', 'string'];
        yield 'object without methods' => ['return new ArrayObject();', 'ArrayObject'];
        yield 'object with get() only' => ['class Half { function get($id) {} } return new Half();', 'Half'];
        yield 'closure' => ['return fn () => 1;', 'Closure'];
    }

    public function testItSaysThatTheBootstrapCannotBeRead(): void
    {
        $this->application(['config/container.php' => '<?php']);
        // Not root's either: a child of root is the owner of the project, without root's privileges.
        chmod($this->application()->path('config/container.php'), 0);

        $result = $this->boot();

        self::assertOutcome('boot_failed', $result, 2);
        self::assertStringContainsString('config/container.php cannot be read', $result->diagnostics['message']);
    }

    public function testWhatBootPrintsIsKeptAndDoesNoHarm(): void
    {
        $this->application(['config/container.php' => '<?php echo "noise"; fwrite(STDERR, "more"); return new class {'
            . ' function has($id) { return true; } function get($id) { return $id; } };']);

        $result = $this->evaluate('return container("x");');

        self::assertOutcome('returned', $result, 0, value: true);
        self::assertSame('x', $result->result['value']);
        self::assertSame(['noise', 'more'], [$result->stdout, $result->stderr]);
    }

    public function testAKillInBootNamesThatPhase(): void
    {
        $this->application(['config/container.php' => '<?php posix_kill(getmypid(), SIGKILL); sleep(60);']);

        $result = $this->boot();

        self::assertOutcome('signalled', $result, 137);
        self::assertSame('boot', $result->diagnostics['phase']);
    }

    private function boot(): EvalResult
    {
        $result = $this->evaluate('echo "the snippet ran"; return 1;');

        self::assertSame('boot', $result->diagnostics['phase']);
        self::assertStringNotContainsString('the snippet ran', $result->stdout);

        return $result;
    }
}
