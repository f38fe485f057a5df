<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\Tests\Support\Command;
use Altair\Eval\Tests\Support\TemporaryApplication;
use PHPUnit\Framework\TestCase;

/**
 * Wrong usage: exit code 2, one line on standard error that names what is wrong, nothing on standard output.
 */
final class CliUsageTest extends TestCase
{
    private TemporaryApplication $application;

    protected function setUp(): void
    {
        $this->application = new TemporaryApplication([
            'vendor/autoload.php' => '<?php touch(__DIR__ . "/../it-ran");',
            'boot.php' => '<?php',
            'not-executable' => "#!/bin/sh\n",
        ]);
        $this->application->write('no-php', "#!/bin/sh\necho I am no PHP\n", 0755);
        symlink('/etc/passwd', $this->application->path('outside.php'));
    }

    /**
     * @dataProvider wrongUsage
     * @param list<string> $arguments
     */
    public function testItIsOneLineThatNamesWhatIsWrong(array $arguments, string ...$named): void
    {
        $command = Command::run($arguments, $this->application->root);

        self::assertSame([2, ''], [$command->exitCode, $command->output], $command->errors);
        self::assertMatchesRegularExpression("/^altair: [^\n]+\n$/", $command->errors);
        foreach ($named as $what) {
            self::assertStringContainsString($what, $command->errors);
        }
        self::assertFileDoesNotExist($this->application->path('it-ran'));
    }

    /**
     * @return iterable<string, array<mixed>>
     */
    public static function wrongUsage(): iterable
    {
        yield 'no snippet' => [['eval'], 'nothing to run', '--file'];
        yield 'an empty snippet' => [['eval', ''], 'empty'];
        yield 'a blank snippet' => [['eval', " \n"], 'empty'];
        yield 'an empty standard input' => [['eval', '--file=-'], 'empty'];
        yield 'a snippet and a file' => [['eval', '--file=boot.php', 'return 1;'], 'both', '--file'];
        yield 'a file that there is not' => [['eval', '--file=nowhere.php'], '--file=nowhere.php', 'no such file'];
        yield 'a directory as the file' => [['eval', '--file=vendor'], '--file=vendor', 'directory'];
        yield 'an argument without a value' => [['eval', '--arg', 'id', '1'], '--arg=id', 'name=text'];
        yield 'an argument named this' => [['eval', '--arg', 'this=1', '1'], '"this"', '$this'];
        yield 'a superglobal as an argument' => [['eval', '--arg', '_SERVER=1', '1'], '"_SERVER"'];
        yield 'an argument named like a number' => [['eval', '--arg-json', '1x=1', '1'], '"1x"'];
        yield 'an argument without a name' => [['eval', '--arg', '=1', '1'], 'name'];
        yield 'a name that is not UTF-8' => [['eval', '--arg', "\xFF=1", '1'], 'not UTF-8'];
        yield 'an argument twice' => [['eval', '--arg', 'id=1', '--arg-json', 'id=2', '1'], '$id is given twice'];
        yield 'an argument that is no JSON' => [['eval', '--arg-json', 'v={', '1'], '--arg-json v', 'JSON'];
        yield 'NaN as an argument' => [['eval', '--arg-json', 'v=NaN', '1'], '--arg-json v', 'JSON'];
        yield 'JSON that is not UTF-8' => [['eval', '--arg-json', "v=\"\xFF\"", '1'], 'UTF-8'];
        yield 'too many arguments' => [
            ['eval', ...array_merge(...array_map(
                static fn (int $n): array => ['--arg', "a$n=" . str_repeat('x', 100_000)],
                range(1, 11),
            )), '1'],
            '1024 KiB',
        ];
        yield 'an unknown option' => [['eval', '--wirtes', '1'], "'--wirtes'", "'--writes'"];
        yield 'an unknown format' => [['eval', '--format=xml', '1'], "'xml'", 'human, json, compact'];
        yield 'an unknown guard' => [['eval', '--require=luck', '1'], "'luck'", 'process'];
        yield 'an unknown command' => [['evl', '1'], "'evl'", "'eval'"];
        yield 'two snippets' => [['eval', 'return', '1;'], "'1;'", 'quote'];
        yield 'a timeout that is no number' => [['eval', '--timeout-ms=1s', '1'], "'1s'", '--timeout-ms'];
        yield 'a memory limit that is no number' => [['eval', '--memory-mb=1.5', '1'], "'1.5'", '--memory-mb'];
        yield 'a root that there is not' => [['eval', '--root=nowhere', '1'], 'nowhere', 'no such file'];
        yield 'a file as the root' => [['eval', '--root=boot.php', '1'], 'boot.php', 'not a directory'];
        yield 'a bootstrap that there is not' => [['eval', '--bootstrap=no.php', '1'], 'no.php', 'no such file'];
        yield 'a bootstrap outside' => [['eval', '--bootstrap=/etc/passwd', '1'], '/etc/passwd', 'outside'];
        yield 'a bootstrap that leads outside' => [['eval', '--bootstrap=outside.php', '1'], 'outside'];
        yield 'a directory as the bootstrap' => [['eval', '--bootstrap=vendor', '1'], 'vendor'];
        yield 'a php that there is not' => [['eval', '--php=/nowhere/php', '1'], '/nowhere/php', '--php'];
        yield 'a php that is not on the path' => [['eval', '--php=no-such-php', '1'], 'no-such-php'];
        yield 'a php that is not executable' => [['eval', '--php=./not-executable', '1'], 'not-executable'];
        yield 'a php that is none' => [['eval', '--php=./no-php', '1'], 'no-php', 'PHP'];
        yield 'a readable path that there is not' => [['eval', '--read=nowhere', '1'], 'nowhere', 'no such file'];
        yield 'an empty readable path' => [['eval', '--read=', '1'], '--read'];
        yield 'a directory as the php' => [['eval', '--php=./vendor', '1'], 'vendor'];
    }

    public function testAFileThatMayNotBeReadIsNamed(): void
    {
        $file = $this->application->write('secret.php', 'return 1;', 0000);
        $readable = @fopen($file, 'r') !== false; // the super-user may read it all the same

        $command = Command::run(['eval', "--file=$file"], dirname(__DIR__) . '/examples/shop');

        if ($readable) {
            self::assertSame(0, $command->exitCode);
        } else {
            self::assertSame([2, ''], [$command->exitCode, $command->output]);
            self::assertStringContainsString('permission denied', $command->errors);
        }
    }

    public function testControlCharactersOfAnArgumentAreNotPrintedRaw(): void
    {
        foreach (['--root=', '--file=', '--php=/', '--bootstrap=', '--format=', '--'] as $option) {
            $argument = "{$option}no\x1b[31m\r\nwhere\u{9b}1m";
            $command = Command::run(
                ['eval', $argument, ...($option === '--file=' ? [] : ['1'])],
                $this->application->root,
            );

            self::assertSame([2, ''], [$command->exitCode, $command->output], $argument);
            self::assertMatchesRegularExpression("/^altair: [^\n]+\n$/", $command->errors);
            self::assertDoesNotMatchRegularExpression('/[\x00-\x09\x0b-\x1f\x7f]|\xc2[\x80-\x9f]/', $command->errors);
        }
    }

    public function testAnArgumentThatIsNotUtf8IsNamedToo(): void
    {
        $command = Command::run(['eval', "--root=/no\xff", '1'], $this->application->root);

        self::assertSame([2, ''], [$command->exitCode, $command->output]);
        self::assertTrue(mb_check_encoding($command->errors, 'UTF-8'));
    }

    public function testAWorkingDirectoryThatIsGoneIsTold(): void
    {
        $gone = $this->application->path('gone');
        mkdir($gone);
        $altair = dirname(__DIR__) . '/bin/altair';
        $output = tmpfile();
        self::assertIsResource($output);
        $process = proc_open(
            ['sh', '-c', 'cd "$1" && rmdir "$1" && exec "$2" eval "return 1;" 2>&1', 'sh', $gone, $altair],
            [1 => $output],
            $pipes,
        );
        self::assertIsResource($process);

        self::assertSame(2, proc_close($process));
        rewind($output);
        self::assertStringContainsString(
            'altair: the working directory cannot be used',
            (string) stream_get_contents($output),
        );
    }

    public function testHelpAndVersionAreEverywhere(): void
    {
        foreach ([[], ['eval'], ['shell'], ['events:tail'], ['doctor'], ['completions']] as $command) {
            $help = Command::run([...$command, '--help']);
            $version = Command::run([...$command, '--version']);

            self::assertSame([0, ''], [$help->exitCode, $help->errors]);
            self::assertStringContainsString('Usage: altair', $help->output);
            self::assertSame([0, ''], [$version->exitCode, $version->errors]);
            self::assertMatchesRegularExpression('/^altair(?: [a-z:]+)? \d+\.\d+\.\d+\n$/', $version->output);
        }
    }

    public function testHelpNamesEveryOptionWithItsDefault(): void
    {
        $help = Command::run(['eval', '--help'])->output;

        foreach (
            [
                '--file=<path>', '--timeout-ms=<n>', '--memory-mb=<n>', '--writes', '--network', '--unsafe',
                '--bootstrap=<path>', '--root=<dir>', '--php=<path>', '--read=<path>', '--require=<guard>',
                '--format=<format>',
            ] as $option
        ) {
            self::assertMatchesRegularExpression(
                '/^\s+' . str_replace('=', '[= ]', $option) . '\s/m',
                $help,
            );
        }
        $unwrapped = preg_replace('/\s+/', ' ', $help);
        foreach (['5000', '128', 'php', 'human', 'working directory'] as $default) {
            self::assertMatchesRegularExpression("/\[default: (?:the )?$default\]/", (string) $unwrapped);
        }
    }

    public function testCompletionsAreScriptsOfTheirShells(): void
    {
        $shells = ['bash' => 'complete -F', 'zsh' => '#compdef altair', 'fish' => 'complete -c altair'];
        foreach ($shells as $shell => $has) {
            $command = Command::run(['completions', $shell]);

            self::assertSame([0, ''], [$command->exitCode, $command->errors]);
            self::assertStringContainsString($has, $command->output);
            foreach (['timeout-ms', 'read', 'doctor'] as $word) {
                self::assertStringContainsString($word, $command->output);
            }
        }
        self::assertSame(2, Command::run(['completions', 'csh'])->exitCode);
    }
}
