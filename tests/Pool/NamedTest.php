<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Pool;

use Altair\Eval\Tests\Support\Escape\Setting;
use Altair\Eval\Tests\Support\PoolProcess;
use Altair\Eval\Tests\Support\PoolTestCase;
use Altair\Eval\Tests\Support\TemporaryApplication;
use Altair\Eval\Tests\Support\Without;

/**
 * What a host names for the pool of an ordinary user to start. PHP code that may start no programs can speak to the
 * pool without this extension: so a pool starts only what such code cannot have put there. The rest runs without it.
 */
final class NamedTest extends PoolTestCase
{
    private const BY_THE_POOL = ['old', true];
    private const BY_ITSELF = ['old', false];

    /** A PHP and an extension of the user's own. */
    private TemporaryApplication $own;

    protected function setUp(): void
    {
        parent::setUp();
        $this->own = new TemporaryApplication();
        $this->own->write('ini/user.ini', "user_agent=mine\n");
        copy((string) realpath(PHP_BINARY), $this->own->path('php'));
        copy(Without::extension(), $this->own->path('altair_eval.so'));
        chmod($this->own->path('php'), 0755);
        $this->own->giveTo(Setting::AllAsUser->uid(), Setting::AllAsUser->gid());
        chown($this->pool->directory, Setting::AllAsUser->uid());
        $this->pool->start();
    }

    protected function makePool(): PoolProcess
    {
        return new PoolProcess(Setting::AllAsUser->command([]));
    }

    public function testAHostIsServedByItsOwnPhpAndExtension(): void
    {
        self::assertSame(self::BY_THE_POOL, $this->host(PHP_BINARY));
        self::assertSame(self::BY_THE_POOL, $this->host($this->own->path('php')));
    }

    public function testItIsServedByThePhpOfTheSystem(): void
    {
        self::assertSame(self::BY_THE_POOL, $this->host($this->own->path('php'), 'phpBinary: "/usr/bin/php"'));
    }

    public function testItIsServedByTheIniFilesThatItWasStartedWith(): void
    {
        self::assertSame(self::BY_THE_POOL, $this->host(PHP_BINARY, '', $this->own->path('ini')));
    }

    public function testAnotherPhpOfItsUserIsNotStarted(): void
    {
        $named = 'phpBinary: ' . var_export($this->own->path('php'), true);

        self::assertSame(self::BY_ITSELF, $this->host(PHP_BINARY, $named));
    }

    /** @return array{string, bool} what a run has seen, and whether it is the pool's */
    private function host(string $php, string $named = '', string $ini = ''): array
    {
        $code = '$request = new Altair\Eval\EvalRequest($argv[1], $argv[2], 60000);'
            . " \$answer = (new Altair\\Eval\\Evaluator($named))->evaluate(\$request);"
            . ' echo json_encode([$answer->result["value"] ?? null, $answer->diagnostics["pool"] ?? false]);';
        $command = [$php, '-d', 'extension=' . $this->own->path('altair_eval.so'), '-r', $code, '--'];
        $variables = $this->environment();
        if ($ini !== '') {
            $variables['PHP_INI_SCAN_DIR'] = (getenv('PHP_INI_SCAN_DIR') ?: PHP_CONFIG_FILE_SCAN_DIR) . ":$ini";
        }
        [, $output, $errors] = Without::command(
            [],
            Setting::AllAsUser->command([
                'env', '-u', 'CI', ...array_map(
                    static fn (string $name, string $value): string => "$name=$value",
                    array_keys($variables),
                    $variables,
                ), ...$command, self::SEEN, $this->shop->root,
            ]),
        );

        return json_decode($output, true) ?? self::fail($output . $errors);
    }
}
