<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Warm;

use Altair\Eval\Tests\Support\Warm\WarmTestCase;

/**
 * A run is over when nothing of it runs any more. What the kernel does then, nobody waits for.
 */
final class EndOfARunTest extends WarmTestCase
{
    /** Leaves memory that takes the kernel milliseconds to free. */
    private const LEAVES_MUCH = '$GLOBALS["kept"] = range(1, 4_000_000); return getmypid();';

    public function testAnAnswerIsThereWhileTheKernelFreesTheMemoryOfItsProcess(): void
    {
        $this->booting('');
        $this->warmed('return 1;');

        for ($times = 1, $was = false; $times <= 10 && !$was; $times++) {
            $process = self::returned($this->ask(self::LEAVES_MUCH, memoryLimitMb: 512));
            $was = file_exists("/proc/$process");
        }

        self::assertTrue($was, 'The process is still there.');
    }

    public function testARunThatMayWriteHasEnded(): void
    {
        $this->booting('');
        $this->warmed('return 1;', allowWrites: true);

        for ($times = 1; $times <= 5; $times++) {
            $process = self::returned($this->ask(self::LEAVES_MUCH, memoryLimitMb: 512, allowWrites: true));
            self::assertFileDoesNotExist("/proc/$process");
        }
    }

    public function testItsExitStatusIsKnown(): void
    {
        $this->booting('');
        $this->warmed('return 1;');
        $keep = '$GLOBALS["kept"] = range(1, 4_000_000);';

        for ($times = 1; $times <= 3; $times++) {
            self::assertOutcome('exited', $this->ask("$keep exit(3);", memoryLimitMb: 512), 3);
        }
    }
}
