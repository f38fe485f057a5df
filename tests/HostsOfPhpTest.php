<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\Tests\Support\Command;
use Altair\Eval\Tests\Support\TemporaryApplication;
use Altair\Eval\Tests\Support\Warm\CompiledExtension;
use PHPUnit\Framework\TestCase;
use RuntimeException;

/**
 * Hosts other than a shell's PHP: servers without the environment of a shell, and those whose ini files have more than
 * the distribution's.
 */
final class HostsOfPhpTest extends TestCase
{
    /**
     * Stands for APCu: an extension that shares memory between processes where `apc.enable_cli` is on, and says so by
     * the constant `SHARES`.
     */
    private const SHARING = <<<'C'
        #include "php.h"
        #include "php_ini.h"
        #include <sys/mman.h>
        PHP_INI_BEGIN()
            PHP_INI_ENTRY("apc.enable_cli", "0", PHP_INI_SYSTEM, NULL)
        PHP_INI_END()
        static PHP_MINIT_FUNCTION(sharing)
        {
            (void) type;
            REGISTER_INI_ENTRIES();
            bool shares = INI_BOOL("apc.enable_cli");
            if (shares && mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0) == MAP_FAILED) {
                return FAILURE;
            }
            REGISTER_BOOL_CONSTANT("SHARES", shares, CONST_PERSISTENT);
            return SUCCESS;
        }
        zend_module_entry sharing_module_entry = {
            STANDARD_MODULE_HEADER, "sharing", NULL, PHP_MINIT(sharing), NULL, NULL, NULL, NULL, "1",
            STANDARD_MODULE_PROPERTIES
        };
        ZEND_GET_MODULE(sharing)
        C;

    /** Evaluates twice, and prints where the value comes from and how the second run has started. */
    private const OFTEN = <<<'PHP'
        <?php
        $evaluator = new Altair\Eval\Evaluator(warm: true);
        foreach ([1, 2, 3] as $round) {
            $answer = $evaluator->evaluate(new Altair\Eval\EvalRequest('return %s;', '%s', 60000))->toArray(true);
        }
        $start = $answer['diagnostics'];
        echo json_encode([PHP_SAPI, $answer['result']['value'], $start['start'], $start['start_reason'] ?? '']);
        PHP;

    private TemporaryApplication $application;

    private TemporaryApplication $elsewhere;

    protected function setUp(): void
    {
        $this->application = new TemporaryApplication();
        $this->elsewhere = new TemporaryApplication();
    }

    public function testAServerWithoutAPathFindsThePhpOfItsOwnBuild(): void
    {
        $script = sprintf(self::OFTEN, 'PHP_VERSION', $this->application->root);
        $script = $this->elsewhere->write('served.php', $script);

        // As php-fpm with clear_env it is no command line, and has no environment.
        $answer = $this->served($script, ['TMPDIR' => sys_get_temp_dir()]);

        self::assertSame('["cli-server","' . PHP_VERSION . '","warm",""]', $answer);
    }

    public function testTheCommandFindsPhpWithoutAPath(): void
    {
        $root = "--root={$this->application->root}";

        [$status, $output] = self::outputOf(
            ['env', '--ignore-environment', $this->native(), 'eval', $root, 'return 7;'],
        );

        self::assertSame([0, '✓ int = 7'], [$status, strtok($output, "\n")]);
    }

    public function testApcuOnTheCommandLineKeepsNoRunFromBeingWarm(): void
    {
        $this->compileSharing();
        $script = $this->elsewhere->write('host.php', sprintf(self::OFTEN, 'SHARES', $this->application->root));
        $command = [PHP_BINARY, '-d', 'extension=' . getenv('EXTENSION'), '-r', 'echo (int) SHARES;'];

        [, $shares] = self::outputOf($command, $this->environment());
        self::assertSame('1', $shares, 'The host shares memory, as its ini files say.');
        $command = [PHP_BINARY, '-d', 'extension=' . getenv('EXTENSION'), $script];
        [, $answer] = self::outputOf($command, $this->environment());

        self::assertSame('["cli",false,"warm",""]', $answer);
    }

    public function testAnExtensionFromElsewhereIsThereInRunsOfTheCommand(): void
    {
        $library = CompiledExtension::make($this->elsewhere, 'worded.so', 'a word');
        $this->elsewhere->write('ini/worded.ini', "; from elsewhere\nextension = \"$library\"\n");
        $this->elsewhere->write('beside', 'not shown');
        $beside = var_export($this->elsewhere->path('beside'), true);
        $snippet = "return [ALTAIR_TEST_WORD, @file_get_contents($beside)];";

        $command = Command::run(
            ['eval', '--format=compact', $snippet],
            $this->application->root,
            '',
            $this->environment(),
        );

        self::assertSame(['a word', false], $command->json()['result'] ?? $command->output . $command->errors);
    }

    public function testAnExtensionOfAnotherDirectoryOfExtensionsIsThereInRunsOfTheCommand(): void
    {
        CompiledExtension::make($this->elsewhere, 'worded.so', 'a word');
        $directory = $this->elsewhere->root;
        $this->elsewhere->write('ini/worded.ini', "extension=worded\nextension_dir=$directory\n");

        $command = Command::run(
            ['eval', '--format=compact', 'return ALTAIR_TEST_WORD;'],
            $this->application->root,
            '',
            ['PHP_INI_SCAN_DIR' => $this->elsewhere->path('ini')],
        );

        self::assertSame('a word', $command->json()['result'] ?? $command->output . $command->errors);
    }

    private function compileSharing(): void
    {
        $source = $this->elsewhere->write('sharing.c', self::SHARING);
        $library = $this->elsewhere->path('sharing.so');
        exec("cc -shared -fPIC $(php-config --includes) -o $library $source 2>&1", $says, $status);
        self::assertSame(0, $status, implode("\n", $says));
        $this->elsewhere->write('ini/sharing.ini', "extension=$library\napc.enable_cli=1\n");
    }

    /**
     * What lets PHP read the ini files here after its own.
     *
     * @return array<string, string>
     */
    private function environment(): array
    {
        return ['PHP_INI_SCAN_DIR' => getenv('PHP_INI_SCAN_DIR') . ':' . $this->elsewhere->path('ini')];
    }

    private function native(): string
    {
        return getenv('ALTAIR_NATIVE') ?: dirname(__DIR__) . '/target/release/altair';
    }

    /**
     * The answer of a script that PHP's own server runs.
     *
     * @param array<string, string> $environment
     */
    private function served(string $script, array $environment): string
    {
        $errors = tmpfile() ?: throw new RuntimeException('No temporary file.');
        $command = [PHP_BINARY, '-d', 'extension=' . getenv('EXTENSION'), '-S', '127.0.0.1:0', $script];
        $pipes = [];
        $server = proc_open($command, [1 => $errors, 2 => ['pipe', 'w']], $pipes, '/', $environment)
            ?: throw new RuntimeException('No process.');
        try {
            // It says where it listens once it does.
            while (($line = fgets($pipes[2])) !== false) {
                if (preg_match('~\((http://[^)]+)\) started~', $line, $found)) {
                    return (string) file_get_contents($found[1]);
                }
            }
            self::fail('The server has not started.');
        } finally {
            proc_terminate($server);
            fclose($pipes[2]);
            proc_close($server);
        }
    }

    /**
     * @param list<string> $command
     * @param array<string, string> $environment in addition to the test's own
     * @return array{int, string} exit code and output, errors included
     */
    private static function outputOf(array $command, array $environment = []): array
    {
        $output = tmpfile() ?: throw new RuntimeException('No temporary file.');
        $process = proc_open($command, [1 => $output, 2 => $output], $pipes, '/', $environment + getenv());
        $status = proc_close($process ?: throw new RuntimeException('No process.'));
        rewind($output);

        return [$status, (string) stream_get_contents($output)];
    }
}
