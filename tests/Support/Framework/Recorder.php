<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Framework;

use Altair\Events\Contracts\RecorderInterface;
use RuntimeException;

/**
 * Notes what it is told, or breaks.
 */
final class Recorder implements RecorderInterface
{
    /** @var list<array<string, mixed>> */
    public array $events = [];

    public function __construct(private readonly bool $isBroken = false)
    {
    }

    /**
     * @param array<string, mixed> $event
     */
    public function record(array $event): void
    {
        if ($this->isBroken) {
            throw new RuntimeException('the disk is full');
        }
        $this->events[] = $event;
    }
}
