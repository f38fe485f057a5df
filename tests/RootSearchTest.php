<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\Tests\Support\Command;
use Altair\Eval\Tests\Support\Escape\Daemon;
use Altair\Eval\Tests\Support\Skip;
use Altair\Eval\Tests\Support\TemporaryApplication;
use PHPUnit\Framework\TestCase;

/**
 * Where the command line finds a project that is not named, and whose it has to be.
 */
final class RootSearchTest extends TestCase
{
    private const STRANGER = 4242;

    private const PROGRAM = __DIR__ . '/../bin/altair';

    private TemporaryApplication $application;

    protected function setUp(): void
    {
        $this->application = new TemporaryApplication(['composer.json' => '{}', 'src/Deep/er/.keep' => '']);
    }

    public function testItIsFoundAboveTheWorkingDirectoryAndSaid(): void
    {
        $command = $this->evaluate('getcwd()', 'src/Deep/er');

        self::assertSame($this->application->root, json_decode($command->output, true)['result']['value'] ?? null);
        self::assertSame(
            "altair: the project is {$this->application->root}, above the working directory\n",
            $command->errors,
        );
        $log = Command::run(['events:tail'], $this->application->path('src/Deep'));
        self::assertSame(0, $log->exitCode);
        self::assertStringContainsString("no audit log at {$this->application->root}/.altair", $log->errors);
    }

    public function testTheWorkingDirectoryComesFirstAndNothingIsSaidOfIt(): void
    {
        $this->application->write('src/vendor/autoload.php', '<?php');

        $command = $this->evaluate('getcwd()', 'src');

        self::assertSame($this->application->path('src'), json_decode($command->output, true)['result']['value']);
        self::assertSame('', $command->errors);
    }

    public function testANamedOneIsNotSearched(): void
    {
        $command = $this->evaluate('1', 'src', '--root=.');

        self::assertStringContainsString($this->application->path('src/vendor/autoload.php'), $command->output);
        self::assertStringContainsString('boot_failed', $command->output);
    }

    public function testTheSearchEndsAtTheHomeDirectory(): void
    {
        foreach ([['src', false], ['', true]] as [$home, $isFound]) {
            $home = rtrim($this->application->path($home), '/');
            $command = $this->evaluate('getcwd()', 'src/Deep', variables: ['HOME' => $home]);
            self::assertSame($isFound, $command->exitCode === 0, $command->output . $command->errors);
        }
    }

    public function testTheSearchEndsAtTheBorderOfAMount(): void
    {
        posix_geteuid() === 0 || Skip::NeedsRoot->because('It mounts.');
        $in = $this->application->path('src/Deep');
        $run = self::PROGRAM . ' events:tail';
        $search = "cd er && $run";

        $plain = self::shell("cd $in && $search");
        // A bind mount of the same filesystem: its device does not tell.
        $mounted = self::shell("unshare -m sh -c 'mount --bind $in $in && cd $in && $search'");

        self::assertStringContainsString("no audit log at {$this->application->root}/.altair", $plain);
        self::assertStringContainsString("no audit log at $in/er/.altair", $mounted);
    }

    /**
     * @dataProvider strangers
     */
    public function testWhatSomebodyElseMayHavePutThereIsNotRun(callable $prepare, string $why): void
    {
        posix_geteuid() === 0 || Skip::NeedsRoot->because('It gives files away.');
        $ran = $this->application->write('ran', '', 0666);
        $this->application->write('vendor/autoload.php', "<?php file_put_contents('$ran', 'ran');");
        mkdir($this->application->path('own'));
        $prepare($this->application);

        foreach ([['eval', '--writes', '1'], ['doctor'], ['events:tail']] as $arguments) {
            $command = Command::run($arguments, $this->application->path('own'));

            self::assertSame([2, ''], [$command->exitCode, $command->output], $command->errors);
            self::assertSame(
                "altair: {$this->application->root} is a project, but $why;"
                . " --root={$this->application->root} runs it all the same\n",
                $command->errors,
            );
        }
        self::assertSame('', file_get_contents($ran));
    }

    public static function strangers(): iterable
    {
        $give = static fn (string ...$paths): callable => static function (TemporaryApplication $application) use (
            $paths,
        ): void {
            foreach ($paths as $path) {
                chown(rtrim($application->path($path), '/'), self::STRANGER);
            }
        };
        $open = static fn (string $path, int $mode): callable => static fn (TemporaryApplication $application)
            => chmod(rtrim($application->path($path), '/'), $mode);
        $link = static fn (string $path): callable => static function (TemporaryApplication $application) use (
            $path,
        ): void {
            rename($application->path($path), $application->path('elsewhere'));
            symlink($application->path('elsewhere'), $application->path($path));
        };
        $stranger = 'user ' . self::STRANGER;
        yield 'all of it' => [$give('', 'composer.json', 'vendor', 'vendor/autoload.php'), "it belongs to $stranger"];
        yield 'the directory' => [$give(''), "it belongs to $stranger"];
        yield 'composer.json' => [$give('composer.json'), "composer.json belongs to $stranger"];
        yield 'vendor' => [$give('vendor'), "vendor belongs to $stranger"];
        yield 'the autoloader' => [$give('vendor/autoload.php'), "vendor/autoload.php belongs to $stranger"];
        yield 'a directory for all' => [$open('', 0777), 'it can be written by others'];
        yield 'a sticky directory for all' => [$open('', 01777), 'it can be written by others'];
        yield 'a directory of a group' => [$open('', 0775), 'it can be written by others'];
        yield 'composer.json of a group' => [$open('composer.json', 0664), 'composer.json can be written by others'];
        yield 'vendor of a group' => [$open('vendor', 0775), 'vendor can be written by others'];
        yield 'the autoloader for all' => [
            $open('vendor/autoload.php', 0646),
            'vendor/autoload.php can be written by others',
        ];
        yield 'a link to composer.json' => [$link('composer.json'), 'composer.json is a link, or something else'];
        yield 'a link to vendor' => [$link('vendor'), 'vendor is a link, or something else'];
        yield 'a link to the autoloader' => [
            $link('vendor/autoload.php'),
            'vendor/autoload.php is a link, or something else',
        ];
    }

    public function testADirectoryThatOthersCanReplaceIsNotRun(): void
    {
        posix_geteuid() === 0 || Skip::NeedsRoot->because('It gives files away.');
        $above = new TemporaryApplication();
        $above->remove('vendor');
        rename($this->application->root, $above->path('project'));
        chown($above->root, self::STRANGER);

        $command = Command::run(['eval', '1'], $above->path('project/src'));

        self::assertSame(2, $command->exitCode, $command->output);
        self::assertStringContainsString("others can put another one in its place in $above->root", $command->errors);
    }

    public function testAWorkingDirectoryOfAGroupOrOfRootsOwnIsRunAndOneForAllIsNot(): void
    {
        chmod($this->application->root, 0775);
        chmod($this->application->path('vendor'), 0775);
        self::assertSame(0, $this->evaluate('1')->exitCode);

        chmod($this->application->root, 01777);
        $command = $this->evaluate('1');
        self::assertSame(2, $command->exitCode);
        self::assertStringContainsString('it can be written by others; --root=', $command->errors);
        self::assertSame(0, $this->evaluate('1', '', '--root=.')->exitCode);
    }

    public function testRootTakesWhatBelongsToTheOwnerOfItsWorkingDirectory(): void
    {
        posix_geteuid() === 0 || Skip::NeedsRoot->because('It is about root.');
        $this->application->giveTo(self::STRANGER, self::STRANGER);

        self::assertSame(0, $this->evaluate('1')->exitCode);
        $command = $this->evaluate('getcwd()', 'src/Deep');
        self::assertSame(0, $command->exitCode, $command->errors . $command->output);
        self::assertStringContainsString('above the working directory', $command->errors);
    }

    /** Its autoloader could be put there between the search and the boot. */
    public function testAWorkingDirectoryOfAStrangerIsNotRunBeforeItIsAProjectEither(): void
    {
        posix_geteuid() === 0 || Skip::NeedsRoot->because('It becomes another user.');
        $this->application->remove('vendor/autoload.php');
        $root = $this->application->root;
        $eval = 'setpriv --reuid=' . self::STRANGER . ' --regid=' . self::STRANGER . ' --clear-groups '
            . self::PROGRAM . ' eval 1';
        $this->application->giveTo(self::STRANGER + 1, self::STRANGER);

        $said = self::shell("cd $root && $eval");

        $stranger = 'it belongs to user ' . (self::STRANGER + 1);
        self::assertStringContainsString("$root has no vendor/autoload.php, and $stranger; name --root=<dir>", $said);
        chmod($root, 01777);
        chown($root, self::STRANGER);
        self::assertStringContainsString('and it can be written by others', self::shell("cd $root && $eval"));
    }

    public function testRootTakesNoProjectWhosePartsBelongToSeveral(): void
    {
        posix_geteuid() === 0 || Skip::NeedsRoot->because('It is about root.');
        $this->application->write('storage/x', '');
        foreach (['vendor', 'vendor/autoload.php', 'storage'] as $path) {
            chown($this->application->path($path), self::STRANGER);
        }

        $command = $this->evaluate('1', 'storage');

        self::assertSame(2, $command->exitCode, $command->output);
        self::assertStringContainsString('it belongs to root', $command->errors);
    }

    public function testAnOrdinaryUserTakesRootsOwnWorkingDirectoryButNoStrangers(): void
    {
        posix_geteuid() === 0 || Skip::NeedsRoot->because('It becomes another user.');
        $search = 'setpriv --reuid=' . self::STRANGER . ' --regid=' . self::STRANGER . ' --clear-groups '
            . self::PROGRAM . ' events:tail';
        $root = $this->application->root;

        self::assertStringContainsString("no audit log at $root/.altair", self::shell("cd $root && $search"));
        self::assertStringContainsString('it belongs to root', self::shell("cd $root/src && $search"));
        $this->application->giveTo(self::STRANGER + 1, self::STRANGER);
        $stranger = 'it belongs to user ' . (self::STRANGER + 1);
        self::assertStringContainsString($stranger, self::shell("cd $root && $search"));
        self::assertStringContainsString($stranger, self::shell("cd $root/src && $search"));
        $this->application->giveTo(self::STRANGER, self::STRANGER);
        self::assertStringContainsString("no audit log at $root/.altair", self::shell("cd $root/src && $search"));
    }

    public function testItsComposerFileGrantsNoSocketOutsideOfIt(): void
    {
        posix_geteuid() === 0 || Skip::NeedsRoot->because('Only root can have another user listen.');
        // Where a server's user has its socket, which a project may name.
        $outside = '/var/tmp/altair-server-' . bin2hex(random_bytes(4));
        mkdir($outside);
        chown($outside, self::STRANGER);
        $server = new Daemon(self::STRANGER, "$outside/told", ["unix://$outside/s"]);
        $sockets = ['out' => "$outside/s", 'in' => $this->application->path('s')];
        $sockets['link'] = $this->application->path('link');
        $own = stream_socket_server('unix://' . $sockets['in']);
        symlink($sockets['out'], $sockets['link']);
        $manifest = ['extra' => ['altair-eval' => ['services' => array_values($sockets)]]];
        $this->application->write('composer.json', json_encode($manifest));
        $snippet = 'return array_map(fn ($s) => (bool) @stream_socket_client("unix://$s", $n, $e, 2), '
            . var_export($sockets, true) . ');';
        $reached = static function (Command $command): array {
            $value = json_decode($command->output, true)['result']['value'] ?? [$command->output, $command->errors];

            return array_map(static fn (mixed $one) => $one['value'] ?? $one, $value);
        };

        // That in the project needs the user's word anyway.
        self::assertSame(['out' => true, 'in' => false, 'link' => true], $reached($this->evaluate($snippet)));
        self::assertSame(['out' => false, 'in' => false, 'link' => false], $reached($this->evaluate($snippet, 'src')));
        fclose($own);
        unset($server);
        exec("rm -rf " . escapeshellarg($outside));
    }

    /**
     * @param array<string, string> $variables
     */
    private function evaluate(string $snippet, string $in = '', string $option = '', array $variables = []): Command
    {
        $options = ['--format=json', ...array_filter([$option]), $snippet];

        return Command::run(['eval', ...$options], rtrim($this->application->path($in), '/'), environment: $variables);
    }

    /** What a shell's command says. */
    private static function shell(string $command): string
    {
        return (string) shell_exec("($command) 2>&1");
    }
}
