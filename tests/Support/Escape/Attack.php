<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Escape;

use Closure;

/**
 * One attempt to get out, as a row of a table.
 *
 * The snippet runs between two stops at which the test looks at it from outside. It finds what there is to attack in
 * `$s` (see {@see Scene::targets()}) and makes native calls with what {@see Prelude} gives it.
 */
final class Attack
{
    /**
     * @param Closure(Run): list<string> $proof what shows, from outside, that it has succeeded; nothing if it has not
     * @param list<Setting> $settings where it must fail
     * @param array<string, mixed> $options of the request, next to snippet and root
     * @param bool $needsRoot whether only root could do it unconfined
     * @param string $unproven why it cannot succeed on a machine like this one even unconfined; empty if it can
     * @param Closure(Scene): void|null $prepare what it needs to find
     * @param Closure(Run, Snapshot): mixed|null $look what else is to be looked at while it is stopped at its end
     * @param bool $measuresMemory whether its memory is measured while it runs
     * @param bool $needsTemplate whether its host is to have a template also where it is made cold; the snippet finds
     *     `$s->templates`, `$s->keepers`, `$s->templateEnvironment` and `$s->writable` (see {@see Template})
     */
    public function __construct(
        public readonly string $name,
        public readonly string $snippet,
        public readonly Closure $proof,
        public readonly array $settings = Setting::ALL,
        public readonly array $options = [],
        public readonly bool $needsRoot = false,
        public readonly string $unproven = '',
        public readonly ?Closure $prepare = null,
        public readonly ?Closure $look = null,
        public readonly bool $measuresMemory = false,
        public readonly bool $needsTemplate = false,
    ) {
    }

    /**
     * An attack by native code.
     *
     * @param Closure(Run): list<string> $proof
     * @param array<string, mixed> $options
     * @param Closure(Scene): void|null $prepare
     * @param Closure(Run, Snapshot): mixed|null $look
     */
    public static function native(
        string $name,
        string $snippet,
        Closure $proof,
        array $options = [],
        bool $needsRoot = false,
        string $unproven = '',
        ?Closure $prepare = null,
        ?Closure $look = null,
        bool $measuresMemory = false,
        bool $needsTemplate = false,
    ): self {
        return new self(
            $name,
            $snippet,
            $proof,
            Setting::NATIVE,
            $options,
            $needsRoot,
            $unproven,
            $prepare,
            $look,
            $measuresMemory,
            $needsTemplate,
        );
    }

    /**
     * The same with further options, under a name of its own.
     *
     * @param array<string, mixed> $options of the request
     */
    public function with(array $options, string $name): self
    {
        return new self(
            $name,
            $this->snippet,
            $this->proof,
            $this->settings,
            $options + $this->options,
            $this->needsRoot,
            $this->unproven,
            $this->prepare,
            $this->look,
            $this->measuresMemory,
            $this->needsTemplate,
        );
    }

    /** Whether it is made of native calls. */
    public function isNative(): bool
    {
        return $this->settings === Setting::NATIVE && str_contains($this->snippet, 'sys(');
    }
}
