<?php

declare(strict_types=1);

namespace Altair\Eval\Benches\Rows;

use Altair\Eval\Benches\Support\Comparison;
use Altair\Eval\Benches\Support\Setting;
use Altair\Eval\Benches\Support\Table;
use Altair\Sandbox\Runtime;
use RuntimeException;

/**
 * An isolated PHP: its start, an entry, what travels, and whether it grows.
 */
final class Runtimes
{
    private const MIB = 1 << 20;

    /** The string that travels, and how often it does. */
    private const LONG = 10 * self::MIB;
    private const TRANSFERS = 20;

    /** Entries whose time is taken, in one block. */
    private const BLOCK = 500;

    /** Kilobytes of a file in which a closure stands, so that its bytes would be seen on the channel. */
    private const FILE_KIB = 512;

    public static function measure(Setting $setting, Table $table): void
    {
        self::starts($setting, $table);
        self::entries($setting, $table);
        self::transfers($table);
        self::files($setting, $table);
        self::growth($setting, $table);
    }

    private static function starts(Setting $setting, Table $table): void
    {
        // What is closed is collected in between, not while the next one starts.
        $started = null;
        $start = static function (bool $guarded) use (&$started): array {
            $began = hrtime(true);
            $started = new Runtime(guarded: $guarded);
            $ms = (hrtime(true) - $began) / 1e6;
            $started->close();

            return [$ms];
        };
        $plain = self::plain();
        $php = static function () use ($plain): array {
            $began = hrtime(true);
            Setting::run($plain);

            return [(hrtime(true) - $began) / 1e6];
        };
        ini_set('altair_eval.warm', '0');
        foreach (['guards on' => true, 'guards off' => false] as $name => $guarded) {
            $cold = Comparison::ofBlocks(static fn (): array => $start($guarded), $php, $setting->rounds, 1);
            $table->ratio("start of a runtime, $name / php -r '' with the same ini", $cold, 1.25);
        }
        ini_set('altair_eval.warm', '1');
        $start(true);
        $start(true);
        $warm = Comparison::ofBlocks(static fn (): array => $start(true), $php, $setting->rounds, 1);
        // At most so long, whatever it is compared with.
        $table->longest('start of a runtime from a template, median', [$warm->subjectMs()], 3.0);
    }

    /**
     * @return list<string> PHP and nothing else, with the ini files and the extension of this process
     */
    private static function plain(): array
    {
        return [PHP_BINARY, '-d', 'extension=' . getenv('EXTENSION'), '-r', ''];
    }

    private static function entries(Setting $setting, Table $table): void
    {
        $runtime = new Runtime();
        $closure = static function (): void {
        };
        $times = [];
        for ($i = 0; $i < self::BLOCK * $setting->rounds; $i++) {
            $began = hrtime(true);
            $runtime->enter($closure);
            $times[] = (hrtime(true) - $began) / 1e6;
        }
        sort($times);
        $table->longest('entry of an empty closure, guards on, median', [$times[intdiv(count($times), 2)]], 0.2);
        $runtime->close();
    }

    private static function transfers(Table $table): void
    {
        $runtime = new Runtime();
        $long = str_repeat('x', self::LONG);
        $pipes = [];
        $cat = proc_open(['cat'], [['pipe', 'r'], ['pipe', 'w']], $pipes) ?: throw new RuntimeException('No cat.');
        stream_set_blocking($pipes[0], false);
        stream_set_blocking($pipes[1], false);
        $back = static function () use ($runtime, $long): void {
            $same = $runtime->enter(static fn (string $long): string => $long, [$long]);
            strlen($same) === self::LONG || throw new RuntimeException('It has not come back.');
        };
        $through = static fn () => self::pipe($pipes, $long);
        $seen = Comparison::of($back, $through, self::TRANSFERS);
        $table->ratio('10 MB into a runtime and back / through the pipes of cat', $seen, 4.0);
        fclose($pipes[0]);
        proc_close($cat);
        $runtime->close();
    }

    /**
     * Writes to one pipe and reads from the other, until all is back.
     *
     * @param array{resource, resource} $pipes
     */
    private static function pipe(array $pipes, string $long): void
    {
        [$written, $back] = [0, 0];
        while ($back < self::LONG) {
            $readable = [$pipes[1]];
            $writable = $written < self::LONG ? [$pipes[0]] : [];
            $none = null;
            stream_select($readable, $writable, $none, 1);
            if ($writable !== []) {
                $written += (int) fwrite($pipes[0], substr($long, $written, 65536));
            }
            if ($readable !== []) {
                $back += strlen((string) fread($pipes[1], 65536));
            }
        }
    }

    /** A closure of a large file, whose bytes travel once: of one that was not sent, an entry takes far longer. */
    private static function files(Setting $setting, Table $table): void
    {
        $code = '<?php return static fn () => 1; /*'
            . str_repeat('x', self::FILE_KIB << 10) . '*/';
        $closure = require $setting->application->write('large.php', $code);
        $runtime = new Runtime(guarded: false);
        $runtime->enter($closure);
        $again = [];
        for ($i = 0; $i < self::BLOCK; $i++) {
            $began = hrtime(true);
            $runtime->enter($closure);
            $again[] = (hrtime(true) - $began) / 1e6;
        }
        sort($again);
        $fresh = [];
        for ($i = 0; $i < 9; $i++) {
            // Another text each time.
            $closure = require $setting->application->write("large-$i.php", str_replace('/*', "/*$i", $code));
            $began = hrtime(true);
            $runtime->enter($closure);
            $fresh[] = (hrtime(true) - $began) / 1e6;
        }
        sort($fresh);
        $runtime->close();
        $table->longest(
            sprintf('entry of a closure of a file of %d KiB that was sent, median', self::FILE_KIB),
            [$again[intdiv(count($again), 2)]],
            min(0.3, $fresh[4] / 4),
        );
    }

    private static function growth(Setting $setting, Table $table): void
    {
        $runtime = new Runtime(guarded: false);
        $look = static fn (): array => [getmypid(), memory_get_usage()];
        $closure = static fn (int $number, array $list): array => [$number => $list];
        [$pid] = $runtime->enter($look);
        $entries = $setting->entries;
        $own = (int) getmypid();
        $sizes = [];
        foreach ([intdiv($entries, 10), $entries] as $many) {
            for ($i = 0; $i < $many; $i++) {
                $runtime->enter($closure, [$i, ['a', 'b' => 1.5]]);
            }
            $sizes[] = [self::resident($own), self::resident($pid), $runtime->enter($look)[1]];
        }
        $runtime->close();
        foreach (['the caller' => 0, 'the runtime' => 1, "the runtime's values" => 2] as $name => $which) {
            $table->bytes("$entries entries: $name grown by", max(0, $sizes[1][$which] - $sizes[0][$which]), self::MIB);
        }
    }

    private static function resident(int $pid): int
    {
        preg_match('/^VmRSS:\s+(\d+)/m', (string) file_get_contents("/proc/$pid/status"), $kib);

        return 1024 * (int) $kib[1];
    }
}
