<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Pool;

use Altair\Eval\Tests\Support\Command;
use Altair\Eval\Tests\Support\Library;
use Altair\Eval\Tests\Support\PoolTestCase;

/**
 * Commands and tools of frameworks, each call of which is a process of PHP.
 */
final class FrameworkTest extends PoolTestCase
{
    /** The Univeros framework's `bin/altair` and a server with its tool, as far as they are this package's. */
    private const UNIVEROS = <<<'PHP'
        <?php
        require '%1$s/tests/Support/Framework/framework.php';
        spl_autoload_register(static function (string $class): void {
            $file = '%1$s/php-src/' . strtr(substr($class, strlen('Altair\Eval\\')), '\\', '/') . '.php';
            if (str_starts_with($class, 'Altair\Eval\\') && is_file($file)) {
                require $file;
            }
        });
        PHP;

    private const COMMAND = <<<'PHP'
        exit((new Altair\Eval\Cli\EvalCommand())($argv[1], format: 'json', verbose: true));
        PHP;

    private const SHARED = <<<'PHP'
        $container = new Altair\Container\Container();
        (new Altair\Eval\Configuration\EvalConfiguration())->apply($container);
        exit((new Altair\Eval\Cli\EvalCommand($container->bound(Altair\Eval\Evaluator::class)))($argv[1],
            format: 'json', verbose: true));
        PHP;

    private const TOOL = <<<'PHP'
        $input = ['snippet' => $argv[1], 'verbose' => true, 'typed' => true];
        echo json_encode((new Altair\Eval\Mcp\EvalTool())->call($input));
        PHP;

    private const CONSOLE = <<<'PHP'
        $console = new Symfony\Component\Console\Application();
        $console->add(new Altair\Eval\Bridge\Symfony\EvalCommand());
        $console->run(new Symfony\Component\Console\Input\ArrayInput(
            ['eval', 'snippet' => $argv[1], '--format' => 'json', '-v' => true],
        ));
        PHP;

    /**
     * @return iterable<string, array{string}> code after {@see UNIVEROS}
     */
    public static function entrances(): iterable
    {
        yield "the framework's command" => [self::COMMAND];
        yield "the framework's command with its shared evaluator" => [self::SHARED];
        yield "the framework's tool" => [self::TOOL];
        yield "Symfony's Console" => [self::CONSOLE];
    }

    /**
     * @dataProvider entrances
     */
    public function testEachCallIsAProcessAndTheApplicationIsBootedOnce(string $code): void
    {
        $code = sprintf(self::UNIVEROS, dirname(__DIR__, 2)) . $code;
        if (str_contains($code, 'Symfony')) {
            $library = var_export(Library::autoloader('Symfony/Component/Console'), true);
            $code = str_replace('$console =', "require $library;\n" . '$console =', $code);
        }
        $this->shop->write('bin/altair', $code);

        self::assertSame(['old', false], $this->call(without: 'start'));
        self::assertSame(['old', false], $this->call(without: 'start'));
        $pid = $this->pool->await(fn (): ?int => $this->pool->pid());
        self::assertSame(['old', true, 'first'], $this->call());
        self::assertSame(['old', true, 'warm'], $this->call());
        self::assertSame(['old', true, 'warm'], $this->call());
        $this->assertOneTemplate(runs: 3);

        $this->edit('new');
        self::assertSame(['new', true, 'first'], $this->call());
        self::assertSame(['new', true, 'warm'], $this->call());
        self::assertSame($pid, $this->pool->pid());
    }

    /**
     * Starts the command in the project, as the framework does.
     *
     * @return list<mixed> value, whether the pool has answered, and how the run started
     */
    private function call(?string $without = null): array
    {
        $called = Command::of(
            ['env', '-u', 'CI', PHP_BINARY, '-d', 'extension=' . getenv('EXTENSION'), 'bin/altair', self::SEEN],
            $this->shop->root,
            environment: $this->environment(),
        );
        self::assertSame([0, ''], [$called->exitCode, $called->errors], $called->output);
        ['result' => $result, 'diagnostics' => $told] = $called->json();
        $told = ['value' => $result['value'], 'pool' => $told['pool'] ?? false, 'start' => $told['start']];

        return array_values(array_diff_key($told, [$without => '']));
    }
}
