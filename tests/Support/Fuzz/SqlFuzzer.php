<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Fuzz;

use Altair\Eval\EvalRequest;
use Altair\Eval\Evaluator;
use Altair\Eval\Tests\Support\TemporaryApplication;

/**
 * Has sequences played behind the guards, looks at the server before and after, and says what has changed, and by what.
 */
final class SqlFuzzer
{
    public const MODES = ['read-only', 'rollback'];

    /** Sequences of one evaluation. */
    private const BATCH = 250;

    /** Of these, so many that attack are played without guards, too: what share of them would write. */
    private const CONTROLLED = 4;

    private const DEADLINE_MS = 30000;

    /** For a sequence alone. */
    private const DEADLINE_ALONE_MS = 8000;

    /** Of batches one after another. */
    private const ODDNESS = [0, 1, 0, 0, 1, 2];

    /** How often what is found in one way is shown before it is left out. */
    private const SHOWN = 2;

    /** Exceptions of databases; `Exception` is what the player throws for PostgreSQL. */
    private const OF_DATABASES = ['PDOException', 'mysqli_sql_exception', 'Exception'];

    private const BOOT = <<<'PHP'
        <?php
        require __DIR__ . '/../Player.php';
        PHP;

    private readonly Evaluator $evaluator;

    private readonly TemporaryApplication $application;

    private readonly Control $control;

    /** @var array<string, string>|null what is there; null where it has changed */
    private ?array $is = null;

    /** How much there is on the server that an application does not have as a rule. */
    private int $oddness = 0;

    /** @var array<string, array<string, int>> by mode and what is counted */
    private array $counts = [];

    /** @var array<string, int> what was found, how often */
    private array $found = [];

    /** @var array<string, list<list<string>>> by mode, what sequences are made of that are left out */
    private array $left = [];

    /** @var array<string, array{int, string}> odd errors: how often, and an example */
    private array $odd = [];

    /**
     * @param class-string<Grammar> $grammar
     * @param list<string> $without words: sequences in which one is are left out
     */
    public function __construct(
        private readonly Place $place,
        private readonly string $grammar,
        string $script,
        private readonly array $without = [],
    ) {
        $this->evaluator = new Evaluator(warm: true);
        $this->application = new TemporaryApplication([
            'vendor/autoload.php' => self::BOOT,
            'Player.php' => (string) file_get_contents(__DIR__ . '/Player.php'),
            'lines' => $place->kind() === 'mysql' ? "71,m@x,M\n" : "71\tm@x\tM\n",
        ]);
        $this->control = new Control($script);
    }

    /**
     * @param list<string> $modes
     * @return int how much was found
     */
    public function run(int $seed, int $seconds, array $modes): int
    {
        $until = hrtime(true) + $seconds * 1e9;
        for ($batch = 0; hrtime(true) < $until; $batch++) {
            $oddness = self::ODDNESS[intdiv($batch, count($modes)) % count(self::ODDNESS)];
            $this->is = $this->oddness === $oddness ? $this->is : null;
            $this->oddness = $oddness;
            $this->batch($seed, $modes[$batch % count($modes)]);
            $seed += self::BATCH;
        }
        $this->tell($seed);

        return array_sum($this->found);
    }

    /** Plays the sequence of one seed, and shows all of it. */
    public function one(int $seed, string $mode, int $oddness): int
    {
        $this->oddness = $oddness;
        $sequence = $this->grammar::sequence($seed);
        $changed = $this->changes([$sequence], $mode);
        $this->show('what it comes to', $sequence, $mode, $changed);

        return $changed === [] ? 0 : 1;
    }

    private function batch(int $seed, string $mode): void
    {
        $sequences = array_map([$this->grammar, 'sequence'], range($seed, $seed + self::BATCH - 1));
        $all = count($sequences);
        $sequences = array_filter($sequences, fn (array $one): bool
            => $one['steps'] !== [] && !$this->isLeft($one, $mode));
        $this->count($mode, 'left out', $all - count($sequences));
        // One that stays connected keeps its locks to the end.
        usort($sequences, static fn (array $a, array $b): int => self::isKept($a) <=> self::isKept($b));
        $this->begin();
        ['said' => $said, 'odd' => $odd] = $this->evaluate($sequences, $mode);
        $changed = $this->changed($mode);
        $this->count($mode, 'sequences', count($sequences));
        if ($changed !== []) {
            $this->hole($sequences, $mode, $changed);
        } else {
            $this->compare($sequences, $mode, $said);
        }
        if ($odd !== null) {
            $this->oddEnd($sequences, $mode, $odd, count($said));
        }
        foreach ($said as $at => $steps) {
            $this->listen($sequences[$at], $mode, $steps);
        }
        $this->controlled($sequences, $mode, $seed);
    }

    /* ---- evaluations ---- */

    private function begin(): void
    {
        if ($this->is === null) {
            $this->place->restore($this->oddness);
            $this->is = $this->place->look();
        }
    }

    /**
     * @param list<array> $sequences
     * @return array{said: array<int, list<string>>, odd: string|null}
     */
    private function evaluate(array $sequences, string $mode): array
    {
        $server = $this->place->toPlay($this->application->path('lines'));
        $data = base64_encode(serialize([$server, $sequences]));
        $snippet = "[\$server, \$sequences] = unserialize(base64_decode('$data'));"
            . ' (new ' . Player::class . '($server))->playAll($sequences); return true;';
        $out = '';
        $began = hrtime(true);
        $result = $this->evaluator->evaluate(
            new EvalRequest(
                $snippet,
                $this->application->root,
                count($sequences) > 1 ? self::DEADLINE_MS : self::DEADLINE_ALONE_MS,
                512,
                services: [$this->place->address()],
                redact: false,
                database: $mode,
            ),
            static function (string $stream, string $bytes) use (&$out): void {
                $out .= $stream === 'out' ? $bytes : '';
            },
        );
        $this->count($mode, 'milliseconds evaluating', (int) ((hrtime(true) - $began) / 1e6));
        $this->place->quieten();
        preg_match_all('~^begin (\d+)\n(\[.*\])$~m', $out, $lines, PREG_SET_ORDER);
        $said = array_map(static fn (array $line): array => json_decode($line[2], true), $lines);
        $outcome = $result->diagnostics['outcome'] ?? 'none';
        $why = $result->diagnostics['message'] ?? json_encode($result->exception);
        $error = $result->stderr === '' ? '' : ", which said {$result->stderr}";

        return ['said' => $said, 'odd' => $outcome === 'returned' ? null : "$outcome: $why$error"];
    }

    /**
     * @return array<string, string> what has changed, and to what
     */
    private function changed(string $mode): array
    {
        [$was, $is] = [(array) $this->is, $this->place->look()];
        $changed = [];
        foreach (array_diff_assoc($is, $was) + array_diff_assoc($was, $is) as $what => $_) {
            $changed[$what] = self::difference($was[$what] ?? 'nothing', $is[$what] ?? 'nothing');
        }
        if ($changed !== []) {
            $this->is = null;
        }
        if (isset($is['the server'])) {
            return array_intersect_key($changed, ['the server' => 0, 'why' => 0]);
        }

        return $mode !== 'rollback' ? $changed : array_filter(
            $changed,
            static fn (string $what): bool => preg_match('~^(sequence|statistics) ~', $what) !== 1,
            ARRAY_FILTER_USE_KEY,
        );
    }

    private static function difference(string $was, string $is): string
    {
        [$was, $is] = [explode("\n", $was), explode("\n", $is)];
        $short = static fn (array $lines): string => substr(implode(' | ', $lines), 0, 300);

        return $short(array_diff($was, $is)) . ' => ' . $short(array_diff($is, $was));
    }

    /**
     * @param list<array> $sequences
     * @return array<string, string>
     */
    private function changes(array $sequences, string $mode): array
    {
        $this->begin();
        $this->evaluate($sequences, $mode);

        return $this->changed($mode);
    }

    /* ---- what was found ---- */

    /**
     * @param list<array> $sequences
     * @param array<string, string> $changed
     */
    private function hole(array $sequences, string $mode, array $changed): void
    {
        $first = $changed;
        while (count($sequences) > 1) {
            $half = intdiv(count($sequences) + 1, 2);
            $parts = [array_slice($sequences, 0, $half), array_slice($sequences, $half)];
            foreach ($parts as $part) {
                $changed = $this->changes($part, $mode);
                if ($changed !== []) {
                    $sequences = $part;
                    continue 2;
                }
            }
            $seeds = array_column($sequences, 'seed');
            $this->note("$mode: a change by several sequences", 'seeds ' . implode(' ', $seeds) . json_encode($first));

            return;
        }
        $sequence = $sequences[0];
        $changed = $this->changes([$sequence], $mode);
        if ($changed === []) {
            $this->note("$mode: a change that does not come again", "seed {$sequence['seed']} " . json_encode($first));

            return;
        }
        [$sequence, $changed] = $this->smallest($sequence, $mode, $changed);
        $made = array_values(array_unique(array_merge(...array_column($sequence['steps'], 'by'))));
        $key = "$mode: " . implode(' + ', $made);
        if (isset($changed['the server']) && $this->endsTheServer($sequence)) {
            $this->count($mode, 'that end the server, also without guards', 1);
            $this->left[$mode][] = $made;
            $key = '';
        }
        $this->show($key === '' ? 'ENDS THE SERVER, also without guards' : 'HOLE', $sequence, $mode, $changed);
        if ($key === '') {
            return;
        }
        $this->found[$key] = ($this->found[$key] ?? 0) + 1;
        if ($this->found[$key] >= self::SHOWN) {
            $this->left[$mode][] = $made;
        }
    }

    /**
     * @param array<string, string> $changed
     * @return array{array, array<string, string>}
     */
    private function smallest(array $sequence, string $mode, array $changed): array
    {
        $try = function (array $smaller) use (&$sequence, &$changed, $mode): bool {
            $still = $this->changes([$smaller], $mode);
            if ($still !== []) {
                [$sequence, $changed] = [$smaller, $still];
            }

            return $still !== [];
        };
        for ($at = count($sequence['steps']) - 1; $at >= 0; $at--) {
            $smaller = $sequence;
            array_splice($smaller['steps'], $at, 1);
            $smaller['steps'] !== [] && $try($smaller);
        }
        foreach ($sequence['steps'] as $at => $step) {
            if ($step['text'] !== null && $step[2][$step['text']] !== $step['plain'] && !self::isBound($step)) {
                $smaller = $sequence;
                $smaller['steps'][$at][2][$step['text']] = $step['plain'];
                $smaller['steps'][$at]['by'] = [$step['by'][0]];
                $try($smaller);
            }
        }
        if ($sequence['open'] !== [[]]) {
            $try(['open' => array_fill(0, count($sequence['open']), [])] + $sequence);
        }

        return [$sequence, $changed];
    }

    private function endsTheServer(array $sequence): bool
    {
        $this->withoutGuards($sequence);

        return isset($this->place->look()['the server']);
    }

    private static function isBound(array $step): bool
    {
        return str_contains($step['plain'], '?');
    }

    /** @param list<array> $sequences */
    private function oddEnd(array $sequences, string $mode, string $odd, int $at): void
    {
        $this->is = null;
        $this->count($mode, 'odd ends', 1);
        $alone = isset($sequences[$at]) ? $this->evaluate([$sequences[$at]], $mode)['odd'] : null;
        if (!isset($sequences[$at])) {
            $this->note("$mode: $odd", 'after all sequences');

            return;
        }
        $isOwn = $this->withoutGuards($sequences[$at]) === [];
        $this->show("ODD END: $odd; alone: " . ($alone ?? 'none'), $sequences[$at], $mode, []);
        if ($isOwn) {
            $this->count($mode, 'odd ends, also without guards', 1);
        } else {
            $kind = "$mode: " . substr((string) preg_replace('~\d+~', 'N', $odd), 0, 200);
            $this->found[$kind] = ($this->found[$kind] ?? 0) + 1;
        }
    }

    /**
     * Listens to what the steps of a sequence have come to.
     *
     * @param list<string> $steps
     */
    private function listen(array $sequence, string $mode, array $steps): void
    {
        foreach ($steps as $at => $step) {
            $class = strstr($step, ':', true);
            $isOdd = preg_match('~ended its transaction|no memory|cannot be made|slow: ~', $step) === 1;
            if (str_contains($step, '--writes')) {
                $this->count($mode, 'refused', 1);
            }
            $this->count($mode, 'statements', 1);
            if (!$isOdd && (str_starts_with($step, 'ok ') || in_array($class, self::OF_DATABASES, true))) {
                continue;
            }
            $kind = "$mode: " . preg_replace(['~\d+~', '~".*?"~'], ['N', '"…"'], substr($step, 0, 110));
            if (!isset($this->odd[$kind])) {
                $verb = $sequence['steps'][$at][1] . ' ' . json_encode(
                    $sequence['steps'][$at][2],
                    JSON_INVALID_UTF8_SUBSTITUTE | JSON_UNESCAPED_SLASHES,
                );
                $without = $this->withoutGuards($sequence)[$at] ?? 'nothing';
                $isSame = substr($without, 0, 40) === substr($step, 0, 40);
                $this->odd[$kind] = [0, $isSame ? ''
                    : "seed {$sequence['seed']}, {$sequence['client']} $verb; without guards: $without"];
            }
            $this->odd[$kind][0]++;
        }
    }

    /** @return list<string> */
    private function withoutGuards(array $sequence): array
    {
        $this->begin();
        $server = $this->place->toPlay($this->application->path('lines'));
        $said = $this->control->play($server, $sequence);
        $this->place->quieten();
        $this->is = null;

        return $said ?? [];
    }

    /**
     * What only reads must say what it says without guards; and what an application writes and is rolled back, too.
     *
     * @param list<array> $sequences
     * @param array<int, list<string>> $said
     */
    private function compare(array $sequences, string $mode, array $said): void
    {
        $kinds = $mode === 'rollback' ? [Grammar::READER, Grammar::APPLICATION] : [Grammar::READER];
        foreach ($sequences as $at => $sequence) {
            if (!isset($said[$at]) || !in_array($sequence['kind'], $kinds, true)) {
                continue;
            }
            $this->begin();
            $server = $this->place->toPlay($this->application->path('lines'));
            $control = $this->control->play($server, $sequence);
            if ($sequence['kind'] === Grammar::APPLICATION) {
                $this->place->quieten();
                $this->is = null;
            }
            $this->count($mode, "of {$sequence['kind']}s compared", 1);
            foreach ($control ?? [] as $step => $without) {
                $with = $said[$at][$step];
                $isSame = $without === $with || $without === 'Exception: not sent'
                    || !str_starts_with($without, 'ok ') && !str_starts_with($with, 'ok ');
                if ($this->oddness > 0 && str_contains($with, 'whose engine has no transactions')) {
                    $this->count($mode, 'refused for tables without transactions', 1);
                    break;
                }
                if (!$isSame) {
                    $by = $sequence['steps'][$step]['by'][0];
                    $key = "$mode: {$sequence['kind']} by {$sequence['client']}: $by";
                    $this->count($mode, 'differences', 1);
                    $this->found[$key] = ($this->found[$key] ?? 0) + 1;
                    $this->found[$key] <= 1 && $this->show(
                        "DIFFERENCE in step $step: with guards `$with`, without `$without`",
                        $sequence,
                        $mode,
                        [],
                        $said[$at],
                        $control,
                    );
                    break;
                }
            }
        }
        if ($this->is !== null && $this->place->look() !== $this->is) {
            $this->is = null;
        }
    }

    /**
     * Plays some of them without guards: whether they would write.
     *
     * @param list<array> $sequences
     */
    private function controlled(array $sequences, string $mode, int $seed): void
    {
        $dice = new Dice("control $seed");
        $attacks = array_values(array_filter($sequences, static fn (array $one): bool
            => $one['kind'] === Grammar::ATTACK && !str_contains(serialize($one['steps']), 'SHUTDOWN')));
        for ($times = min(self::CONTROLLED, count($attacks)); $times > 0; $times--) {
            $sequence = $dice->one($attacks);
            $this->begin();
            $is = $this->is;
            $this->withoutGuards($sequence);
            $this->count($mode, 'without guards', 1);
            $this->count($mode, 'that write without guards', $this->place->look() === $is ? 0 : 1);
        }
    }

    /* ---- what is left out, counted and told ---- */

    private function isLeft(array $sequence, string $mode): bool
    {
        $made = array_merge(...array_column($sequence['steps'], 'by'));
        $all = serialize($sequence['open']) . serialize($sequence['steps']);
        foreach ($this->without as $word) {
            if (str_contains($all, $word)) {
                return true;
            }
        }
        foreach ($this->left[$mode] ?? [] as $left) {
            if (array_diff($left, $made) === []) {
                return true;
            }
        }

        return false;
    }

    private static function isKept(array $sequence): bool
    {
        return in_array(true, array_column($sequence['open'], 'persistent'), true);
    }

    private function count(string $mode, string $what, int $by): void
    {
        $this->counts[$mode][$what] = ($this->counts[$mode][$what] ?? 0) + $by;
    }

    private function note(string $key, string $details): void
    {
        $this->found[$key] = ($this->found[$key] ?? 0) + 1;
        echo "\n$key: $details\n";
    }

    /**
     * @param array<string, string> $changed
     * @param list<string>|null $said
     * @param list<string>|null $without
     */
    private function show(
        string $title,
        array $sequence,
        string $mode,
        array $changed,
        ?array $said = null,
        ?array $without = null,
    ): void {
        $json = static fn (mixed $value): string => (string) json_encode(
            $value,
            JSON_INVALID_UTF8_SUBSTITUTE | JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_UNICODE,
        );
        if ($said === null) {
            $this->begin();
            $said = $this->evaluate([$sequence], $mode)['said'][0] ?? [];
            $this->is = null;
            $without = $this->withoutGuards($sequence);
        }
        echo "\n$title: $mode, seed {$sequence['seed']}, oddness $this->oddness, {$sequence['client']}";
        echo $sequence['open'] === [[]] ? "\n" : ' opened with ' . $json($sequence['open']) . "\n";
        foreach ($sequence['steps'] as $at => $step) {
            [$connection, $verb, $told] = $step;
            echo "  $connection $verb ", $json($told), "\n";
            if (!mb_check_encoding(serialize($told), 'UTF-8')) {
                $texts = implode(' ', array_filter($told, is_string(...)));
                echo '      as bytes: ', addcslashes($texts, "\0..\37\177..\377"), "\n";
            }
            echo '      made of: ', implode(', ', $step['by']), "\n";
            echo '      with guards: ', $said[$at] ?? 'nothing', "\n      without: ", $without[$at] ?? 'nothing', "\n";
        }
        foreach ($changed as $what => $how) {
            echo "  changed: $what: $how\n";
        }
    }

    private function tell(int $seed): void
    {
        echo "\nthe next seed is $seed; without guards {$this->control->ends} did not come to their end\n";
        foreach ($this->counts as $mode => $counts) {
            echo "$mode: ", json_encode($counts), "\n";
            if (($counts['without guards'] ?? 0) > 0) {
                $share = 100 * $counts['that write without guards'] / $counts['without guards'];
                printf("  %.0f %% write without guards\n", $share);
            }
        }
        arsort($this->found);
        foreach ($this->found as $what => $times) {
            echo "found $times times: $what\n";
        }
        foreach ($this->odd as $kind => [$times, $example]) {
            // What is the same without guards is PHP's own.
            echo $example === '' ? '' : "odd, $times times: $kind\n    $example\n";
        }
        foreach ($this->left as $mode => $left) {
            foreach ($left as $made) {
                echo "left out of $mode: ", implode(' + ', $made), "\n";
            }
        }
    }
}
