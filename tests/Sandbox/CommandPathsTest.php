<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Sandbox;

use Altair\Eval\Tests\Support\SandboxTestCase;
use Altair\Eval\Tests\Support\TemporaryApplication;
use InvalidArgumentException;

/**
 * What a command may read and write: what the policy names, and its own directory.
 */
final class CommandPathsTest extends SandboxTestCase
{
    private TemporaryApplication $files;

    protected function setUp(): void
    {
        parent::setUp();
        $files = ['r/file' => 'readable', 'w/file' => 'writable', 'other/file' => 'other'];
        $this->files = new TemporaryApplication($files);
        $this->files->giveTo(posix_geteuid(), posix_getegid());
        // Containers run as nobody where root starts them.
        chmod($this->files->path('w'), 0777);
        chmod($this->files->path('w/file'), 0666);
    }

    /** Where a driver's command sees a path; containers have a place for each. */
    private static function seenAt(string $driver, string $path, string $inContainer): string
    {
        return escapeshellarg($driver === 'docker' ? $inContainer : $path);
    }

    /**
     * @dataProvider confiningDrivers
     */
    public function testReadablePathsAreReadAndNotWritten(string $driver): void
    {
        $policy = $this->policy()->withReadablePaths($this->files->path('r'));
        $at = self::seenAt($driver, $this->files->path('r'), '/mnt/ro0');

        $script = "cat $at/file; echo x > $at/file; echo x > $at/new; rm -f $at/file; chmod 777 $at/file; mkdir $at/d;"
            . "mv $at/file $at/moved; ln $at/file $at/link; exit 0";
        $result = $this->sh($driver, $script, $policy);

        self::assertSame('readable', $result->stdout());
        self::assertSame(['.', '..', 'file'], scandir($this->files->path('r')));
        self::assertSame('readable', file_get_contents($this->files->path('r/file')));
        self::assertSame(0644, fileperms($this->files->path('r/file')) & 0777);
    }

    /**
     * @dataProvider drivers
     */
    public function testWritablePathsAreWrittenForReal(string $driver): void
    {
        $policy = $this->policy()->withWritablePaths($this->files->path('w'));
        $at = self::seenAt($driver, $this->files->path('w'), '/mnt/rw0');

        $this->printed($driver, "cat $at/file; echo changed > $at/file; mkdir $at/d; echo new > $at/d/new", $policy);

        self::assertSame("changed\n", file_get_contents($this->files->path('w/file')));
        self::assertSame("new\n", file_get_contents($this->files->path('w/d/new')));
    }

    /**
     * @dataProvider confiningDrivers
     */
    public function testASingleFileMayBeEither(string $driver): void
    {
        $policy = $this->policy()
            ->withReadablePaths($this->files->path('r/file'))
            ->withWritablePaths($this->files->path('w/file'));
        $read = self::seenAt($driver, $this->files->path('r/file'), '/mnt/ro0');
        $write = self::seenAt($driver, $this->files->path('w/file'), '/mnt/rw0');

        $result = $this->sh($driver, "cat $read; echo x > $read; echo changed > $write", $policy);

        self::assertSame('readable', $result->stdout());
        self::assertSame('readable', file_get_contents($this->files->path('r/file')));
        self::assertSame("changed\n", file_get_contents($this->files->path('w/file')));
    }

    /**
     * @dataProvider confiningDrivers
     */
    public function testWhatIsNotNamedIsNotThereOrNotWritten(string $driver): void
    {
        $policy = $this->policy()
            ->withReadablePaths($this->files->path('r'))
            ->withWritablePaths($this->files->path('w'));
        $other = $this->files->path('other');

        // The directory is below /tmp, which every driver hides but for what is named.
        $script = "cat $other/file; cat {$this->base->root}/of-the-host; echo x > $other/new;"
            . "echo x > /etc/altair-x; echo x > /usr/altair-x; cd .. && echo x > altair-x; exit 0";
        $this->base->write('of-the-host', 'other');
        $result = $this->sh($driver, $script, $policy);

        self::assertSame('', $result->stdout());
        self::assertSame(['.', '..', 'file'], scandir($other));
        self::assertFileDoesNotExist('/etc/altair-x');
        self::assertFileDoesNotExist('/usr/altair-x');
        self::assertFileDoesNotExist($this->base->path('altair-x'));
    }

    /**
     * @dataProvider confiningDrivers
     */
    public function testSymlinksAreResolvedAndMissingPathsSkipped(string $driver): void
    {
        symlink($this->files->path('r'), $this->base->path('link'));
        symlink('/nowhere', $this->base->path('broken'));
        $policy = $this->policy()
            ->withReadablePaths('/no/such/path', $this->base->path('broken'), $this->base->path('link'), '')
            ->withWritablePaths($this->base->path('missing'));
        $at = self::seenAt($driver, $this->files->path('r'), '/mnt/ro0');

        self::assertSame('readable', $this->printed($driver, "cat $at/file", $policy));
        self::assertFileDoesNotExist($this->base->path('missing'));
    }

    /**
     * @dataProvider confiningDrivers
     */
    public function testASymlinkInsideAPathLeadsNowhereElse(string $driver): void
    {
        symlink($this->files->path('other'), $this->files->path('w/out'));
        $policy = $this->policy()->withWritablePaths($this->files->path('w'));
        $at = self::seenAt($driver, $this->files->path('w'), '/mnt/rw0');

        $result = $this->sh($driver, "cat $at/out/file; echo x > $at/out/new; exit 0", $policy);

        self::assertSame('', $result->stdout());
        self::assertSame(['.', '..', 'file'], scandir($this->files->path('other')));
    }

    /**
     * @dataProvider confiningDrivers
     */
    public function testPathsMayHaveAnyName(string $driver): void
    {
        $names = ['a b', 'c:d', "e'f", 'ü'];
        // What Firejail has no way to say is skipped there.
        $more = ["g\nh", 'i,j', 'k"l', '$m', 'n\\o', '-p', '*', '{q}', '%r', '#s'];
        $paths = [];
        foreach ([...$names, ...$more] as $name) {
            mkdir($this->files->path($name));
            $paths[$name] = $this->files->path($name);
            file_put_contents("$paths[$name]/file", $name);
        }
        sort($paths);

        $script = '';
        foreach ($paths as $i => $path) {
            $script .= 'cat ' . self::seenAt($driver, $path, "/mnt/ro$i") . '/file && echo; ';
        }
        $result = $this->sh($driver, "$script exit 0", $this->policy()->withReadablePaths(...$paths));

        foreach ($driver === 'firejail' ? $names : [...$names, ...$more] as $name) {
            self::assertStringContainsString("$name\n", $result->stdout(), $result->stderr());
        }
    }

    /**
     * @dataProvider confiningDrivers
     */
    public function testOfAPathThatIsBothTheWritableOneCounts(string $driver): void
    {
        $path = $this->files->path('w');
        $policy = $this->policy()->withReadablePaths($path)->withWritablePaths($path, $path);
        $at = self::seenAt($driver, $path, '/mnt/rw0');

        $this->printed($driver, "echo changed > $at/file", $policy);

        self::assertSame("changed\n", file_get_contents("$path/file"));
    }

    /**
     * @testWith ["native"]
     *           ["bubblewrap"]
     *           ["firejail"]
     */
    public function testAReadablePathInsideAWritableOneStaysReadOnly(string $driver): void
    {
        $this->files->write('w/kept/file', 'kept');
        chmod($this->files->path('w/kept'), 0777);
        chmod($this->files->path('w/kept/file'), 0666);
        $policy = $this->policy()
            ->withReadablePaths($this->files->path('w/kept'))
            ->withWritablePaths($this->files->path('w'));
        $at = $this->files->path('w');

        $result = $this->sh($driver, "cat $at/kept/file; echo x > $at/kept/file; echo changed > $at/file", $policy);

        self::assertSame('kept', $result->stdout());
        self::assertSame('kept', file_get_contents("$at/kept/file"));
        self::assertSame("changed\n", file_get_contents("$at/file"));
    }

    /**
     * @dataProvider confiningLocalDrivers
     */
    public function testTheWholeRootMayBeReadable(string $driver): void
    {
        $policy = $this->policy()->withReadablePaths('/');

        $result = $this->sh($driver, 'cat /etc/passwd > /dev/null && echo read; echo x > /usr/altair-x', $policy);

        self::assertSame("read\n", $result->stdout(), $result->stderr());
        self::assertFileDoesNotExist('/usr/altair-x');
    }

    /**
     * @dataProvider confiningDrivers
     */
    public function testTemporaryFilesAreTheCommandsOwn(string $driver): void
    {
        $name = 'altair-' . bin2hex(random_bytes(6));

        self::assertSame("x\n", $this->printed($driver, "echo x > /tmp/$name; cat /tmp/$name"));
        self::assertFileDoesNotExist("/tmp/$name");
        self::assertSame('', $this->printed($driver, "cat /tmp/$name 2>/dev/null || true"));
    }

    public function testTheWholeRootIsNotWritableBehindNative(): void
    {
        $this->assertRefused(
            InvalidArgumentException::class,
            'The driver native cannot make the whole root directory writable',
            fn () => $this->sh('native', 'true', $this->policy()->withWritablePaths('/')),
        );
    }

    /**
     * Whoever may write them has the machine: the kernel starts what `core_pattern` names, as root. Nothing is written
     * here.
     *
     * @dataProvider confiningDrivers
     */
    public function testSettingsOfTheKernelCannotBeOpenedForWriting(string $driver): void
    {
        $script = '(: 3<>/proc/sys/kernel/core_pattern) 2>/dev/null && echo opened; '
            . '[ -w /proc/sysrq-trigger ] && echo writable; [ -w /sys/kernel/uevent_helper ] && echo writable; exit 0';

        self::assertSame('', $this->printed($driver, $script));
        if ($driver !== 'docker') {
            $named = $this->policy()->withWritablePaths('/proc', '/proc/sys/kernel')->withReadablePaths('/proc/1');
            self::assertSame('', $this->printed($driver, $script, $named));
            $seen = $this->printed($driver, 'ls -d /proc/[0-9]*', $named);
            self::assertLessThan(10, substr_count($seen, "\n"), 'Its own processes, and none of the host.');
        }
    }

    /**
     * @dataProvider confiningLocalDrivers
     */
    public function testNoProcessOfTheHostIsSeen(string $driver): void
    {
        $own = (string) getmypid();
        $comm = $this->printed($driver, "cat /proc/$own/cmdline 2>/dev/null; kill -0 $own 2>&1; exit 0");

        self::assertStringNotContainsString('phpunit', $comm);
        // Its process id is another process's, or nobody's.
        self::assertStringContainsString('kill', $comm);
    }
}
