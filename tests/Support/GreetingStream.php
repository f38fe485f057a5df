<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support;

use DomainException;

// phpcs:disable PSR1.Methods.CamelCapsMethodName -- PHP calls them by these names.

/**
 * A stream in PHP: `greeting://<kind>`.
 */
final class GreetingStream
{
    /** @var resource|null */
    public $context;

    private string $kind = '';

    private int $reads = 0;

    public static function register(): void
    {
        in_array('greeting', stream_get_wrappers(), true) || stream_wrapper_register('greeting', self::class);
    }

    public function stream_open(string $path): bool
    {
        $this->kind = substr($path, strlen('greeting://'));

        return true;
    }

    public function stream_read(int $count): string|false
    {
        $this->reads++;

        return match ($this->kind) {
            // Nothing at first, then a byte at a time.
            'slow' => $this->reads % 2 === 0 ? substr("hello\n", intdiv($this->reads, 2) - 1, 1) : '',
            'throws' => $this->reads === 1 ? "hello\n" : throw new DomainException('no more of this'),
            'fails' => false,
            default => $this->reads === 1 ? "hello\n" : '',
        };
    }

    public function stream_eof(): bool
    {
        return match ($this->kind) {
            'slow' => $this->reads >= 12,
            'endless' => false,
            default => $this->reads >= 1 && $this->kind !== 'throws',
        };
    }

    public function stream_stat(): array
    {
        return [];
    }
}
