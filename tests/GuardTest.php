<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\Tests\Support\EvaluationTestCase;
use Altair\Eval\Tests\Support\Processes;

/**
 * The guards around a confined run, seen from outside while it runs.
 */
final class GuardTest extends EvaluationTestCase
{
    /** A user that no system has, to own a project. */
    private const OWNER = 12345;

    public function testItHasASessionOfItsOwnWithoutATerminal(): void
    {
        [, $parent, $group, $session, $terminal] = $this->look(Processes::stat(...));

        self::assertNotSame((string) posix_getsid(0), $session);
        self::assertNotSame((string) posix_getpgrp(), $group);
        self::assertNotSame((string) getmypid(), $parent);
        self::assertSame('0', $terminal);
    }

    public function testItHasNoDescriptorButItsStreamsAndTheChannel(): void
    {
        $kept = fopen('/dev/null', 'r');
        $pair = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0);

        $descriptors = $this->look(fn (int $pid): array => Processes::descriptors((string) $pid));

        self::assertSame('/dev/null', $descriptors[0]);
        self::assertStringStartsWith('pipe:', $descriptors[1]);
        self::assertStringStartsWith('pipe:', $descriptors[2]);
        self::assertNotSame($descriptors[1], $descriptors[2]);
        self::assertStringStartsWith('socket:', $descriptors[3]);
        $lifeline = array_slice($descriptors, 4);
        self::assertLessThanOrEqual(1, count($lifeline), implode(' ', $lifeline));
        self::assertStringNotContainsString('/dev/null', implode(' ', $lifeline));
        self::assertNotNull($kept);
        self::assertNotNull($pair);
    }

    public function testAnUnsafeRunHasNoMoreDescriptors(): void
    {
        $kept = fopen('/dev/zero', 'r');

        $descriptors = $this->look(fn (int $pid): array => Processes::descriptors((string) $pid), unsafe: true);

        self::assertNotContains('/dev/zero', $descriptors);
        self::assertLessThanOrEqual(5, count($descriptors));
        self::assertNotNull($kept);
    }

    public function testItsFilesAreItsOwn(): void
    {
        $before = umask(0);
        try {
            self::assertSame(077, $this->value('umask()'));
        } finally {
            umask($before);
        }
    }

    public function testItHasNoCapabilityAndGetsNone(): void
    {
        $status = $this->look(Processes::status(...));

        foreach (['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb'] as $set) {
            if ($set !== 'CapBnd' || posix_geteuid() === 0) {
                self::assertSame('0000000000000000', $status[$set], $set);
            }
        }
        self::assertSame('1', $status['NoNewPrivs']);
    }

    public function testItsLimitsFollowTheRequest(): void
    {
        $limits = $this->look(self::limits(...), memoryLimitMb: 64, timeoutMs: 9500);

        self::assertSame(['1', '1'], $limits['Max core file size']);
        self::assertSame((string) ((64 + 128) << 20), $limits['Max data size'][1]);
        self::assertSame('12', $limits['Max cpu time'][0]);
        self::assertSame((string) (256 << 20), $limits['Max file size'][1]);
        self::assertSame('256', $limits['Max open files'][1]);
        self::assertSame(['1024', '1024'], $limits['Max pending signals']);
    }

    public function testAnUnsafeRunHasTheHostsLimitsButNoCoreFile(): void
    {
        $limits = $this->look(self::limits(...), unsafe: true);
        $own = self::limits((int) getmypid());

        self::assertSame(['1', '1'], $limits['Max core file size']);
        unset($limits['Max core file size'], $own['Max core file size']);
        self::assertSame($own, $limits);
    }

    public function testAFileCannotGrowBeyondItsLimit(): void
    {
        $snippet = '$f = tmpfile(); fseek($f, (256 << 20) - 1); return [fwrite($f, "a"), @fwrite($f, "b")];';

        self::assertSame([1, false], $this->value($snippet));
    }

    public function testItCannotHoldMoreDescriptorsThanItsLimit(): void
    {
        $snippet = 'for ($all = []; $f = @fopen("/dev/null", "r");) { $all[] = $f; } return count($all);';

        self::assertGreaterThan(200, $this->value($snippet));
        self::assertLessThan(256, $this->value($snippet));
    }

    public function testItRunsAsTheOwnerOfTheProject(): void
    {
        // An ordinary user has no choice but to run as itself.
        [$uid, $gid] = posix_geteuid() === 0 ? [self::OWNER, self::OWNER + 1] : [posix_getuid(), posix_getgid()];
        $this->application()->write('secret', 'of the owner', 0600);
        $this->application()->giveTo($uid, $gid);

        $status = $this->look(Processes::status(...));

        self::assertSame(implode("\t", array_fill(0, 4, $uid)), $status['Uid']);
        self::assertSame(implode("\t", array_fill(0, 4, $gid)), $status['Gid']);
        self::assertSame('of the owner', $this->value('file_get_contents("secret")'));
        self::assertSame([false, false], $this->value('return [@posix_setuid(0), @posix_setgid(0)];'));
        if (posix_geteuid() === 0) {
            self::assertSame('', $status['Groups']);
        }
    }

    public function testTheOwnersRunCannotWriteWhatIsTheHosts(): void
    {
        if (posix_geteuid() !== 0) {
            self::assertSame(posix_geteuid(), $this->value('posix_geteuid()'));

            return;
        }
        $this->application()->giveTo(self::OWNER, self::OWNER);
        $file = $this->application()->write('of-root', 'unchanged', 0644);
        chown($this->application()->root, self::OWNER);

        self::assertFalse($this->value("@file_put_contents('$file', 'changed')"));
        self::assertFalse($this->value('posix_kill(posix_getppid(), 0)'));
        self::assertStringEqualsFile($file, 'unchanged');
    }

    public function testAnUnsafeRunIsTheHostsUser(): void
    {
        $this->application()->giveTo(posix_geteuid() === 0 ? self::OWNER : posix_getuid(), posix_getegid());

        self::assertSame(posix_geteuid(), $this->value('posix_geteuid()', unsafe: true));
    }

    public function testItRunsWithoutWhatChangesHowPhpRuns(): void
    {
        $off = ['opcache.enable_cli', 'opcache.preload', 'html_errors'];
        $this->application(['vendor/autoload.php' => '<?php ini_set("html_errors", "1");'
            . ' ini_set("display_errors", "0");']);

        self::assertSame(
            [['0', '', '0'], 'stderr', '0', '1', '64M'],
            $this->value('$off = ' . var_export($off, true) . ';'
                . ' return [array_map(fn ($name) => (string) ini_get($name), $off),'
                . ' ini_get("display_errors"), ini_get("enable_dl"), ini_get("phar.readonly"),'
                . ' ini_get("memory_limit")];', memoryLimitMb: 64),
        );
    }

    public function testNativeCodeCannotBeLoaded(): void
    {
        self::assertSame('0', $this->value('ini_get("ffi.enable")'));
        $result = $this->evaluate('FFI::cdef("int getpid(void);");');
        self::assertSame('FFI\Exception', $result->exception['class']);
        self::assertSame('Error', $this->evaluate('dl("x.so");')->exception['class']);
    }

    /** What `$look` makes of the process of a run that is under way. */
    private function look(callable $look, mixed ...$options): array
    {
        $seen = [];
        $this->lookWhileItRuns(function (int $pid) use (&$seen, $look): void {
            $seen = $look($pid);
        }, ...$options);

        return $seen;
    }

    /**
     * @return array<string, array{string, string}> name => soft and hard limit
     */
    private static function limits(int $pid): array
    {
        preg_match_all('/^(Max .*?)\s{2,}(\S+)\s+(\S+)/m', (string) file_get_contents("/proc/$pid/limits"), $rows);

        return array_combine($rows[1], array_map(null, $rows[2], $rows[3]));
    }
}
