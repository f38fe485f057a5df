<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Fuzz;

/**
 * Makes sequences of statements, the same for a seed: what a client of PHP's says on a connection or two.
 *
 * In a template `{name}` is one of the parts of that name, and `{name'}` the same inside of quotes.
 *
 * @phpstan-type Step array{0: int, 1: string, 2: list<mixed>, text: int|null, plain: string, by: list<string>}
 */
abstract class Grammar
{
    public const ATTACK = 'attack';
    public const READER = 'reader';
    public const APPLICATION = 'application';

    private const STEPS_MAX = 8;

    protected readonly Disguise $disguise;

    final private function __construct(protected readonly Dice $dice)
    {
        $this->disguise = new Disguise($dice, static::KIND);
    }

    /**
     * @return array{seed: int, kind: string, client: string, open: list<array<string, mixed>>, steps: list<array>}
     */
    final public static function sequence(int $seed): array
    {
        $dice = new Dice(static::KIND . " $seed");
        $grammar = new static($dice);
        $kind = $dice->weighed([self::ATTACK => 82, self::READER => 13, self::APPLICATION => 5]);
        $client = $dice->weighed(static::CLIENTS);
        $open = [$kind === self::ATTACK ? $grammar->open($client) : $grammar->openAsEver($client)];
        $steps = $grammar->ending($client, array_slice($grammar->$kind($client), 0, self::STEPS_MAX));
        if ($kind === self::ATTACK && $dice->falls(4)) {
            $open[] = $grammar->open($client);
            foreach (array_keys($steps) as $at) {
                $steps[$at][0] = $dice->between(0, 1);
            }
        }

        return ['seed' => $seed, 'kind' => $kind, 'client' => $client, 'open' => $open, 'steps' => $steps];
    }

    /**
     * Leaves out what PHP itself does not come back from.
     *
     * @param list<array> $steps
     * @return list<array>
     */
    protected function ending(string $client, array $steps): array
    {
        return $steps;
    }

    /** What a connection is opened with. */
    abstract protected function open(string $client): array;

    /** What an application opens it with. */
    protected function openAsEver(string $client): array
    {
        return [];
    }

    /**
     * How a client says a text: the verb, what it is told, and where in that the text is.
     *
     * @return array{string, list<mixed>, int}
     */
    abstract protected function saying(string $client, string $text): array;

    /**
     * A step that is no text of a template's own: a transaction of the client's, say.
     *
     * @return array{string, list<mixed>}|null
     */
    abstract protected function calling(string $client, string $what): ?array;

    /**
     * A step with values in the place of marks.
     *
     * @return array{string, list<mixed>, int}
     */
    abstract protected function binding(string $client, string $text, array $values): array;

    /**
     * @return list<array>
     */
    private function attack(string $client): array
    {
        $says = fn (string ...$categories): array => $this->step($client, $this->dice->one($categories));
        $setup = $this->dice->falls(22) ? [$says('SETUP')] : [];
        $writes = fn (): array => match ($this->dice->weighed(['bound' => 15, 'other' => 13, 'says' => 72])) {
            'bound' => $this->bound($client),
            'other' => $this->call($client, 'other') ?? $says('WRITE'),
            'says' => $says('WRITE', 'WRITE', 'CODE'),
        };
        $some = fn (int $most): array => array_map($writes, array_fill(0, $this->dice->between(1, $most), null));
        $begin = fn (): array => ($this->dice->falls(50) ? $this->call($client, 'begin') : null) ?? $says('BEGIN');
        $end = fn (): array => ($this->dice->falls(50) ? $this->call($client, 'end') : null) ?? $says('END');
        $shape = ['direct' => 34, 'lifted' => 16, 'transaction' => 22, 'hidden' => 12, 'soup' => 12, 'several' => 6];

        return match ($this->dice->weighed($shape)) {
            'direct' => [...$setup, ...$some(3)],
            'lifted' => [...$setup, $says('LIFT'), ...$some(2)],
            'transaction' => [
                ...$setup, $begin(), ...($this->dice->falls(40) ? [$says('LIFT', 'POINT')] : []), ...$some(2), $end(),
                ...($this->dice->falls(50) ? $some(2) : []), ...($this->dice->falls(30) ? [$end()] : []),
            ],
            'hidden' => $this->hidden($client),
            'soup' => array_map(
                fn (): array => match ($this->dice->between(1, 9)) {
                    1, 2, 3 => $writes(),
                    4 => $begin(),
                    5 => $end(),
                    6 => $says('LIFT', 'SETUP'),
                    7 => $says('POINT'),
                    8 => $says('READ'),
                    default => $this->call($client, 'other') ?? $writes(),
                },
                array_fill(0, $this->dice->between(2, self::STEPS_MAX), null),
            ),
            'several' => [...$setup, $this->several($client), ...$some(1)],
        };
    }

    /**
     * @return list<array>
     */
    private function reader(string $client): array
    {
        $steps = [];
        for ($times = $this->dice->between(1, 4); $times > 0; $times--) {
            $template = $this->dice->one(static::READ);
            $plain = $this->expand($template);
            [$verb, $told, $at] = $this->saying($client, $this->disguise->harmless($plain));
            $steps[] = $this->made($verb, $told, $at, $plain, [$template]);
            if ($this->dice->falls(25)) {
                [$template, $values] = $this->dice->one(static::READ_BOUND);
                [$verb, $told, $at] = $this->binding($client, $template, array_map($this->value(...), $values));
                $steps[] = $this->made($verb, $told, $at, $template, [$template]);
            }
        }
        [$begin, $end] = [$this->call($client, 'plain begin'), $this->call($client, 'plain end')];

        return $begin !== null && $this->dice->falls(25) ? [$begin, ...$steps, $end] : $steps;
    }

    /**
     * What an application does that writes, with its own transactions.
     *
     * @return list<array>
     */
    private function application(string $client): array
    {
        $steps = [];
        for ($times = $this->dice->between(2, 5); $times > 0; $times--) {
            $part = $this->dice->weighed(['APPLICATION' => 60, 'begin' => 20, 'end' => 20]);
            $call = $part === 'APPLICATION' ? null : $this->call($client, "plain $part");
            $template = $this->dice->one(static::APPLICATION_SAYS);
            $plain = $this->expand($template);
            [$verb, $told, $at] = $this->saying($client, $plain);
            $steps[] = $call ?? $this->made($verb, $told, $at, $plain, [$template]);
            [$verb, $told, $at] = $this->saying($client, static::LOOK);
            $steps[] = $this->made($verb, $told, $at, static::LOOK, [static::LOOK]);
        }

        return $steps;
    }

    private function step(string $client, string $category): array
    {
        $template = $this->dice->one(constant(static::class . "::$category"));
        $plain = $this->expand($template);
        [$text, $disguises] = $this->disguise->of($plain);
        [$verb, $told, $at] = $this->saying($client, $text);

        return $this->made($verb, $told, $at, $plain, [$template, ...$disguises]);
    }

    /** Several statements in one text. */
    private function several(string $client): array
    {
        $templates = [];
        for ($count = $this->dice->between(2, 3); $count > 0; $count--) {
            $category = $this->dice->one(['READ', 'LIFT', 'WRITE', 'WRITE', 'CODE', 'BEGIN', 'END', 'SETUP']);
            $templates[] = $this->dice->one(constant(static::class . "::$category"));
        }
        $plain = implode('; ', array_map($this->expand(...), $templates));
        [$text, $disguises] = $this->disguise->of($plain);
        [$verb, $told, $at] = $this->saying($client, $text);

        return $this->made($verb, $told, $at, $plain, [...$templates, ...$disguises]);
    }

    /**
     * A statement that is hidden from those who read the text in another way than the server.
     *
     * @return list<array>
     */
    private function hidden(string $client): array
    {
        $steps = [];
        foreach ($this->dice->one(static::HIDDEN) as $template) {
            $plain = $this->expand($template);
            [$text, $disguises] = $this->dice->falls(25) ? $this->disguise->of($plain) : [$plain, []];
            [$verb, $told, $at] = $this->saying($client, $text);
            $steps[] = $this->made($verb, $told, $at, $plain, [$template, ...$disguises]);
        }
        if ($this->dice->falls(70)) {
            $steps[] = $this->step($client, 'WRITE');
        }

        return $steps;
    }

    /** A statement with marks for values. */
    private function bound(string $client): array
    {
        [$template, $values] = $this->dice->one(static::BOUND);
        $plain = $this->expand($template);
        [$text, $disguises] = $this->disguise->of($plain);
        [$verb, $told, $at] = $this->binding($client, $text, array_map($this->value(...), $values));

        return $this->made($verb, $told, $at, $plain, [$template, ...$disguises]);
    }

    /** One of the values that a template names: hostile, or as it is. */
    private function value(mixed $value): mixed
    {
        return $value === '*' ? $this->expand($this->dice->one(static::HOSTILE))
            : (is_string($value) ? $this->expand($value) : $value);
    }

    private function call(string $client, string $what): ?array
    {
        $call = $this->calling($client, $what);

        return $call === null ? null : $this->made($call[0], $call[1], null, '', [
            "$client $call[0] " . json_encode($call[1], JSON_INVALID_UTF8_SUBSTITUTE),
        ]);
    }

    /**
     * @param list<mixed> $told
     * @param list<string> $by
     */
    private function made(string $verb, array $told, ?int $at, string $plain, array $by): array
    {
        return [0, $verb, $told, 'text' => $at, 'plain' => $plain, 'by' => $by];
    }

    final protected function expand(string $template, int $depth = 0): string
    {
        return (string) preg_replace_callback(
            "~\{([a-z]+)('*)\}~",
            function (array $at) use ($depth): string {
                $parts = static::PARTS[$at[1]] ?? null;
                $part = $at[1] === 'n' ? (string) $this->dice->between(10, 9999)
                    : ($parts === null || $depth > 3 ? '1' : $this->expand($this->dice->one($parts), $depth + 1));

                return str_replace("'", str_repeat("'", 1 << strlen($at[2])), $part);
            },
            $template,
        );
    }
}
