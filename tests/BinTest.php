<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use PHPUnit\Framework\TestCase;

/**
 * The launcher bin/altair, in a made-up clone whose native command is a script that tells how it was called.
 */
final class BinTest extends TestCase
{
    /** Tells its name, its arguments one by one, and ends with 7. */
    private const NATIVE = <<<'SH'
        #!/bin/sh
        printf '%s' NAME
        for argument; do printf '|%s' "$argument"; done
        exit 7
        SH;

    /** All that is on PATH: the system's own directories may hold an installed `altair`. */
    private const TOOLS = ['sh', 'env', 'timeout', 'readlink', 'realpath', 'rm'];

    private string $root;

    protected function setUp(): void
    {
        $this->root = realpath(sys_get_temp_dir()) . '/altair-bin-' . bin2hex(random_bytes(6));
        mkdir($this->root . '/path', recursive: true);
        mkdir($this->root . '/tools');
        foreach (self::TOOLS as $tool) {
            foreach (explode(':', (string) getenv('PATH')) as $directory) {
                if (is_executable("$directory/$tool")) {
                    symlink("$directory/$tool", "{$this->root}/tools/$tool");
                    break;
                }
            }
        }
        $this->makeClone('clone');
    }

    protected function tearDown(): void
    {
        $this->execute(['rm', '-rf', '--', $this->root]);
    }

    public function testItRunsWhatTheCloneBuiltWithTheArgumentsUnchanged(): void
    {
        $this->build('clone');

        $arguments = ['eval', '--', 'return "$x"  * 2;', '', "two\nlines", '-n'];

        self::assertSame(
            [7, 'clone|' . implode('|', $arguments), ''],
            $this->execute([$this->root . '/clone/bin/altair', ...$arguments]),
        );
    }

    public function testItWorksFromAnyDirectoryByARelativePath(): void
    {
        $this->build('clone');

        self::assertSame([7, 'clone|x', ''], $this->execute(['bin/altair', 'x'], $this->root . '/clone'));
        self::assertSame([7, 'clone|x', ''], $this->execute(['../clone/bin/altair', 'x'], $this->root . '/path'));
        self::assertSame([7, 'clone|x', ''], $this->execute(['./altair', 'x'], $this->root . '/clone/bin'));
        self::assertSame([7, 'clone|x', ''], $this->execute(['sh', 'altair', 'x'], $this->root . '/clone/bin'));
    }

    public function testItWorksFromPath(): void
    {
        $this->build('clone');

        self::assertSame([7, 'clone|x', ''], $this->execute(['altair', 'x'], '/', ["{$this->root}/clone/bin"]));
    }

    public function testItWorksFromALinkInVendorBin(): void
    {
        $this->makeClone('app/vendor/univeros/altair-eval');
        $this->build('app/vendor/univeros/altair-eval');
        mkdir($this->root . '/app/vendor/bin');
        symlink('../univeros/altair-eval/bin/altair', $this->root . '/app/vendor/bin/altair');

        [$exitCode, $output] = $this->execute(['vendor/bin/altair'], $this->root . '/app');

        self::assertSame([7, 'app/vendor/univeros/altair-eval'], [$exitCode, $output]);
    }

    public function testItWorksFromWhatComposerPutsIntoVendorBin(): void
    {
        $this->build('clone');
        $this->composerInstallsTheCloneInto('app');

        self::assertSame([7, 'clone|x', ''], $this->execute(['vendor/bin/altair', 'x'], $this->root . '/app'));
        self::assertSame([7, 'clone|x', ''], $this->execute([$this->root . '/app/vendor/bin/altair', 'x'], '/'));
    }

    public function testItWorksInADirectoryWithASpaceInItsName(): void
    {
        $this->makeClone('a clone');
        $this->build('a clone');
        symlink('a clone/bin/altair', $this->root . '/link to it');

        self::assertSame([7, 'a clone', ''], $this->execute([$this->root . '/a clone/bin/altair']));
        self::assertSame([7, 'a clone', ''], $this->execute([$this->root . '/link to it']));
    }

    public function testItFollowsAChainOfRelativeLinks(): void
    {
        $this->build('clone');
        mkdir($this->root . '/a/b', recursive: true);
        symlink('../clone', $this->root . '/path/clone');
        symlink('../../path/clone/bin/altair', $this->root . '/a/b/first');
        symlink('b/first', $this->root . '/a/second');
        symlink($this->root . '/a/second', $this->root . '/third');

        self::assertSame([7, 'clone|x', ''], $this->execute(['./third', 'x'], $this->root));
        self::assertSame([7, 'clone|x', ''], $this->execute(['a/second', 'x'], $this->root));
    }

    public function testWhatTheCloneBuiltGoesBeforePath(): void
    {
        $this->build('clone');
        $this->put('path/altair', 'installed');

        self::assertSame([7, 'clone', ''], $this->launch([$this->root . '/path']));
    }

    public function testItRunsTheOneOnPathWhereTheCloneIsNotBuilt(): void
    {
        $this->put('path/altair', 'installed');

        self::assertSame([7, 'installed', ''], $this->launch([$this->root . '/path']));
    }

    public function testTheEnvironmentNamesAnotherNativeCommand(): void
    {
        $this->build('clone');
        $this->put('other', 'other');

        self::assertSame([7, 'other', ''], $this->launch([], ['ALTAIR_NATIVE' => $this->root . '/other']));
    }

    public function testAWrongNameInTheEnvironmentIsSaidAndNotPassedOver(): void
    {
        $this->build('clone');

        self::assertSame(
            [2, '', "altair: ALTAIR_NATIVE names no program: /nowhere/altair\n"],
            $this->launch([], ['ALTAIR_NATIVE' => '/nowhere/altair']),
        );
    }

    public function testWithoutANativeCommandOneLineSaysHowToGetIt(): void
    {
        $this->assertNotBuilt($this->launch());
    }

    public function testADirectoryOfThatNameIsNoCommand(): void
    {
        mkdir($this->root . '/clone/target/release/altair', recursive: true);
        mkdir($this->root . '/path/altair');

        $this->assertNotBuilt($this->launch([$this->root . '/path']));
    }

    public function testItDoesNotRunItselfFromPath(): void
    {
        symlink('../clone/bin/altair', $this->root . '/path/altair');
        $itself = [$this->root . '/clone/bin', $this->root . '/path'];

        $this->assertNotBuilt($this->launch($itself));
        $this->assertNotBuilt($this->execute(['altair'], '/', $itself));

        $this->put('installed/altair', 'installed');
        self::assertSame([7, 'installed', ''], $this->launch([...$itself, $this->root . '/installed']));
    }

    public function testItDoesNotRunItselfThroughComposersProxyOnPath(): void
    {
        $this->composerInstallsTheCloneInto('app');

        $this->assertNotBuilt($this->launch([$this->root . '/app/vendor/bin']));
    }

    public function testClonesThatAreNotBuiltDoNotRunEachOtherForEver(): void
    {
        $this->makeClone('second');

        [$exitCode, $output, $error] = $this->launch([$this->root . '/clone/bin', $this->root . '/second/bin']);

        self::assertSame([2, '', 1], [$exitCode, $output, substr_count($error, "\n")]);
    }

    public function testItDoesNotRunItselfThroughAWrapperOrTheEnvironment(): void
    {
        $this->put('path/altair', '', "#!/bin/sh\n'{$this->root}/clone/bin/altair' \"$@\"\n");

        $this->assertNotBuilt($this->launch([$this->root . '/path']));
        $this->assertNotBuilt($this->launch([], ['ALTAIR_NATIVE' => $this->root . '/clone/bin/altair']));
    }

    private function makeClone(string $name): void
    {
        $repository = dirname(__DIR__);
        mkdir("{$this->root}/$name/bin", recursive: true);
        copy($repository . '/bin/altair', "{$this->root}/$name/bin/altair");
        chmod("{$this->root}/$name/bin/altair", 0755);
        copy($repository . '/composer.json', "{$this->root}/$name/composer.json");
    }

    private function build(string $clone): void
    {
        $this->put($clone . '/target/release/altair', $clone);
    }

    private function put(string $path, string $name, string $script = self::NATIVE): void
    {
        $file = $this->root . '/' . $path;
        if (!is_dir(dirname($file))) {
            mkdir(dirname($file), recursive: true);
        }
        file_put_contents($file, str_replace('NAME', "'$name'", $script));
        chmod($file, 0755);
    }

    private function composerInstallsTheCloneInto(string $application): void
    {
        mkdir($this->root . '/' . $application);
        file_put_contents($this->root . '/' . $application . '/composer.json', json_encode([
            'repositories' => [['type' => 'path', 'url' => '../clone']],
            'require' => ['univeros/altair-eval' => '@dev'],
        ], JSON_THROW_ON_ERROR));

        [$exitCode, , $error] = $this->execute(
            ['composer', 'update', '--no-interaction', '--no-progress', '--ignore-platform-reqs'],
            $this->root . '/' . $application,
            [],
            [
                'PATH' => (string) getenv('PATH'),
                'COMPOSER_HOME' => $this->root . '/composer',
                'COMPOSER_DISABLE_NETWORK' => '1',
                'COMPOSER_ALLOW_SUPERUSER' => '1',
            ],
        );

        self::assertSame(0, $exitCode, $error);
    }

    /**
     * @param list<string> $path
     * @param array<string, string> $environment
     * @return array{int, string, string}
     */
    private function launch(array $path = [], array $environment = []): array
    {
        return $this->execute([$this->root . '/clone/bin/altair'], '/', $path, $environment);
    }

    /**
     * @param list<string> $command
     * @param list<string> $path what goes before the tools that the launchers use
     * @param array<string, string> $environment
     * @return array{int, string, string} exit code, output, errors
     */
    private function execute(
        array $command,
        string $directory = '/',
        array $path = [],
        array $environment = [],
    ): array {
        // A launcher that runs itself for ever must fail the test, not hang it.
        $process = proc_open(
            ['timeout', '--kill-after=1', '10', ...$command],
            [['file', '/dev/null', 'r'], ['file', $this->root . '/out', 'w'], ['file', $this->root . '/err', 'w']],
            $pipes,
            $directory,
            $environment + ['PATH' => implode(':', [...$path, $this->root . '/tools'])],
        );
        self::assertIsResource($process);
        $exitCode = proc_close($process);

        return [
            $exitCode,
            (string) @file_get_contents($this->root . '/out'),
            (string) @file_get_contents($this->root . '/err'),
        ];
    }

    /**
     * @param array{int, string, string} $ended
     */
    private function assertNotBuilt(array $ended): void
    {
        $message = 'altair: the native command is not built: run `make build` in ' . $this->root
            . "/clone, or `make install` there.\n";

        self::assertSame([2, '', $message], $ended);
    }
}
