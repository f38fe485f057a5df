<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\EvalRequest;
use Altair\Eval\Evaluator;
use Altair\Eval\Exception\EvalException;
use Altair\Eval\Tests\Support\Command;
use Altair\Eval\Tests\Support\EvaluationTestCase;
use Altair\Eval\Tests\Support\HungMount;
use Altair\Eval\Tests\Support\Skip;
use Altair\Eval\Tests\Support\TemporaryApplication;

/**
 * What stands in the place of the files of a project that its host reads before a run. A root host reads nothing there
 * that the project's owner could not read, and waits for nothing.
 */
final class PlantedFilesTest extends EvaluationTestCase
{
    /** Who owns the project. */
    private const OWNER = 54321;

    /** Seconds for which a file system says nothing, and in which a run with a deadline of one second is over. */
    private const HUNG = 6;
    private const OVER = 4;

    /** What the owner may not read, and what everybody may. */
    private TemporaryApplication $outside;

    /** @var ?resource */
    private $listener = null;

    protected function setUp(): void
    {
        if (posix_geteuid() !== 0) {
            Skip::NeedsRoot->because('Only a root host can read what the project\'s owner cannot.');
        }
        parent::setUp();
        $this->outside = new TemporaryApplication();
        foreach (['APP_ENV', 'DATABASE_URL', 'DB_HOST', 'REDIS_URL'] as $name) {
            $this->setVariable($name, null);
        }
    }

    protected function assertPostConditions(): void
    {
        $this->listener = null;
        parent::assertPostConditions();
    }

    /** Puts a link to a file of root's into the owner's project. */
    private function link(string $name, string $content, int $mode = 0600): void
    {
        $this->application()->remove($name);
        is_dir($directory = dirname($this->application()->path($name))) || mkdir($directory);
        symlink($this->outside->write(basename($name), $content, $mode), $this->application()->path($name));
        $this->application()->giveTo(self::OWNER, self::OWNER);
    }

    /** An address that something listens at. */
    private function listen(): string
    {
        $this->listener = stream_socket_server('tcp://127.0.0.1:0') ?: self::fail('No listener.');

        return (string) stream_socket_get_name($this->listener, false);
    }

    private static function connecting(string $address): string
    {
        // Without any service PHP's own function is refused.
        return "try { return @stream_socket_client('tcp://$address', \$code, \$why, 5) !== false; }"
            . ' catch (Error) { return false; }';
    }

    /**
     * @return iterable<string, array{string}>
     */
    public static function environmentFiles(): iterable
    {
        yield '.env' => ['.env'];
        yield '.env.local' => ['.env.local'];
        yield '.env.test' => ['.env.test'];
    }

    /**
     * A guess that was right was replaced in the answer, and so confirmed.
     *
     * @dataProvider environmentFiles
     */
    public function testALinkToAFileOfTheHostsTellsNoSecretOfIt(string $name): void
    {
        $this->link($name, "ROOTS_TOKEN=abcdefgh12345678\n");

        self::assertSame('abcdefgh12345678', $this->value('return "abcdefgh12345678";'));
    }

    /**
     * @return iterable<string, array{string, string}>
     */
    public static function declarations(): iterable
    {
        yield 'an environment file' => ['.env.local', "DATABASE_URL=mysql://u:p@192.0.2.9:3306/shop\n"];
        yield 'composer.json' => ['composer.json', '{"extra":{"altair-eval":{"services":["192.0.2.9:3306"]}}}'];
        yield 'a wrong one' => ['composer.json', '{"extra":{"altair-eval":{"services":["192.0.2.9:3306", "wrong"]}}}'];
    }

    /**
     * @dataProvider declarations
     */
    public function testALinkToAFileOfTheHostsDeclaresNoService(string $name, string $content): void
    {
        $address = $this->listen();
        $this->link($name, str_replace('192.0.2.9:3306', $address, $content));

        self::assertFalse($this->value(self::connecting($address)));
    }

    /**
     * @dataProvider declarations
     */
    public function testTheDoctorShowsNothingOfAFileOfTheHosts(string $name, string $content): void
    {
        $this->link($name, $content);
        $shown = Command::run(['doctor', '--root=' . $this->application()->root, '--format=json']);

        self::assertSame([[], []], [$shown->json()['services'], $shown->json()['problems']]);
        self::assertStringNotContainsString('192.0.2.9', $shown->output . $shown->errors);
    }

    public function testALinkToAFileOfTheHostsNamesNoPackage(): void
    {
        $package = $this->outside->path('package');
        $this->outside->write('package/composer.json', '{}');
        $installed = ['packages' => [['dist' => ['type' => 'path'], 'install-path' => $package]]];
        $this->link('vendor/composer/installed.json', json_encode($installed));

        self::assertFalse($this->value("return file_exists('$package/composer.json');"));
    }

    /** A run could not follow it either: what it leads to is not in its private root. */
    public function testALinkToAFileThatTheOwnerMayReadIsNotFollowedEither(): void
    {
        $address = $this->listen();
        $this->link('.env', "DATABASE_URL=mysql://u:p@$address/shop\n", 0644);

        self::assertFalse($this->value(self::connecting($address)));
        self::assertFalse($this->value("return @file_get_contents('.env');"));
    }

    /**
     * @return iterable<string, array{string, bool}>
     */
    public static function placesThatHang(): iterable
    {
        yield 'an environment file' => ['.env', false];
        yield 'the directory of the audit log' => ['.altair', false];
        yield 'what an environment file leads to' => ['.env.local', true];
        yield 'what composer.json leads to' => ['composer.json', true];
        yield 'what the list of packages leads to' => ['vendor/composer/installed.json', true];
    }

    /**
     * The deadline was not kept by what the host did before the run.
     *
     * @dataProvider placesThatHang
     */
    public function testAFileSystemThatSaysNothingDoesNotHoldTheHostUp(string $name, bool $isLink): void
    {
        $at = $isLink ? $this->outside->path('hung') : $this->application()->path($name);
        if ($isLink) {
            $this->link($name, '');
            unlink($this->application()->path($name));
            mkdir($at);
            symlink("$at/file", $this->application()->path($name));
        } else {
            $name === '.altair' ? mkdir($at) : touch($at);
        }
        $hung = HungMount::at($at, self::HUNG) ?? Skip::LacksKernel->because('There is no FUSE.');
        $started = microtime(true);
        try {
            $request = new EvalRequest('return 1;', $this->application()->root, timeoutMs: 1000);
            (new Evaluator(warm: false))->evaluate($request);
        } catch (EvalException) {
        }
        $seconds = microtime(true) - $started;
        unset($hung);

        self::assertLessThan(self::OVER, $seconds);
    }

    /** What was known before is looked at again, and may be another file system's by then. */
    public function testOneThatHasComeOverAKnownFileDoesNotHoldTheHostUpEither(): void
    {
        $at = $this->application()->path('.env');
        touch($at);
        $evaluator = new Evaluator(warm: false);
        $request = new EvalRequest('return 1;', $this->application()->root, timeoutMs: 1000);
        $evaluator->evaluate($request);
        $hung = HungMount::at($at, self::HUNG) ?? Skip::LacksKernel->because('There is no FUSE.');
        $started = microtime(true);
        try {
            $evaluator->evaluate($request);
        } catch (EvalException) {
        }
        $seconds = microtime(true) - $started;
        unset($hung);

        self::assertLessThan(self::OVER, $seconds);
    }
}
