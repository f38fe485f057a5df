<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Sandbox\Escape;

use Altair\Eval\Tests\Support\Command;
use Altair\Eval\Tests\Support\Sandbox\Caller;
use Altair\Eval\Tests\Support\Sandbox\Household;
use Altair\Eval\Tests\Support\Sandbox\Levels;
use Altair\Eval\Tests\Support\Skip;
use PHPUnit\Framework\TestCase;

/**
 * What `altair run` does not show unless `--read` says so: keys, credentials, the rest of a home, and what of the
 * system is root's.
 */
final class UnshownFilesTest extends TestCase
{
    /** Below a home: never shown by themselves. */
    private const KEYS = [
        '.ssh/id_ed25519', '.aws/credentials', '.gnupg/private-keys-v1.d/a.key', '.kube/config', '.config/gh/hosts.yml',
        '.docker/config.json', '.azure/msal_token_cache.json', '.config/gcloud/credentials.db',
        '.mozilla/firefox/a/logins.json', '.config/google-chrome/Default/Login Data',
        '.config/chromium/Default/Cookies',
        '.config/BraveSoftware/Brave-Browser/Local State', '.local/share/keyrings/login.keyring',
        '.password-store/a.gpg', '.claude/.credentials.json', '.codex/auth.json', '.config/github-copilot/hosts.json',
        '.netrc', '.git-credentials', '.npmrc', '.pypirc', '.pgpass', '.my.cnf', '.bash_history',
        '.config/git/credentials', '.gem/credentials',
        '.pulumi/credentials.json', '.databrickscfg', '.kaggle/kaggle.json', '.huggingface/token',
        '.local/share/uv/credentials/credentials.toml', '.local/share/atuin/history.db', '.local/share/mkcert/key.pem',
        '.cloudflared/cert.pem', '.supabase/access-token', '.railway/config.json', '.circleci/cli.yml',
        '.snowsql/config', '.vnc/passwd', '.dbt/profiles.yml', '.mc/config.json', '.jupyter/migrated',
        '.config/argocd/config', '.config/nix/nix.conf', '.msmtprc', '.mbsyncrc', '.fetchmailrc', '.erlang.cookie',
        '.zhistory', '.histfile', '.config/nushell/history.txt', '.env', '.sbt/.credentials',
    ];

    /** In the directories of toolchains, which are shown. */
    private const CREDENTIALS = [
        '.cargo/credentials', '.cargo/credentials.toml', '.composer/auth.json', '.config/composer/auth.json',
        '.m2/settings.xml', '.m2/settings-security.xml', '.npm/.npmrc', '.nvm/.npmrc',
        '.nvm/versions/node/v1/etc/npmrc', '.cargo/.netrc', '.cache/.git-credentials', '.composer/.netrc',
        '.cache/mozilla/firefox/page', '.cache/google-chrome/page', '.cache/huggingface/token',
        '.cache/ms-playwright/mcp-chrome-profile/Default/Cookies', '.cache/cliphist/db',
    ];

    /** In a home, but no secrets by their names. */
    private const OTHERS = ['notes.txt', 'Documents/letter', 'elsewhere/project/.env', '.config/app/settings'];

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
    public function testAHomeIsNotReadFromAProjectInIt(Caller $caller, array $without): void
    {
        $household = new Household($caller);
        $paths = self::fill($household, [...self::KEYS, ...self::CREDENTIALS, ...self::OTHERS]);

        foreach ([[], ['--network']] as $options) {
            $ran = $household->run([...$options, '--', 'cat', ...$paths], $without);
            self::assertSame([], self::seen($ran->output), $ran->errors);
        }
        self::assertCount(count($paths), self::seen($household->unheld(['cat', ...$paths])->output));
    }

    /**
     * @param list<string> $without
     *
     * @dataProvider levels
     */
    public function testAWorkingDirectoryThatIsTheHomeShowsNoKeysOrCredentials(Caller $caller, array $without): void
    {
        $household = new Household($caller);
        $paths = self::fill($household, [...self::KEYS, ...self::CREDENTIALS, ...self::OTHERS]);
        $others = array_map(static fn (string $path): string => "secret of $path.", self::OTHERS);

        foreach ([$household->home, dirname($household->home)] as $directory) {
            $ran = $household->run(['--', 'cat', ...$paths], $without, $directory);
            $isOwn = $directory === $household->home || $caller !== Caller::RootForAUser;
            self::assertSame($isOwn ? $others : [], self::seen($ran->output), $ran->errors);
        }
        // Neither does a path that holds them, whatever is to be done with it.
        foreach (['--read=' . $household->home, '--read=/'] as $option) {
            $ran = $household->run([$option, '--', 'cat', ...$paths], $without);
            self::assertSame($others, self::seen($ran->output), $option . $ran->errors);
        }
        foreach (['--write=' . $household->home, '--layer=' . $household->home] as $option) {
            $ran = $household->run([$option, '--', 'cat', ...$paths], $without);
            self::assertSame($without === [] ? $others : [], self::seen($ran->output), $option . $ran->errors);
            self::assertSame($without === [], $ran->exitCode !== 125, $ran->errors);
        }
    }

    /**
     * @param list<string> $without
     *
     * @dataProvider levels
     */
    public function testAHomeElsewhereThanTheDatabaseSaysIsAHomeToo(Caller $caller, array $without): void
    {
        $household = new Household($caller);
        $paths = self::fill($household, self::KEYS);
        $elsewhere = "$household->home/elsewhere";
        $moved = [];
        foreach (self::KEYS as $path) {
            $moved[] = $household->put("elsewhere/$path", "secret of $path.\n");
        }
        $environments = [['HOME' => $elsewhere], ['HOME' => '/'], ['HOME' => 'relative'], ['HOME' => '']];
        foreach ($environments as $environment) {
            $ran = $household->run(['--', 'cat', ...$paths], $without, $household->home, $environment);
            self::assertSame([], self::seen($ran->output), $ran->errors);
        }
        $ran = $household->run(['--', 'cat', ...$moved], $without, $elsewhere, ['HOME' => $elsewhere]);
        self::assertSame([], self::seen($ran->output), $ran->errors);
    }

    /**
     * @param list<string> $without
     *
     * @dataProvider levels
     */
    public function testAWorkingDirectoryAmongKeysIsRefused(Caller $caller, array $without): void
    {
        $household = new Household($caller);
        self::fill($household, ['.ssh/id_ed25519', '.ssh/keys/other']);
        foreach (['.ssh', '.ssh/keys'] as $name) {
            $directory = "$household->home/$name";
            $ran = $household->run(['--', 'cat', 'id_ed25519', 'other'], $without, $directory);
            self::assertSame(125, $ran->exitCode, $ran->output);
            self::assertStringContainsString("--read=$directory", $ran->errors);
            self::assertSame([], self::seen($ran->output));

            $ran = $household->run(["--read=$directory", '--', 'ls'], $without, $directory);
            self::assertSame(0, $ran->exitCode, $ran->errors);
        }
    }

    /**
     * A link in the home leads to the keys, or what is said to be the main repository's directory is theirs.
     *
     * @param list<string> $without
     *
     * @dataProvider levels
     */
    public function testAProjectLeadsTheCommandToNothingThatItMayNotRead(Caller $caller, array $without): void
    {
        $household = new Household($caller);
        $paths = self::fill($household, ['.ssh/id_ed25519', '.ssh/commondir', 'notes.txt', 'Documents/HEAD']);
        foreach (['.ssh', 'Documents', '.', '..', '/', '/root'] as $to) {
            $target = $to[0] === '/' ? $to : "$household->home/$to";
            $household->put('project/.git', "gitdir: $target\n");
            $ran = $household->run(['--', 'cat', ...$paths], $without);
            self::assertSame([], self::seen($ran->output), $to . $ran->errors);
        }
        unlink("$household->project/.git");
        foreach (['.git', 'vendor'] as $name) {
            symlink("$household->home/.ssh", "$household->project/$name");
            $ran = $household->run(['--', 'sh', '-c', "cat $name/* ; cat ../.ssh/*"], $without);
            self::assertSame([], self::seen($ran->output), $ran->errors);
        }
        // A repository that is the whole home.
        unlink("$household->project/.git");
        $household->put('.git/HEAD', "ref: refs/heads/main\n");
        $ran = $household->run(['--', 'cat', ...$paths], $without);
        self::assertSame([], self::seen($ran->output), $ran->errors);
        self::assertStringContainsString("--read=$household->home", $ran->errors);
    }

    /**
     * @param list<string> $without
     *
     * @dataProvider levels
     */
    public function testKeysBehindALinkAreKeys(Caller $caller, array $without): void
    {
        $household = new Household($caller);
        $paths = self::fill($household, ['dotfiles/ssh/id_rsa', 'dotfiles/netrc']);
        symlink('dotfiles/ssh', "$household->home/.ssh");
        symlink("$household->home/dotfiles/netrc", "$household->home/.netrc");
        $paths = [...$paths, "$household->home/.ssh/id_rsa", "$household->home/.netrc"];

        $ran = $household->run(['--', 'cat', ...$paths], $without, $household->home);
        self::assertSame([], self::seen($ran->output), $ran->errors);
    }

    /**
     * As a manager of dotfiles links them: the working directory is the one that has the files.
     *
     * @param list<string> $without
     *
     * @dataProvider levels
     */
    public function testKeysBehindLinksInADirectoryOfKeysAreKeys(Caller $caller, array $without): void
    {
        $household = new Household($caller);
        $names = ['dotfiles/ssh/id_ed25519', 'dotfiles/aws/credentials', 'dotfiles/gnupg/keys/a.key', 'dotfiles/vimrc'];
        $paths = self::fill($household, $names);
        foreach (['.ssh', '.aws', '.gnupg'] as $name) {
            mkdir("$household->home/$name");
        }
        symlink('../dotfiles/ssh/id_ed25519', "$household->home/.ssh/id_ed25519");
        symlink('../dotfiles/aws/credentials', "$household->home/.aws/credentials");
        symlink('../dotfiles/gnupg/keys', "$household->home/.gnupg/private-keys-v1.d");
        foreach (['dotfiles', '.'] as $directory) {
            $ran = $household->run(['--', 'cat', ...$paths], $without, "$household->home/$directory");
            self::assertSame(['secret of dotfiles/vimrc.'], self::seen($ran->output), $ran->errors);
        }
        $ran = $household->run(["--read=$paths[0]", '--', 'cat', ...$paths], $without, "$household->home/dotfiles");
        $expected = ['secret of dotfiles/ssh/id_ed25519.', 'secret of dotfiles/vimrc.'];
        self::assertSame($expected, self::seen($ran->output), $ran->errors);
    }

    /**
     * @param list<string> $without
     *
     * @dataProvider levels
     */
    public function testSettingsOfGitAreShownUnlessTheyHoldCredentials(Caller $caller, array $without): void
    {
        $household = new Household($caller);
        $paths = self::fill($household, ['.gitconfig', '.config/git/config']);
        $ran = $household->run(['--', 'cat', ...$paths], $without, $household->home);
        self::assertCount(2, self::seen($ran->output), $ran->errors);
        foreach (['.gitconfig', '.config/git/config'] as $name) {
            $household->put($name, "secret of $name.\n[url \"https://user:token@example.invalid\"]\n");
        }
        $ran = $household->run(['--', 'cat', ...$paths], $without, $household->home);
        self::assertSame([], self::seen($ran->output), $ran->errors);
    }

    /**
     * What a user's links in the home lead to, a root host looks for as that user.
     */
    public function testARootHostShowsAUserNothingThatOnlyRootReaches(): void
    {
        posix_geteuid() === 0 || Skip::NeedsRoot->because('The host is root.');
        foreach ([[], ['mounts']] as $without) {
            $household = new Household(Caller::RootForAUser);
            $vault = dirname($household->home) . '/vault';
            mkdir("$vault/inner/.git/objects", 0755, true);
            file_put_contents("$vault/inner/file", "secret of the vault.\n");
            file_put_contents("$vault/inner/.git/HEAD", "secret of the repository.\n");
            chmod($vault, 0700);
            symlink("$vault/inner", "$household->home/.cargo");
            symlink($vault, "$household->home/.cache");
            $household->put('project/.git', "gitdir: $vault/inner/.git\n");
            $paths = ["$household->home/.cargo/file", "$household->home/.cache/inner/file", "$vault/inner/file",
                "$vault/inner/.git/HEAD"];
            $ran = $household->run(['--', 'cat', ...$paths], $without);
            self::assertSame([], self::seen($ran->output), $ran->errors);
            self::assertStringNotContainsString('--read=', $ran->errors);
        }
    }

    /**
     * The home is mounted at another place, too.
     */
    public function testAHomeAtAnotherPlaceIsAHome(): void
    {
        posix_geteuid() === 0 || Skip::NeedsRoot->because('It mounts.');
        foreach (Levels::both() as [$caller, $without]) {
            $household = new Household($caller);
            self::fill($household, self::KEYS);
            $place = dirname($household->home) . '/place';
            mkdir($place);
            $script = 'mount --bind "$0" "$1" && cd "$1" && shift && exec "$@"';
            $mount = ['unshare', '--mount', '--propagation=private', 'sh', '-c', $script, $household->home, $place];
            foreach ([[], ["--read=$place"]] as $options) {
                $command = $household->command([...$options, '--', 'sh', '-c', 'cat ' . implode(' ', array_map(
                    static fn (string $name): string => escapeshellarg("$place/$name"),
                    self::KEYS,
                ))], $without);
                $ran = Command::of([...$mount, ...$command], '/', environment: ['HOME' => $household->home]);
                self::assertSame([], self::seen($ran->output), $ran->errors);
            }
        }
    }

    /**
     * A directory of the home with keys is mounted at another place: the working directory, or a directory above it.
     */
    public function testADirectoryOfKeysAtAnotherPlaceHoldsKeys(): void
    {
        posix_geteuid() === 0 || Skip::NeedsRoot->because('It mounts.');
        $script = 'mount --bind "$0" "$1" && cd "$2" && shift 2 && exec "$@"';
        foreach (Levels::both() as [$caller, $without]) {
            $household = new Household($caller);
            self::fill($household, ['.config/gh/hosts.yml', '.config/composer/auth.json', '.config/app/settings']);
            $place = dirname($household->home) . '/place';
            mkdir($place);
            $mount = ['unshare', '--mount', '--propagation=private', 'sh', '-c', $script, "$household->home/.config"];
            $paths = ["$place/gh/hosts.yml", "$place/composer/auth.json", "$place/app/settings"];
            foreach ([$place, "$place/composer", "$place/gh"] as $directory) {
                $command = $household->command(['--', 'cat', ...$paths], $without);
                $environment = ['HOME' => $household->home];
                $ran = Command::of([...$mount, $place, $directory, ...$command], '/', environment: $environment);
                $expected = $directory === $place ? ['secret of .config/app/settings.'] : [];
                self::assertSame($expected, self::seen($ran->output), $ran->errors);
                self::assertSame($directory === "$place/gh", $ran->exitCode === 125, $ran->errors);
            }
        }
    }

    /**
     * What of installed software is not everybody's, and credentials there by their names. A project there is one like
     * any other, and what is named is shown.
     */
    public function testCredentialsAmongInstalledSoftwareAreNotRead(): void
    {
        posix_geteuid() === 0 || Skip::NeedsRoot->because('It mounts.');
        $private = ['/opt/app/conf/key', '/opt/cargo/credentials.toml', '/usr/local/etc/npmrc', '/opt/vault/deep/key'];
        $named = ['/opt/cargo/.netrc', '/usr/local/lib/app/.env'];
        $public = ['/opt/app/readme', '/opt/cargo/credentials.py', '/usr/local/etc/settings'];
        $paths = [...$private, ...$named, ...$public];
        foreach (Levels::both() as [$caller, $without]) {
            $household = new Household($caller);
            $script = 'mount -t tmpfs -o mode=755 tmpfs /opt && mount -t tmpfs -o mode=755 tmpfs /usr/local/etc'
                . ' && mount -t tmpfs -o mode=755 tmpfs /usr/local/lib || exit 99; user=$1; cd=$2; shift 2;';
            foreach ($paths as $path) {
                $script .= 'mkdir -p ' . dirname($path) . "; echo 'secret of $path.' > $path;";
            }
            $script .= 'chmod 600 /opt/app/conf/key /opt/cargo/credentials.toml /usr/local/etc/npmrc;'
                . 'chmod 700 /opt/vault; chown -R $user:$user /opt/* /usr/local/etc/*; cd "$cd"; exec "$@"';
            $run = static fn (string $directory, string ...$options): Command => Command::of(
                ['unshare', '--mount', '--propagation=private', 'sh', '-c', $script, 'sh', (string) $caller->uid(),
                    $directory, ...$household->command([...$options, '--', 'cat', ...$paths], $without)],
                '/',
                environment: ['HOME' => $household->home, 'XDG_CONFIG_HOME' => '', 'CARGO_HOME' => '/opt/cargo'],
            );
            $secret = static fn (string $path): string => "secret of $path.";
            foreach ([$household->project, '/opt'] as $directory) {
                $ran = $run($directory);
                self::assertSame(array_map($secret, $public), self::seen($ran->output), $ran->errors);
                self::assertStringContainsString("--read=$private[0] ", $ran->errors);
            }
            $followed = $run($household->project, "--read=$private[0]", '--read=/opt/vault');
            $expected = array_map($secret, [$private[0], $private[3], ...$public]);
            self::assertSame($expected, self::seen($followed->output), $followed->errors);
            $inProject = $run('/opt/cargo');
            $expected = array_map($secret, [$private[1], $named[0], ...$public]);
            $seen = self::seen($inProject->output);
            self::assertSame([], array_diff($expected, $seen), $inProject->errors);
            self::assertCount(count($expected), $seen, $inProject->errors);
        }
    }

    /**
     * The user database has a home in `/opt`, which is shown.
     */
    public function testAHomeAmongInstalledSoftwareIsAHome(): void
    {
        posix_geteuid() === 0 || Skip::NeedsRoot->because('It mounts.');
        $names = ['notes.txt', '.config/app/settings', '.ssh/id_ed25519', '.cargo/credentials.toml'];
        foreach (Levels::both() as [$caller, $without]) {
            $household = new Household($caller);
            self::fill($household, $names);
            $household->put('.cargo/config.toml', "secret of nobody.\n");
            $household->put('project/sub/file', "secret of the project.\n");
            // In place of the file that the household has made.
            $script = 'mount -t tmpfs -o mode=755 tmpfs /opt && cp -a "$0" /opt/ci && chmod "$1" /opt/ci || exit 99;'
                . ' sed "s#$0#/opt/ci#" "${0%/home}/passwd" > /opt/passwd && cat /opt/passwd > "${0%/home}/passwd";'
                . ' rm /opt/passwd; cd "$2" && shift 2 && exec "$@"';
            $paths = array_map(static fn (string $name): string => "/opt/ci/$name", $names);
            $paths = [...$paths, '/opt/ci/.cargo/config.toml', '/opt/ci/project/sub/file'];
            $expected = ['/opt/ci/project' => ['secret of nobody.', 'secret of the project.'],
                $household->project => ['secret of nobody.']];
            foreach (['700', '755'] as $mode) {
                foreach ($expected as $directory => $shown) {
                    $command = ['sh', '-c', 'cat "$@"; cd && echo own > new && cat new', 'sh', ...$paths];
                    $ran = Command::of(
                        ['unshare', '--mount', '--propagation=private', 'sh', '-c', $script, $household->home, $mode,
                            $directory, ...$household->command(['--', ...$command], $without)],
                        '/',
                        environment: ['HOME' => '/opt/ci', 'XDG_CONFIG_HOME' => ''],
                    );
                    self::assertSame($shown, self::seen($ran->output), "$mode, $directory: $ran->errors");
                    self::assertStringEndsWith("own\n", $ran->output, "$mode, $directory: $ran->errors");
                }
            }
        }
    }

    public function testOneKeyThatIsNamedIsShownAndNoOther(): void
    {
        foreach (Levels::both() as [$caller, $without]) {
            $household = new Household($caller);
            $paths = self::fill($household, ['.ssh/id_ed25519', '.ssh/known_hosts', '.aws/credentials']);
            foreach ([$household->project, $household->home] as $directory) {
                $ran = $household->run(["--read=$paths[1]", '--', 'cat', ...$paths], $without, $directory);
                self::assertSame(['secret of .ssh/known_hosts.'], self::seen($ran->output), $ran->errors);
            }
        }
    }

    /**
     * What of `/etc` is not everybody's, `/proc` of other processes, and what only root may read in it.
     */
    public function testRootsSecretsAreNotRead(): void
    {
        posix_geteuid() === 0 || Skip::NeedsRoot->because('Only root has them.');
        $secrets = array_filter(
            ['/etc/shadow', '/etc/gshadow', '/etc/sudoers', '/proc/kcore', '/proc/kpagecount', '/proc/keys'],
            static fn (string $path): bool => is_file($path) && (fileperms($path) & 0004) === 0,
        );
        self::assertContains('/etc/shadow', $secrets);
        foreach ([[], ['mounts'], ['mounts', 'copies']] as $without) {
            foreach (['/var/tmp', '/etc', '/etc/ssl', '/'] as $directory) {
                foreach ([[], ['--read=/'], ['--read=/etc']] as $options) {
                    $ran = (new Household(Caller::Root))->run(
                        [...$options, '--', 'head', '-qc1', ...$secrets],
                        $without,
                        $directory,
                    );
                    self::assertSame('', $ran->output, "in $directory: " . implode(' ', $options) . $ran->errors);
                }
            }
        }
    }

    /**
     * @param list<string> $names
     * @return list<string> the paths of files that hold `secret of <name>.`
     */
    private static function fill(Household $household, array $names): array
    {
        return array_map(
            static fn (string $name): string => $household->put($name, "secret of $name.\n", 0600),
            $names,
        );
    }

    /**
     * @return list<string>
     */
    private static function seen(string $output): array
    {
        preg_match_all('/^secret of .*\.$/m', $output, $found);

        return $found[0];
    }
}
