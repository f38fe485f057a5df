<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Sandbox;

use Altair\Eval\Tests\Support\Processes;
use Altair\Eval\Tests\Support\SandboxTestCase;
use Altair\Eval\Tests\Support\Script;
use Altair\Eval\Tests\Support\Skip;
use Altair\Eval\Tests\Support\TemporaryApplication;
use Altair\Sandbox\Config\ExecutionPolicy;
use Altair\Sandbox\Data\ExecResult;
use Exception;
use InvalidArgumentException;
use LogicException;
use RuntimeException;

/**
 * Directories whose writes go to a layer, and what becomes of it: applied, discarded, or gone with its result.
 */
final class LayerTest extends SandboxTestCase
{
    private const FILES = [
        'kept' => 'kept',
        'changed' => 'before',
        'removed' => 'removed',
        'd/one' => '1',
        'd/two' => '2',
        'becomes-directory' => 'x',
    ];

    /** Changes something of every kind. */
    private const CHANGES = <<<'SH'
        set -e
        umask 022
        echo new > created; mkdir -p e/f; echo deep > e/f/deep
        printf after > changed; rm removed; rm -r d
        rm becomes-directory; mkdir becomes-directory; echo inside > becomes-directory/inside
        ln -s kept link; mkfifo fifo; ln created hard
        chmod 750 e; chmod 640 created; touch -d '2001-02-03 04:05:06 UTC' e/f/deep
        SH;

    private TemporaryApplication $files;

    protected function setUp(): void
    {
        parent::setUp();
        $this->files = new TemporaryApplication(self::FILES);
        $this->files->remove('vendor');
    }

    private function layered(string $script, string ...$paths): ExecResult
    {
        $paths = $paths === [] ? [$this->files->root] : $paths;
        $script = 'cd ' . escapeshellarg($paths[0]) . "\n$script";

        return $this->sh('native', $script, $this->policy()->withLayer(...$paths));
    }

    /** Every path of a directory with what a command could change of it. */
    private static function state(string $root): string
    {
        clearstatcache();
        exec('cd ' . escapeshellarg($root) . ' && find . -printf "%P %y %m %U:%G %l\n" | sort && '
            . 'find . -type f -print0 | sort -z | xargs -0r md5sum', $lines);

        return implode("\n", $lines);
    }

    /**
     * @return array<string, list<string>>
     */
    private static function paths(ExecResult $result): array
    {
        $changes = $result->fileChanges() ?? [];

        return array_map(static fn (array $kind): array => array_column($kind, 'path'), array_intersect_key(
            $changes,
            ['created' => 1, 'modified' => 1, 'deleted' => 1],
        ));
    }

    public function testWritesAreSeenByTheCommandAndToldAndNotReal(): void
    {
        $before = self::state($this->files->root);

        $result = $this->layered(self::CHANGES . "\ncat changed created becomes-directory/inside; ls d removed || :");

        self::assertSame("afternew\ninside\n", $result->stdout(), $result->stderr());
        self::assertSame(2, substr_count($result->stderr(), 'No such file'));
        self::assertSame(
            [
                'created' => [
                    'becomes-directory/inside', 'created', 'e/', 'e/f/', 'e/f/deep', 'fifo', 'hard', 'link',
                ],
                'modified' => ['becomes-directory/', 'changed'],
                'deleted' => ['d/', 'removed'],
            ],
            self::paths($result),
            json_encode($result->fileChanges()),
        );
        self::assertSame($before, self::state($this->files->root));
        $result->discard();
        self::assertSame($before, self::state($this->files->root));
    }

    public function testApplyingMakesThemReal(): void
    {
        $result = $this->layered(self::CHANGES);
        self::assertTrue($result->success(), $result->stderr());

        $result->apply();

        $root = $this->files->root;
        clearstatcache();
        self::assertSame('kept', file_get_contents("$root/kept"));
        self::assertSame('after', file_get_contents("$root/changed"));
        self::assertSame("new\n", file_get_contents("$root/created"));
        self::assertSame("deep\n", file_get_contents("$root/e/f/deep"));
        self::assertSame("inside\n", file_get_contents("$root/becomes-directory/inside"));
        self::assertFileDoesNotExist("$root/removed");
        self::assertFileDoesNotExist("$root/d");
        self::assertSame('kept', readlink("$root/link"));
        self::assertSame('fifo', filetype("$root/fifo"));
        self::assertSame(0640, fileperms("$root/created") & 07777);
        self::assertSame(0750, fileperms("$root/e") & 07777);
        self::assertSame(strtotime('2001-02-03 04:05:06 UTC'), filemtime("$root/e/f/deep"));
        self::assertSame(fileinode("$root/created"), fileinode("$root/hard"));
        self::assertSame(posix_geteuid(), fileowner("$root/e/f/deep"));
    }

    public function testALayerIsAppliedOrDiscardedOnce(): void
    {
        $applied = $this->layered('echo x > created');
        $applied->apply();
        $discarded = $this->layered('echo y > other');
        $discarded->discard();
        $none = $this->sh('native', 'true');

        foreach (['apply', 'discard'] as $method) {
            $this->assertRefused(LogicException::class, 'already applied', fn () => $applied->$method());
            $this->assertRefused(LogicException::class, 'already discarded', fn () => $discarded->$method());
            $this->assertRefused(LogicException::class, 'has no layer', fn () => $none->$method());
            $this->assertRefused(
                LogicException::class,
                'has no layer',
                static fn () => (new ExecResult('', '', 0, 0.1))->$method(),
            );
        }
        self::assertFileDoesNotExist($this->files->path('other'));
        self::assertNull($none->fileChanges());
        // What was told of it stays.
        self::assertSame(['created'], self::paths($applied)['created']);
    }

    public function testALayerWithoutChangesIsOneToo(): void
    {
        $result = $this->layered('ls');

        self::assertSame([], array_merge(...array_values(self::paths($result))));
        $result->apply();
        self::assertSame(self::FILES['changed'], file_get_contents($this->files->path('changed')));
    }

    public function testACommandThatFailedOrMetItsDeadlineHasALayerToo(): void
    {
        $failed = $this->layered('echo x > failed; exit 3');
        self::assertSame(3, $failed->exitCode());
        $failed->apply();
        self::assertSame("x\n", file_get_contents($this->files->path('failed')));

        $policy = $this->policy()->withTimeout(1)->withLayer($this->files->root);
        $late = $this->sh('native', "echo x > {$this->files->root}/late; exec sleep 1000", $policy);
        self::assertTrue($late->timedOut());
        $late->apply();
        self::assertSame("x\n", file_get_contents($this->files->path('late')));
    }

    public function testALayerIsGoneWithTheLastCloneOfItsResult(): void
    {
        $before = Processes::descriptors();
        $result = $this->layered('echo x > created');
        self::assertGreaterThan(count($before), count(Processes::descriptors()));

        $clone = clone $result;
        unset($result);
        self::assertNotSame($before, Processes::descriptors(), 'The clone holds it.');
        unset($clone);

        self::assertSame($before, Processes::descriptors());
        self::assertFileDoesNotExist($this->files->path('created'));
    }

    public function testClonesShareTheLayer(): void
    {
        $result = $this->layered('echo x > created');
        $clone = clone $result;

        $clone->apply();

        self::assertFileExists($this->files->path('created'));
        $this->assertRefused(LogicException::class, 'already applied', fn () => $result->apply());
    }

    public function testAnOpenLayerIsNotSerialized(): void
    {
        $result = $this->layered('echo x > created');
        $this->assertRefused(Exception::class, '', fn () => serialize($result));
        $this->assertRefused(Exception::class, '', static fn () => serialize([clone $result]));

        $result->discard();
        $copy = unserialize(serialize($result));

        self::assertEquals($result->toArray(), $copy->toArray());
        self::assertSame($result->fileChanges(), $copy->fileChanges());
        $this->assertRefused(LogicException::class, 'has no layer', fn () => $copy->apply());
    }

    public function testAForkOfTheHostNeitherEndsNorAppliesTheLayer(): void
    {
        $script = new Script(sprintf(
            <<<'PHP'
                $policy = Altair\Sandbox\Config\ExecutionPolicy::in(%s)->withTimeout(60)->withLayer(%s);
                $argv = ['sh', '-c', 'cd "$0"; echo x > created', %2$s];
                $result = Altair\Sandbox\Sandbox::native($policy)->execute($argv);
                for ($i = 0; $i < 2; $i++) {
                    if (pcntl_fork() === 0) {
                        if ($i === 0) {
                            unset($result);
                            exit;
                        }
                        try {
                            $result->apply();
                            say('applied');
                        } catch (LogicException $e) {
                            say($e->getMessage());
                        }
                        exit;
                    }
                    pcntl_wait($status);
                }
                say(file_exists(%2$s . '/created'));
                $result->apply();
                say(file_exists(%2$s . '/created'));
                PHP,
            var_export($this->base->root, true),
            var_export($this->files->root, true),
        ));

        self::assertSame('The layer of the result belongs to the process that ran the command.', $script->line());
        self::assertSame('false', $script->line());
        self::assertSame([0, "true\n", ''], $script->end());
    }

    /**
     * @return iterable<string, array{string, string}> what is done meanwhile, and which path is named
     */
    public static function conflicts(): iterable
    {
        yield 'a changed file was changed' => ['printf mine > changed', 'changed'];
        yield 'a removed file was changed' => ['printf mine > removed', 'removed'];
        yield 'a changed file was removed' => ['rm changed', 'changed'];
        yield 'a created file was created' => ['printf mine > created', 'created'];
        yield 'a file was added to a removed directory' => ['printf mine > d/three', 'd'];
        yield 'the mode of a changed file was changed' => ['chmod 600 changed', 'changed'];
        yield 'a directory is where one is created' => ['mkdir -p e; printf mine > e/f', 'e'];
        yield 'a changed file was replaced by one of the same text' => ['cp changed x; mv x changed', 'changed'];
    }

    /**
     * @dataProvider conflicts
     */
    public function testWhatHasChangedMeanwhileStopsApplyingBeforeAnythingIsWritten(string $change, string $path): void
    {
        $result = $this->layered(self::CHANGES);
        exec('cd ' . escapeshellarg($this->files->root) . " && $change");
        $before = self::state($this->files->root);

        $this->assertRefused(RuntimeException::class, $this->files->path($path), fn () => $result->apply());

        self::assertSame($before, self::state($this->files->root));
        // It can be told, tried again, and discarded.
        $this->assertRefused(RuntimeException::class, 'has changed since', fn () => $result->apply());
        $result->discard();
    }

    public function testWhatHasChangedElsewhereDoesNotStopIt(): void
    {
        $result = $this->layered('printf after > changed');
        file_put_contents($this->files->path('kept'), 'mine');
        file_put_contents($this->files->path('mine'), 'mine');

        $result->apply();

        self::assertSame('after', file_get_contents($this->files->path('changed')));
        self::assertSame('mine', file_get_contents($this->files->path('kept')));
        self::assertSame('mine', file_get_contents($this->files->path('mine')));
    }

    public function testTwoLayersOfOneDirectoryDoNotKnowOfEachOther(): void
    {
        $one = $this->layered('printf one > one; cat two; printf one > changed');
        $two = $this->layered('printf two > two; cat one; printf two > changed');
        self::assertSame('', $one->stdout() . $two->stdout());

        $one->apply();

        $this->assertRefused(RuntimeException::class, $this->files->path('changed'), fn () => $two->apply());
        self::assertFileDoesNotExist($this->files->path('two'));
        self::assertSame('one', file_get_contents($this->files->path('changed')));
    }

    public function testAFullDiskLeavesEverythingAsItWas(): void
    {
        if (posix_geteuid() !== 0) {
            Skip::NeedsRoot->because('It mounts a small file system.');
        }
        $disk = $this->files->path('disk');
        mkdir($disk);
        exec('mount -t tmpfs -o size=256k,mode=755 tmpfs ' . escapeshellarg($disk), result_code: $failed);
        self::assertSame(0, $failed);
        try {
            foreach (self::FILES as $path => $contents) {
                @mkdir(dirname("$disk/$path"), recursive: true);
                file_put_contents("$disk/$path", $contents);
            }
            $result = $this->layered(self::CHANGES . "\nhead -c 1M /dev/urandom > e/large", $disk);
            self::assertTrue($result->success(), $result->stderr());
            $before = self::state($disk);

            $this->assertRefused(RuntimeException::class, 'everything is as it was before', fn () => $result->apply());

            self::assertSame($before, self::state($disk));
            exec('mount -o remount,size=4m ' . escapeshellarg($disk));
            $result->apply();
            self::assertSame(1 << 20, filesize("$disk/e/large"));
        } finally {
            unset($result);
            exec('umount ' . escapeshellarg($disk));
        }
    }

    public function testSeveralDirectoriesHaveLayersAndTheirPathsAreAbsolute(): void
    {
        $other = new TemporaryApplication(['file' => 'before']);
        $script = "echo x > created; printf after > {$other->root}/file";
        $result = $this->layered($script, $this->files->root, $other->root);

        $changed = self::paths($result);
        self::assertSame([$this->files->path('created')], $changed['created']);
        self::assertSame([$other->path('file')], $changed['modified']);

        $result->apply();
        self::assertFileExists($this->files->path('created'));
        self::assertSame('after', file_get_contents($other->path('file')));
    }

    public function testALayerInsideAnotherIsPartOfThat(): void
    {
        $root = $this->files->root;
        $inner = $this->layered('cd d; echo x > created; rm one', $root, $this->files->path('d'), $root);

        self::assertSame(['d/created'], self::paths($inner)['created']);
        self::assertSame(['d/one'], self::paths($inner)['deleted']);
        $inner->apply();
        self::assertSame(['.', '..', 'created', 'two'], scandir($this->files->path('d')));
    }

    public function testAWritablePathInsideALayerIsWrittenForReal(): void
    {
        $policy = $this->policy()->withLayer($this->files->root)->withWritablePaths($this->files->path('d'));
        $root = $this->files->root;

        $result = $this->sh('native', "echo x > $root/created; echo real > $root/d/one", $policy);

        self::assertTrue($result->success(), $result->stderr());
        self::assertSame("real\n", file_get_contents("$root/d/one"));
        self::assertFileDoesNotExist("$root/created");
        self::assertSame(['created'], self::paths($result)['created']);
        $result->apply();
        self::assertSame("x\n", file_get_contents("$root/created"));
        self::assertSame("real\n", file_get_contents("$root/d/one"));
    }

    public function testALayerInsideAWritablePathIsOne(): void
    {
        $policy = $this->policy()->withWritablePaths($this->files->root)->withLayer($this->files->path('d'));
        $root = $this->files->root;

        $result = $this->sh('native', "echo real > $root/created; echo x > $root/d/one", $policy);

        self::assertTrue($result->success(), $result->stderr());
        self::assertSame("real\n", file_get_contents("$root/created"));
        self::assertSame('1', file_get_contents("$root/d/one"));
        self::assertSame(['one'], self::paths($result)['modified']);
    }

    public function testWhatCannotHaveALayerIsNamed(): void
    {
        $refused = fn (string $message, ExecutionPolicy $policy) => $this->assertRefused(
            InvalidArgumentException::class,
            $message,
            fn () => $this->sh('native', 'true', $policy),
        );
        $policy = $this->policy();

        $refused($this->files->path('missing'), $policy->withLayer($this->files->path('missing')));
        $refused('is not a directory', $policy->withLayer($this->files->path('kept')));
        $refused('the root directory', $policy->withLayer('/'));
        $refused(' cannot have a layer', $policy->withLayer(''));
        $root = $this->files->root;
        $refused('it is a writable path', $policy->withLayer($root)->withWritablePaths($root));
    }

    public function testASymlinkToADirectoryIsThatDirectory(): void
    {
        symlink($this->files->root, $this->base->path('link'));

        $policy = $this->policy()->withLayer($this->base->path('link'));
        $result = $this->sh('native', "echo x > {$this->files->root}/created", $policy);

        self::assertSame(['created'], self::paths($result)['created'], $result->stderr());
        $result->apply();
        self::assertFileExists($this->files->path('created'));
    }

    public function testDirectoriesMayHaveAnyName(): void
    {
        foreach (["a b\nc", 'd:e,f', 'g\\h', 'ü"\'', '-i'] as $name) {
            mkdir($this->files->path($name));
            file_put_contents($this->files->path("$name/file"), 'before');
            $result = $this->layered("printf after > file; echo x > 'new\n\"file'", $this->files->path($name));
            self::assertTrue($result->success(), $result->stderr());
            self::assertSame(["new\n\"file"], self::paths($result)['created']);
            $result->apply();
            self::assertSame('after', file_get_contents($this->files->path("$name/file")));
            self::assertFileExists($this->files->path("$name/new\n\"file"));
        }
    }

    public function testNothingOutsideIsReachedThroughLinksOfTheCommand(): void
    {
        $outside = new TemporaryApplication(['file' => 'outside']);
        $result = $this->layered("rm -r d; ln -s {$outside->root} d; ln -s {$outside->root}/file changed-link");
        $result->apply();

        self::assertSame($outside->root, readlink($this->files->path('d')));
        self::assertSame('outside', file_get_contents($outside->path('file')));
        self::assertSame(['.', '..', 'file', 'vendor'], scandir($outside->root));
    }

    public function testALinkPutInTheWayOfALayerStopsIt(): void
    {
        $outside = new TemporaryApplication(['one' => '1']);
        $result = $this->layered('echo x > d/new; printf after > d/one');
        rename($this->files->path('d'), $this->files->path('moved'));
        symlink($outside->root, $this->files->path('d'));

        $this->assertRefused(RuntimeException::class, $this->files->path('d'), fn () => $result->apply());

        self::assertSame('1', file_get_contents($outside->path('one')));
        self::assertFileDoesNotExist($outside->path('new'));
        self::assertFileDoesNotExist($this->files->path('moved/new'));
    }

    public function testACopyOfTheDirectoryInItsPlaceStopsItToo(): void
    {
        $result = $this->layered('echo x > created; printf after > one', $this->files->path('d'));
        exec('cd ' . escapeshellarg($this->files->root) . ' && mv d moved && cp -a moved d');

        $this->assertRefused(RuntimeException::class, $this->files->path('d'), fn () => $result->apply());

        self::assertFileDoesNotExist($this->files->path('d/created'));
        self::assertSame(['.', '..', 'one', 'two'], scandir($this->files->path('moved')));
    }

    public function testWhatWasOpenWhenTheHostEndsIsGone(): void
    {
        $script = new Script(sprintf(
            <<<'PHP'
                $policy = Altair\Sandbox\Config\ExecutionPolicy::in(%s)->withTimeout(60)->withLayer(%s);
                $argv = ['sh', '-c', 'cd "$0"; echo x > created', %2$s];
                $result = Altair\Sandbox\Sandbox::native($policy)->execute($argv);
                say($result->fileChanges()['created'][0]['path']);
                PHP,
            var_export($this->base->root, true),
            var_export($this->files->root, true),
        ));

        self::assertSame([0, "created\n", ''], $script->end());
        self::assertFileDoesNotExist($this->files->path('created'));
    }
}
