<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\Tests\Support\TemporaryApplication;
use Altair\Eval\Tests\Support\Without;
use PHPUnit\Framework\TestCase;

/**
 * What a run with real writes may have planted in the `.env` files that its host reads before the next run: however
 * much it is, it costs the host little.
 */
final class PlantedVariablesTest extends TestCase
{
    /** Bytes of a file that the host reads. */
    private const FILE_BYTES = 1 << 20;

    /** What all of them may cost the host beside what it takes anyway. */
    private const MEMORY_MIB = 64;
    private const SECONDS = 1.0;

    /** The host, which looks at itself when it has evaluated. */
    private const HOST = <<<'PHP'
        $started = microtime(true);
        try {
            $request = new Altair\Eval\EvalRequest('return 1;', %s, timeoutMs: 60000);
            $result = (new Altair\Eval\Evaluator(warm: false))->evaluate($request)->diagnostics['outcome'];
        } catch (Altair\Eval\Exception\EvalException $thrown) {
            $result = $thrown->getMessage();
        }
        $seconds = microtime(true) - $started;
        preg_match('/^VmHWM:\s+(\d+)/m', file_get_contents('/proc/self/status'), $peak);
        echo json_encode([$peak[1] >> 10, $seconds, $result]);
        PHP;

    /**
     * @return iterable<string, array{string, string}>
     */
    public static function lists(): iterable
    {
        yield 'addresses in a list' => ['MEMCACHED_SERVERS=', ''];
        yield 'hosts of a URL' => ['REDIS_URL=redis://', '/0'];
        yield 'hosts of a DSN' => ['DATABASE_URL=mysql:host=', ';dbname=x'];
    }

    /**
     * Each address was kept with all of the variable.
     *
     * @dataProvider lists
     */
    public function testVeryManyAddressesInOneVariableCostLittle(string $before, string $after): void
    {
        $hosts = array_map(static fn (int $i): string => "10.0.0.1:$i", range(1, 20000));

        $this->assertCostsLittle(['.env' => $before . implode(',', $hosts) . "$after\n"]);
    }

    /**
     * Each of them was a secret to look for in answers, in all its forms.
     */
    public function testVeryManySecretsInEveryFileCostLittle(): void
    {
        $files = [];
        $names = ['', '.local', '.dev', '.dev.local', '.prod', '.prod.local', '.production', '.production.local'];
        foreach ([...$names, '.test', '.test.local', '.testing', '.testing.local'] as $number => $name) {
            $text = '';
            for ($i = 0; strlen($text) < self::FILE_BYTES - 64; $i++) {
                $text .= "SECRET_KEY_$i=value$number-$i\n";
            }
            $files[".env$name"] = $text;
        }

        $this->assertCostsLittle($files);
    }

    /**
     * @param array<string, string> $files
     */
    private function assertCostsLittle(array $files): void
    {
        [$megabytes, $seconds, $outcome] = self::cost(['.env' => '']);
        self::assertSame('returned', $outcome);
        [$moreMegabytes, $moreSeconds, $outcome] = self::cost($files);

        $said = sprintf('%d MiB and %.2f s, beside %d MiB and %.2f s', ...[
            $moreMegabytes - $megabytes, $moreSeconds - $seconds, $megabytes, $seconds,
        ]);
        self::assertLessThanOrEqual(self::MEMORY_MIB, $moreMegabytes - $megabytes, $said);
        self::assertLessThan(self::SECONDS, $moreSeconds - $seconds, $said);
        self::assertSame('returned', $outcome);
    }

    /**
     * @param array<string, string> $files
     * @return array{int, float, string} MiB and seconds that a host takes in a project with these files,
     *                                   and how that ends
     */
    private static function cost(array $files): array
    {
        $application = new TemporaryApplication($files);
        $code = sprintf(self::HOST, var_export($application->root, true));
        [$exitCode, $output, $errors] = Without::php([], $code);

        return json_decode($output, true) ?? self::fail("$exitCode $output $errors");
    }
}
