<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\Tests\Support\EvaluationTestCase;
use Altair\Eval\Tests\Support\TemporaryApplication;

/**
 * What lies outside of the project and may be read: what Composer has linked from there, and what the request names.
 */
final class ReadableTest extends EvaluationTestCase
{
    private TemporaryApplication $place;

    protected function setUp(): void
    {
        parent::setUp();
        $this->place = new TemporaryApplication([
            'package/composer.json' => '{}',
            'package/src/Thing.php' => '<?php return "thing";',
            'no-package/src/Thing.php' => '<?php return "thing";',
            'secret.txt' => 'secret',
        ]);
    }

    public function testAPathPackageOfComposersIsReadUnderBothNames(): void
    {
        $this->install([['name' => 'a/b', 'dist' => ['type' => 'path'], 'install-path' => '../a/b']]);
        mkdir($this->application()->path('vendor/a'), recursive: true);
        symlink($this->place->path('package'), $this->application()->path('vendor/a/b'));

        self::assertSame(
            ['thing', 'thing', false],
            $this->value('return [include "vendor/a/b/src/Thing.php", include ' . $this->quoted('package/src/Thing.php')
                . ', @file_get_contents(' . $this->quoted('secret.txt') . ')];'),
        );
    }

    /**
     * @return iterable<string, array{array<string, mixed>, string}>
     */
    public static function unfit(): iterable
    {
        $path = ['dist' => ['type' => 'path']];
        yield 'another type' => [['dist' => ['type' => 'zip'], 'install-path' => '../x'], 'package'];
        yield 'no composer.json' => [$path + ['install-path' => '../x'], 'no-package'];
        yield 'what holds the project' => [$path + ['install-path' => '../x'], '..'];
        yield 'the root' => [$path + ['install-path' => '../../../../../../../../..'], 'no-package'];
        yield 'no path' => [$path + ['install-path' => null], 'package'];
    }

    /**
     * @param array<string, mixed> $package
     * @dataProvider unfit
     */
    public function testWhatIsNoPackageIsNotRead(array $package, string $target): void
    {
        $this->install([['name' => 'x'] + $package]);
        symlink($this->place->path($target), $this->application()->path('vendor/x'));

        self::assertSame(
            [false, false],
            $this->value('return [@include ' . $this->quoted("$target/src/Thing.php") . ', @file_get_contents('
                . $this->quoted('secret.txt') . ')];'),
        );
    }

    public function testAGarbledListOfPackagesIsPassedOver(): void
    {
        foreach (['', 'null', '[]', '{"packages":1}', '{"packages":[{"install-path":["x"]}]}', "\xff"] as $text) {
            $this->application()->write('vendor/composer/installed.json', $text);
            self::assertSame(1, $this->value('return 1;'));
        }
    }

    public function testAVendorDirectoryElsewhereIsRead(): void
    {
        $this->place->write('libraries/vendor/autoload.php', '<?php function from_vendor() { return __DIR__; }');
        $this->place->write('libraries/vendor/composer/installed.json', '{"packages":[]}');
        $this->application()->remove('vendor');
        symlink($this->place->path('libraries/vendor'), $this->application()->path('vendor'));

        self::assertSame($this->place->path('libraries/vendor'), $this->value('return from_vendor();'));
        self::assertFalse($this->value('return @file_get_contents(' . $this->quoted('secret.txt') . ');'));
    }

    public function testWhatTheRequestNamesIsReadAndNotWritten(): void
    {
        $file = $this->place->path('secret.txt');
        $directory = $this->place->path('package');
        $seen = $this->evaluate(
            'return [file_get_contents(' . $this->quoted('secret.txt') . '),'
                . ' include ' . $this->quoted('package/src/Thing.php') . ','
                . ' @file_put_contents(' . $this->quoted('secret.txt') . ', "x"),'
                . ' @touch(' . $this->quoted('package/new') . ')];',
            readablePaths: [$file, $directory],
        );

        self::assertSame(['secret', 'thing', false, false], self::plain($seen->result));
        self::assertSame('secret', file_get_contents($file));
        self::assertFileDoesNotExist($this->place->path('package/new'));
    }

    public function testAFileOutsideIsNamedWithTheSwitchThatShowsIt(): void
    {
        $file = $this->place->path('secret.txt');
        $result = $this->evaluate("return [@file_get_contents('$file'), @file_get_contents('$file.absent')];");

        self::assertSame(
            [['what' => "read $file", 'guard' => 'filesystem', 'lift' => "--read=$file"]],
            $result->diagnostics['blocked'],
        );
    }

    private function quoted(string $path): string
    {
        return var_export($this->place->path($path), true);
    }

    /**
     * @param list<array<string, mixed>> $packages
     */
    private function install(array $packages): void
    {
        $installed = json_encode(['packages' => $packages], JSON_THROW_ON_ERROR);
        $this->application()->write('vendor/composer/installed.json', $installed);
    }
}
