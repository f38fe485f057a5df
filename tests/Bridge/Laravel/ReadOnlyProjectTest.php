<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Bridge\Laravel;

use Altair\Eval\Tests\Support\Library;
use Altair\Eval\Tests\Support\TemporaryApplication;
use Altair\Eval\Tests\Support\Warm\WithoutMountsTestCase;

/**
 * A Laravel application where nothing can be mounted, so that its project is read-only: what the framework writes is
 * elsewhere, and what the application has in `storage` is still there.
 */
final class ReadOnlyProjectTest extends WithoutMountsTestCase
{
    /** As in the skeleton. */
    private const FILES = [
        'config/app.php' => '<?php return ["name" => "shop", "timezone" => "UTC", "aliases" => [], "providers" => [
            Illuminate\View\ViewServiceProvider::class, Illuminate\Cache\CacheServiceProvider::class,
            Illuminate\Filesystem\FilesystemServiceProvider::class, App\Provider::class]];',
        'config/view.php' => '<?php return ["paths" => [resource_path("views")],
            "compiled" => env("VIEW_COMPILED_PATH", realpath(storage_path("framework/views")))];',
        'config/cache.php' => '<?php return ["default" => "file", "prefix" => "", "stores" => ["file" => [
            "driver" => "file", "path" => storage_path("framework/cache/data")]]];',
        'config/session.php' => '<?php return ["driver" => "file", "files" => storage_path("framework/sessions")];',
        'config/logging.php' => '<?php return ["default" => "single", "channels" => [
            "single" => ["driver" => "single", "path" => storage_path("logs/laravel.log")]]];',
        'resources/views/hello.blade.php' => 'hello {{ $name }}',
        'storage/app/key' => 'the key',
        'storage/framework/views/.gitignore' => '*',
    ];

    private const WRITES = <<<'SNIPPET'
        $was = app('cache')->get('seen');
        app('cache')->put('seen', 'by a run', 60);
        app('log')->info('logged');
        app('log')->channel('missing')->info('logged');
        $log = config('logging.channels.single.path');

        return [
            $was, app('cache')->get('seen'), substr_count(file_get_contents($log), 'logged'),
            app('view')->make('hello', ['name' => 'Ada'])->render(), file_get_contents(storage_path('app/key')),
            file_put_contents(config('session.files') . '/s', 'x'), storage_path(),
        ];
        SNIPPET;

    /**
     * @param list<string> $what
     * @dataProvider users
     */
    public function testWhatTheFrameworkWritesIsTheRunsOwnAndTheRestStays(array $what, int $owner): void
    {
        $this->laravel($owner);
        $before = $this->application->tree();
        $writes = var_export(self::WRITES, true);
        $seen = $this->host($what, self::COLD . "return [\$cold($writes), \$warm($writes), \$ask($writes)];");

        $storage = $this->application->root . '/storage';
        foreach (['cold', 'warm', 'warm'] as $call => $start) {
            $shown = var_export($seen[$call][2], true);
            self::assertSame($start, $seen[$call][0], $shown);
            self::assertSame([null, 'by a run', 2, 'hello Ada', 'the key', 1, $storage], $seen[$call][1], $shown);
        }
        self::assertSame($before, $this->application->tree(), 'The project is unchanged.');
    }

    private const COLD = <<<'PHP'
        $cold = static function (string $snippet) use ($root): array {
            $request = new Altair\Eval\EvalRequest($snippet, $root, timeoutMs: 60000);
            $result = (new Altair\Eval\Evaluator(warm: false))->evaluate($request);

            return ['cold', Altair\Eval\Tests\plain($result->result), $result->toArray(true)];
        };
        PHP;

    private const WHAT_IT_KNOWS = '[app()->getCachedServicesPath(), config("app.name"),'
        . ' array_values(app(Illuminate\Foundation\PackageManifest::class)->aliases())]';

    public function testItsCachesAreMadeOnceForAllRuns(): void
    {
        $this->laravel();
        $see = "'return " . self::WHAT_IT_KNOWS . ";'";
        [[$start, $first], [, $second]] = $this->host(['mounts'], "return [\$warm($see), \$ask($see)];");

        self::assertSame(['warm', $first], [$start, $second]);
        self::assertStringStartsWith($this->outside->path('tmp') . '/', $first[0]);
        self::assertSame(['shop', []], array_slice($first, 1));
    }

    /** `config:cache` and `package:discover` of a deployment, and the next one. */
    public function testTheCachesOfADeploymentAreUsedAndTheNextOneIsSeen(): void
    {
        $this->laravel();
        $this->deploy('one');
        $deploy = $this->deployment('two');
        $write = '';
        foreach ($deploy as $path => $contents) {
            $write .= 'file_put_contents(' . var_export($this->application->path($path), true) . ', '
                . var_export($contents, true) . ');';
        }
        $see = "'return " . self::WHAT_IT_KNOWS . ";'";
        $seen = $this->host(['mounts'], self::COLD . "\$first = \$warm($see); \$before = \$cold($see); $write"
            . "usleep(50000); return [\$before, \$first, \$ask($see), \$cold($see), \$warm($see)];");

        $expected = [...array_fill(0, 2, ['one', ['one']]), ...array_fill(0, 3, ['two', ['two']])];
        foreach ($seen as $call => [, $value, $result]) {
            self::assertSame($expected[$call], array_slice($value, 1), var_export($result, true));
        }
        self::assertSame('warm', $seen[1][0]);
    }

    public function testAPathThatIsSetStays(): void
    {
        $this->laravel();
        $see = "'return [env(\"VIEW_COMPILED_PATH\"), config(\"view.compiled\")];'";
        [$start, $value] = $this->host(['mounts'], "return \$warm($see);", [], ['VIEW_COMPILED_PATH' => '/srv/views']);

        self::assertSame(['warm', ['/srv/views', '/srv/views']], [$start, $value]);
    }

    private function laravel(int $owner = 0): void
    {
        $this->application = new TemporaryApplication(Library::laravel(self::FILES));
        if (posix_geteuid() === 0) {
            $this->application->giveTo($owner, $owner);
        }
        usleep(50000);
    }

    private function deploy(string $name): void
    {
        foreach ($this->deployment($name) as $path => $contents) {
            $this->application->write($path, $contents);
        }
        usleep(50000);
    }

    /** @return array<string, string> */
    private function deployment(string $name): array
    {
        return [
            'bootstrap/cache/config.php' => "<?php return ['app' => ['name' => '$name', 'timezone' => 'UTC',"
                . "'providers' => [], 'aliases' => []]];",
            'bootstrap/cache/packages.php' => "<?php return ['a/package' => ['aliases' => ['Alias' => '$name']]];",
        ];
    }
}
