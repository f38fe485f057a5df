<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support;

use Altair\Sandbox\Exception;
use Altair\Sandbox\Runtime;
use Throwable;

/**
 * Enters closures in isolated PHPs, which it closes before it checks that nothing is left.
 *
 * None of them comes from a template, whose process would stay with this one: where that matters, a test has a
 * {@see Script}.
 */
abstract class RuntimeTestCase extends EvaluationTestCase
{
    /** PHP's own messages go where output goes, where a test asks for them. */
    protected const INI = ['display_errors' => '0', 'log_errors' => '0', 'html_errors' => '0'];

    /** Milliseconds that are long enough for an entry that ends, and short for a test that waits for a deadline. */
    protected const SOON_MS = 300;

    /** @var list<Runtime> */
    private array $runtimes = [];

    protected function setUp(): void
    {
        parent::setUp();
        ini_set('altair_eval.warm', '0');
    }

    protected function assertPostConditions(): void
    {
        $this->closeAll();
        parent::assertPostConditions();
    }

    protected function tearDown(): void
    {
        $this->closeAll();
        // ini_restore() changes no setting that tells nobody of its changes.
        ini_set('altair_eval.warm', '1');
        parent::tearDown();
    }

    /**
     * @param array<string, mixed> $ini
     */
    protected function runtime(array $ini = [], mixed ...$options): Runtime
    {
        return $this->kept(new Runtime($ini + self::INI, ...$options));
    }

    /**
     * @return array<string, string|null> what was refused, in order of its name, and what allows it
     */
    protected static function ways(Runtime $runtime): array
    {
        $ways = array_column($runtime->blocked(), 'lift', 'what');
        ksort($ways);

        return $ways;
    }

    protected function kept(Runtime $runtime): Runtime
    {
        return $this->runtimes[] = $runtime;
    }

    /** Code for a {@see Script} that has closures: PHP has no source of those on its command line. */
    protected function inFile(string $code): string
    {
        return 'require ' . var_export($this->application()->write('script.php', "<?php $code"), true) . ';';
    }

    private function closeAll(): void
    {
        foreach ($this->runtimes as $runtime) {
            try {
                $runtime->close();
            } catch (Exception) {
                // It was closed before.
            }
        }
        $this->runtimes = [];
    }

    /** What a call throws. */
    protected static function thrown(callable $call): Throwable
    {
        try {
            $returned = $call();
        } catch (Throwable $thrown) {
            return $thrown;
        }
        self::fail('It returned ' . var_export($returned, true));
    }

    /** The message of the Exception that a call throws. */
    protected static function failure(callable $call): string
    {
        $thrown = self::thrown($call);
        self::assertInstanceOf(Exception::class, $thrown);

        return $thrown->getMessage();
    }

    /**
     * The messages of refused functions that an entry calls. It tries to read /etc/shadow, too.
     *
     * @return list<string>
     */
    protected static function refusedFunctions(Runtime $runtime): array
    {
        return $runtime->enter(static function (): array {
            @file_get_contents('/etc/shadow');
            foreach (['exec' => ['true'], 'fsockopen' => ['127.0.0.1', 1]] as $function => $arguments) {
                try {
                    $function(...$arguments);
                } catch (\Error $error) {
                    $errors[] = $error->getMessage();
                }
            }

            return $errors;
        });
    }

    /**
     * What a call prints, and what it returns or throws.
     *
     * @return array{string, mixed}
     */
    protected static function printed(callable $call): array
    {
        ob_start();
        try {
            $result = $call();
        } catch (Throwable $thrown) {
            $result = $thrown;
        } finally {
            $output = (string) ob_get_clean();
        }

        return [$output, $result];
    }
}
