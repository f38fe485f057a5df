<?php

declare(strict_types=1);

namespace Altair\Eval\Benches\Rows;

use Altair\Eval\Benches\Support\Comparison;
use Altair\Eval\Benches\Support\Host;
use Altair\Eval\Benches\Support\KilledHost;
use Altair\Eval\Benches\Support\Setting;
use Altair\Eval\Benches\Support\Table;
use Altair\Eval\Tests\Support\TemporaryApplication;

/**
 * What the guards cost a cold evaluation.
 */
final class Guards
{
    /** The guards that can be left out. */
    public const ALL = ['environment', 'ini', 'limits', 'privileges', 'filesystem', 'landlock', 'seccomp'];

    /** Files of the project that has many. */
    private const MANY_FILES = 100_000;

    public static function measure(Setting $setting, Table $table): void
    {
        $bare = new Host(Setting::SNIPPET, $setting->shop, without: self::ALL);
        $guarded = new Host(Setting::SNIPPET, $setting->shop);
        $all = Comparison::of($guarded->evaluate(...), $bare->evaluate(...), $setting->rounds * 2);
        $table->difference('all guards, cold evaluate()', $all, 3.0);
        foreach (['filesystem', 'landlock', 'seccomp'] as $guard) {
            $one = new Host(Setting::SNIPPET, $setting->shop, without: array_values(array_diff(self::ALL, [$guard])));
            $seen = Comparison::of($one->evaluate(...), $bare->evaluate(...), $setting->rounds);
            $table->difference("$guard alone", $seen, 3.0);
        }
        self::measureSize($setting, $table);
        $table->longest(
            'the host is killed: nothing of its run is alive after',
            array_map(static fn (): float => KilledHost::untilAllIsGone($setting->shop), range(1, 20)),
            100.0,
        );
    }

    private static function measureSize(Setting $setting, Table $table): void
    {
        [$large, $small] = [new TemporaryApplication(), new TemporaryApplication()];
        for ($file = 0; $file < self::MANY_FILES; ++$file) {
            $directory = $large->path('data/' . intdiv($file, 1000));
            $file % 1000 === 0 && mkdir($directory, 0755, true);
            touch("$directory/$file");
        }
        [$inLarge, $inSmall] = [new Host(Setting::SNIPPET, $large->root), new Host(Setting::SNIPPET, $small->root)];
        $size = Comparison::of($inLarge->evaluate(...), $inSmall->evaluate(...), $setting->rounds * 2);
        $table->difference('a project of ' . self::MANY_FILES . ' files rather than one', $size, 0.5);
    }
}
