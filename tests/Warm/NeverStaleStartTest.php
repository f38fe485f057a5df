<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Warm;

use Altair\Eval\Evaluator;
use Altair\Eval\Tests\Support\Script;
use Altair\Eval\Tests\Support\TemporaryApplication;
use Altair\Eval\Tests\Support\Warm\Change;
use Altair\Eval\Tests\Support\Warm\CompiledExtension;
use Altair\Eval\Tests\Support\Warm\WarmTestCase;

/**
 * What PHP itself starts from, and what the host goes by: a change of it makes the template stale, too.
 */
final class NeverStaleStartTest extends WarmTestCase
{
    /** What a host does: asks until it is warm, makes a change, and asks again. */
    private const HOST = <<<'PHP'
        $evaluator = new Evaluator(warm: true);
        $ask = static function () use ($evaluator): array {
            $request = new EvalRequest(getenv('TEST_SNIPPET'), getenv('TEST_ROOT'), 60000);
            $result = $evaluator->evaluate($request);
            return [$result->diagnostics['start'], $result->result['value'] ?? $result->toArray()];
        };
        $warmed = static function () use ($ask): array {
            for ($call = 0; $call < 5 && ($answer ?? ['none'])[0] !== 'warm'; $call++) {
                $answer = $ask();
            }
            return $answer;
        };
        $directory = getenv('TEST_DIRECTORY');
        say($warmed());
        eval(getenv('TEST_CHANGE'));
        say($ask());
        say($warmed());
        PHP;

    /** @dataProvider environments */
    public function testAVariableOfTheEnvironment(?string $before, ?string $after): void
    {
        $this->booting('$seen = getenv("APP_FLAG");');
        $this->setVariable('APP_FLAG', $before);
        $snippet = 'return $GLOBALS["seen"];';
        self::assertSame($before ?? false, self::returned($this->warmed($snippet)));

        $this->setVariable('APP_FLAG', $after);
        $next = $this->ask($snippet);

        self::assertSame($after ?? false, self::returned($next));
        self::assertStart('first', $next);
        self::assertSame($after ?? false, self::returned($this->warmed($snippet)));

        $this->setVariable('APP_FLAG', $before);
        self::assertSame($before ?? false, self::returned($this->ask($snippet)), 'And back.');
    }

    public static function environments(): iterable
    {
        yield 'changed' => ['old', 'new'];
        yield 'set' => [null, 'new'];
        yield 'set to nothing' => [null, ''];
        yield 'unset' => ['old', null];
    }

    public function testAVariableThatNoRunSeesChangesNothing(): void
    {
        $this->booting('');
        $this->setVariable('AWS_SECRET_ACCESS_KEY', 'old');
        $this->warmed();

        $this->setVariable('AWS_SECRET_ACCESS_KEY', 'new');

        self::assertStart('warm', $this->ask('return 1;'));
    }

    public function testThePhpBinary(): void
    {
        $this->booting('');
        $directory = new TemporaryApplication();
        $binary = $directory->path('php');
        copy((string) realpath(PHP_BINARY), $binary);
        chmod($binary, 0755);
        $this->evaluator = new Evaluator(phpBinary: $binary, warm: true);
        self::assertSame($binary, self::returned($this->warmed('return PHP_BINARY;')));

        copy($binary, "$binary.new");
        chmod("$binary.new", 0755);
        rename("$binary.new", $binary);

        self::assertStart('first', $this->ask('return 1;'));
        $this->warmed();
    }

    public function testAScriptThatStartsPhp(): void
    {
        $this->booting('');
        $directory = new TemporaryApplication();
        $script = static fn (string $agent): string => $directory->write(
            'php',
            "#!/bin/sh\nexec '" . PHP_BINARY . "' -d user_agent=$agent \"\$@\"\n",
            0755,
        );
        $this->evaluator = new Evaluator(phpBinary: $script('old'), warm: true);
        self::assertSame('old', self::returned($this->warmed('return ini_get("user_agent");')));

        $script('new');
        $next = $this->ask('return ini_get("user_agent");');

        $cold = new Evaluator(phpBinary: $directory->path('php'), warm: false);
        self::assertSame('new', self::returned($this->askOf($cold, 'return ini_get("user_agent");')));
        self::assertSame('new', self::returned($next));
        self::assertStart('first', $next);
    }

    public function testALinkToAnotherPhp(): void
    {
        $this->booting('');
        $directory = new TemporaryApplication();
        foreach (['one', 'two'] as $version) {
            $script = "#!/bin/sh\nexec '" . PHP_BINARY . "' -d user_agent=$version \"\$@\"\n";
            $directory->write("$version/php-of-the-test", $script, 0755);
        }
        symlink('one', $directory->path('current'));
        $php = $directory->path('current/php-of-the-test');
        $snippet = 'return ini_get("user_agent");';
        $this->evaluator = new Evaluator(phpBinary: $php, warm: true);
        self::assertSame('one', self::returned($this->warmed($snippet)));

        Change::relink('current', 'two')($directory);
        $next = $this->ask($snippet);

        self::assertSame('two', self::returned(
            $this->askOf(new Evaluator(phpBinary: $php, warm: false), $snippet),
        ));
        self::assertSame('two', self::returned($next));
        // Another interpreter is another kind of request.
        self::assertStart('cold', $next);
    }

    /** @dataProvider inis */
    public function testAnIniFile(string $change, string $after): void
    {
        $directory = new TemporaryApplication([
            'ini/one.ini' => "user_agent = old\n",
            'two.ini' => "user_agent = new\n",
        ]);

        $this->assertHostSees('old', $change, $after, $directory, 'return ini_get("user_agent");');
    }

    public static function inis(): iterable
    {
        yield 'edited' => ['file_put_contents("$directory/ini/one.ini", "user_agent = new\n");', 'new'];
        yield 'replaced' => ['rename("$directory/two.ini", "$directory/ini/one.ini");', 'new'];
        yield 'deleted' => ['unlink("$directory/ini/one.ini");', ''];
        yield 'one more' => ['rename("$directory/two.ini", "$directory/ini/two.ini");', 'new'];
        yield 'another name' => ['rename("$directory/ini/one.ini", "$directory/ini/one.off");', ''];
    }

    public function testAnExtension(): void
    {
        $directory = new TemporaryApplication();
        $library = CompiledExtension::make($directory, 'worded.so', 'old');
        CompiledExtension::make($directory, 'next.so', 'new');
        $directory->write('ini/worded.ini', "extension=$library\n");

        $change = 'rename("$directory/next.so", "$directory/worded.so");';
        $this->assertHostSees('old', $change, 'new', $directory, 'return ALTAIR_TEST_WORD;');
    }

    public function testTheExtensionOfTheHostItself(): void
    {
        $directory = new TemporaryApplication(['ini/.keep' => '']);
        $extension = $directory->path('altair_eval.so');
        copy((string) getenv('EXTENSION'), $extension);
        $this->setVariable('EXTENSION', $extension);

        $change = 'copy("$directory/altair_eval.so", "$directory/new.so");'
            . ' rename("$directory/new.so", "$directory/altair_eval.so");';
        $this->assertHostSees(2, $change, 2, $directory, 'return 1 + 1;');
    }

    public function testThePackagesThatComposerHasInstalled(): void
    {
        $outside = new TemporaryApplication(['package/value.php' => "<?php return 'new';"]);
        $link = static fn (string $to): string => (string) json_encode(['packages' => [[
            'name' => 'a/b', 'version' => '1', 'type' => 'library', 'install-path' => $to,
            'dist' => ['type' => 'path', 'url' => $to],
        ]]]);
        $application = $this->booting('$seen = 1;', ['vendor/composer/installed.json' => $link('../a/b')]);
        $this->warmed();

        $application->write('vendor/composer/installed.json', $link($outside->path('package')));

        self::assertStart('first', $this->ask('return 1;'));
        $this->warmed();
    }

    private function assertHostSees(
        mixed $before,
        string $change,
        mixed $after,
        TemporaryApplication $directory,
        string $snippet,
    ): void {
        // An empty item stands for the directory that PHP was built with.
        $this->setVariable('PHP_INI_SCAN_DIR', getenv('PHP_INI_SCAN_DIR') . ':' . $directory->path('ini'));
        $this->setVariable('TEST_DIRECTORY', $directory->root);
        $this->setVariable('TEST_ROOT', $this->booting('')->root);
        $this->setVariable('TEST_SNIPPET', $snippet);
        $this->setVariable('TEST_CHANGE', $change);
        $script = new Script(self::HOST);

        self::assertSame(['warm', $before], json_decode($script->line(), true));
        self::assertSame(['first', $after], json_decode($script->line(), true));
        self::assertSame(['warm', $after], json_decode($script->line(), true));
        self::assertSame([0, '', ''], $script->end());
        self::assertSame([], $script->left());
    }
}
