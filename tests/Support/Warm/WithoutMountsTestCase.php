<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Warm;

use Altair\Eval\Tests\Support\Processes;
use Altair\Eval\Tests\Support\TemporaryApplication;
use Altair\Eval\Tests\Support\Without;
use PHPUnit\Framework\TestCase;
use RuntimeException;

/**
 * Evaluates in a host of its own where nothing can be mounted, which leaves no process and no directory.
 */
abstract class WithoutMountsTestCase extends TestCase
{
    protected const USER = 54321;

    /** What a host's code may use: a call that evaluates, one that does so until it is warm, the application's root. */
    private const HOST = <<<'PHP'
        $root = %s;
        $evaluator = new Altair\Eval\Evaluator(warm: true);
        $ask = static function (string $snippet, mixed ...$options) use ($evaluator, $root): array {
            $options += ['projectRoot' => $root, 'timeoutMs' => 60000];
            $request = new Altair\Eval\EvalRequest($snippet, ...$options);
            $result = $evaluator->evaluate($request);

            return [$result->diagnostics['start'], Altair\Eval\Tests\plain($result->result), $result->toArray(true)];
        };
        $warm = static function (string $snippet, mixed ...$options) use ($ask): array {
            for ($call = 0; $call < 6 && ($last ?? ['']) [0] !== 'warm'; $call++) {
                $last = $ask($snippet, ...$options);
            }

            return $last;
        };
        PHP;

    /** Of an answer's value what json_encode() would give of the real one. */
    private const PLAIN = <<<'PHP'
        namespace Altair\Eval\Tests {
            function plain(mixed $node): mixed
            {
                return match (true) {
                    !is_array($node) => $node,
                    ($node['type'] ?? '') !== 'array' => $node['value'] ?? null,
                    $node['is_list'] => array_map(plain(...), $node['value']),
                    default => array_combine(
                        array_map(static fn (array $e) => plain($e['key']), $node['entries'] ?? []),
                        array_map(static fn (array $e) => plain($e['value']), $node['entries'] ?? []),
                    ),
                };
            }
        }
        PHP;

    protected ?TemporaryApplication $application = null;

    protected ?TemporaryApplication $outside = null;

    protected function setUp(): void
    {
        $this->outside = new TemporaryApplication(['secret' => 'x']);
        mkdir($this->outside->path('tmp'));
        chmod($this->outside->path('tmp'), 01777);
    }

    protected function assertPostConditions(): void
    {
        self::assertSame([], Processes::startedWith($this->outside->root), 'No process is left.');
        self::assertSame(['.', '..'], scandir($this->outside->path('tmp')), 'No directory is left.');
    }

    protected function tearDown(): void
    {
        $this->application = $this->outside = null;
    }

    /**
     * @return iterable<string, array{list<string>, int}> what is taken away, and whose the application is
     */
    public static function users(): iterable
    {
        if (posix_geteuid() === 0) {
            yield 'root' => [['mounts'], 0];
            yield 'root, for an application of a user' => [['mounts'], self::USER];
            yield 'a user' => [['mounts', 'user=' . self::USER], self::USER];
        } else {
            yield 'this user' => [['mounts'], posix_geteuid()];
        }
    }

    /**
     * What a host's code returns, on a system that lacks something.
     *
     * @param list<string> $what
     * @param array<string, string> $settings of php.ini
     * @param array<string, string> $variables
     */
    protected function host(array $what, string $code, array $settings = [], array $variables = []): mixed
    {
        $environment = ['TMPDIR' => $this->outside->path('tmp'), 'ALTAIR_TEST_OUTSIDE' => $this->outside->root];
        [, $output, $errors] = Without::command($what, $this->program($code, $settings), $variables + $environment);

        return json_decode($output, true) ?? throw new RuntimeException($output . $errors);
    }

    /**
     * The command of such a host, which prints what its code returns as JSON.
     *
     * @param array<string, string> $settings
     * @return non-empty-list<string>
     */
    protected function program(string $code, array $settings = []): array
    {
        $program = self::PLAIN . ' namespace { $host = (static function () { '
            . sprintf(self::HOST, var_export($this->application->root, true)) . $code
            . ' })(); echo json_encode($host, JSON_THROW_ON_ERROR); }';
        $options = ['-d', 'error_reporting=-1'];
        foreach ($settings as $name => $value) {
            array_push($options, '-d', "$name=$value");
        }

        return [PHP_BINARY, '-d', 'extension=' . Without::extension(), ...$options, '-r', $program];
    }
}
