<?php

declare(strict_types=1);

namespace Altair\Eval\Support;

use Altair\Eval\EvalResult;

/**
 * A result as text for people, as the native command line prints it where there is no colour.
 *
 * The command line of the extension writes to the process's own standard output, past PHP's output buffers: a command
 * that echoes needs the text itself. tests/Cli/EvalCommandTest.php compares the two.
 */
final class HumanOutput
{
    private function __construct()
    {
    }

    /**
     * Every line ends with a line feed, and no control character of the snippet is raw.
     */
    public static function render(EvalResult $result): string
    {
        $value = $result->result === null ? null : new HumanValue($result->result);
        $lines = [
            ($result->ok() ? '✓ ' : '✗ ') . self::headline($result),
            ...($value?->tree() ?? []),
            sprintf(
                '  duration=%dms  memory=%d KB  exit=%d',
                $result->durationMs,
                intdiv($result->memoryPeakBytes, 1024),
                $result->exitCode,
            ),
            ...self::explanation($result),
            ...self::place($result),
            ...array_map(self::refusal(...), $result->diagnostics['blocked'] ?? []),
            ...self::fileChanges($result->diagnostics['file_changes'] ?? []),
            ...self::unguarded($result->diagnostics['guards'] ?? []),
        ];

        return implode("\n", $lines) . "\n"
            . self::stream('stdout', $result->stdout, $result)
            . self::stream('stderr', $result->stderr, $result);
    }

    /**
     * What happened, in a line without a line feed: `int = 2`, `RuntimeException: boom`.
     */
    public static function headline(EvalResult $result): string
    {
        $message = Text::line((string) ($result->diagnostics['message'] ?? ''));
        $thrown = $result->exception === null ? '' : HumanValue::exception($result->exception);
        $labelled = static fn (string $label, string $text): string => $text === '' ? "$label." : "$label: $text";

        return match (self::outcome($result)) {
            'returned' => $result->result === null ? 'null' : (new HumanValue($result->result))->headline(),
            'threw' => $thrown === '' ? $labelled('Threw', $message) : $thrown,
            'exited' => "Exited $result->exitCode.",
            'fatal' => $labelled('Fatal', $message),
            'out_of_memory' => $labelled('Out of memory', $message),
            'timed_out' => "Timed out after {$result->durationMs}ms.",
            'signalled' => self::killed($result->diagnostics['signal'] ?? null),
            'boot_failed' => $labelled('Boot failed', $message === '' ? $thrown : $message),
            default => $labelled('No genuine report', $message),
        };
    }

    /** How it ended; of a result that somebody has made without saying it, what the rest of it tells. */
    private static function outcome(EvalResult $result): string
    {
        return $result->diagnostics['outcome'] ?? match (true) {
            $result->timedOut => 'timed_out',
            $result->exception !== null => 'threw',
            $result->exitCode !== 0 => 'exited',
            default => 'returned',
        };
    }

    private static function killed(?int $signal): string
    {
        if ($signal === null) {
            return 'Killed by a signal.';
        }
        // Real-time signals have a number only.
        $names = [
            1 => 'SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGILL', 'SIGTRAP', 'SIGABRT', 'SIGBUS', 'SIGFPE', 'SIGKILL',
            'SIGUSR1', 'SIGSEGV', 'SIGUSR2', 'SIGPIPE', 'SIGALRM', 'SIGTERM', 'SIGSTKFLT', 'SIGCHLD', 'SIGCONT',
            'SIGSTOP', 'SIGTSTP', 'SIGTTIN', 'SIGTTOU', 'SIGURG', 'SIGXCPU', 'SIGXFSZ', 'SIGVTALRM', 'SIGPROF',
            'SIGWINCH', 'SIGIO', 'SIGPWR', 'SIGSYS',
        ];

        return "Killed by signal $signal" . (isset($names[$signal]) ? " ($names[$signal])." : '.');
    }

    /**
     * What the headline had no room for.
     *
     * @return list<string>
     */
    private static function explanation(EvalResult $result): array
    {
        $outcome = self::outcome($result);
        $message = (string) ($result->diagnostics['message'] ?? '');
        $lines = [];
        $isTold = !in_array($outcome, ['returned', 'exited', 'threw'], true)
            || ($outcome === 'threw' && $result->exception === null);
        if (!$isTold && $message !== '') {
            $lines[] = '  ' . Text::line($message);
        }
        $phase = $result->diagnostics['phase'] ?? 'snippet';
        if (!in_array($outcome, ['returned', 'boot_failed'], true) && $phase !== 'snippet') {
            $lines[] = $phase === 'boot' ? '  while the application booted' : '  while the result was encoded';
        }
        if ($outcome === 'boot_failed' && $result->exception !== null && $message !== '') {
            $parts = [$result->exception['class'], $result->exception['message']];
            if (array_filter($parts, static fn (string $part): bool => !str_contains($message, $part)) !== []) {
                $lines[] = '  ' . HumanValue::exception($result->exception);
            }
        }

        return $lines;
    }

    /**
     * Where it was: of the exception, else of where the code was stopped.
     *
     * @return list<string>
     */
    private static function place(EvalResult $result): array
    {
        $at = $result->exception ?? $result->diagnostics['location'] ?? null;
        if ($at === null) {
            return [];
        }
        $code = $at['code'] ?? 0;
        $lines = ['  ' . Text::line("at {$at['file']}:{$at['line']}" . ($code === 0 ? '' : " (code $code)"))];
        foreach ($at['stack_trace'] ?? [] as $frame) {
            $lines[] = '    ' . Text::line($frame);
        }
        foreach ($at['previous'] ?? [] as $previous) {
            $where = " ({$previous['file']}:{$previous['line']})";
            $lines[] = '  previous: ' . HumanValue::exception($previous) . Text::line($where);
        }

        return $lines;
    }

    /**
     * @param array{what: string, guard: string, lift: string|null} $blocked
     */
    private static function refusal(array $blocked): string
    {
        $lift = $blocked['lift'] === null ? 'nothing allows it' : "{$blocked['lift']} allows it";

        return '  ' . Text::line("refused: {$blocked['what']} by {$blocked['guard']}; $lift");
    }

    /**
     * @param array<string, mixed> $changes
     * @return list<string>
     */
    private static function fileChanges(array $changes): array
    {
        $lines = [];
        foreach (['created', 'modified', 'deleted'] as $kind) {
            foreach ($changes[$kind] ?? [] as ['path' => $path, 'size' => $size]) {
                // The size of a directory is its file system's affair.
                $bytes = str_ends_with($path, '/') ? '' : " ($size " . ($size === 1 ? 'byte)' : 'bytes)');
                $lines[] = '    ' . str_pad($kind, 8) . ' ' . Text::line($path) . $bytes;
            }
        }
        $more = (int) ($changes['more'] ?? 0);
        $all = count($lines) + $more;
        if ($all === 0) {
            return [];
        }
        $head = $all === 1 ? '1 change to the project; --writes keeps it'
            : "$all changes to the project; --writes keeps them";

        return ["  not kept: $head", ...$lines, ...($more > 0 ? ["    … and $more more"] : [])];
    }

    /**
     * Guards that are not in force, by reason: nothing degrades in silence.
     *
     * @param array<string, string>|object $guards
     * @return list<string>
     */
    private static function unguarded(array|object $guards): array
    {
        $reasons = [];
        foreach ((array) $guards as $guard => $state) {
            if ($state !== 'in force') {
                $reasons[$state][] = $guard;
            }
        }
        ksort($reasons, SORT_STRING);
        $lines = [];
        foreach ($reasons as $reason => $names) {
            $lines[] = '  ' . Text::line('not in force: ' . implode(', ', $names) . " ($reason)");
        }

        return $lines;
    }

    private static function stream(string $name, string $text, EvalResult $result): string
    {
        if ($text === '') {
            return '';
        }
        // The counts are given for both streams when one was cut; the mark tells which it was.
        $bytes = $result->diagnostics['output_truncated'][$name] ?? null;
        $note = $bytes !== null && str_ends_with($text, '...(truncated)') ? " cut, $bytes bytes in all" : '';
        $text = Text::block($text);

        return "— $name —$note\n$text" . (str_ends_with($text, "\n") ? '' : "\n");
    }
}
