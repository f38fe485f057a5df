<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Warm;

use Altair\Eval\Tests\Support\TemporaryApplication;
use Altair\Eval\Tests\Support\Warm\WithoutMountsTestCase;

/**
 * Templates where nothing can be mounted, as in a container: Landlock keeps boot and each fork to what it may read, and
 * each fork has a directory for temporary files of its own.
 */
final class WithoutMountsTest extends WithoutMountsTestCase
{
    /**
     * @param list<string> $what
     * @dataProvider users
     */
    public function testItIsWarmAndGuarded(array $what, int $owner): void
    {
        $this->boots('$GLOBALS["booted"] = 42;', $owner);
        $warm = $this->host($what, 'return $warm(' . var_export(<<<'PHP'
            return [
                $GLOBALS['booted'],
                @file_get_contents(getenv('ALTAIR_TEST_OUTSIDE') . '/secret'),
                @file_put_contents(getcwd() . '/made', 'x'),
                posix_geteuid(),
            ];
            PHP, true) . ');');

        self::assertSame('warm', $warm[0]);
        self::assertSame([42, false, false, $owner], $warm[1]);
        $guards = $warm[2]['diagnostics']['guards'];
        self::assertStringStartsWith('missing: the kernel does not let the process', $guards['filesystem']);
        self::assertSame(['in force', 'in force'], [$guards['landlock'], $guards['seccomp']]);
        self::assertFileDoesNotExist($this->application->path('made'));
    }

    /**
     * @param list<string> $what
     * @dataProvider users
     */
    public function testEachRunHasADirectoryForTemporaryFilesOfItsOwn(array $what, int $owner): void
    {
        $this->boots('', $owner);
        $seen = $this->host($what, <<<'PHP'
            $warm('return 1;');
            $say = 'return [sys_get_temp_dir(), scandir(sys_get_temp_dir()), readlink(sys_get_temp_dir())];';
            $use = <<<'SNIPPET'
                $temp = sys_get_temp_dir();
                mkdir("$temp/d");
                file_put_contents("$temp/d/code.php", '<?php return 6 * 7;');
                $name = tempnam($temp, 'x');
                rename("$temp/d/code.php", "$temp/moved.php");
                $database = new PDO("sqlite:$temp/data.db");
                $database->exec('create table t (v); insert into t values (7)');
                $file = tmpfile();
                fwrite($file, 'x');

                return [
                    include "$temp/moved.php", is_file($name), count(glob("$temp/*")), unlink($name),
                    (int) $database->query('select v from t')->fetchColumn(), ftell($file),
                ];
                SNIPPET;

            $warm($use, database: 'rollback');

            return [$ask($say), $ask($use, database: 'rollback'), $ask($say)];
            PHP);

        [[$start, [$path, $names, $real]], [, $used], [$again, [, $after, $other]]] = $seen;
        self::assertSame(['warm', 'warm'], [$start, $again]);
        self::assertSame(['/proc/self/fd/4', ['.', '..']], [$path, $names]);
        self::assertSame([42, true, 5, true, 7, 1], $used);
        self::assertSame(['.', '..'], $after);
        self::assertStringStartsWith($this->outside->path('tmp') . '/', $real);
        self::assertNotSame($real, $other);
    }

    public function testWhatBootLeavesThereIsThereInEachRun(): void
    {
        $boot = <<<'PHP'
            $temp = sys_get_temp_dir();
            mkdir("$temp/cache");
            file_put_contents("$temp/cache/a.php", '<?php return "boot";');
            $GLOBALS['cache'] = "$temp/cache/a.php";
            $GLOBALS['name'] = tempnam($temp, 'boot');
            file_put_contents($GLOBALS['name'], 'kept');
            PHP;
        $this->boots($boot);
        $seen = $this->host(['mounts'], <<<'PHP'
            $snippet = <<<'SNIPPET'
                $was = include $GLOBALS['cache'];

                return [
                    $was, file_put_contents($GLOBALS['cache'], '<?php return "run";'),
                    file_get_contents($GLOBALS['cache']),
                    file_get_contents($GLOBALS['name']), @file_put_contents($GLOBALS['name'], 'x'),
                ];
                SNIPPET;
            $warm('return 1;');

            return [$ask($snippet), $ask($snippet)];
            PHP);

        foreach ($seen as [$start, $value]) {
            self::assertSame('warm', $start);
            self::assertSame(['boot', 19, '<?php return "run";', 'kept', false], $value);
        }
    }

    public function testPathsThatBootResolvesLeadToTheRunsOwnDirectory(): void
    {
        $this->boots('mkdir(sys_get_temp_dir() . "/log"); $GLOBALS["log"] = realpath(sys_get_temp_dir() . "/log");'
            . '$GLOBALS["others"] = [realpath($root), realpath("$root/missing")];');
        $seen = $this->host(['mounts'], <<<'PHP'
            $snippet = 'return [file_put_contents("$GLOBALS[log]/of-run", "x"), scandir($GLOBALS["log"]),
                realpath($GLOBALS["log"]) === $GLOBALS["log"], $GLOBALS["others"]];';
            $warm('return 1;');

            return [$ask($snippet), $ask($snippet)];
            PHP);

        foreach ($seen as [$start, $value]) {
            self::assertSame('warm', $start);
            self::assertSame([1, ['.', '..', 'of-run'], true, [$this->application->root, false]], $value);
        }
    }

    public function testTheModeOfItsOwnFilesMattersToNobodyAndThatOfOthersStays(): void
    {
        $this->application = new TemporaryApplication(['kept' => 'x']);
        $this->boots('');
        chmod($this->application->path('kept'), 0640);
        [$start, $value] = $this->host(['mounts'], <<<'PHP'
            return $warm(<<<'SNIPPET'
                $own = sys_get_temp_dir() . '/own';
                touch($own);

                return [
                    chmod($own, 0644), @chmod("$own/missing", 0644), @chmod('kept', 0666), @chmod("$own/../../kept", 0),
                    @chmod(getenv('ALTAIR_TEST_OUTSIDE') . '/secret', 0),
                ];
                SNIPPET);
            PHP);

        self::assertSame(['warm', [true, false, false, false, false]], [$start, $value]);
        clearstatcache();
        self::assertSame(0640, fileperms($this->application->path('kept')) & 0777);
    }

    public function testTooMuchThereIsBootedInEachRun(): void
    {
        $this->boots('file_put_contents(sys_get_temp_dir() . "/large", str_repeat("x", 65 << 20));');
        [$start, $value, $result] = $this->host(['mounts'], <<<'PHP'
            $ask('return 1;');

            return $ask('return filesize(sys_get_temp_dir() . "/large");');
            PHP);

        self::assertSame(['booted', 65 << 20], [$start, $value]);
        $why = 'boot leaves too much in the directory for temporary files';
        self::assertStringContainsString($why, $result['diagnostics']['start_reason']);
    }

    /**
     * Native code in a run that waits, and in one beside it.
     *
     * @param list<string> $what
     * @dataProvider users
     */
    public function testNothingOfAnotherRunOrOfTheTemplateCanBeReached(array $what, int $owner): void
    {
        $this->boots('$temp = sys_get_temp_dir(); file_put_contents("$temp/of-boot", "boot");'
            . 'file_put_contents(dirname(readlink($temp)) . "/shared/of-boot", "shared");', $owner);
        $seen = $this->host($what, <<<'PHP'
            $warm('return 1;');
            $attack = <<<'SNIPPET'
                $libc = FFI::cdef('int open(const char *, int, ...); int kill(int, int); long ptrace(int, ...);
                    int mkdir(const char *, int); int rename(const char *, const char *); int unlink(const char *);
                    int chmod(const char *, int); int symlink(const char *, const char *);');
                $own = readlink(sys_get_temp_dir());
                $all = dirname($own);
                file_put_contents("$own/mine", 'mine');
                $others = array_diff(@scandir($all) ?: [], ['.', '..']);
                $before = (int) substr(basename($own), 4) - 1;
                $tried = [
                    'list' => count($others),
                    'list by ..' => count(@scandir('/proc/self/fd/4/..') ?: []),
                    'make beside' => $libc->mkdir("$all/made", 0700),
                    'make in the template' => $libc->open("$all/boot/made", 0101, 0600),
                    'write the template' => $libc->open("$all/boot/of-boot", 2),
                    'remove from the template' => $libc->unlink("$all/boot/of-boot"),
                    'rename over the template' => $libc->rename("$own/mine", "$all/boot/of-boot"),
                    'mode of the template' => $libc->chmod("$all/boot", 0777),
                    'write what all may read' => $libc->open("$all/shared/of-boot", 2),
                    'make in what all may read' => $libc->mkdir("$all/shared/made", 0700),
                    'rename over it' => $libc->rename("$own/mine", "$all/shared/of-boot"),
                    'link' => $libc->symlink('/etc/shadow', "$own/link"),
                    'project' => $libc->open(getcwd() . '/made', 0101, 0600),
                    'outside' => $libc->open(getenv('ALTAIR_TEST_OUTSIDE') . '/secret', 0),
                    'memory of the template' => $libc->open('/proc/' . $before . '/mem', 0),
                ];
                for ($pid = getmypid() - 40; $pid < getmypid() + 40; $pid++) {
                    if ($pid !== getmypid()) {
                        $tried["other's $pid"] = $libc->open("$all/run-$pid/mine", 0);
                        $tried["signal $pid"] = $libc->kill($pid, 10);
                        $tried["trace $pid"] = $libc->ptrace(16, $pid, 0, 0);
                    }
                }
                usleep(200000);

                return array_keys(array_filter($tried, static fn (int $got): bool => $got > -1 && $got !== 0))
                    ?: file_get_contents("$own/mine");
                SNIPPET;
            $requests = array_fill(0, 4, new Altair\Eval\EvalRequest($attack, $root, 60000));
            $answers = [];
            foreach ($evaluator->evaluateMany($requests, 4) as $result) {
                $value = Altair\Eval\Tests\plain($result->result);
                $answers[] = [$result->diagnostics['start'], $value, $result->toArray()];
            }

            $kept = 'return file_get_contents(sys_get_temp_dir() . "/of-boot")
                . file_get_contents(dirname(readlink(sys_get_temp_dir())) . "/shared/of-boot");';

            return [$answers, $ask($kept)];
            PHP, ['altair_eval.omit' => 'ini', 'ffi.enable' => '1']);

        [$answers, $after] = $seen;
        self::assertCount(4, $answers);
        foreach ($answers as [$start, $value, $result]) {
            self::assertSame(['warm', 'mine'], [$start, $value], var_export($result, true));
        }
        self::assertSame(['warm', 'bootshared'], [$after[0], $after[1]]);
    }

    /**
     * @return iterable<string, array{string, string, string}> what boot sees, and a change, which changes that
     */
    public static function changes(): iterable
    {
        yield 'a file of the project' => [
            'file_get_contents("$root/config")', 'file_put_contents("$root/config", "other")', 'config',
        ];
        yield 'a new file at the top of the project' => [
            'count(glob("$root/*.conf"))', 'touch("$root/a.conf")', '',
        ];
        yield 'a file elsewhere that comes' => [
            'file_exists(getenv("ALTAIR_TEST_OUTSIDE") . "/flag")',
            'touch(getenv("ALTAIR_TEST_OUTSIDE") . "/flag")',
            '',
        ];
        yield 'the size of a file elsewhere' => [
            'filesize(getenv("ALTAIR_TEST_OUTSIDE") . "/secret")',
            'file_put_contents(getenv("ALTAIR_TEST_OUTSIDE") . "/secret", "more")',
            '',
        ];
    }

    /** @dataProvider changes */
    public function testItIsNeverStale(string $sees, string $change): void
    {
        $this->application = new TemporaryApplication(['config' => 'first']);
        $this->boots("\$GLOBALS['seen'] = $sees;");
        [$before, $after, $cold] = $this->host(['mounts'], <<<PHP
            \$see = 'return \$GLOBALS["seen"];';
            \$before = \$warm(\$see);
            usleep(50000);
            $change;
            \$after = \$ask(\$see);
            \$evaluator = new Altair\\Eval\\Evaluator(warm: false);
            \$cold = \$evaluator->evaluate(new Altair\\Eval\\EvalRequest(\$see, \$root, 60000));

            return [\$before, \$after, Altair\\Eval\\Tests\\plain(\$cold->result)];
            PHP);

        self::assertSame('warm', $before[0]);
        self::assertNotSame($before[1], $after[1], 'The change shows.');
        self::assertSame($cold, $after[1]);
    }

    /** What Landlock was given by name is not all: a name that comes can be read as soon as it is there. */
    public function testANewFileAtTheTopOfTheProjectCanBeRead(): void
    {
        $this->boots('');
        $seen = $this->host(['mounts'], <<<'PHP'
            $warm('return 1;');
            file_put_contents("$root/new", 'new');
            $first = $ask('return file_get_contents("new");');
            rename("$root/new", "$root/renamed");
            file_put_contents("$root/next", 'next');
            rename("$root/next", "$root/renamed");

            return [$first[1], $ask('return file_get_contents("renamed");')[1]];
            PHP);

        self::assertSame(['new', 'next'], $seen);
    }

    public function testItStaysWarmWhateverHappensBesideTheDirectoryForTemporaryFiles(): void
    {
        $this->boots('$GLOBALS["seen"] = realpath(dirname(readlink(sys_get_temp_dir()), 2));');
        $seen = $this->host(['mounts'], <<<'PHP'
            $warm('return 1;');
            $starts = [];
            foreach (['a', 'b', 'c'] as $name) {
                touch(getenv('TMPDIR') . "/$name");
                $starts[] = $ask('return 1;')[0];
                unlink(getenv('TMPDIR') . "/$name");
            }

            return $starts;
            PHP);

        self::assertSame(['warm', 'warm', 'warm'], $seen);
    }

    /** @param string $boot PHP that the application's autoloader runs */
    private function boots(string $boot, int $owner = 0): void
    {
        $this->application ??= new TemporaryApplication();
        $this->application->write('vendor/autoload.php', "<?php\n\$root = dirname(__DIR__);\n$boot\n");
        if (posix_geteuid() === 0) {
            $this->application->giveTo($owner, $owner);
        }
        // What is changed shortly before it is read makes one template more.
        usleep(50000);
    }
}
