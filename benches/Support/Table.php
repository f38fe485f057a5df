<?php

declare(strict_types=1);

namespace Altair\Eval\Benches\Support;

/**
 * The figures of one run, against their limits.
 */
final class Table
{
    /** @var list<array<string, mixed>> as they go into JSON */
    private array $rows = [];

    /** @var list<list<string>> as they are printed */
    private array $lines = [['', 'median', 'reference', 'ratio', 'limit', '']];

    /** How often as long as its reference something takes, of which nothing is demanded. */
    public function shown(string $name, Comparison $seen): void
    {
        $this->rows[] = [
            'name' => $name,
            'median_ms' => $seen->subjectMs(),
            'reference_ms' => $seen->referenceMs(),
            'ratio' => $seen->ratio(),
            'pass' => true,
        ];
        $ratio = sprintf('%.3f', $seen->ratio());
        $this->lines[] = [$name, self::ms($seen->subjectMs()), self::ms($seen->referenceMs()), $ratio, '', '–'];
    }

    /** How often as long as its reference something may take. */
    public function ratio(string $name, Comparison $seen, float $limit): void
    {
        $this->rows[] = [
            'name' => $name,
            'median_ms' => $seen->subjectMs(),
            'reference_ms' => $seen->referenceMs(),
            'ratio' => $seen->ratio(),
            'limit' => $limit,
            'pass' => $seen->ratio() <= $limit,
        ];
        $this->timed($name, $seen, sprintf('%.3f', $seen->ratio()), sprintf('%.2f', $limit));
    }

    /** How many times as fast as its reference something has to be. */
    public function faster(string $name, Comparison $seen, float $limit): void
    {
        $times = 1 / $seen->ratio();
        $this->rows[] = [
            'name' => $name,
            'median_ms' => $seen->subjectMs(),
            'reference_ms' => $seen->referenceMs(),
            'times_as_fast' => $times,
            'limit_times' => $limit,
            'pass' => $times >= $limit,
        ];
        $this->timed($name, $seen, sprintf('%.2f×', $times), sprintf('≥ %.1f×', $limit));
    }

    /** How much longer than its reference something may take. */
    public function difference(string $name, Comparison $seen, float $limitMs): void
    {
        $this->rows[] = [
            'name' => $name,
            'median_ms' => $seen->subjectMs(),
            'reference_ms' => $seen->referenceMs(),
            'ratio' => $seen->ratio(),
            'difference_ms' => $seen->differenceMs(),
            'limit_ms' => $limitMs,
            'pass' => $seen->differenceMs() <= $limitMs,
        ];
        $this->timed($name, $seen, self::signed($seen->differenceMs()), self::signed($limitMs));
    }

    /** How much longer than so many times its reference something may take. */
    public function beyond(string $name, Comparison $seen, float $times, float $limitMs): void
    {
        $beyond = $seen->subjectMs() - $times * $seen->referenceMs();
        $this->rows[] = [
            'name' => $name,
            'median_ms' => $seen->subjectMs(),
            'reference_ms' => $seen->referenceMs(),
            'ratio' => $seen->ratio(),
            'beyond_ms' => $beyond,
            'limit_ms' => $limitMs,
            'pass' => $beyond <= $limitMs,
        ];
        $this->timed($name, $seen, self::signed($beyond), self::signed($limitMs));
    }

    /**
     * How long something may take, each time.
     *
     * @param list<float> $times milliseconds
     */
    public function longest(string $name, array $times, float $limitMs): void
    {
        $longest = max($times);
        $this->rows[] = [
            'name' => $name,
            'longest_ms' => $longest,
            'limit_ms' => $limitMs,
            'pass' => $longest <= $limitMs,
        ];
        $this->line($name, self::ms($longest), '', '', self::ms($limitMs));
    }

    /** How far two sizes may be apart, as a part of the second. */
    public function apart(string $name, int $bytes, int $referenceBytes, float $limit): void
    {
        $apart = $bytes / $referenceBytes - 1;
        $this->rows[] = [
            'name' => $name,
            'bytes' => $bytes,
            'reference_bytes' => $referenceBytes,
            'apart' => $apart,
            'limit' => $limit,
            'pass' => abs($apart) <= $limit,
        ];
        $this->line(
            $name,
            self::kib($bytes),
            self::kib($referenceBytes),
            sprintf('%+.1f %%', $apart * 100),
            sprintf('±%.0f %%', $limit * 100),
        );
    }

    /** What this machine does not let be measured. */
    public function skip(string $name, string $why): void
    {
        $this->rows[] = ['name' => $name, 'skipped' => $why, 'pass' => true];
        $this->lines[] = [$name, 'not measured: ' . $why, '', '', '', '–'];
    }

    /** How much memory something must stay below. */
    public function bytes(string $name, int $bytes, int $limit): void
    {
        $this->rows[] = ['name' => $name, 'bytes' => $bytes, 'limit_bytes' => $limit, 'pass' => $bytes < $limit];
        $this->line($name, self::kib($bytes), '', '', '< ' . self::kib($limit));
    }

    /**
     * What must not be there.
     *
     * @param list<string> $things
     */
    public function count(string $name, array $things): void
    {
        $this->rows[] = ['name' => $name, 'left' => $things, 'limit' => 0, 'pass' => $things === []];
        $this->line($name, (string) count($things), '', '', '0');
    }

    public function passes(): bool
    {
        return !in_array(false, array_column($this->rows, 'pass'), true);
    }

    public function render(): string
    {
        $widths = array_map(
            fn (int $column): int => max(array_map(mb_strlen(...), array_column($this->lines, $column))),
            array_keys($this->lines[0]),
        );
        $text = '';
        foreach ($this->lines as $cells) {
            foreach ($cells as $column => $cell) {
                $space = str_repeat(' ', $widths[$column] - mb_strlen($cell));
                // Names to the left, figures to the right.
                $cells[$column] = $column === 0 ? $cell . $space : $space . $cell;
            }
            $text .= rtrim(implode('  ', $cells)) . "\n";
        }

        return $text;
    }

    /**
     * @param array<string, mixed> $about the machine and the run
     */
    public function json(array $about): string
    {
        $flags = JSON_PRETTY_PRINT | JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE | JSON_THROW_ON_ERROR;

        return json_encode([...$about, 'pass' => $this->passes(), 'rows' => $this->rows], $flags) . "\n";
    }

    private function timed(string $name, Comparison $seen, string $value, string $limit): void
    {
        $this->line($name, self::ms($seen->subjectMs()), self::ms($seen->referenceMs()), $value, $limit);
    }

    private function line(string ...$cells): void
    {
        $last = $this->rows[array_key_last($this->rows)];
        $this->lines[] = [...$cells, $last['pass'] ? '✓' : '✗'];
    }

    private static function ms(float $ms): string
    {
        return abs($ms) < 0.1 ? sprintf('%.1f µs', $ms * 1000) : sprintf('%.2f ms', $ms);
    }

    private static function signed(float $ms): string
    {
        return ($ms < 0 ? '' : '+') . self::ms($ms);
    }

    private static function kib(int $bytes): string
    {
        return sprintf('%d KiB', intdiv($bytes, 1024));
    }
}
