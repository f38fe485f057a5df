<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Warm;

use Altair\Eval\Tests\Support\TemporaryApplication;
use Altair\Eval\Tests\Support\Warm\Change;
use Altair\Eval\Tests\Support\Warm\WarmTestCase;
use Closure;

/**
 * What boot has not seen makes no template stale; and a run still sees it as it is now.
 */
final class StaysWarmTest extends WarmTestCase
{
    private const FILES = [
        'config.php' => "<?php return 'old';",
        'data/a' => 'a',
        'data/link-target' => 'l',
        'src/Later.php' => "<?php namespace App; class Later { public const IS = 'old'; }",
        'list/a' => '',
    ];

    /** @dataProvider deeds */
    public function testItStaysWarm(Closure $deed): void
    {
        $application = $this->start();

        $deed($application);

        $next = $this->ask('return $GLOBALS["seen"];');
        self::assertStart('warm', $next);
        self::assertSame(['old', 3], self::returned($next));
    }

    public static function deeds(): iterable
    {
        yield 'nothing' => [static fn () => null];
        yield 'what boot has read is read' => [static function (TemporaryApplication $of): void {
            clearstatcache();
            file_get_contents($of->path('config.php'));
            fileatime($of->path('config.php'));
            scandir($of->path('list'));
            scandir($of->root);
        }];
        yield 'another file is edited' => [Change::write('data/a', 'b')];
        yield 'another file is made' => [Change::add('data/b', 'b')];
        yield 'another file is deleted' => [Change::delete('data/a')];
        yield 'another directory is made' => [Change::add('new/deep/b', 'b')];
        yield 'another file is renamed' => [Change::rename('data/a', 'data/z')];
        yield 'a file in a listed directory is edited' => [Change::write('list/a', 'more')];
        yield 'a log beside it grows' => [static function (TemporaryApplication $of): void {
            for ($line = 0; $line < 100; $line++) {
                file_put_contents($of->path('app.log'), "line\n", FILE_APPEND);
            }
        }];
    }

    public function testAnotherTerminalAndAnotherDirectory(): void
    {
        $this->setVariable('ALTAIR_TEST_A', '1');
        $this->setVariable('ALTAIR_TEST_B', '2');
        $this->start();

        $variables = ['TERM' => 'dumb', 'COLUMNS' => '40', 'PWD' => '/', 'SHLVL' => '7', '_' => '/bin/true'];
        foreach ($variables as $name => $value) {
            $this->setVariable($name, $value);
            self::assertStart('warm', $this->ask('return 1;'));
        }
        // Their order is another one now.
        $this->setVariable('ALTAIR_TEST_A', null);
        $this->setVariable('ALTAIR_TEST_A', '1');
        self::assertStart('warm', $this->ask('return 1;'));
        $this->setVariable('ALTAIR_TEST_A', '2');
        self::assertStart('first', $this->ask('return 1;'));
    }

    public function testAnotherApplicationsEditMakesOnlyItsOwnTemplateStale(): void
    {
        $this->start();
        $other = new TemporaryApplication(['vendor/autoload.php' => '<?php $seen = 1;']);
        $this->warmed(projectRoot: $other->root);

        $other->write('vendor/autoload.php', '<?php $seen = 2;');

        self::assertStart('warm', $this->ask('return 1;'));
        self::assertSame(2, self::returned($this->ask('return $GLOBALS["seen"];', projectRoot: $other->root)));
    }

    public function testTheWritesOfARunInItsLayer(): void
    {
        $application = $this->start();
        $before = $application->tree();
        $deeds = 'file_put_contents("config.php", "<?php return \'poison\';"); touch("list/b"); unlink("data/a");'
            . ' rename("src", "sources"); chmod("list", 0700); touch("vendor/autoload.php", 5);';

        self::assertSame('poison', self::returned($this->ask("$deeds return include 'config.php';")));

        $next = $this->ask('return [$GLOBALS["seen"], is_file("data/a"), is_dir("src"), include "config.php"];');
        self::assertStart('warm', $next);
        self::assertSame([['old', 3], true, true, 'old'], self::returned($next));
        self::assertSame($before, $application->tree());
    }

    public function testTheAuditLog(): void
    {
        $this->start();

        // Each of both writes a line of the log, the first one makes it.
        foreach ([1, 2] as $ignored) {
            self::assertSame(1, self::returned($this->ask('return 1;', unsafe: true)));
            self::assertFileExists($this->application()->path('.altair/events.jsonl'));
            self::assertStart('warm', $this->ask('return 1;'));
        }
    }

    public function testTheWritesOfARunThatMayWriteAreSeen(): void
    {
        $application = $this->start();
        $this->warmed(allowWrites: true);

        $this->ask('file_put_contents("config.php", "<?php return \'new\';");', allowWrites: true);

        self::assertSame("<?php return 'new';", file_get_contents($application->path('config.php')));
        foreach ([false, true] as $allowWrites) {
            $next = $this->ask('return $GLOBALS["seen"];', allowWrites: $allowWrites);
            self::assertSame(['new', 3], self::returned($next));
            self::assertStart('first', $next);
        }
    }

    /** @dataProvider later */
    public function testARunSeesWhatBootHasNotLookedAtAsItIsNow(Closure $change, string $snippet, mixed $after): void
    {
        $application = $this->start();
        $before = self::returned($this->ask($snippet));

        $change($application);
        $next = $this->ask($snippet);

        self::assertNotSame($before, $after);
        self::assertSame($after, self::returned($next));
        self::assertStart('warm', $next);
    }

    public static function later(): iterable
    {
        yield 'a class that is edited' => [
            Change::write('src/Later.php', "<?php namespace App; class Later { public const IS = 'new'; }"),
            'return App\Later::IS;',
            'new',
        ];
        yield 'a class that is replaced' => [
            Change::together(
                Change::add('src/New.php', "<?php namespace App; class Later { public const IS = 'new'; }"),
                Change::rename('src/New.php', 'src/Later.php'),
            ),
            'return App\Later::IS;',
            'new',
        ];
        yield 'a class that is made' => [
            Change::add('src/Made.php', '<?php namespace App; class Made { }'),
            'return class_exists("App\Made");',
            true,
        ];
        yield 'a class that is deleted' => [
            Change::delete('src/Later.php'),
            'return class_exists("App\Later");',
            false,
        ];
        yield 'a file that is edited' => [Change::write('data/a', 'b'), 'return file_get_contents("data/a");', 'b'];
        yield 'a file that is made' => [Change::add('data/b', 'b'), 'return is_file("data/b");', true];
        yield 'a file that is deleted' => [Change::delete('data/a'), 'return is_file("data/a");', false];
        yield 'a directory that is made' => [
            Change::add('new/deep/b', 'b'),
            'return @file_get_contents("new/deep/b");',
            'b',
        ];
        yield 'a directory that is replaced' => [
            Change::together(Change::rename('data', 'was'), Change::add('data/z')),
            'return scandir("data");',
            ['.', '..', 'z'],
        ];
        yield 'a link that is switched' => [
            Change::relink('link', 'data/a'),
            'return file_get_contents("link");',
            'a',
        ];
    }

    /** A template of an application whose boot has read one file, looked for another, and listed a directory. */
    private function start(): TemporaryApplication
    {
        $application = $this->booting(
            '$seen = [include "$root/config.php", count(scandir("$root/list")) + (int) is_file("$root/none")];'
                . ' spl_autoload_register(static function (string $class) use ($root): void {'
                . ' if (is_file($file = "$root/src/" . substr($class, 4) . ".php")) { require $file; } });',
            self::FILES,
        );
        symlink('data/link-target', $application->path('link'));
        $this->warmed();

        return $application;
    }
}
