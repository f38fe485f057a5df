<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Sandbox;

use Altair\Eval\Tests\Support\EvaluationTestCase;
use Altair\Eval\Tests\Support\Script;
use Altair\Sandbox\Runtime;
use Closure;
use Throwable;

/**
 * Enters closures of files that a test writes.
 */
abstract class ClosureTestCase extends EvaluationTestCase
{
    private int $files = 0;

    /** Enters a closure in a new isolated PHP. */
    protected function enter(Closure $closure, mixed ...$arguments): mixed
    {
        return (new Runtime())->enter($closure, $arguments);
    }

    /** The message of what is thrown instead. */
    protected function refusal(Closure $closure): string
    {
        try {
            $value = $this->enter($closure);
        } catch (Throwable $thrown) {
            return $thrown->getMessage();
        }
        self::fail('It was entered, and returned ' . var_export($value, true));
    }

    protected function assertNotSent(string $why, Closure $closure): void
    {
        $message = $this->refusal($closure);
        self::assertStringContainsString(' cannot be sent: ', $message);
        self::assertStringContainsString($why, $message);
    }

    /** A new file, without its opening tag. */
    protected function file(string $code, ?string $name = null): string
    {
        return $this->application()->write($name ?? 'closure' . $this->files++ . '.php', "<?php\n" . $code);
    }

    /** What a new file returns. */
    protected function load(string $code): mixed
    {
        return require $this->file($code);
    }

    /**
     * What a file prints in a PHP of its own, in which `enter()` is the runtime's, and returns the message of what it
     * throws.
     *
     * @param list<string> $options of the `php` command
     */
    protected function printed(string $code, array $options = [], string $opening = "<?php\n"): string
    {
        $file = $this->application()->write('main' . $this->files++ . '.php', $opening . $code);
        // opcache leaves alone what was written just now.
        touch($file, time() - 3600);
        $script = new Script(<<<PHP
            function enter(Closure \$closure, mixed ...\$arguments): mixed
            {
                try {
                    return (new Altair\\Sandbox\\Runtime())->enter(\$closure, \$arguments);
                } catch (Throwable \$thrown) {
                    return \$thrown->getMessage();
                }
            }
            require '$file';
            PHP, $options);
        [$status, $output, $errors] = $script->end();
        self::assertSame([0, ''], [$status, $errors], $output);

        return $output;
    }
}
