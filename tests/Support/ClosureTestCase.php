<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support;

use Altair\Sandbox\Runtime;
use Closure;
use Throwable;

/**
 * Enters closures of files that a test writes.
 */
abstract class ClosureTestCase extends RuntimeTestCase
{
    private int $files = 0;

    private ?Runtime $entered = null;

    /** Enters a closure in an isolated PHP, one for all of a test. */
    protected function enter(Closure $closure, mixed ...$arguments): mixed
    {
        $this->entered ??= $this->runtime(['display_errors' => '0']);
        return $this->entered->enter($closure, $arguments);
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
    protected function printedByFile(string $code, array $options = [], string $opening = "<?php\n"): string
    {
        $file = $this->application()->write('main' . $this->files++ . '.php', $opening . $code);
        // opcache leaves alone what was written just now.
        touch($file, time() - 3600);
        $script = new Script(<<<PHP
            function enter(Closure \$closure, mixed ...\$arguments): mixed
            {
                try {
                    \$quiet = ['display_errors' => '0', 'log_errors' => '0'];
                    return (new Altair\\Sandbox\\Runtime(\$quiet))->enter(\$closure, \$arguments);
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
