<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Warm;

use Altair\Eval\Tests\Support\TemporaryApplication;
use Altair\Eval\Tests\Support\Warm\Change;
use Altair\Eval\Tests\Support\Warm\WarmTestCase;
use Closure;

/**
 * A template is not used once anything that its boot has read is changed, in whatever way: the next answer is that of
 * the application as it is, which a cold run measures.
 */
final class NeverStaleTest extends WarmTestCase
{
    /** When the file was changed last, in seconds since 1970. */
    private const TIME = 1_000_000_000;

    private const INCLUDE = '$seen = (@include "$root/config.php");';

    private const AUTOLOAD = <<<'PHP'
        spl_autoload_register(static function (string $class) use ($root): void {
            foreach (["$root/override", "$root/src"] as $directory) {
                if (is_file("$directory/$class.php")) {
                    require "$directory/$class.php";
                    return;
                }
            }
        });
        $seen = Value::IS;
        PHP;

    private const FILES = [
        'config.php' => "<?php return 'old';",
        'other.php' => "<?php return 'new';",
        'src/Value.php' => "<?php class Value { public const IS = 'old'; }",
        'src/Other.php' => "<?php class Value { public const IS = 'new'; }",
        'deep/er/config.php' => "<?php return 'old';",
        'deeper/er/config.php' => "<?php return 'new';",
        'releases/1/config.php' => "<?php return 'old';",
        'releases/2/config.php' => "<?php return 'new';",
        'second/value.php' => "<?php return 'old';",
        'vendor/composer/autoload_real.php' => <<<'PHP'
            <?php
            $map = require __DIR__ . '/autoload_classmap.php';
            spl_autoload_register(static function (string $class) use ($map): void {
                if (isset($map[$class])) {
                    require $map[$class];
                }
            });
            PHP,
        'vendor/composer/autoload_classmap.php' => "<?php return ['Value' => dirname(__DIR__, 2) . '/src/Value.php'];",
    ];

    /** @dataProvider ways */
    public function testTheNextAnswerIsThatOfTheApplicationAsItIs(string $boot, Closure $change): void
    {
        $application = $this->booting($boot, self::FILES);
        symlink('releases/1', $application->path('current'));
        symlink('config.php', $application->path('link.php'));
        touch($application->path('config.php'), self::TIME);
        $this->assertChangesTheAnswer($change, $application);
    }

    public static function ways(): iterable
    {
        $composer = 'require "$root/vendor/composer/autoload_real.php"; $seen = Value::IS;';
        $deep = '$seen = include "$root/deep/er/config.php";';
        $path = 'set_include_path("$root/first:$root/second"); $seen = include "value.php";';
        $current = '$seen = include "$root/current/config.php";';

        yield 'edited' => [self::INCLUDE, Change::write('config.php', "<?php return 'longer';")];
        yield 'the same length' => [self::INCLUDE, Change::write('config.php', "<?php return 'new';")];
        yield 'the same length and time' => [self::INCLUDE, Change::together(
            Change::write('config.php', "<?php return 'new';"),
            Change::touch('config.php', self::TIME),
        )];
        yield 'longer' => [self::INCLUDE, static function (TemporaryApplication $application): void {
            file_put_contents($application->path('config.php'), ' // and more', FILE_APPEND);
            file_put_contents($application->path('config.php'), "<?php return 'appended';");
        }];
        yield 'replaced by another' => [self::INCLUDE, Change::rename('other.php', 'config.php')];
        yield 'replaced by an older one' => [self::INCLUDE, Change::together(
            Change::touch('other.php', self::TIME - 1),
            Change::rename('other.php', 'config.php'),
        )];
        yield 'replaced by a link' => [self::INCLUDE, Change::relink('config.php', 'other.php')];
        yield 'deleted' => [self::INCLUDE, Change::delete('config.php')];
        yield 'moved away' => [self::INCLUDE, Change::rename('config.php', 'moved.php')];
        yield 'not to be read any more' => [self::INCLUDE, Change::chmod('config.php', 0)];
        yield 'written under another name' => [
            self::INCLUDE,
            static function (TemporaryApplication $application): void {
                link($application->path('config.php'), $application->path('alias.php'));
                file_put_contents($application->path('alias.php'), "<?php return 'new';");
            },
        ];
        yield 'behind a link' => [
            '$seen = include "$root/link.php";',
            Change::write('config.php', "<?php return 'new';"),
        ];
        yield 'a link behind which there is another' => [
            '$seen = include "$root/link.php";',
            Change::relink('link.php', 'other.php'),
        ];
        yield 'the autoloader' => [
            '$seen = "old";',
            Change::write('vendor/autoload.php', '<?php $seen = "new";'),
        ];
        yield 'the first of two directories, made' => [
            self::AUTOLOAD,
            Change::add('override/Value.php', "<?php class Value { public const IS = 'new'; }"),
        ];
        yield 'the class' => [self::AUTOLOAD, Change::rename('src/Other.php', 'src/Value.php')];
        yield 'the first of the include path, made' => [$path, Change::add('first/value.php', "<?php return 'new';")];
        yield 'of the include path' => [$path, Change::write('second/value.php', "<?php return 'new';")];
        yield 'a release' => [$current, Change::relink('current', 'releases/2')];
        yield 'a release, with a moment between' => [$current, static function (TemporaryApplication $of): void {
            unlink($of->path('current'));
            symlink('releases/2', $of->path('current'));
        }];
        yield 'the file of a release' => [$current, Change::rename('other.php', 'releases/1/config.php')];
        yield 'the directory above' => [$deep, Change::together(
            Change::rename('deep/er', 'deep/was'),
            Change::rename('deeper/er', 'deep/er'),
        )];
        yield 'the directory above that' => [$deep, Change::together(
            Change::rename('deep', 'was'),
            Change::rename('deeper', 'deep'),
        )];
        yield 'a directory becomes a link' => [$deep, Change::together(
            Change::rename('deep', 'was'),
            Change::relink('deep', 'deeper'),
        )];
        yield 'a map of classes, as Composer writes it' => [$composer, Change::write(
            'vendor/composer/autoload_classmap.php',
            "<?php return ['Value' => dirname(__DIR__, 2) . '/src/Other.php'];",
        )];
        yield 'the whole vendor directory' => [$composer, static function (TemporaryApplication $of): void {
            mkdir($of->path('vendor2/composer'), recursive: true);
            foreach (['autoload.php', 'composer/autoload_real.php', 'composer/autoload_classmap.php'] as $file) {
                $code = file_get_contents($of->path("vendor/$file"));
                file_put_contents($of->path("vendor2/$file"), str_replace('Value.php', 'Other.php', $code));
            }
            rename($of->path('vendor'), $of->path('vendor1'));
            rename($of->path('vendor2'), $of->path('vendor'));
        }];
        yield 'the place of a container' => [
            '$seen = "old";',
            Change::add('config/container.php', '<?php $GLOBALS["seen"] = "new";'
                . ' return new class { function has($id) { return true; } function get($id) { return $id; } };'),
        ];
    }

    public function testTheProjectIsMovedAndAnotherIsInItsPlace(): void
    {
        $application = $this->application([
            'app/vendor/autoload.php' => '<?php $seen = "old";',
            'next/vendor/autoload.php' => '<?php $seen = "new";',
        ]);

        $this->assertChangesTheAnswer(
            Change::together(Change::rename('app', 'was'), Change::rename('next', 'app')),
            $application,
            projectRoot: $application->path('app'),
        );
    }

    public function testADirectoryAboveTheProjectIsMovedAndAnotherIsInItsPlace(): void
    {
        $application = $this->application([
            'sites/app/vendor/autoload.php' => '<?php $seen = "old";',
            'next/app/vendor/autoload.php' => '<?php $seen = "new";',
        ]);

        $this->assertChangesTheAnswer(
            Change::together(Change::rename('sites', 'was'), Change::rename('next', 'sites')),
            $application,
            projectRoot: $application->path('sites/app'),
        );
    }

    public function testTheProjectItselfIsALinkThatIsSwitched(): void
    {
        $application = $this->application([
            'releases/1/vendor/autoload.php' => '<?php $seen = "old";',
            'releases/2/vendor/autoload.php' => '<?php $seen = "new";',
        ]);
        symlink('releases/1', $application->path('current'));

        $this->assertChangesTheAnswer(
            Change::relink('current', 'releases/2'),
            $application,
            projectRoot: $application->path('current'),
        );
    }

    public function testAFileOutsideOfTheProject(): void
    {
        $outside = new TemporaryApplication(['config.php' => "<?php return 'old';"]);
        $application = $this->booting("\$seen = include '{$outside->path('config.php')}';");

        $this->assertChangesTheAnswer(
            static fn (): string => $outside->write('config.php', "<?php return 'new';"),
            $application,
            readablePaths: [$outside->root],
        );
    }

    public function testAFileThatALinkOfTheProjectLeadsTo(): void
    {
        $outside = new TemporaryApplication(['config.php' => "<?php return 'old';"]);
        $application = $this->booting('$seen = include "$root/outside/config.php";');
        symlink($outside->root, $application->path('outside'));

        $this->assertChangesTheAnswer(
            static fn (): string => $outside->write('config.php', "<?php return 'new';"),
            $application,
            readablePaths: [$outside->root],
        );
    }

    public function testAnotherBootstrap(): void
    {
        $this->booting('', [
            'one.php' => '<?php $GLOBALS["seen"] = "one"; return new class { function has($id) { return true; }'
                . ' function get($id) { return $id; } };',
            'two.php' => '<?php $GLOBALS["seen"] = "two"; return new class { function has($id) { return true; }'
                . ' function get($id) { return $id; } };',
        ]);

        $seen = [];
        foreach (['one.php', 'two.php'] as $bootstrap) {
            $result = $this->ask('return $GLOBALS["seen"];', bootstrap: $bootstrap);
            self::assertStart('first', $result);
            $seen[] = self::returned($result);
            $seen[] = self::returned($this->warmed('return $GLOBALS["seen"];', bootstrap: $bootstrap));
        }
        // Each has its own, that stays.
        $seen[] = self::returned($this->warmed('return $GLOBALS["seen"];', bootstrap: 'one.php'));

        self::assertSame(['one', 'one', 'two', 'two', 'one'], $seen);
    }
}
