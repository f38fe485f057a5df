<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\Exception\InvalidRequestException;
use Altair\Eval\Tests\Support\EvaluationTestCase;

/**
 * Where a snippet runs: working directory, arguments, variables of the environment.
 */
final class EnvironmentTest extends EvaluationTestCase
{
    /** What steers a loader, an allocator or an interpreter, or holds cloud keys. */
    private const STRIPPED = [
        'LD_LIBRARY_PATH', 'LD_X', 'DYLD_INSERT_LIBRARIES', 'GCONV_PATH', 'GLIBC_TUNABLES', 'MALLOC_ARENA_MAX',
        'USE_ZEND_ALLOC', 'USE_TRACKED_ALLOC', 'PHPRC', 'PHP_INI_SCAN_DIR', 'XDEBUG_MODE', 'XDEBUG_SESSION',
        'ALTAIR_MCP_TOKEN', 'AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY', 'AWS_SESSION_TOKEN',
        'GOOGLE_APPLICATION_CREDENTIALS', 'GCP_PROJECT', 'AZURE_CLIENT_ID', 'AZURE_CLIENT_SECRET', 'GEM_HOME',
        'GEM_PATH', 'RUBYOPT', 'RUBYLIB', 'NODE_OPTIONS', 'NPM_TOKEN', 'NPM_CONFIG_PREFIX', 'PYTHONPATH',
        'PYTHONSTARTUP', 'PIP_INDEX_URL',
    ];

    /** What looks like it and is the application's own. */
    private const KEPT = [
        'APP_ENV', 'DATABASE_URL', 'AWS_REGION', 'LDAP_HOST', 'PHP_VALUE', 'AZURE_TENANT', 'GEM', 'PIPE',
    ];

    /** What a shell, a terminal, a session or a service manager sets. */
    private const OF_SESSION = [
        '_', 'SHLVL', 'PWD', 'OLDPWD', 'TERM', 'TERM_PROGRAM', 'COLORTERM', 'COLUMNS', 'LINES', 'TMUX_PANE', 'SSH_TTY',
        'SUDO_COMMAND', 'XDG_SESSION_ID', 'INVOCATION_ID', 'JOURNAL_STREAM', 'LISTEN_FDS', 'MAKELEVEL',
    ];

    public function testTheWorkingDirectoryIsTheProjectRoot(): void
    {
        self::assertSame($this->application()->root, $this->value('getcwd()'));
        self::assertSame(2, $this->value("strlen(file_get_contents('two'))", projectRoot: $this->withTwo()));
    }

    public function testTheRootIsFreeOfSymlinks(): void
    {
        symlink($this->application()->root, $this->application()->path('link'));

        self::assertSame(
            $this->application()->root,
            $this->value('getcwd()', projectRoot: $this->application()->path('link')),
        );
    }

    public function testARelativeRootIsRelativeToTheHost(): void
    {
        $before = (string) getcwd();
        chdir(dirname($this->application()->root));
        try {
            $root = basename($this->application()->root);
            self::assertSame($this->application()->root, $this->value('getcwd()', projectRoot: $root));
        } finally {
            chdir($before);
        }
    }

    public function testThereAreNoArguments(): void
    {
        self::assertSame([[], 0, [], 0], $this->value(
            'global $argv, $argc; return [$argv, $argc, $_SERVER["argv"], $_SERVER["argc"]];',
        ));
        self::assertSame([], $this->value('function f() { global $argv; return $argv; } return f();'));
        self::assertTrue($this->value('empty($argv)'));
    }

    public function testStandardInputIsEmpty(): void
    {
        self::assertSame(['', true], $this->value('return [stream_get_contents(STDIN), feof(STDIN)];'));
    }

    public function testItIsToldWhatItIsAllowed(): void
    {
        $snippet = 'array_map(getenv(...),'
            . ' ["ALTAIR_EVAL_ALLOW_WRITES", "ALTAIR_EVAL_ALLOW_NETWORK", "ALTAIR_EVAL_UNSAFE"])';
        foreach (['ALTAIR_EVAL_ALLOW_WRITES', 'ALTAIR_EVAL_ALLOW_NETWORK', 'ALTAIR_EVAL_UNSAFE'] as $name) {
            $this->setVariable($name, 'a lie of the host');
        }

        self::assertSame(['0', '0', '0'], $this->value($snippet));
        self::assertSame(['1', '0', '0'], $this->value($snippet, allowWrites: true));
        self::assertSame(['0', '1', '0'], $this->value($snippet, allowNetwork: true));
        self::assertSame(['0', '0', '1'], $this->value($snippet, unsafe: true));
    }

    public function testBootIsToldToo(): void
    {
        $this->application(['vendor/autoload.php' => '<?php define("SAID", getenv("ALTAIR_EVAL_UNSAFE"));']);

        self::assertSame('0', $this->value('SAID'));
    }

    public function testItHasTheHostsEnvironmentAsItIsNow(): void
    {
        $this->setVariable('ALTAIR_TEST_LATE', "set by putenv()\nwith \xFF");

        self::assertSame(bin2hex("set by putenv()\nwith \xFF"), $this->value('bin2hex(getenv("ALTAIR_TEST_LATE"))'));
        $this->setVariable('ALTAIR_TEST_LATE', null);
        self::assertFalse($this->value('getenv("ALTAIR_TEST_LATE")'));
    }

    public function testWhatSteersInterpretersOrHoldsKeysIsStripped(): void
    {
        foreach ([...self::STRIPPED, ...self::KEPT] as $name) {
            $this->setVariable($name, $name === 'USE_ZEND_ALLOC' ? '1' : '/nowhere');
        }

        $environment = $this->value('getenv()');

        self::assertSame([], array_values(array_intersect(self::STRIPPED, array_keys($environment))));
        self::assertSame(self::KEPT, array_values(array_intersect(self::KEPT, array_keys($environment))));
    }

    public function testWhatTellsTwoTerminalsApartIsLeftOut(): void
    {
        foreach ([...self::OF_SESSION, 'TERMS'] as $name) {
            $this->setVariable($name, '1');
        }

        $environment = $this->value('getenv()');

        self::assertSame([], array_values(array_intersect(self::OF_SESSION, array_keys($environment))));
        self::assertArrayHasKey('TERMS', $environment);
        self::assertArrayHasKey('SHLVL', $this->value('getenv()', unsafe: true, redact: false));
    }

    /** Credentials of the caller's. */
    private const CREDENTIALS = [
        'ANTHROPIC_API_KEY', 'OPENAI_API_KEY', 'GEMINI_API_KEY', 'GITHUB_TOKEN', 'GH_TOKEN', 'GITLAB_TOKEN',
        'COMPOSER_AUTH', 'SSH_AUTH_SOCK', 'KUBECONFIG', 'DOCKER_HOST', 'CARGO_REGISTRY_TOKEN', 'VAULT_TOKEN',
    ];

    public function testTheCallersCredentialsAreWithheld(): void
    {
        foreach (self::CREDENTIALS as $name) {
            $this->setVariable($name, 'a value that nobody guesses');
        }

        self::assertSame([], array_intersect(self::CREDENTIALS, array_keys($this->value('getenv()'))));
        self::assertSame([], array_intersect(self::CREDENTIALS, array_keys($this->value('$_SERVER'))));
        $passed = $this->value('getenv()', env: self::CREDENTIALS);
        self::assertSame([], array_diff(self::CREDENTIALS, array_keys($passed)));
    }

    /**
     * @return iterable<string, array{string}>
     */
    public static function filesThatName(): iterable
    {
        foreach (['.env', '.env.local', '.env.test', '.env.example', '.env.dist'] as $file) {
            yield $file => [$file];
        }
    }

    /**
     * @dataProvider filesThatName
     */
    public function testTheyPassWhereTheProjectNamesThem(string $file): void
    {
        $this->setVariable('OPENAI_API_KEY', 'a key of the shell');
        $this->setVariable('GITHUB_TOKEN', 'a token of the shell');
        $this->application([$file => "# GITHUB_TOKEN=\nOPENAI_API_KEY=\n"]);
        $snippet = 'return [sha1((string) getenv("OPENAI_API_KEY")), getenv("GITHUB_TOKEN")];';

        self::assertSame([sha1('a key of the shell'), false], $this->value($snippet));
        // And no longer when the file names it no longer.
        $this->application()->write($file, "OTHER=\n");
        self::assertSame([sha1(''), false], $this->value($snippet));
    }

    public function testWhatWasWithheldAndLookedForIsToldOnceWithWhatPassesIt(): void
    {
        foreach (['GITHUB_TOKEN', 'OPENAI_API_KEY', 'GH_TOKEN', 'AWS_SECRET_ACCESS_KEY', 'TERM'] as $name) {
            $this->setVariable($name, 'a value that nobody guesses');
        }
        $this->application(['vendor/autoload.php' => '<?php getenv("GITHUB_TOKEN");']);
        $names = ['GITHUB_TOKEN', 'OPENAI_API_KEY', 'AWS_SECRET_ACCESS_KEY', 'TERM', 'NOBODY_HAS_THIS'];
        $snippet = 'array_map(getenv(...), ' . var_export($names, true) . '); getenv("OPENAI_API_KEY"); return 1;';
        $blocked = $this->evaluate($snippet)->diagnostics['blocked'];

        self::assertSame(
            [
                ['get the environment variable GITHUB_TOKEN', '--env=GITHUB_TOKEN'],
                ['get the environment variable OPENAI_API_KEY', '--env=OPENAI_API_KEY'],
                [
                    'get the environment variable AWS_SECRET_ACCESS_KEY: no run gets this key; the application reads '
                    . 'its own from the project\'s .env',
                    null,
                ],
            ],
            array_map(static fn (array $entry): array => [$entry['what'], $entry['lift']], $blocked),
        );
        self::assertSame(['environment'], array_values(array_unique(array_column($blocked, 'guard'))));
        self::assertSame([], $this->evaluate('return 1;', env: ['GITHUB_TOKEN'])->diagnostics['blocked'] ?? []);
    }

    public function testARunThatIsCutShortTellsWhatItsBootLookedFor(): void
    {
        $this->setVariable('GITHUB_TOKEN', 'a value that nobody guesses');
        $this->application(['vendor/autoload.php' => '<?php getenv("GITHUB_TOKEN");']);
        $result = $this->evaluate('while (true) { usleep(1000); }', timeoutMs: self::SHORT_MS);

        self::assertSame('timed_out', $result->diagnostics['outcome']);
        self::assertSame('--env=GITHUB_TOKEN', $result->diagnostics['blocked'][0]['lift'] ?? null);
    }

    public function testWhatSteersALoaderCannotBePassed(): void
    {
        foreach (['LD_PRELOAD', 'ld_preload', 'PHPRC', 'AWS_SECRET_ACCESS_KEY', '', 'A=1'] as $name) {
            try {
                $this->evaluate('return 1;', env: [$name]);
                self::fail($name);
            } catch (InvalidRequestException $refused) {
                self::assertMatchesRegularExpression('/confined run|name of a variable/', $refused->getMessage());
            }
        }
    }

    public function testTheStrippedVariablesAreNotInTheProcessEither(): void
    {
        $this->setVariable('AWS_SECRET_ACCESS_KEY', 'hunter2hunter2');
        $environment = '';
        $this->lookWhileItRuns(function (int $pid) use (&$environment): void {
            $environment = (string) file_get_contents("/proc/$pid/environ");
        });

        self::assertStringContainsString('ALTAIR_EVAL_UNSAFE=0', $environment);
        self::assertStringNotContainsString('hunter2', $environment);
    }

    public function testAnUnsafeRunKeepsThem(): void
    {
        foreach (self::STRIPPED as $name) {
            // Those of PHP itself would change which files it reads.
            if (!str_contains($name, 'PHP') && $name !== 'USE_TRACKED_ALLOC') {
                $this->setVariable($name, $name === 'USE_ZEND_ALLOC' ? '1' : '/nowhere');
            }
        }

        $environment = $this->value('getenv()', unsafe: true, redact: false);

        self::assertSame('/nowhere', $environment['AWS_SECRET_ACCESS_KEY']);
        self::assertSame('/nowhere', $environment['PYTHONPATH']);
    }

    private function withTwo(): string
    {
        $this->application()->write('two', '22');

        return $this->application()->root;
    }
}
