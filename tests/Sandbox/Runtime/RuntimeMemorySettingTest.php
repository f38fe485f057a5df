<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Sandbox\Runtime;

use Altair\Eval\Tests\Support\RuntimeTestCase;
use Altair\Sandbox\Exception;
use Altair\Sandbox\Runtime;

/**
 * What an entry may use is what the entry, the settings or the default say; an entry leaves the next one its own.
 */
final class RuntimeMemorySettingTest extends RuntimeTestCase
{
    private const MIB = 1 << 20;

    public function testTheSettingIsTheLimitOfAnEntryThatAsksForNone(): void
    {
        $runtime = $this->runtime(['memory_limit' => '200M']);

        self::assertSame(150 * self::MIB, $this->use($runtime, 150));
        self::assertSame('200M', $runtime->enter(fn () => ini_get('memory_limit')));
        $this->expectException(Exception::class);
        $this->expectExceptionMessage('Allowed memory size of ' . 200 * self::MIB . ' bytes exhausted');
        $this->use($runtime, 250);
    }

    public function testTheSettingIsBackAfterAnEntryWithALimitOfItsOwn(): void
    {
        $runtime = $this->runtime(['memory_limit' => '200M']);
        $runtime->enter(fn () => null, memoryLimitMb: 32);

        self::assertSame(150 * self::MIB, $this->use($runtime, 150));
    }

    public function testTheEndOfAnEntryIsItsOwnAndNotThatOfTheOneBefore(): void
    {
        $runtime = $this->runtime();
        foreach (
            [
                'it called exit(3)' => fn () => exit(3),
                'it called exit(0)' => fn () => exit(''),
            ] as $message => $closure
        ) {
            try {
                $runtime->enter($closure);
                self::fail('It went on.');
            } catch (Exception $exception) {
                self::assertSame("sandbox bailed out: $message", $exception->getMessage());
            }
        }
    }

    /** @return int bytes */
    private function use(Runtime $runtime, int $mebibytes): int
    {
        return $runtime->enter(fn (int $bytes) => strlen(str_repeat('x', $bytes)), [$mebibytes * self::MIB]);
    }
}
