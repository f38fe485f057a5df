<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Cli\Attribute\Option;
use Altair\Eval\Bridge\Symfony\EvalCommand as SymfonyCommand;
use Altair\Eval\Cli\EvalCommand;
use Altair\Eval\EvalRequest;
use Altair\Eval\Mcp\EvalTool;
use Altair\Eval\Tests\Support\Library;
use PHPUnit\Framework\TestCase;
use ReflectionMethod;

/**
 * What a request may ask for has its place at every border: crates/engine/options.json is the table. The borders in
 * Rust are compared with it by `cargo test`.
 */
final class OptionsTest extends TestCase
{
    /** Options of commands in PHP beside those of a request. */
    private const OF_A_COMMAND = ['file', 'rollback', 'arg-json', 'format'];

    /** Arguments of the tool that say how an answer is written. */
    private const OF_THE_ANSWER = ['verbose', 'typed'];

    public function testTheConstructorAndThePropertiesAreThoseOfTheTable(): void
    {
        $constructor = new ReflectionMethod(EvalRequest::class, '__construct');
        $parameters = array_map(static fn ($parameter) => $parameter->getName(), $constructor->getParameters());

        self::assertSame(self::column('php'), $parameters);
        self::assertSame(self::column('php'), array_keys(get_object_vars(new EvalRequest('1', '/'))));
    }

    public function testTheToolTakesWhatTheTableSays(): void
    {
        $expected = [...self::column('mcp'), ...self::OF_THE_ANSWER];
        $schema = json_decode((string) file_get_contents(EvalTool::INPUT_SCHEMA), true);

        self::assertSame($expected, array_keys($schema['properties']));
    }

    public function testTheCommandOfUniverosHasTheOptionsOfTheTable(): void
    {
        require_once __DIR__ . '/Support/Framework/framework.php';
        $options = [];
        foreach ((new ReflectionMethod(EvalCommand::class, '__invoke'))->getParameters() as $parameter) {
            foreach ($parameter->getAttributes(Option::class) as $attribute) {
                $options[] = $attribute->newInstance()->name;
            }
        }

        self::assertEqualsCanonicalizing([...self::flags(), 'verbose'], $options);
    }

    /** Symfony's Console itself has `--verbose`, and that of a kernel `--env`. */
    public function testTheCommandOfSymfonyHasTheOptionsOfTheTable(): void
    {
        require_once Library::autoloader('Symfony/Component/Console');
        $options = array_keys((new SymfonyCommand())->getDefinition()->getOptions());

        $expected = array_map(static fn ($flag) => $flag === 'env' ? 'pass-env' : $flag, self::flags());
        self::assertEqualsCanonicalizing($expected, $options);
    }

    /**
     * Those of a command that stands in the application's own directory.
     *
     * @return list<string>
     */
    private static function flags(): array
    {
        return [...array_diff(self::column('flag'), ['root']), ...self::OF_A_COMMAND];
    }

    /**
     * @return list<string>
     */
    private static function column(string $name): array
    {
        $table = json_decode((string) file_get_contents(dirname(__DIR__) . '/crates/engine/options.json'), true);

        return array_values(array_filter(array_column($table, $name)));
    }
}
