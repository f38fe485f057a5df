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
        $tool = self::$server->ask('tools/list')['tools'][0];
        $class = new ReflectionClass(EvalTool::class);
        $attribute = $class->getAttributes(McpTool::class)[0]->newInstance();

        self::assertTrue($class->implementsInterface(McpToolInterface::class));
        self::assertSame($tool['name'], $attribute->name);
        self::assertSame($tool['description'], $attribute->description);
        self::assertSame(self::sorted($tool['inputSchema']), self::sorted($attribute->inputSchema));
        self::assertSame(self::sorted($tool['outputSchema']), self::sorted($attribute->outputSchema));
    }

    public function testPhpsOwnSdkIsToldTheSame(): void
    {
        $tool = self::$server->ask('tools/list')['tools'][0];
        $method = new ReflectionMethod(EvalTool::class, 'evaluate');
        $attribute = $method->getAttributes('Mcp\Capability\Attribute\McpTool')[0]->getArguments();
        $properties = $tool['inputSchema']['properties'];
        $names = array_map(
            static fn (ReflectionParameter $parameter): string => $parameter->getName(),
            $method->getParameters(),
        );

        self::assertSame(['name' => $tool['name'], 'description' => $tool['description']], $attribute);
        self::assertSame(array_keys($properties), $names);
        foreach ($method->getParameters() as $parameter) {
            $property = $properties[$parameter->getName()];
            // One of several texts has no type of its own.
            $types = ['string' => 'string', 'int' => 'integer', 'bool' => 'boolean', '?string' => null];
            self::assertSame($property['type'] ?? null, $types[(string) $parameter->getType()]);
            self::assertSame(
                $property['default'] ?? null,
                $parameter->isOptional() ? $parameter->getDefaultValue() : null,
            );
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

    public function testTheApplicationStaysBootedBetweenCalls(): void
    {
        $tool = new EvalTool(projectRoot: self::SHOP);

        $tool->call(['snippet' => 'return 1;']);

        self::assertSame('warm', $tool->call(['snippet' => 'return 2;', 'verbose' => true])['diagnostics']['start']);
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

    /**
     * @param array<array-key, mixed> $schema
     * @return array<array-key, mixed> with names in one order, which says nothing in JSON
     */
    private static function sorted(array $schema): array
    {
        if (!array_is_list($schema)) {
            ksort($schema, SORT_STRING);
        }

        return array_map(static fn (mixed $part): mixed => is_array($part) ? self::sorted($part) : $part, $schema);
    }
}
