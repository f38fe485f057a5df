<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Escape;

use Altair\Eval\Tests\Support\Escape\Setting;
use Altair\Eval\Tests\Support\Skip;
use Altair\Eval\Tests\Support\TemporaryApplication;
use Altair\Eval\Tests\Support\Without;
use PHPUnit\Framework\TestCase;

/**
 * A cloned project names files of its user's as its own: as a package, as its vendor directory, behind a link, as the
 * repository that it is a worktree of.
 */
final class NamedByTheProjectTest extends TestCase
{
    /** Kernel guards only: what a run reads, it was shown. */
    private const KERNEL_ONLY = ['altair_eval.omit' => 'ini'];

    private TemporaryApplication $home;

    private TemporaryApplication $clone;

    private int $user;

    protected function setUp(): void
    {
        $this->user = Setting::AllAsUser->uid();
        $this->home = new TemporaryApplication([
            '.config/composer/composer.json' => '{}',
            '.config/composer/auth.json' => 'a token',
            '.config/composer/autoload.php' => '<?php',
            '.config/composer/composer/installed.json' => '{"packages": []}',
            'other/.git/HEAD' => "ref: refs/heads/main\n",
            'other/.git/config' => 'a token',
            'other/composer.json' => '{}',
            'other/secret' => 'a secret',
        ]);
        $this->clone = new TemporaryApplication([
            '.git/HEAD' => "ref: refs/heads/main\n",
            'composer.json' => '{}',
            'auth.json' => 'a token',
            'server.key' => 'a key',
            '.hidden/composer.json' => '{}',
            '.hidden/secret' => 'a secret',
            'app/vendor/autoload.php' => '<?php',
        ]);
    }

    /**
     * @return iterable<string, array{list<string>}>
     */
    public static function settings(): iterable
    {
        yield 'with mounts' => [[]];
        yield 'without mounts' => [['mounts']];
        if (posix_geteuid() === 0) {
            $user = 'user=' . Setting::AllAsUser->uid();
            yield 'as a user' => [[$user]];
            yield 'as a user, without mounts' => [['mounts', $user]];
        }
    }

    /**
     * @param list<string> $what
     * @dataProvider settings
     */
    public function testNothingOfTheUsersIsReadByNamingIt(array $what): void
    {
        $secrets = [];
        $directories = [
            $this->home->path('.config/composer') => 'auth.json',
            $this->home->path('other') => 'secret',
            $this->clone->path('.hidden') => 'secret',
        ];
        foreach ($directories as $directory => $file) {
            $packages[] = ['dist' => ['type' => 'path'], 'install-path' => $directory];
            $secrets[] = "$directory/$file";
        }
        $this->clone->write('app/vendor/composer/installed.json', json_encode(['packages' => $packages]));
        $files = [
            $this->home->path('other/.git/config'),
            $this->clone->path('auth.json'),
            $this->clone->path('server.key'),
            $this->clone->path('.git/HEAD'),
        ];
        foreach ($files as $n => $file) {
            symlink($file, $this->clone->path("app/link$n"));
            $secrets[] = $this->clone->path("app/link$n");
            $secrets[] = $file;
        }
        symlink($this->home->path('other'), $this->clone->path('app/storage'));
        symlink($this->clone->root, $this->clone->path('app/repository'));
        array_push($secrets, $this->clone->path('app/storage/secret'), $this->clone->path('app/repository/auth.json'));

        self::assertSame([], $this->read($secrets, $what));
    }

    /**
     * A directory of the repository that the project links, with credentials below it.
     *
     * @param list<string> $what
     * @dataProvider settings
     */
    public function testCredentialsBelowWhatAProjectLinksAreNotRead(array $what): void
    {
        $secrets = [];
        foreach (['.ssh/id_rsa', '.aws/credentials', 'deep/auth.json', 'tls/server.key'] as $n => $name) {
            $this->clone->write("infra$n/$name", 'a secret');
            symlink("../infra$n", $this->clone->path("app/infra$n"));
            symlink("../infra$n/$name", $this->clone->path("app/alone$n"));
            $secrets[] = $this->clone->path("app/infra$n/$name");
            $secrets[] = $this->clone->path("app/alone$n");
        }
        $this->clone->write('plain/README.md', 'read me');
        symlink('../plain', $this->clone->path('app/plain'));
        $plain = $this->clone->path('app/plain/README.md');

        self::assertSame([$plain], $this->read([...$secrets, $plain], $what));
    }

    /**
     * A clone in a directory of the user's that has the name of a deployment's.
     *
     * @param list<string> $what
     * @dataProvider settings
     */
    public function testADirectoryNamedReleasesIsNoDeployment(array $what): void
    {
        $this->home->write('releases/clone/vendor/autoload.php', '<?php');
        $this->home->write('shared/notes', 'a secret');
        $secrets = [$this->home->path('shared/notes')];
        $release = $this->home->path('releases/clone');
        self::assertSame([], $this->read($secrets, $what, root: $release));

        symlink('releases/clone', $this->home->path('current'));
        self::assertSame($secrets, $this->read($secrets, $what, root: $release));
    }

    /**
     * @param list<string> $what
     * @dataProvider settings
     */
    public function testAVendorDirectoryOfTheUsersIsNotRead(array $what): void
    {
        $vendor = $this->home->path('.config/composer');
        $this->clone->write('app/composer.json', (string) json_encode(['config' => ['vendor-dir' => $vendor]]));

        self::assertSame([], $this->read(["$vendor/auth.json"], $what));
    }

    /**
     * What a project says of the repository that it is a worktree of is its own word.
     *
     * @return iterable<string, array{array<string, string>, string}>
     */
    public static function worktrees(): iterable
    {
        yield 'the repository knows no such worktree' => [[], '%home%/other/.git/worktrees/app'];
        $of = ['other/.git/worktrees/app/gitdir' => "%home%/elsewhere/.git\n"];
        yield 'it knows it elsewhere' => [$of, '%home%/other/.git/worktrees/app'];
        yield 'through a link of the project' => [$of, 'link/.git/worktrees/app'];
        $back = ['other/.git/modules/app/gitdir' => "%clone%/app/.git\n"];
        yield 'it is no worktree' => [$back, '%home%/other/.git/modules/app'];
    }

    /**
     * @param array<string, string> $files
     * @dataProvider worktrees
     */
    public function testAWorktreeThatItsRepositoryDoesNotKnowHasNone(array $files, string $named): void
    {
        $filled = fn (string $text): string => strtr(
            $text,
            ['%home%' => $this->home->root, '%clone%' => $this->clone->root],
        );
        foreach ($files as $name => $content) {
            $this->home->write($name, $filled($content));
        }
        symlink($this->home->path('other'), $this->clone->path('app/link'));
        $this->clone->write('app/.git', 'gitdir: ' . $filled($named) . "\n");

        self::assertSame([], $this->read([$this->clone->path('app/link/secret')], []));
    }

    /** A project plants a repository of its own, whose working directory it then calls somebody else's. */
    public function testARepositoryInTheProjectMakesNothingOutsideItsOwn(): void
    {
        $this->clone->write('app/fake/.git/worktrees/x/gitdir', $this->clone->path('app/.git') . "\n");
        $this->clone->write('app/fake/.git/worktrees/x/commondir', $this->home->path('other/.git') . "\n");
        $this->clone->write('app/.git', "gitdir: fake/.git/worktrees/x\n");
        symlink($this->home->path('other'), $this->clone->path('app/link'));

        self::assertSame([], $this->read([$this->clone->path('app/link/secret')], []));
    }

    /** In a directory where everybody may make files, above the project, somebody else has put a repository. */
    public function testARepositoryOfSomebodyElsesAboveTheProjectDoesNotCount(): void
    {
        if (posix_geteuid() !== 0) {
            Skip::NeedsRoot->because('Only root can give files away.');
        }
        symlink($this->clone->path('composer.json'), $this->clone->path('app/link'));
        $secret = [$this->clone->path('app/link')];
        self::assertSame($secret, $this->read($secret, [], 0));
        foreach (['.git', '.git/HEAD'] as $name) {
            chown($this->clone->path($name), 65534);
        }

        self::assertSame([], $this->read($secret, [], 0));
    }

    /** Whose home is a repository keeps settings in it, and not a project. */
    public function testAHomeIsNoRepositoryOfAProjectInIt(): void
    {
        symlink($this->clone->path('composer.json'), $this->clone->path('app/link'));
        $file = [$this->clone->path('app/link')];
        self::assertSame($file, $this->read($file, []));
        $home = getenv('HOME');
        try {
            putenv('HOME=' . $this->clone->root);
            self::assertSame([], $this->read($file, []));
        } finally {
            putenv("HOME=$home");
        }
    }

    /**
     * @param list<string> $files
     * @param list<string> $what to take away
     * @return list<string> those that a run reads
     */
    private function read(array $files, array $what, ?int $owner = null, ?string $root = null): array
    {
        $owner ??= posix_geteuid() === 0 ? $this->user : null;
        foreach ($owner === null || $owner === 0 ? [] : [$this->home, $this->clone] as $application) {
            $application->giveTo($owner, $owner);
        }
        foreach ($files as $file) {
            self::assertIsString(file_get_contents($file));
        }
        $code = sprintf(
            'return implode("\n", array_filter(%s, fn ($f) => @file_get_contents($f) !== false));',
            var_export($files, true),
        );
        $root ??= $this->clone->path('app');
        $request = ['snippet' => $code, 'projectRoot' => $root, 'timeoutMs' => 20000];
        $result = Without::evaluate($what, $request, self::KERNEL_ONLY);
        self::assertSame('returned', $result['diagnostics']['outcome'] ?? null, (string) json_encode($result));

        return array_values(array_filter(explode("\n", $result['result']['value'])));
    }
}
