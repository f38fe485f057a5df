<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Warm;

use Altair\Eval\Tests\Support\TemporaryApplication;
use Altair\Eval\Tests\Support\Warm\WarmTestCase;

/**
 * Which templates an evaluator has, and which requests share one.
 */
final class TemplatesTest extends WarmTestCase
{
    public function testOldOnesEndWhereThereAreTooMany(): void
    {
        $applications = [];
        for ($i = 0; $i < 9; $i++) {
            $applications[] = new TemporaryApplication(['vendor/autoload.php' => "<?php \$seen = $i;"]);
        }
        foreach ($applications as $i => $application) {
            $result = $this->warmed('return $GLOBALS["seen"];', projectRoot: $application->root);
            self::assertSame($i, self::returned($result));
        }
        self::waitUntil(static fn (): bool => count(self::templates()) === 8, 'As many as may be are kept.');

        // The first one was used the longest ago; it takes the place of the second.
        foreach ([8 => 'warm', 2 => 'warm', 0 => 'first', 1 => 'first'] as $i => $start) {
            $result = $this->ask('return $GLOBALS["seen"];', projectRoot: $applications[$i]->root);
            self::assertStart($start, $result);
            self::assertSame($i, self::returned($result));
        }
        self::waitUntil(static fn (): bool => count(self::templates()) === 8, 'As many as may be are kept.');
    }

    /** @dataProvider policies */
    public function testWhatIsPermittedIsOfTheTemplate(array $options, bool $shared): void
    {
        $this->booting('');
        $this->warmed();

        $start = $this->ask('return 1;', ...$options)->diagnostics['start'];

        self::assertSame($shared ? 'warm' : 'first', $start);
        self::assertCount($shared ? 1 : 2, self::templates());
        self::assertStart('warm', $this->ask('return 1;'));
    }

    public static function policies(): iterable
    {
        yield 'writes' => [['allowWrites' => true], false];
        yield 'the network' => [['allowNetwork' => true], false];
        yield 'more to read' => [['readablePaths' => [__DIR__]], false];
        yield 'less time' => [['timeoutMs' => 30000], true];
        yield 'less memory' => [['memoryLimitMb' => 32], true];
        yield 'more memory' => [['memoryLimitMb' => 512], true];
    }

    public function testLimitsAreThoseOfTheRunAndNotOfTheTemplate(): void
    {
        $this->booting('');
        $this->warmed();
        $fill = '$s = str_repeat("x", 64 << 20); return strlen($s);';

        self::assertOutcome('out_of_memory', $this->ask($fill, memoryLimitMb: 32), 255);
        self::assertSame(64 << 20, self::returned($this->ask($fill, memoryLimitMb: 256)));
        self::assertOutcome('out_of_memory', $this->ask($fill, memoryLimitMb: 32), 255);
        $late = $this->ask('for (;;);', timeoutMs: self::SHORT_MS);
        self::assertOutcome('timed_out', $late, 124, timedOut: true);
        self::assertStart('warm', $late);
    }

    public function testPermissionsAreThoseOfTheRun(): void
    {
        $application = $this->booting('');
        $write = 'return file_put_contents("made", "x");';
        $this->warmed();
        $this->warmed(allowWrites: true);

        $this->ask($write);
        self::assertFileDoesNotExist($application->path('made'));
        $this->ask($write, allowWrites: true);
        self::assertFileExists($application->path('made'));
        $application->remove('made');
        $this->ask($write);
        self::assertFileDoesNotExist($application->path('made'));
    }
}
