<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\Tests\Support\RuntimeTestCase;
use Altair\Sandbox\Runtime;
use Error;
use ReflectionClass;
use ReflectionParameter;

/**
 * The rules of docs/runtimes.md, tried as they stand there.
 */
final class RuntimesDocTest extends RuntimeTestCase
{
    /** A closure is sent as the source of its file: each is tried in one. */
    private const PROGRAM = <<<'PHP'
        <?php

        return function (Altair\Sandbox\Runtime $runtime, int $rate): mixed {
            return $runtime->enter(%s);
        };
        PHP;

    /**
     * @dataProvider rules
     */
    public function testARuleRefusesWithItsMessage(string $arguments, string $message): void
    {
        $file = tempnam(sys_get_temp_dir(), 'rule');
        self::assertIsString($file);
        file_put_contents($file, sprintf(self::PROGRAM, $arguments));
        $program = require $file;

        $this->expectException(Error::class);
        $this->expectExceptionMessage($message);
        try {
            $program($this->kept(new Runtime()), 2);
        } catch (Error $error) {
            self::assertSame($message, $error->getMessage());
            throw $error;
        } finally {
            unlink($file);
        }
    }

    /**
     * @return iterable<string, array{string, string}> what is given to `enter` => the same, and what is said
     */
    public static function rules(): iterable
    {
        $docs = (string) file_get_contents(dirname(__DIR__) . '/docs/runtimes.md');
        preg_match_all('/^\| `(.+)` \| `(illegal .+)` \|$/m', $docs, $rows, PREG_SET_ORDER);
        foreach ($rows as [, $arguments, $message]) {
            yield $arguments => [$arguments, $message];
        }
    }

    public function testTheRulesAreAllThere(): void
    {
        $messages = array_unique(array_column([...self::rules()], 1));

        self::assertCount(12, $messages);
    }

    public function testTheSignaturesAreThoseOfTheClass(): void
    {
        $docs = (string) file_get_contents(dirname(__DIR__) . '/docs/runtimes.md');
        preg_match_all('/^(new Runtime|Runtime::|\$runtime->)(\w*)\((.*)\)/m', $docs, $shown, PREG_SET_ORDER);
        $seen = [];
        foreach ($shown as [, $how, $method, $list]) {
            preg_match_all('/\$(\w+)/', $list, $parameters);
            $seen += [$how === 'new Runtime' ? '__construct' : $method => $parameters[1]];
        }
        $are = [];
        foreach ((new ReflectionClass(Runtime::class))->getMethods() as $method) {
            $are[$method->name] = array_map(
                static fn (ReflectionParameter $parameter): string => $parameter->name,
                $method->getParameters(),
            );
        }
        ksort($seen);
        ksort($are);

        self::assertSame($are, $seen);
    }
}
