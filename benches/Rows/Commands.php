<?php

declare(strict_types=1);

namespace Altair\Eval\Benches\Rows;

use Altair\Eval\Benches\Support\Comparison;
use Altair\Eval\Benches\Support\Setting;
use Altair\Eval\Benches\Support\Table;

/**
 * Whole commands, from their start to their end.
 */
final class Commands
{
    public static function measure(Setting $setting, Table $table): void
    {
        $eval = [$setting->repository . '/bin/altair', 'eval', '--root', $setting->shop, Setting::SNIPPET];
        $references = [
            'bin/altair eval / php -r ""' => [2.2, ''],
            'bin/altair eval / php -r with the same boot' => [1.4, Setting::boot($setting->shop)],
        ];
        foreach ($references as $name => [$limit, $code]) {
            $table->ratio($name, self::compare($eval, [PHP_BINARY, '-r', $code], $setting->rounds), $limit);
        }
        $loading = self::compare(
            [PHP_BINARY, '-n', '-d', 'extension=' . getenv('EXTENSION'), '-r', ''],
            [PHP_BINARY, '-n', '-r', ''],
            $setting->rounds * 3,
        );
        $table->difference('loading the extension, php -n -r ""', $loading, 1.0);
    }

    private static function compare(array $subject, array $reference, int $rounds): Comparison
    {
        return Comparison::of(
            static fn () => Setting::run($subject),
            static fn () => Setting::run($reference),
            $rounds,
        );
    }
}
