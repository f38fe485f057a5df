<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Escape;

use Altair\Eval\Exception\LaunchException;
use Altair\Eval\Tests\Support\Escape\Setting;
use Altair\Eval\Tests\Support\Servers\Fpm;
use Altair\Eval\Tests\Support\Skip;
use Altair\Eval\Tests\Support\TemporaryApplication;
use Altair\Eval\Tests\Support\Without;
use PHPUnit\Framework\TestCase;
use RuntimeException;

/**
 * Where PHP's own ways to start programs are disabled, this extension's start confined ones only; and nothing that is
 * named at run time decides which program is started. What is started is heard from outside.
 */
final class ProgramsTest extends TestCase
{
    /** What works wherever evaluations do. */
    private const CONFINED = ['evaluation', 'evaluateMany', 'runtime', 'native', 'the own PHP by its path'];

    /** What only `altair_eval.programs` allows, and the class of what it throws. */
    private const UNCONFINED = [
        'unsafe' => LaunchException::class,
        'unsafe, many' => LaunchException::class,
        'unsafe runtime' => LaunchException::class,
        'unguarded runtime' => LaunchException::class,
        'phpBinary' => LaunchException::class,
        'phpBinary, by the pool' => LaunchException::class,
        'SubprocessRunner' => RuntimeException::class,
        'command line' => RuntimeException::class,
        'host' => RuntimeException::class,
        'docker' => RuntimeException::class,
        'docker of the start' => RuntimeException::class,
        'podman' => RuntimeException::class,
        'firejail' => RuntimeException::class,
        'bubblewrap' => RuntimeException::class,
    ];

    /** What is started because the process was started so, confined programs or not. */
    private const OF_THE_START = 'the pool of the start';

    /** The files in which programs are started without guards, and who permits it. */
    private const PLACES = [
        'crates/command/src/drivers/bubblewrap.rs' => 'Command::prepare()',
        'crates/command/src/run.rs' => 'Command::prepare()',
        'crates/command/src/start/drivers.rs' => 'Command::prepare()',
        'crates/command/src/start/host.rs' => 'Command::prepare()',
        'crates/engine/src/command.rs' => 'SubprocessRunner, and for the doctor CommandLine',
        'crates/engine/src/confinement.rs' => 'Evaluator::located_in()',
        'crates/engine/src/doctor/attacks/process.rs' => 'CommandLine',
        'crates/pool/src/start.rs' => 'nobody: its program is the one of the start',
        'crates/sandbox/src/policy.rs' => 'whoever has a policy',
    ];

    /** What starts programs in Rust, and in PHP. */
    private const STARTS = [
        'rs' => '/Policy::unconfined\(\)|fn unconfined\(|\bCommand::new\(|posix_spawn|\bexecvp?\(|\blibc::system/',
        'php' => '/\b(exec|shell_exec|system|passthru|proc_open|popen|pcntl_exec)\(|`/',
    ];

    /** Seconds in which who has connected has said its name. */
    private const PATIENCE = 5;

    private const DISABLED = 'disable_functions=exec,proc_open';

    private TemporaryApplication $place;

    /** @var resource */
    private $listener;

    private int $port;

    protected function setUp(): void
    {
        $context = stream_context_create(['socket' => ['backlog' => 128]]);
        $flags = STREAM_SERVER_BIND | STREAM_SERVER_LISTEN;
        $this->listener = stream_socket_server('tcp://127.0.0.1:0', $code, $message, $flags, $context);
        $this->port = (int) substr(strrchr(stream_socket_get_name($this->listener, false), ':'), 1);
        $this->place = new TemporaryApplication();
        $this->place->write('project/vendor/autoload.php', '<?php');
        foreach (['run' => 0700, 'base' => 0755, 'temporary' => 0777] as $directory => $mode) {
            mkdir($this->place->path($directory));
            chmod($this->place->path($directory), $mode);
        }
        foreach ([...array_keys(self::UNCONFINED), 'DOCKER_BIN', 'ALTAIR_EVAL_POOL', 'altair_eval.pool'] as $name) {
            $this->program("bin/$name", $name);
        }
        $this->program('path/docker', 'PATH, docker');
        $this->program('path/altair', 'PATH, the pool');
        $this->program('path/php', 'PATH, php');
        $this->program('path/a-tool-of-the-test', 'PATH, a command');
        $this->program('tools/docker', 'docker of the start');
        $this->program('tools/altair', self::OF_THE_START);
        copy(dirname(__DIR__) . '/Support/Escape/starting-programs.php', $this->place->path('ways.php'));
        $this->makeLibrary();
    }

    protected function tearDown(): void
    {
        fclose($this->listener);
    }

    /**
     * @return iterable<string, array{list<string>, ?string, string}> options of PHP, the text of an ini file, and why
     *     not; empty: all is allowed
     */
    public static function settings(): iterable
    {
        yield 'nothing is disabled' => [[], '', ''];
        yield 'disabled by a switch' => [['-d', self::DISABLED], '', 'auto'];
        yield 'disabled by php.ini' => [[], self::DISABLED, 'auto'];
        yield 'confined' => [['-d', 'altair_eval.programs=confined'], '', 'confined'];
        yield 'confined by php.ini' => [[], 'altair_eval.programs=confined', 'confined'];
        yield 'all, though disabled' => [['-d', self::DISABLED, '-d', 'altair_eval.programs=all'], '', ''];
        yield 'no value that there is' => [['-d', 'altair_eval.programs=none'], '', 'none of'];
    }

    /**
     * @dataProvider settings
     * @param list<string> $options
     */
    public function testOnTheCommandLine(array $options, string $ini, string $why): void
    {
        foreach ([Setting::AllAsRoot, Setting::AllAsUser] as $setting) {
            if ($setting->isPossible()) {
                $this->assertWays($why, $this->commandLine($setting, [], $options, $ini), $setting->value);
            }
        }
    }

    public function testOnTheCommandLineWithoutMounts(): void
    {
        if (Skip::RefusedToAll->holds()) {
            Skip::RefusedToAll->because('Nothing takes mounts away where a profile does: the other tests go without.');
        }
        foreach ([Setting::AllAsRoot, Setting::AllAsUser] as $setting) {
            if ($setting->isPossible()) {
                $became = $this->commandLine($setting, ['mounts'], ['-d', self::DISABLED]);
                // A process with a filter of its own has no pool.
                $this->assertWays('auto', $became, $setting->value, hasPool: false);
            }
        }
    }

    /**
     * @return iterable<string, array{array<string, string>, string}> settings of the pool of workers, and why not
     */
    public static function poolsOfWorkers(): iterable
    {
        yield 'nothing is disabled' => [[], ''];
        yield 'disabled' => [['php_admin_value[disable_functions]' => 'exec,proc_open'], 'auto'];
        yield 'confined' => [['php_admin_value[altair_eval.programs]' => 'confined'], 'confined'];
        yield 'all, though disabled' => [
            [
                'php_admin_value[disable_functions]' => 'exec,proc_open',
                'php_admin_value[altair_eval.programs]' => 'all',
            ],
            '',
        ];
    }

    /**
     * @dataProvider poolsOfWorkers
     * @param array<string, string> $settings
     */
    public function testInAPoolOfPhpFpm(array $settings, string $why): void
    {
        if (Fpm::program() === null) {
            Skip::NotInstalled->because('php-fpm is not installed, and `scripts/setup.sh drivers` would.');
        }
        // Beside the extension that it loads may be a pool that can be started.
        $environment = ['ALTAIR_EVAL_POOL' => $this->place->path('tools/altair')] + $this->environment();
        foreach ($environment as $name => $value) {
            $settings["env[$name]"] = $value;
        }
        if (posix_geteuid() === 0) {
            ['uid' => $uid, 'gid' => $gid] = posix_getpwnam('nobody');
            $this->place->giveTo($uid, $gid);
        }
        $server = new Fpm($settings + ['pm.max_children' => '1']);
        $page = $this->place->write('page.php', $this->script());
        // A second request of the worker finds the environment of its start, too.
        foreach (['the first request', 'the second'] as $request) {
            $became = json_decode($server->pages($page)[0], true, flags: JSON_THROW_ON_ERROR);
            $this->assertWays($why, $became, $request);
            $this->place->remove('run/altair');
        }
        $server->end();
    }

    /**
     * A new place has to ask `Programs::permit()`, and to be in the table of SECURITY.md and among the ways that are
     * tried here.
     */
    public function testEachPlaceThatStartsAProgramIsKnown(): void
    {
        $top = dirname(__DIR__, 2);
        $found = [];
        foreach (['src', 'php-src', 'php-sandbox', ...glob("$top/crates/*/src")] as $directory) {
            $directory = str_starts_with($directory, '/') ? $directory : "$top/$directory";
            $files = new \RecursiveIteratorIterator(new \RecursiveDirectoryIterator($directory));
            foreach ($files as $file) {
                $starts = self::STARTS[$file->getExtension()] ?? null;
                $path = substr((string) $file, strlen($top) + 1);
                // What is in src/child runs in children.
                if ($starts === null || preg_match('~tests|^src/child/~', $path) === 1) {
                    continue;
                }
                if (preg_match($starts, self::code($file)) === 1) {
                    $found[] = $path;
                }
            }
        }
        sort($found);

        self::assertSame(array_keys(self::PLACES), $found);
    }

    /** What a file does when it is not tested, without comments and texts of PHP. */
    private static function code(\SplFileInfo $file): string
    {
        if ($file->getExtension() === 'php') {
            $texts = [T_COMMENT, T_DOC_COMMENT, T_CONSTANT_ENCAPSED_STRING, T_ENCAPSED_AND_WHITESPACE];
            $tokens = \PhpToken::tokenize((string) file_get_contents((string) $file));

            return implode('', array_filter($tokens, static fn (\PhpToken $token): bool => !$token->is($texts)));
        }
        // The tests of a file in Rust stand at its end, or in files of their own.
        $code = explode('#[cfg(test)]', (string) file_get_contents((string) $file))[0];

        return (string) preg_replace('~//.*~', '', $code);
    }

    /**
     * @param array<string, array{gives?: mixed, throws?: string, message?: string}> $became
     */
    private function assertWays(string $why, array $became, string $where, bool $hasPool = true): void
    {
        $all = $where . ': ' . json_encode($became, JSON_PARTIAL_OUTPUT_ON_ERROR);
        foreach (self::CONFINED as $way) {
            self::assertSame(['gives' => 2], $became[$way], "$way. $all");
        }
        $expected = $hasPool ? [self::OF_THE_START] : [];
        foreach (self::UNCONFINED as $way => $class) {
            if ($why === '') {
                $expected[] = $way;
                continue;
            }
            self::assertSame($class, $became[$way]['throws'] ?? null, "$way. $all");
            self::assertStringContainsString('altair_eval.programs is ', $became[$way]['message']);
            self::assertStringContainsString($why, $became[$way]['message']);
            self::assertStringContainsString('altair_eval.programs=all', $became[$way]['message']);
        }
        self::assertFalse($became['altair_eval.programs']['gives']);
        $heard = $this->heard();
        sort($expected);
        self::assertSame($expected, $heard, $all);
    }

    /**
     * @param list<string> $without
     * @param list<string> $options
     * @return array<string, array<string, mixed>>
     */
    private function commandLine(Setting $setting, array $without, array $options, string $ini = ''): array
    {
        $this->place->write('ini/more.ini', $ini);
        $this->place->giveTo($setting->uid(), $setting->gid());
        $scanned = getenv('PHP_INI_SCAN_DIR') ?: PHP_CONFIG_FILE_SCAN_DIR;
        $environment = ['PHP_INI_SCAN_DIR' => "$scanned:{$this->place->path('ini')}"] + $this->environment();
        $variables = [];
        foreach ($environment as $name => $value) {
            $variables[] = "$name=$value";
        }
        $command = $setting->command([
            'env', '-i', ...$variables, PHP_BINARY, '-d', 'extension=' . Without::extension(),
            '-d', 'display_errors=stderr', ...$options, $this->place->write('script.php', $this->script()),
        ]);
        [, $output, $errors] = Without::command($without, $command);
        $this->place->remove('run/altair');

        return json_decode($output, true) ?? throw new RuntimeException($output . $errors);
    }

    private function script(): string
    {
        $place = var_export($this->place->root, true);

        return "<?php echo json_encode((require $place . '/ways.php')($place, $this->port));";
    }

    /**
     * @return array<string, string> the environment that PHP is started with
     */
    private function environment(): array
    {
        return [
            'PATH' => $this->place->path('tools') . ':/usr/local/bin:/usr/bin:/bin',
            'XDG_RUNTIME_DIR' => $this->place->path('run'),
            'TMPDIR' => $this->place->path('temporary'),
        ];
    }

    /**
     * @return list<string> what has been started without guards
     */
    private function heard(): array
    {
        $heard = [];
        while ($connection = @stream_socket_accept($this->listener, 0)) {
            stream_set_timeout($connection, self::PATIENCE);
            $heard[stream_get_contents($connection)] = true;
        }
        ksort($heard);

        return array_keys($heard);
    }

    private function program(string $path, string $says): void
    {
        $this->place->write($path, "#!/bin/bash\nexec 3<>/dev/tcp/127.0.0.1/$this->port && printf '$says' >&3\n", 0755);
    }

    /** A library that says who loads it, and what has it loaded while PHP starts. */
    private function makeLibrary(): void
    {
        $library = $this->place->path('project/says.so');
        $source = dirname(__DIR__) . '/Support/Escape/says.c';
        exec('cc -shared -fPIC -o ' . escapeshellarg($library) . ' ' . escapeshellarg($source) . ' 2>&1', $said, $code);
        self::assertSame(0, $code, implode("\n", $said));
        mkdir($this->place->path('project/extensions'));
        foreach (glob(ini_get('extension_dir') . '/*.so') as $extension) {
            copy($library, $this->place->path('project/extensions/' . basename($extension)));
        }
        $this->place->write('project/openssl.cnf', "openssl_conf = a\n[a]\nproviders = b\n[b]\nc = d\n[d]\n"
            . "module = $library\nactivate = 1\n");
        $header = "#define FFI_SCOPE \"says\"\n#define FFI_LIB \"$library\"\nint getpid(void);\n";
        $this->place->write('project/says.h', $header);
        $this->place->write('project/says.php', '<?php [$port, $say] = explode(" ", getenv("ALTAIR_TEST_SAY"), 2);'
            . ' fwrite(stream_socket_client("tcp://127.0.0.1:$port"), $say);');
    }
}
