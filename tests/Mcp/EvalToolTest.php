<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Mcp;

use Altair\Eval\EvalRequest;
use Altair\Eval\Evaluator;
use Altair\Eval\Mcp\EvalTool;
use Altair\Eval\Tests\Support\McpServer;
use Altair\Eval\Tests\Support\Script;
use Altair\Eval\Tests\Support\TemporaryApplication;
use Altair\Mcp\Attribute\McpTool;
use Altair\Mcp\Contracts\McpToolInterface;
use PHPUnit\Framework\TestCase;
use ReflectionClass;
use ReflectionMethod;
use ReflectionParameter;
use stdClass;

/**
 * The tool for MCP servers in PHP: it is described as, and answers and refuses as, the one of `altair mcp:serve`.
 */
final class EvalToolTest extends TestCase
{
    private const SHOP = __DIR__ . '/../../examples/shop';

    private static ?McpServer $server = null;

    public static function setUpBeforeClass(): void
    {
        require_once dirname(__DIR__) . '/Support/Framework/framework.php';
        self::$server = new McpServer();
    }

    public static function tearDownAfterClass(): void
    {
        self::$server = null;
    }

    public function testTheFrameworkIsToldWhatTheServerTellsItsClients(): void
    {
        $tool = (new McpServer('--allow-writes', '--allow-network', '--allow-rollback'))->ask('tools/list')['tools'][0];
        $class = new ReflectionClass(EvalTool::class);
        $attribute = $class->getAttributes(McpTool::class)[0]->newInstance();

        self::assertTrue($class->implementsInterface(McpToolInterface::class));
        self::assertSame($tool['name'], $attribute->name);
        self::assertSame($tool['description'], $attribute->description);
        foreach (['inputSchema', 'outputSchema'] as $schema) {
            self::assertSame('/', $attribute->$schema[0]);
            $contents = (string) file_get_contents($attribute->$schema);
            self::assertSame($tool[$schema], json_decode($contents, true, flags: JSON_THROW_ON_ERROR));
        }
    }

    public function testPhpsOwnSdkIsToldTheSame(): void
    {
        $schema = json_decode((string) file_get_contents(EvalTool::INPUT_SCHEMA), true);
        $method = new ReflectionMethod(EvalTool::class, 'evaluate');
        $attribute = $method->getAttributes('Mcp\Capability\Attribute\McpTool')[0]->getArguments();
        $names = array_map(
            static fn (ReflectionParameter $parameter): string => $parameter->getName(),
            $method->getParameters(),
        );

        $tool = self::$server->ask('tools/list')['tools'][0];
        self::assertSame(['name' => $tool['name'], 'description' => $tool['description']], $attribute);
        self::assertSame(array_keys($schema['properties']), $names);
        foreach ($method->getParameters() as $parameter) {
            $property = $schema['properties'][$parameter->getName()];
            $types = [
                'string' => 'string',
                'int' => 'integer',
                '?int' => 'integer',
                'bool' => 'boolean',
                'array' => 'object',
                // One of several texts has no type of its own.
                '?string' => null,
            ];
            self::assertSame($property['type'] ?? null, $types[(string) $parameter->getType()]);
            self::assertSame(in_array($parameter->getName(), $schema['required'], true), !$parameter->isOptional());
            if (isset($property['default'])) {
                self::assertSame($property['default'], $parameter->getDefaultValue());
            }
        }
    }

    public function testWithoutTheFrameworkThereIsTheToolAllTheSame(): void
    {
        $script = new Script('require "$root/../../tests/bootstrap.php"; chdir(getenv("ALTAIR_TEST_SHOP"));
            $tool = new Altair\Eval\Mcp\EvalTool();
            say(interface_exists("Altair\Mcp\Contracts\McpToolInterface"));
            say($tool->evaluate("6 * 7")["result"]);');

        self::assertSame([0, "false\n42\n", ''], $script->end());
    }

    public function testACallGivesTheWholeAnswer(): void
    {
        $input = ['snippet' => 'echo "x"; throw new LogicException("no");'];

        $answer = $this->tool()->call($input);
        $served = self::$server->ask('tools/call', ['name' => 'framework__eval', 'arguments' => $input]);

        self::assertSame(array_keys($served['structuredContent']), array_keys($answer));
        self::assertSame([false, 'x'], [$answer['ok'], $answer['stdout']]);
        self::assertSame('LogicException', $answer['exception']['class']);
        self::assertArrayNotHasKey('error', $answer);
    }

    public function testWhatLiftsARefusalIsNamedAsTheServerNamesIt(): void
    {
        $input = ['snippet' => '@file_get_contents("http://127.0.0.1:9/"); @shell_exec("id");
            @stream_socket_client("unix:///run/x.sock"); @file_get_contents("/etc/shadow"); return 1;'];

        $answer = $this->tool()->call($input);
        $served = self::$server->ask('tools/call', ['name' => 'framework__eval', 'arguments' => $input]);

        $blocked = $answer['diagnostics']['blocked'];
        self::assertContains('allow_network', array_map(
            static fn (array $entry): string => explode(',', (string) $entry['lift'])[0],
            $blocked,
        ));
        self::assertSame($served['structuredContent']['diagnostics']['blocked'], $blocked);
        self::assertStringNotContainsString('--', (string) json_encode(array_column($blocked, 'lift')));
    }

    public function testTheApplicationStaysBootedBetweenCalls(): void
    {
        $tool = new EvalTool(projectRoot: self::SHOP);

        $start = static fn (int $call): string
            => $tool->call(['snippet' => "return $call;", 'verbose' => true])['diagnostics']['start'];
        $starts = array_map($start, [1, 2, 3]);

        self::assertSame('cold', $starts[0]);
        self::assertContains($starts[1], ['first', 'warm'], 'Whichever the second call finds, as fast as it comes.');
        self::assertSame('warm', $starts[2]);
    }

    public function testTheProjectIsTheWorkingDirectoryUnlessItIsNamed(): void
    {
        $application = new TemporaryApplication();
        $before = (string) getcwd();
        chdir($application->root);
        try {
            $answer = (new EvalTool(new Evaluator(warm: false)))->call(['snippet' => 'getcwd()']);
        } finally {
            chdir($before);
        }

        self::assertSame($application->root, $answer['result']);
        self::assertSame(realpath(self::SHOP), $this->tool()->call(['snippet' => 'getcwd()'])['result']);
    }

    public function testTheDeadlineIsTheCallers(): void
    {
        $answer = $this->tool()->call(['snippet' => 'while (true);', 'timeout_ms' => 900.0]);

        self::assertTrue($answer['timed_out']);
        self::assertLessThan(EvalRequest::DEFAULT_TIMEOUT_MS, $answer['duration_ms']);
    }

    public function testWhatIsPermittedMayBeAskedFor(): void
    {
        $application = new TemporaryApplication();
        $tool = new EvalTool(new Evaluator(warm: false), $application->root, allowWrites: true, allowNetwork: true);
        $write = 'file_put_contents("kept", 1); return getenv("ALTAIR_EVAL_ALLOW_NETWORK");';

        self::assertSame('0', $tool->call(['snippet' => $write])['result']);
        self::assertFileDoesNotExist($application->path('kept'));

        $answer = $tool->evaluate($write, allow_writes: true, allow_network: true);
        self::assertSame('1', $answer['result']);
        self::assertFileExists($application->path('kept'));
    }

    /**
     * @dataProvider refusedInput
     * @param array<array-key, mixed> $input
     */
    public function testInputIsRefusedInTheWordsOfTheServer(array $input): void
    {
        $served = self::$server->ask('tools/call', ['name' => 'framework__eval', 'arguments' => (object) $input]);

        $answer = $this->tool()->call($input);

        self::assertTrue($served['isError']);
        self::assertStringStartsWith('Nothing was run. ', $answer['error']);
        self::assertSame(['ok' => false, 'error' => $served['content'][0]['text']], $answer);
    }

    /**
     * @return iterable<string, array{array<array-key, mixed>}>
     */
    public static function refusedInput(): iterable
    {
        yield 'no snippet' => [[]];
        yield 'an empty snippet' => [['snippet' => '']];
        foreach ([null, true, 1, 1.5, 'x', [1], ['a' => 1], new stdClass()] as $value) {
            $kind = json_encode($value);
            if (!is_string($value)) {
                yield "a snippet of $kind" => [['snippet' => $value]];
            }
            yield "a deadline of $kind" => [['snippet' => '1', 'timeout_ms' => $value]];
            if ($value !== true) {
                $permissions = ['allow_writes' => $value, 'allow_network' => $value];
                yield "permissions of $kind" => [['snippet' => '1'] + $permissions];
            }
        }
        foreach ([0, -5, 99, 60001, 99.0, 1e300] as $deadline) {
            $name = 'a deadline of ' . var_export($deadline, true) . ' ms';
            yield $name => [['snippet' => '1', 'timeout_ms' => $deadline]];
        }
        yield 'writes' => [['snippet' => '1', 'allow_writes' => true]];
        yield 'network' => [['snippet' => '1', 'allow_network' => true]];
        yield 'a rollback' => [['snippet' => '1', 'database' => 'rollback']];
        yield 'database writes' => [['snippet' => '1', 'database' => 'write', 'allow_network' => true]];
        yield 'a mode that is none' => [['snippet' => '1', 'database' => 'undo']];
        foreach ([null, true, 1.5, 'x', [1]] as $value) {
            $kind = json_encode($value);
            yield "numbers of $kind" => [['snippet' => '1', 'depth' => $value, 'max_items' => $value]];
            yield "variables of $kind" => [['snippet' => '1', 'arguments' => $value]];
        }
        foreach (['this', '1x', '', 'a b'] as $name) {
            yield "a variable named '$name'" => [['snippet' => '1', 'arguments' => [$name => 1]]];
        }
        $large = str_repeat('x', 1 << 20);
        yield 'large variables' => [['snippet' => '1', 'arguments' => ['x' => $large]]];
        yield 'flags' => [['snippet' => '1', 'diff' => 1, 'verbose' => 'yes', 'typed' => null]];
        yield 'unsafe' => [['snippet' => '1', 'unsafe' => false]];
        yield 'another argument' => [['snippet' => '1', 'memory_mb' => 64]];
        yield 'all at once' => [
            ['timeout_ms' => '1', 'allow_writes' => 1, 'allow_network' => true, 'unsafe' => true],
        ];
    }

    public function testWhatCannotBeStartedIsAnErrorToo(): void
    {
        $noPhp = new Evaluator(phpBinary: '/nowhere/php');
        foreach (
            [
                '/nowhere/project' => new EvalTool(projectRoot: '/nowhere/project'),
                '/nowhere/php' => new EvalTool($noPhp, self::SHOP),
            ] as $missing => $tool
        ) {
            $answer = $tool->call(['snippet' => 'return 1;']);

            self::assertSame(['ok', 'error'], array_keys($answer));
            self::assertFalse($answer['ok']);
            self::assertStringContainsString($missing, $answer['error']);
        }
    }

    private function tool(): EvalTool
    {
        return new EvalTool(new Evaluator(warm: false), self::SHOP);
    }
}
