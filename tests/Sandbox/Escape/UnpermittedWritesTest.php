<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Sandbox\Escape;

use Altair\Eval\Tests\Support\Processes;
use Altair\Eval\Tests\Support\Sandbox\Caller;
use Altair\Eval\Tests\Support\Sandbox\Household;
use Altair\Eval\Tests\Support\Sandbox\Levels;
use PHPUnit\Framework\TestCase;

/**
 * `altair run` permits no writes by default. Whatever the kernel lacks, nothing is written.
 */
final class UnpermittedWritesTest extends TestCase
{
    /** Each way to change a file or a directory, in each of the directories that it is given. */
    private const CHANGE = <<<'PHP'
        foreach (array_slice($argv, 1) as $at) {
            @file_put_contents("$at/created", "new");
            @file_put_contents("$at/written", "new", FILE_APPEND);
            ($file = @fopen("$at/truncated", "r+")) && @ftruncate($file, 1);
            @rename("$at/renamed", "$at/renamed-now");
            @unlink("$at/unlinked");
            @chmod("$at/mode", 0600);
            @chmod($at, 0700);
            @chgrp("$at/owner", (int) getenv("GROUP"));
            @touch("$at/time", 86400, 86400);
            @touch($at, 86400, 86400);
            @link("$at/linked", "$at/linked-now");
            @symlink("$at/linked", "$at/symbolic");
            @mkdir("$at/directory");
            @rmdir("$at/removed");
            exec("mkfifo " . escapeshellarg("$at/pipe") . " 2>/dev/null");
        }
        PHP;

    private const FILES = ['written', 'truncated', 'renamed', 'unlinked', 'mode', 'owner', 'time', 'linked'];

    /**
     * @return iterable<string, array{Caller, list<string>}>
     */
    public static function levels(): iterable
    {
        return Levels::all();
    }

    /**
     * @param list<string> $without
     *
     * @dataProvider levels
     */
    public function testNothingIsWritten(Caller $caller, array $without): void
    {
        $household = new Household($caller);
        // The host's directory for temporary files, in which nobody but this test has this one.
        $temp = sys_get_temp_dir() . '/altair-unpermitted-' . bin2hex(random_bytes(6));
        mkdir($temp);
        $places = [$household->project, $household->home, $temp];
        $looked = [$household->home, $temp];
        foreach ($places as $place) {
            foreach (self::FILES as $name) {
                $household->put("$place/$name", 'before');
            }
            mkdir("$place/removed");
            $household->giveAway($place);
        }
        try {
            $trees = static fn (): array => array_map(Household::tree(...), $looked);
            $names = self::temporary();
            $before = $trees();
            $ran = $household->run(['--', PHP_BINARY, '-n', '-r', self::CHANGE, ...$places], $without);
            self::assertSame(0, $ran->exitCode, $ran->errors);
            self::assertSame($before, $trees(), $ran->errors);
            self::assertSame([], array_diff(self::temporary(), $names), 'Nothing is left in the temporary directory.');
            self::assertSame([], Processes::children());

            // Nothing holds it: the same changes each of them.
            $household->unheld([PHP_BINARY, '-n', '-r', self::CHANGE, ...$places]);
            foreach ($trees() as $index => $after) {
                self::assertNotSame($before[$index], $after);
            }
        } finally {
            exec('rm -rf ' . escapeshellarg($temp));
        }
    }

    /**
     * @return list<string> the work directories in the temporary directories
     */
    private static function temporary(): array
    {
        return [...glob(sys_get_temp_dir() . '/sandbox-*') ?: [], ...glob('/var/tmp/sandbox-*') ?: []];
    }
}
