<?php

declare(strict_types=1);

namespace Altair\Eval\Benches\Rows;

use Altair\Eval\Benches\Support\Comparison;
use Altair\Eval\Benches\Support\Setting;
use Altair\Eval\Benches\Support\Spawned;
use Altair\Eval\Benches\Support\Table;
use Altair\Sandbox\Config\ExecutionPolicy;
use Altair\Sandbox\Contracts\CanExecuteCommand;
use Altair\Sandbox\Sandbox;
use Closure;
use RuntimeException;

/**
 * What a policy costs a command, against starting the same program without one.
 */
final class Sandboxes
{
    /** A program that does nothing. */
    private const COMMAND = ['/bin/true'];

    public static function measure(Setting $setting, Table $table): void
    {
        $policy = ExecutionPolicy::in($setting->application->path('tmp'));
        $native = self::run(Sandbox::native($policy));
        $rounds = $setting->rounds * 5;

        $row = 'native /bin/true / 1.5 × posix_spawn + wait';
        $table->beyond($row, Comparison::of($native, Spawned::of(self::COMMAND), $rounds), 1.5, 3.0);
        $row = 'host /bin/true / proc_open + proc_close';
        $table->ratio($row, Comparison::of(self::run(Sandbox::host($policy)), self::opened(...), $rounds), 1.15);
        $row = 'native /bin/true / bubblewrap';
        if (!is_executable('/usr/bin/bwrap')) {
            $table->skip($row, 'bubblewrap is not installed');

            return;
        }
        $table->ratio($row, Comparison::of($native, self::run(Sandbox::bubblewrap($policy)), $setting->rounds), 1.0);
    }

    /** @return Closure(): void */
    private static function run(CanExecuteCommand $sandbox): Closure
    {
        return static function () use ($sandbox): void {
            $result = $sandbox->execute(self::COMMAND);
            $result->success() || throw new RuntimeException($result->stderr());
        };
    }

    private static function opened(): void
    {
        $streams = [['file', '/dev/null', 'r'], ['pipe', 'w'], ['pipe', 'w']];
        $process = proc_open(self::COMMAND, $streams, $pipes) ?: throw new RuntimeException('It was not opened.');
        stream_get_contents($pipes[1]);
        stream_get_contents($pipes[2]);
        proc_close($process);
    }
}
