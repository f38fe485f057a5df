<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Sandbox;

use Altair\Eval\Tests\Support\Command;
use Altair\Eval\Tests\Support\Sandbox\Caller;
use Altair\Eval\Tests\Support\Sandbox\Household;
use Altair\Eval\Tests\Support\Sandbox\Levels;
use Altair\Eval\Tests\Support\Sandbox\Tools;
use Altair\Eval\Tests\Support\Skip;
use Altair\Eval\Tests\Support\Terminal;
use PHPUnit\Framework\TestCase;

/**
 * Ordinary work under `altair run`, with what it shows by default.
 */
final class RunHomeTest extends TestCase
{
    /**
     * @return iterable<string, array{Caller, list<string>}>
     */
    public static function levels(): iterable
    {
        return Levels::both();
    }

    /**
     * @param list<string> $without
     *
     * @dataProvider levels
     */
    public function testTheHomeIsWritableAndGoneAfterwards(Caller $caller, array $without): void
    {
        $household = new Household($caller);
        foreach (['.cargo/config.toml', '.npm/_cacache/a', '.cache/pip/b', '.config/other', 'notes'] as $path) {
            $household->put($path, "real\n");
        }
        $before = Household::tree($household->home);
        $script = <<<'SH'
            set -e
            mkdir -p ~/.config/psysh ~/.npm/_logs ~/.cache/new ~/.local/share/app
            echo own > ~/.config/psysh/history; echo own > ~/.npm/_logs/log; echo own > ~/.cache/new/file
            printf '#!/bin/sh\necho ran' > ~/program; cp /bin/true ~/.local/share/app/true; ~/.local/share/app/true
            cat ~/.config/psysh/history ~/.npm/_logs/log ~/.cargo/config.toml
            test ! -e ~/notes
            SH;
        $ran = $household->run(['--', 'sh', '-c', $script], $without);

        self::assertSame([0, "own\nown\nreal\n"], [$ran->exitCode, $ran->output], $ran->errors);
        self::assertSame($before, Household::tree($household->home));
        // Nothing of it is in the next command's.
        $next = $household->run(['--', 'ls', "$household->home/.config/psysh"], $without);
        self::assertNotSame(0, $next->exitCode);
    }

    /**
     * @param list<string> $without
     *
     * @dataProvider levels
     */
    public function testPackageManagersAndBuildsRun(Caller $caller, array $without): void
    {
        $household = new Household($caller);
        $household->put('project/composer.json', '{"name": "a/b", "autoload": {"psr-4": {"A\\\\": "src/"}}}');
        $household->put('.config/composer/auth.json', '{"github-oauth": {"example.invalid": "token"}}');
        $household->put('.config/composer/config.json', '{"config": {"platform-check": false}}');
        $household->put('project/Makefile', "all:\n\t@echo made in \$(CURDIR)\n");
        $household->put('project/ATest.php', '<?php final class ATest extends PHPUnit\Framework\TestCase '
            . '{ public function testA(): void { self::assertTrue(true); } }');
        $commands = [
            [['npm', '--version'], '/^\d+\./'],
            [['npm', 'cache', 'verify'], '/Cache verified/'],
            [['node', '-e', 'console.log(require("os").homedir())'], '/\S/'],
            [['composer', '--no-interaction', '--version'], '/^Composer version/m'],
            [['composer', '--no-interaction', 'validate', '--no-check-publish'], '/./s'],
            [['make'], "~^made in $household->project$~m"],
            [['phpunit', '--no-configuration', '--do-not-cache-result', 'ATest.php'], '/^OK/m'],
            [['bash', '-c', 'echo a | tr a b | cat; cat <(echo c)'], "/^b\nc$/m"],
        ];
        foreach ($commands as [$command, $says]) {
            $ran = $household->run(['--', ...$command], $without);
            $said = implode(' ', $command) . ":\n$ran->output$ran->errors";
            self::assertMatchesRegularExpression($says, $ran->output . $ran->errors, $said);
            self::assertStringNotContainsString('Read-only file system', $ran->errors, $said);
            self::assertSame(0, $ran->exitCode, $said);
        }
        $ran = $household->run(['--write=.', '--', 'composer', '--no-interaction', 'dump-autoload'], $without);
        self::assertSame(0, $ran->exitCode, $ran->output . $ran->errors);
        self::assertFileExists("$household->project/vendor/autoload.php");
    }

    /**
     * A toolchain whose proxy, as rustup's, finds the programs by the home.
     *
     * @param list<string> $without
     *
     * @dataProvider levels
     */
    public function testToolchainsInTheHomeRun(Caller $caller, array $without): void
    {
        $household = new Household($caller);
        $proxy = "#!/bin/sh\nexec \"\$HOME/.rustup/toolchains/stable/bin/cargo\" \"\$@\"\n";
        $household->put('.cargo/bin/cargo', $proxy, 0755);
        $household->put('.rustup/toolchains/stable/bin/cargo', "#!/bin/sh\necho cargo 1.0 \"\$@\"\n", 0755);
        $household->put('.cargo/credentials.toml', '[registry]', 0600);
        $household->put('.local/bin/tool', "#!/bin/sh\necho tool\n", 0755);
        $path = ['PATH' => "$household->home/.local/bin:$household->home/.cargo/bin:" . getenv('PATH')];
        $ran = $household->run(['--', 'cargo', '--version'], $without, environment: $path);
        self::assertSame([0, "cargo 1.0 --version\n"], [$ran->exitCode, $ran->output], $ran->errors);
        self::assertSame("tool\n", $household->run(['--', 'tool'], $without, environment: $path)->output);
    }

    /**
     * @param list<string> $without
     *
     * @dataProvider levels
     */
    public function testGitWorksInARepositoryAWorktreeAndASubmodule(Caller $caller, array $without): void
    {
        $household = new Household($caller);
        $git = static function (string $directory, string ...$arguments) use ($household): void {
            $identity = ['-c', 'user.name=a', '-c', 'user.email=a@example.invalid', '-c', 'protocol.file.allow=always'];
            $ran = $household->unheld(['git', ...$identity, ...$arguments], $directory);
            self::assertSame(0, $ran->exitCode, $ran->errors);
        };
        $household->put('main/deep/down/file', "one\n");
        $household->put('library/file', "one\n");
        foreach (['library', 'main'] as $name) {
            $git("$household->home/$name", 'init', '-q');
            $git("$household->home/$name", 'add', '.');
            $git("$household->home/$name", 'commit', '-qm', 'First');
        }
        $git("$household->home/main", 'worktree', 'add', '-q', '../worktree');
        $git("$household->home/main", 'submodule', 'add', '-q', "$household->home/library", 'sub');
        foreach (['main/deep/down', 'worktree/deep/down', 'main/sub'] as $place) {
            $household->put("$place/file", "two\n");
            $status = $household->run(['--', 'git', 'status', '--short'], $without, "$household->home/$place");
            self::assertMatchesRegularExpression('/^ M .*file$/m', $status->output, $place . $status->errors);
            $diff = $household->run(['--', 'git', 'diff'], $without, "$household->home/$place");
            self::assertStringContainsString("-one\n+two\n", $diff->output, $place . $diff->errors);
            self::assertSame([0, 0], [$status->exitCode, $diff->exitCode]);
        }
    }

    /**
     * @param list<string> $without
     *
     * @dataProvider levels
     */
    public function testARefusedReadIsToldWithTheOptionThatPermitsIt(Caller $caller, array $without): void
    {
        $household = new Household($caller);
        $paths = array_map(
            static fn (string $name): string => $household->put($name, "it is $name\n", 0600),
            ['notes.txt', '.ssh/config', 'Documents/report', '.cargo/credentials.toml'],
        );
        $household->put('bin/tool', "#!/bin/sh\necho tool\n", 0755);
        foreach ($paths as $path) {
            foreach ([['cat', $path], ['sh', '-c', "cat \"\$(echo $path)\" no"]] as $command) {
                $ran = $household->run(['--', ...$command], $without);
                if ($command[0] === 'sh' && str_contains($path, '/.cargo/') && $without === []) {
                    // The file is there, and empty.
                    continue;
                }
                $told = "altair: refused: read $path (--read=$path allows it)\n";
                self::assertStringContainsString($told, $ran->errors);
            }
            $told = $household->run(['--format=json', '--', 'cat', $path], $without)->json();
            self::assertContains("--read=$path", array_column($told['blocked'], 'lift'));
            $followed = $household->run(["--read=$path", '--', 'cat', $path], $without);
            $seen = [$followed->exitCode, $followed->output];
            self::assertSame([0, file_get_contents($path)], $seen, $followed->errors);
            self::assertStringNotContainsString('refused', $followed->errors);
        }
        // A program, by its path and by a link to it.
        symlink("$household->home/bin", "$household->home/programs");
        foreach (['bin', 'programs'] as $name) {
            $program = "$household->home/$name/tool";
            $ran = $household->run(['--', $program], $without);
            self::assertContains($ran->exitCode, [126, 127]);
            self::assertStringContainsString("--read=$program", $ran->errors);
            $followed = $household->run(["--read=$program", '--', $program], $without);
            self::assertSame([0, "tool\n"], [$followed->exitCode, $followed->output], $followed->errors);
        }
        // What does not exist is not told.
        $ran = $household->run(['--', 'cat', "$household->home/nothing"], $without);
        self::assertStringNotContainsString('--read', $ran->errors);
    }

    /**
     * @param list<string> $without
     *
     * @dataProvider levels
     */
    public function testAHomeBehindALinkIsFoundByBothPaths(Caller $caller, array $without): void
    {
        $household = new Household($caller, isLinked: true);
        $key = $household->put('.ssh/id', 'secret');
        $program = $household->put('.cargo/bin/program', "#!/bin/sh\necho ran\n", 0755);
        $script = "cd ~ && echo > new && $program && " . realpath($program) . " && ! cat $key " . realpath($key);
        foreach ([$household->project, realpath($household->project)] as $directory) {
            $ran = $household->run(['--', 'sh', '-c', $script], $without, $directory);
            self::assertSame([0, "ran\nran\n"], [$ran->exitCode, $ran->output], $ran->errors);
        }
        $ran = $household->run(['--', 'cat', $key, realpath($key)], $without, realpath($household->home));
        self::assertSame('', $ran->output, $ran->errors);
    }

    public function testALayerInAHomeIsShownAndApplied(): void
    {
        foreach (Caller::everyone() as [$caller]) {
            $household = new Household($caller);
            $household->put('.npm/real', '');
            $household->put('project/a', "one\n");
            $script = 'echo two > a; echo x > b; echo x > ~/.npm/thrown; echo x > ~/thrown';
            $ran = $household->run(['--layer=.', '--apply=yes', '--', 'sh', '-c', $script]);
            self::assertSame(0, $ran->exitCode, $ran->errors);
            self::assertStringContainsString('applied 2 changes', $ran->errors);
            self::assertStringNotContainsString('thrown', $ran->errors);
            self::assertSame("two\n", file_get_contents("$household->project/a"));
            self::assertSame(["$household->home/.npm/real"], glob("$household->home/.npm/*"));

            // Above a toolchain's directory, the layer is the one that was asked for.
            $household->put('.config/composer/config.json', '{}');
            $options = ["--layer=$household->home/.config", '--apply=no', '--format=json'];
            $script = 'echo x > ~/.config/composer/new; echo x > ~/thrown';
            $ran = $household->run([...$options, '--', 'sh', '-c', $script]);
            self::assertSame(['composer/new'], array_column($ran->json()['file_changes']['created'], 'path'));
        }
    }

    public function testOnATerminalTheOutputIsTheCommands(): void
    {
        foreach ([[], ['mounts']] as $without) {
            $household = new Household(Caller::User);
            $script = 'test -t 1 && echo terminal > /dev/tty; cd; pwd; cat ~/../home/notes.txt';
            $notes = $household->put('notes.txt', 'a');
            $command = $household->command(['--', 'sh', '-c', "$script; cat $notes"], $without);
            $terminal = new Terminal($command, $household->project, 24, 200);
            $terminal->waitFor("terminal\r\n");
            [$rest, $code] = $terminal->end();
            self::assertSame(1, $code);
            self::assertStringContainsString("--read=$notes", $rest);
        }
    }

    public function testACommandWorksWhereItsUserMayNotWrite(): void
    {
        $household = new Household(Caller::User);
        foreach (['/usr', '/', '/etc', '/proc'] as $directory) {
            foreach ([[], ['mounts']] as $without) {
                $ran = $household->run(['--', 'pwd'], $without, $directory);
                self::assertSame([0, "$directory\n"], [$ran->exitCode, $ran->output], $ran->errors);
            }
        }
    }

    public function testAUserWithoutAHomeHasThatForTemporaryFiles(): void
    {
        $household = new Household(Caller::User);
        posix_geteuid() === 0 || Skip::NeedsRoot->because('It becomes a user whom the machine does not know.');
        $unknown = ['setpriv', '--reuid=54399', '--regid=54399', '--clear-groups', '--'];
        foreach (['', '/'] as $home) {
            $run = [Tools::shared()->altair(), 'run', '--', 'sh', '-c', 'cd && echo > a && echo $HOME'];
            $ran = Command::of([...$unknown, ...$run], $household->project, environment: ['HOME' => $home]);
            self::assertSame([0, "/tmp\n"], [$ran->exitCode, $ran->output], $ran->errors);
        }
    }
}
