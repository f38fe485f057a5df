<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\Tests\Support\Command;
use Altair\Eval\Tests\Support\Escape\Setting;
use Altair\Eval\Tests\Support\OwnHomes;
use Altair\Eval\Tests\Support\TemporaryApplication;
use PHPUnit\Framework\TestCase;

/**
 * What the user allows: one file of the user's, which `altair allow` writes and no project can.
 */
final class AllowTest extends TestCase
{
    private OwnHomes $homes;

    private TemporaryApplication $application;

    private TemporaryApplication $elsewhere;

    private int $user;

    protected function setUp(): void
    {
        $this->user = Setting::AllAsUser->uid();
        $this->homes = new OwnHomes($this->user);
        $this->application = new TemporaryApplication();
        $this->elsewhere = new TemporaryApplication([
            'package/composer.json' => '{}',
            'package/src/Thing.php' => '<?php class Thing {}',
        ]);
        $this->application->write('vendor/composer/installed.json', (string) json_encode(['packages' => [
            ['dist' => ['type' => 'path'], 'install-path' => $this->elsewhere->path('package')],
        ]]));
    }

    /**
     * @return iterable<string, array{bool}>
     */
    public static function users(): iterable
    {
        yield 'as root' => [true];
        yield 'as a user' => [false];
    }

    /**
     * @dataProvider users
     */
    public function testTheLineOfAnAnswerAllowsWhatWasMissed(bool $isRoot): void
    {
        $uid = $isRoot ? 0 : $this->user;
        $this->application->giveTo($uid, $uid);
        $thing = $this->elsewhere->path('package/src/Thing.php');
        $code = "require '$thing'; return new Thing() instanceof Thing;";
        $eval = ['eval', '--format=json', '--root=' . $this->application->root, $code];
        $blocked = $this->altair($uid, ...$eval)->json()['diagnostics']['blocked'];
        self::assertSame(1, preg_match('/`altair (allow .*)`/', $blocked[0]['what'], $line), $blocked[0]['what']);

        $allowed = $this->altair($uid, ...explode(' ', $line[1]));
        self::assertSame(0, $allowed->exitCode, $allowed->errors);
        self::assertStringContainsString($this->homes->file($uid), $allowed->errors);
        self::assertTrue($this->altair($uid, ...$eval)->json()['result']['value']);
        $file = $this->homes->file($uid);
        self::assertSame([0600, 0700], [fileperms($file) & 0777, fileperms(dirname($file)) & 0777]);
        // Neither HOME nor another variable leads to another file.
        $read = ['HOME' => '/', 'XDG_CONFIG_HOME' => '/'];
        $listed = $this->homes->run([Command::native(), 'allow', '--list', '--format=json'], $uid, $read)->json();
        self::assertSame([$this->elsewhere->path('package')], $listed['files'][1]['projects'][0]['read']);

        $doctor = $this->altair($uid, 'doctor', '--format=json', '--root=' . $this->application->root)->json();
        $option = '--read=' . $this->elsewhere->path('package');
        self::assertSame([['file' => $file, 'options' => [$option]]], $doctor['allowed']);

        $removed = $this->altair($uid, ...[...explode(' ', $line[1]), '--remove']);
        self::assertSame(0, $removed->exitCode, $removed->errors);
        self::assertFalse($this->altair($uid, ...$eval)->json()['ok']);
    }

    public function testMoreTimeAndMemoryAreToBeHadWhereTheUserAllowsThem(): void
    {
        $root = '--root=' . $this->application->root;
        $limits = fn (string ...$more): array => $this->altair(
            0,
            'eval',
            '--format=json',
            $root,
            '--timeout-ms=120000',
            '--memory-mb=1024',
            'return ini_get("memory_limit");',
            ...$more,
        )->json();
        self::assertSame('512M', $limits()['result']['value']);
        self::assertSame(0, $this->altair(0, 'allow', $root, '--max-memory-mb=1024')->exitCode);
        self::assertSame('1024M', $limits()['result']['value']);
        // In PHP, and in a template's fork.
        $code = sprintf(
            '$request = new Altair\Eval\EvalRequest(%s, %s, timeoutMs: 900000, memoryLimitMb: 2000);'
            . ' echo json_encode([$request->timeoutMs, $request->memoryLimitMb]);'
            . ' $evaluator = new Altair\Eval\Evaluator();'
            . ' $results = iterator_to_array($evaluator->evaluateMany([$request, $request], 1));'
            . ' echo json_encode(array_map(fn ($result) => [$result->result["value"] ?? null], $results));',
            var_export('return strlen(str_repeat("x", 700 << 20)) . ini_get("memory_limit");', true),
            var_export($this->application->root, true),
        );
        $php = [PHP_BINARY, '-d', 'extension=' . getenv('EXTENSION'), '-r', $code];
        $seen = $this->homes->run($php);
        self::assertSame('[60000,1024][["7340032001024M"],["7340032001024M"]]', $seen->output, $seen->errors);
    }

    public function testAFileThatOthersCanWriteStopsEveryRunAndSaysWhatToDo(): void
    {
        $root = '--root=' . $this->application->root;
        self::assertSame(0, $this->altair(0, 'allow', $root, '--env=SOME_KEY')->exitCode);
        chmod($this->homes->file(0), 0666);
        foreach ([['eval', $root, 'return 1;'], ['allow', '--list'], ['allow', $root, '--env=OTHER']] as $command) {
            $refused = $this->altair(0, ...$command);
            self::assertSame(2, $refused->exitCode);
            self::assertStringContainsString($this->homes->file(0) . ' can be written by others', $refused->errors);
            self::assertStringContainsString('chmod go-w', $refused->errors);
        }
    }

    public function testCommentsAndOrderStay(): void
    {
        $file = $this->homes->file(0);
        mkdir(dirname($file), 0700, true);
        $text = "# Mine.\n[project.\"/b\"] # first\nenv = [\"B\"]\n\n[project.\"/a\"]\nenv = [\"A\"] # why\n";
        file_put_contents($file, $text);
        chmod($file, 0600);
        $root = $this->application->root;
        self::assertSame(0, $this->altair(0, 'allow', "--root=$root/", '--env=C', '--env=C')->exitCode);
        self::assertSame("$text\n[project.\"$root/\"]\nenv = [\"C\"]\n", file_get_contents($file));
        self::assertSame(0, $this->altair(0, 'allow', "--root=$root/", '--remove')->exitCode);
        self::assertSame($text, file_get_contents($file));
    }

    /**
     * @return iterable<string, array{list<string>, string}>
     */
    public static function mistakes(): iterable
    {
        yield 'a relative path' => [['--read=packages'], 'is not absolute'];
        yield 'no such path' => [['--read=/no/such'], 'no such file'];
        yield 'the whole disk' => [['--read=/'], 'whole disk'];
        yield 'a port out of range' => [['--service=db:70000'], '65535'];
        yield 'no name of a variable' => [['--env=A=b'], 'no name of an environment variable'];
        yield 'too much time' => [['--max-timeout-ms=600001'], '600000'];
        yield 'too much memory' => [['--max-memory-mb=4097'], '4096'];
        yield 'nothing' => [[], 'is missing'];
    }

    /**
     * @param list<string> $arguments
     * @dataProvider mistakes
     */
    public function testAMistakeIsToldAndNothingIsWritten(array $arguments, string $word): void
    {
        $refused = $this->altair(0, 'allow', ...$arguments, ...['--root=' . $this->application->root]);
        self::assertSame(2, $refused->exitCode);
        self::assertStringContainsString($word, $refused->errors);
        self::assertFileDoesNotExist($this->homes->file(0));
    }

    public function testTheMachinesFileCountsForEveryUserIfItIsRoots(): void
    {
        $root = $this->application->root;
        $package = $this->elsewhere->path('package');
        $file = $this->homes->machines();
        file_put_contents($file, "[project.\"$root\"]\nread = [\"$package\"]\n");
        $this->application->giveTo($this->user, $this->user);
        $eval = ['eval', '--format=json', "--root=$root", "return is_dir('$package');"];
        self::assertTrue($this->altair($this->user, ...$eval)->json()['result']['value']);
        chown($file, $this->user);
        $refused = $this->altair($this->user, ...$eval);
        self::assertSame(2, $refused->exitCode);
        self::assertStringContainsString("belongs to user $this->user. It has to belong to root.", $refused->errors);
    }

    public function testAProjectThatContainsTheFileCannotAllowItselfAnything(): void
    {
        $home = $this->homes->of($this->user);
        $refused = $this->altair($this->user, 'allow', "--root=$home", '--env=A');
        self::assertSame(2, $refused->exitCode);
        self::assertStringContainsString('/etc/altair/config.toml', $refused->errors);
    }

    /** Where the file would be is in the project: what the run writes there would count for other projects. */
    public function testNoRunWritesWhereAUsersFileIsOrWouldBe(): void
    {
        foreach ([[$this->user, $this->user], [0, 0], [0, $this->user]] as [$host, $owner]) {
            $home = $this->homes->of($owner);
            $file = $this->homes->file($owner);
            @mkdir("$home/vendor");
            file_put_contents("$home/vendor/autoload.php", '<?php');
            $write = "@mkdir(dirname('$file'), 0700, true); return file_put_contents('$file', 'x');";
            $refused = $this->altair($host, 'eval', "--root=$home", '--writes', '--format=json', $write);
            self::assertFileDoesNotExist($file);
            self::assertSame(2, $refused->exitCode, $refused->output);
            self::assertStringContainsString("it contains $file", $refused->output . $refused->errors);
        }
    }

    private function altair(int $uid, string ...$arguments): Command
    {
        return $this->homes->run([Command::native(), ...$arguments], $uid);
    }
}
