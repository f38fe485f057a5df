<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Framework;

use Altair\Events\Contracts\RecorderInterface;
use Altair\Events\Event;
use RuntimeException;

/**
 * Notes what it is told, or breaks, which the framework's own never do.
 */
final class Recorder implements RecorderInterface
{
    /** @var list<Event> */
    public array $events = [];

    public function __construct(private readonly bool $isBroken = false)
    {
    }

    public function record(Event $event): void
    {
        if ($this->isBroken) {
            throw new RuntimeException('the disk is full');
        }
        $this->events[] = $event;
    }
}
