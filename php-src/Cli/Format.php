<?php

declare(strict_types=1);

namespace Altair\Eval\Cli;

use Altair\Eval\EvalResult;
use Altair\Eval\Exception\InvalidRequestException;
use Altair\Eval\Support\Answer;
use Altair\Eval\Support\HumanOutput;

/**
 * How a command line prints a result.
 *
 * @internal
 */
enum Format: string
{
    case Human = 'human';

    case Json = 'json';

    case Compact = 'compact';

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
        $names = self::names();
        $last = array_pop($names);
        $others = implode(', ', $names);

        return self::tryFrom($name)
            ?? throw new InvalidRequestException("there is no format $name; there are $others and $last");
    }

    /**
     * @param bool $color whether text for people is set off with colours
     * @param bool $verbose whether what is for programs holds what is as it should be, too
     * @param bool $terminal whether what is for programs is laid out for a terminal, and not in one line
     * @return string lines, each with its line feed
     */
    public function render(
        EvalResult $result,
        bool $color = false,
        bool $verbose = false,
        bool $terminal = false,
    ): string {
        return match ($this) {
            self::Human => HumanOutput::render($result, $color),
            self::Json => Answer::toJson($result, false, $verbose, $terminal),
            self::Compact => Answer::toJson($result, true, $verbose, $terminal),
        };
    }
}
