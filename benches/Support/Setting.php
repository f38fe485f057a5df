<?php

declare(strict_types=1);

namespace Altair\Eval\Benches\Support;

use Altair\Eval\Tests\Support\TemporaryApplication;
use RuntimeException;

/**
 * What is measured in one run, and how often.
 */
final class Setting
{
    public const SNIPPET = 'return 1 + 1;';

    public readonly string $repository;

    /** The root of examples/shop. */
    public readonly string $shop;

    public readonly LargeApplication $large;

    /** With the directory for temporary files inside, so that everything that is left behind is seen in one place. */
    public readonly TemporaryApplication $application;

    /** Rounds of a comparison. */
    public readonly int $rounds;

    /** Cold evaluations of one host, warm ones, and ones that end badly. */
    public readonly int $evaluations;
    public readonly int $warmEvaluations;
    public readonly int $badEvaluations;

    /** Entries of one runtime. */
    public readonly int $entries;

    /** Requests whose throughput is measured, and how often it is. */
    public readonly int $requests;
    public readonly int $throughputs;

    public function __construct(bool $quick)
    {
        $this->repository = dirname(__DIR__, 2);
        $this->shop = $this->repository . '/examples/shop';
        $this->large = new LargeApplication();
        $this->application = new TemporaryApplication(['tmp/.keep' => '']);
        chmod($this->application->path('tmp'), 01777);
        [$this->rounds, $this->evaluations, $this->warmEvaluations, $this->badEvaluations] = $quick
            ? [20, 400, 2000, 160]
            : [60, 2000, 20_000, 300];
        $this->entries = $quick ? 10_000 : 100_000;
        [$this->requests, $this->throughputs] = $quick ? [200, 9] : [1000, 9];
    }

    /** @return array<string, string> name => root */
    public function applications(): array
    {
        return ['shop' => $this->shop, 'larger' => $this->large->root];
    }

    /** PHP code that boots an application as an evaluation does. */
    public static function boot(string $root): string
    {
        return "require '$root/vendor/autoload.php'; require '$root/config/container.php';";
    }

    /** Runs a command to its end, with as little around it as PHP has. */
    public static function run(array $command): void
    {
        $null = ['file', '/dev/null', 'r+'];
        $exitCode = proc_close(proc_open($command, [$null, $null, $null], $pipes));
        if ($exitCode !== 0) {
            throw new RuntimeException(implode(' ', $command) . " ended with $exitCode.");
        }
    }
}
