<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Sandbox;

use Altair\Eval\Tests\Support\SandboxTestCase;
use Altair\Eval\Tests\Support\TemporaryApplication;

/**
 * A command does what it likes to its own directory; afterwards that is gone, and nothing else is.
 */
final class WorkDirectoryTest extends SandboxTestCase
{
    /**
     * @dataProvider confiningDrivers
     */
    public function testWhateverItHoldsItIsRemoved(string $driver): void
    {
        $script = <<<'SH'
            i=0; while [ $i -lt 300 ]; do echo > "file $i"; i=$((i+1)); done
            i=0; while [ $i -lt 200 ]; do mkdir deep; cd deep; i=$((i+1)); done; cd /; cd "$OLDPWD"
            echo > "$(printf 'new\nline')"; mkfifo fifo; ln -s loop loop; mkdir closed; echo > closed/x; chmod 0 closed
            ln -s . self; chmod 0 .
            SH;

        $result = $this->sh($driver, $script);

        self::assertSame('', $result->stderr());
        self::assertSame([], self::workDirectories($this->base->root));
    }

    public function testADirectoryThatIsDeeperThanAPathMayBeLongIsRemovedToo(): void
    {
        $code = '$name = str_repeat("a", 10); $made = 0;'
            . 'while ($made < 1500 && mkdir($name) && chdir($name)) { $made++; } echo $made;';

        $result = $this->sandbox('native')->execute(['php', '-r', $code]);

        self::assertSame('1500', $result->stdout(), $result->stderr());
        self::assertSame([], self::workDirectories($this->base->root));
    }

    /**
     * @return iterable<string, array{string}>
     */
    public static function sharing(): iterable
    {
        foreach (['native', 'bubblewrap', 'firejail'] as $driver) {
            yield $driver => [$driver];
        }
    }

    /**
     * @dataProvider sharing
     */
    public function testWhatIsPutInItsPlaceIsNotFollowed(string $driver): void
    {
        $outside = new TemporaryApplication(['kept' => 'x', 'd/kept' => 'x']);
        // It may write where its directory is.
        $policy = $this->policy()->withWritablePaths($this->base->root);
        $script = "cd {$this->base->root}; own=\$(echo sandbox-*);"
            . "mv \"\$own\" moved; ln -s {$outside->root} \"\$own\"";

        $this->sh($driver, $script, $policy);

        self::assertFileExists($outside->path('kept'));
        self::assertFileExists($outside->path('d/kept'));
        array_map(unlink(...), array_filter(glob($this->base->path('sandbox-*')), is_link(...)));
    }

    public function testItMayBeGoneAlready(): void
    {
        $policy = $this->policy()->withWritablePaths($this->base->root);

        $result = $this->sh('native', "cd {$this->base->root} && rmdir sandbox-*; exit 0", $policy);

        self::assertSame(0, $result->exitCode());
        self::assertSame([], self::workDirectories($this->base->root));
    }
}
