<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\Tests\Support\EvaluationTestCase;

/**
 * Memory that is not PHP's own and runs out under the hard cap: the run says so, and does not end by a signal.
 */
final class NativeMemoryTest extends EvaluationTestCase
{
    public function testEncodingThatFindsNoMemoryLeftSaysSo(): void
    {
        $result = $this->evaluate(<<<'PHP'
            $kept = new PDO('sqlite::memory:');
            $kept->exec('PRAGMA cache_size = 1000000; CREATE TABLE t (b)');
            for ($size = 8 << 20; $size > 64;) {
                try {
                    $kept->exec("INSERT INTO t VALUES (zeroblob($size))");
                } catch (PDOException) {
                    $size >>= 1;
                }
            }
            echo 'full';
            return [$kept, str_repeat('x', 900000)];
            PHP, memoryLimitMb: 16);

        self::assertOutcome('out_of_memory', $result, 255);
        self::assertSame('full', $result->stdout);
        self::assertSame('', $result->stderr);
    }
}
