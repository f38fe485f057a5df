<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\Tests\Support\Command;
use Altair\Eval\Tests\Support\EvaluationTestCase;
use Altair\Eval\Tests\Support\TemporaryApplication;

/**
 * What lies outside of the project and may be read: what it names in its repository and in its deployment, and what
 * the request names.
 */
final class ReadableTest extends EvaluationTestCase
{
    /** A repository, with the project in it. */
    private TemporaryApplication $place;

    protected function setUp(): void
    {
        parent::setUp();
        $this->place = new TemporaryApplication([
            '.git/HEAD' => "ref: refs/heads/main\n",
            'app/vendor/autoload.php' => '<?php',
            'package/composer.json' => '{}',
            'package/src/Thing.php' => '<?php return "thing";',
            'no-package/src/Thing.php' => '<?php return "thing";',
            'secret.txt' => 'secret',
        ]);
    }

    public function testAPathPackageOfComposersIsReadUnderBothNames(): void
    {
        $package = ['name' => 'a/b', 'dist' => ['type' => 'path'], 'install-path' => '../a/b'];
        $this->install([$package], $this->place, 'app/');
        mkdir($this->place->path('app/vendor/a'), recursive: true);
        symlink($this->place->path('package'), $this->place->path('app/vendor/a/b'));

        $root = $this->place->path('app');
        self::assertSame(
            ['thing', 'thing', false],
            $this->value('return [include "vendor/a/b/src/Thing.php", include ' . $this->quoted('package/src/Thing.php')
                . ', @file_get_contents(' . $this->quoted('secret.txt') . ')];', projectRoot: $root),
        );
    }

    /**
     * @return iterable<string, array{array<string, mixed>, string}>
     */
    public static function unfit(): iterable
    {
        $path = ['dist' => ['type' => 'path']];
        yield 'another type' => [['dist' => ['type' => 'zip'], 'install-path' => '../x'], 'package'];
        yield 'no composer.json' => [$path + ['install-path' => '../x'], 'no-package'];
        yield 'what holds the project' => [$path + ['install-path' => '../x'], '..'];
        yield 'the root' => [$path + ['install-path' => '../../../../../../../../..'], 'no-package'];
        yield 'no path' => [$path + ['install-path' => null], 'package'];
    }

    /**
     * @param array<string, mixed> $package
     * @dataProvider unfit
     */
    public function testWhatIsNoPackageIsNotRead(array $package, string $target): void
    {
        $this->install([['name' => 'x'] + $package], $this->place, 'app/');
        symlink($this->place->path($target), $this->place->path('app/vendor/x'));

        self::assertSame(
            [false, false],
            $this->value('return [@include ' . $this->quoted("$target/src/Thing.php") . ', @file_get_contents('
                . $this->quoted('secret.txt') . ')];', projectRoot: $this->place->path('app')),
        );
    }

    public function testAGarbledListOfPackagesIsPassedOver(): void
    {
        foreach (['', 'null', '[]', '{"packages":1}', '{"packages":[{"install-path":["x"]}]}', "\xff"] as $text) {
            $this->application()->write('vendor/composer/installed.json', $text);
            self::assertSame(1, $this->value('return 1;'));
        }
    }

    /**
     * @return iterable<string, array{string}>
     */
    public static function vendorDirectories(): iterable
    {
        yield 'behind a link' => ['link'];
        yield 'named by composer.json' => ['vendor-dir'];
    }

    /**
     * @dataProvider vendorDirectories
     */
    public function testAVendorDirectoryElsewhereInTheRepositoryIsRead(string $how): void
    {
        $this->place->write('libraries/vendor/autoload.php', '<?php function from_vendor() { return __DIR__; }');
        $this->place->write('libraries/vendor/composer/installed.json', '{"packages":[]}');
        $this->place->write('libraries/other', 'other');
        $root = $this->place->path('app');
        if ($how === 'link') {
            $this->place->remove('app/vendor');
            symlink('../libraries/vendor', "$root/vendor");
        } else {
            $this->place->write('app/composer.json', '{"config": {"vendor-dir": "../libraries/vendor"}}');
            $this->place->write('app/vendor/autoload.php', "<?php require '$root/../libraries/vendor/autoload.php';");
        }

        $from = $this->value('return from_vendor();', projectRoot: $root);
        self::assertSame($this->place->path('libraries/vendor'), $from);
        self::assertFalse(
            $this->value('return @file_get_contents(' . $this->quoted('libraries/other') . ');', projectRoot: $root),
        );
    }

    public function testALinkToElsewhereInTheRepositoryIsFollowed(): void
    {
        $this->place->write('common/.env.shared', 'A=1');
        $this->place->write('common/storage/file', 'stored');
        symlink('../common/.env.shared', $this->place->path('app/.env.link'));
        symlink('../common/storage', $this->place->path('app/storage'));

        self::assertSame(['A=1', 'stored', false], $this->value(
            'return [file_get_contents(".env.link"), file_get_contents("storage/file"),'
                . ' @file_get_contents("../secret.txt")];',
            projectRoot: $this->place->path('app'),
        ));
    }

    public function testAWorktreeReadsWhatItNamesInTheMainWorktree(): void
    {
        $main = $this->place->path('main');
        $this->place->write('main/package/composer.json', '{}');
        $this->place->write('main/package/src/Thing.php', '<?php return "thing";');
        $this->place->write('main/app/vendor/autoload.php', '<?php');
        $git = static function (string $directory, string ...$arguments): void {
            $as = ['-c', 'user.name=T', '-c', 'user.email=t@example.org'];
            $ran = Command::of(['git', ...$as, '-C', $directory, ...$arguments]);
            self::assertSame(0, $ran->exitCode, $ran->errors);
        };
        $git($main, 'init', '-q');
        $git($main, 'add', '.');
        $git($main, 'commit', '-q', '-m', 'x');
        $elsewhere = new TemporaryApplication();
        $git($main, 'worktree', 'add', '-q', $elsewhere->path('tree'));
        $root = $elsewhere->path('tree/app');
        symlink("$main/package", "$root/of-main");
        symlink('../package', "$root/of-worktree");
        $read = 'return [@include "of-main/src/Thing.php", @include "of-worktree/src/Thing.php"];';
        self::assertSame(['thing', 'thing'], $this->value($read, projectRoot: $root));

        // The worktree itself is the project.
        symlink("$main/package", $elsewhere->path('tree/of-main'));
        $elsewhere->write('tree/vendor/autoload.php', '<?php');
        $read = 'return @include "of-main/src/Thing.php";';
        self::assertSame('thing', $this->value($read, projectRoot: $elsewhere->path('tree')));
        $git($main, 'worktree', 'move', $elsewhere->path('tree'), $elsewhere->path('moved'));
        self::assertSame('thing', $this->value($read, projectRoot: $elsewhere->path('moved')));
    }

    public function testADeploymentReadsWhatItsReleasesShare(): void
    {
        $deployment = new TemporaryApplication([
            '.dep/log' => 'secret',
            'shared/.env' => 'A=1',
            'shared/var/log/dev.log' => 'logged',
            'releases/1/vendor/autoload.php' => '<?php',
            'releases/2/vendor/autoload.php' => '<?php',
            'other/file' => 'secret',
        ]);
        $root = $deployment->path('releases/2');
        mkdir("$root/var");
        symlink('../../shared/.env', "$root/.env");
        symlink('../../../shared/var/log', "$root/var/log");
        symlink('releases/2', $deployment->path('current'));
        symlink('../../other', "$root/other");
        symlink('../../.dep', "$root/dep");
        $read = 'return [file_get_contents(".env"), file_get_contents("var/log/dev.log"),'
            . ' @file_get_contents("other/file"), @file_get_contents("dep/log")];';
        foreach ([$root, $deployment->path('current')] as $named) {
            self::assertSame(['A=1', 'logged', false, false], $this->value($read, projectRoot: $named));
        }
    }

    public function testCredentialsThatADeploymentKeepsAreNotShownAndWhatItsReleasesLinkIs(): void
    {
        $deployment = new TemporaryApplication([
            '.dep/log' => '',
            'shared/.env' => 'A=1',
            'shared/auth.json' => 'a token',
            'shared/storage/oauth-private.key' => "the application's",
            'releases/1/vendor/autoload.php' => '<?php',
        ]);
        $root = $deployment->path('releases/1');
        symlink('../../shared/.env', "$root/.env");
        symlink('../../shared/storage', "$root/storage");
        $read = 'return [file_get_contents(".env"), file_get_contents("storage/oauth-private.key"),'
            . ' @file_get_contents("../../shared/auth.json")];';
        $result = $this->evaluate($read, projectRoot: $root);
        self::assertSame(['A=1', "the application's", false], self::plain($result->result));
        $shared = $deployment->path('shared');
        self::assertSame([[
            'what' => "read $shared, which the project names and which is not shown for the credentials in"
                . " $shared/auth.json; `altair allow --root=$root --read=$shared` allows it from now on",
            'guard' => 'filesystem',
            'lift' => "--read=$shared",
        ]], $result->diagnostics['blocked']);
    }

    public function testWhatIsNotFollowedAndMissedIsToldWithWhatShowsIt(): void
    {
        $elsewhere = new TemporaryApplication([
            'package/composer.json' => '{}',
            'package/src/Thing.php' => '<?php class Thing {}',
            'data/file' => 'data',
        ]);
        $package = ['name' => 'a/b', 'dist' => ['type' => 'path'], 'install-path' => $elsewhere->path('package')];
        $this->install([$package]);
        $application = $this->application();
        symlink($elsewhere->path('data'), $application->path('data'));
        $entry = static fn (string $path): array => [
            'what' => "read $path, which the project names and which is outside of its repository;"
                . " `altair allow --root=$application->root --read=$path` allows it from now on",
            'guard' => 'filesystem',
            'lift' => "--read=$path",
        ];

        // What nobody has missed is not told.
        self::assertSame([], $this->evaluate('return 1;')->diagnostics['blocked'] ?? []);
        // An autoloader does not open what it does not see.
        $result = $this->evaluate('return new Thing();');
        self::assertSame([$entry($elsewhere->path('package'))], $result->diagnostics['blocked']);
        $result = $this->evaluate('return @file_get_contents("data/file");');
        self::assertSame([$entry($elsewhere->path('data'))], $result->diagnostics['blocked']);

        $paths = [$elsewhere->path('package'), $elsewhere->path('data')];
        $thing = $elsewhere->path('package/src/Thing.php');
        $code = "require '$thing'; return [new Thing() instanceof Thing, file_get_contents('data/file')];";
        self::assertSame([true, 'data'], $this->value($code, readablePaths: $paths));
    }

    public function testABootThatLacksItsVendorDirectoryTellsWhatShowsIt(): void
    {
        $elsewhere = new TemporaryApplication(['vendor/composer/installed.json' => '{"packages":[]}']);
        $this->application()->remove('vendor');
        symlink($elsewhere->path('vendor'), $this->application()->path('vendor'));
        $result = $this->evaluate('return 1;');

        self::assertSame('boot_failed', $result->diagnostics['outcome']);
        self::assertSame('--read=' . $elsewhere->path('vendor'), $result->diagnostics['blocked'][0]['lift']);
        self::assertSame(1, $this->value('return 1;', readablePaths: [$elsewhere->path('vendor')]));
    }

    public function testWhatTheRequestNamesIsReadAndNotWritten(): void
    {
        $file = $this->place->path('secret.txt');
        $directory = $this->place->path('package');
        $seen = $this->evaluate(
            'return [file_get_contents(' . $this->quoted('secret.txt') . '),'
                . ' include ' . $this->quoted('package/src/Thing.php') . ','
                . ' @file_put_contents(' . $this->quoted('secret.txt') . ', "x"),'
                . ' @touch(' . $this->quoted('package/new') . ')];',
            readablePaths: [$file, $directory],
        );

        self::assertSame(['secret', 'thing', false, false], self::plain($seen->result));
        self::assertSame('secret', file_get_contents($file));
        self::assertFileDoesNotExist($this->place->path('package/new'));
    }

    public function testAFileOutsideIsNamedWithTheSwitchThatShowsIt(): void
    {
        $file = $this->place->path('secret.txt');
        $result = $this->evaluate("return [@file_get_contents('$file'), @file_get_contents('$file.absent')];");

        self::assertSame(
            [['what' => "read $file", 'guard' => 'filesystem', 'lift' => "--read=$file"]],
            $result->diagnostics['blocked'],
        );
    }

    private function quoted(string $path): string
    {
        return var_export($this->place->path($path), true);
    }

    /**
     * @param list<array<string, mixed>> $packages
     */
    private function install(array $packages, ?TemporaryApplication $in = null, string $below = ''): void
    {
        $installed = json_encode(['packages' => $packages], JSON_THROW_ON_ERROR);
        ($in ?? $this->application())->write("{$below}vendor/composer/installed.json", $installed);
    }
}
