<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\Tests\Support\ClassDump;
use PHPUnit\Framework\TestCase;
use ReflectionExtension;

/**
 * The files in stubs/ and the loaded extension say the same, in every detail that reflection tells.
 */
final class StubTest extends TestCase
{
    /** Loads the stubs in a PHP that has not the extension, and prints what `$tell` finds of their classes. */
    private const LOAD = <<<'PHP'
        require $argv[1];
        $before = [...get_declared_classes(), ...get_declared_interfaces()];
        array_map(static fn (string $stubs) => require $stubs, array_slice($argv, 3));
        $declared = array_diff([...get_declared_classes(), ...get_declared_interfaces()], $before);
        echo json_encode([Altair\Eval\Tests\Support\ClassDump::class, $argv[2]]($declared), JSON_THROW_ON_ERROR);
        PHP;

    public function testTheStubsDeclareWhatTheExtensionDoes(): void
    {
        $loaded = ClassDump::of(array_keys((new ReflectionExtension('altair_eval'))->getClasses()));
        $stubs = self::ofTheStubs('of');

        self::assertSame(array_keys($loaded), array_keys($stubs));
        foreach ($loaded as $name => $class) {
            self::assertSame($stubs[$name], $class, $name);
        }
    }

    public function testTheExtensionHasNoFunctionAndNoConstantThatTheStubsDoNotTell(): void
    {
        $extension = new ReflectionExtension('altair_eval');

        self::assertSame([], $extension->getFunctions());
        self::assertSame([], $extension->getConstants());
    }

    public function testTheStubsExplainEveryClassConstantPropertyAndMethod(): void
    {
        self::assertSame([], self::ofTheStubs('undocumented'));
    }

    /**
     * @return array<mixed>
     */
    private static function ofTheStubs(string $tell): array
    {
        $process = proc_open(
            [
                PHP_BINARY, '-n', '-r', self::LOAD, '--',
                __DIR__ . '/Support/ClassDump.php', $tell, ...(array) glob(dirname(__DIR__) . '/stubs/*.stub.php'),
            ],
            [1 => ['pipe', 'w']],
            $pipes,
        );
        self::assertIsResource($process);
        $dump = stream_get_contents($pipes[1]);
        self::assertSame(0, proc_close($process), (string) $dump);

        return json_decode((string) $dump, true, flags: JSON_THROW_ON_ERROR);
    }
}
