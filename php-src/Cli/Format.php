<?php

declare(strict_types=1);

namespace Altair\Eval\Cli;

use Altair\Eval\EvalResult;
use Altair\Eval\Exception\InvalidRequestException;
use Altair\Eval\Support\HumanOutput;
use Altair\Eval\Support\Json;

/**
 * How a command line prints a result.
 *
 * @internal
 */
enum Format: string
{
    case Human = 'human';

    case Json = 'json';

    /**
     * The values of `--format`.
     *
     * @return list<string>
     */
    public static function names(): array
    {
        return array_column(self::cases(), 'value');
    }

    /**
     * @throws InvalidRequestException if the name is unknown
     */
    public static function named(string $name): self
    {
        $names = implode(' and ', self::names());

        return self::tryFrom($name)
            ?? throw new InvalidRequestException("there is no format $name; there are $names");
    }

    /**
     * @param bool $color whether text for people has colours
     * @return string lines, each with its line feed
     */
    public function render(EvalResult $result, bool $color = false): string
    {
        return match ($this) {
            self::Human => HumanOutput::render($result, $color),
            self::Json => Json::encode($result->toArray()),
        };
    }
}
