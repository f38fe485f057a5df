<?php

declare(strict_types=1);

namespace Altair\Eval\Mcp;

/**
 * What allows something that a run was refused, as an agent can act on it: an answer names flags of the command line,
 * which an agent has none of. The words are those of `altair mcp:serve`.
 *
 * @internal
 */
final class Lift
{
    private function __construct()
    {
    }

    /**
     * @param array<string, mixed> $answer {@see \Altair\Eval\EvalResult::toArray()}
     * @return array<string, mixed> the same with arguments of the tool instead of flags
     */
    public static function nameArguments(array $answer): array
    {
        foreach ($answer['diagnostics']['blocked'] ?? [] as $at => $entry) {
            $answer['diagnostics']['blocked'][$at]['lift'] = self::argument($entry['lift'] ?? '');
        }

        return $answer;
    }

    /** @return string|null null where no call can have it */
    private static function argument(string $flag): ?string
    {
        [$flag, $value] = [...explode('=', $flag, 2), ''];
        $named = "the person who runs the server can name $value as a service";

        return match (true) {
            $flag === '--writes' => 'allow_writes',
            $flag === '--network' => 'allow_network',
            $flag === '--rollback' => 'database: rollback',
            // A socket has no address: the open network does not reach it.
            $flag === '--service' && str_starts_with($value, '/') => $named,
            $flag === '--service' => "allow_network, or $named",
            default => null,
        };
    }
}
