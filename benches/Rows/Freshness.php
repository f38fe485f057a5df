<?php

declare(strict_types=1);

namespace Altair\Eval\Benches\Rows;

use Altair\Eval\Benches\Support\Comparison;
use Altair\Eval\Benches\Support\Host;
use Altair\Eval\Benches\Support\Setting;
use Altair\Eval\Benches\Support\Table;
use Altair\Eval\Benches\Support\Way;
use Altair\Eval\Tests\Support\TemporaryApplication;
use Altair\Eval\Tests\Support\Without;

/**
 * What it costs to know that nothing has changed which boot read, and to record what that is.
 */
final class Freshness
{
    private const FILES = 2000;
    private const FILES_IN_A_DIRECTORY = 20;

    /** What is read is thrown away: the two applications differ in nothing else. */
    private const AUTOLOADER = <<<'PHP'
        <?php
        for ($file = 0; $file < FILES; ++$file) {
            strlen(file_get_contents(dirname(__DIR__) . '/data/' . intdiv($file, PER_DIRECTORY) . "/$file"));
        }
        PHP;

    public static function measure(Setting $setting, Table $table): void
    {
        [$reads, $readsNone] = [self::application(self::FILES), self::application(0)];
        [$many, $none] = [
            new Host(Setting::SNIPPET, $reads->root, Way::Warm),
            new Host(Setting::SNIPPET, $readsNone->root, Way::Warm),
        ];
        $seen = Comparison::ofBlocks($many->times(...), $none->times(...), intdiv($setting->rounds, 2), 20);
        $table->difference('warm evaluate() after a boot that read ' . self::FILES . ' files', $seen, 0.2);

        $dispatch = new Host(Setting::SNIPPET, $reads->root, Way::First);
        $trap = new Host(Setting::SNIPPET, $reads->root, Way::First, under: Without::under(['dispatch']));
        $seen = Comparison::ofBlocks($trap->boots(...), $dispatch->boots(...), $setting->rounds, 1);
        $name = 'boot that reads ' . self::FILES . ' files, recorded by a filter instead of dispatch';
        $table->ratio($name, $seen, 1.1);
    }

    private static function application(int $read): TemporaryApplication
    {
        $values = ['FILES' => $read, 'PER_DIRECTORY' => self::FILES_IN_A_DIRECTORY];
        $application = new TemporaryApplication(['vendor/autoload.php' => strtr(self::AUTOLOADER, $values)]);
        for ($file = 0; $file < self::FILES; ++$file) {
            $application->write('data/' . intdiv($file, self::FILES_IN_A_DIRECTORY) . "/$file", "contents of $file\n");
        }

        return $application;
    }
}
