<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Bridge\Symfony;

use Altair\Eval\Tests\Support\Library;
use Altair\Eval\Tests\Support\Skip;
use Altair\Eval\Tests\Support\TemporaryApplication;
use Altair\Eval\Tests\Support\Warm\WithoutMountsTestCase;
use Altair\Eval\Tests\Support\Without;

/**
 * A Symfony application where nothing can be mounted, so that its project is read-only: what it compiles is elsewhere,
 * and a container that a deployment has compiled is used where it is.
 */
final class ReadOnlyProjectTest extends WithoutMountsTestCase
{
    /** What an application is asked; `$cold()` asks without a template. */
    private const ASK = <<<'PHP'
        $cold = static function (string $snippet) use ($root): array {
            $request = new Altair\Eval\EvalRequest($snippet, $root, timeoutMs: 60000);
            $result = (new Altair\Eval\Evaluator(warm: false))->evaluate($request);

            return ['cold', Altair\Eval\Tests\plain($result->result), $result->toArray(true)];
        };
        $look = <<<'SNIPPET'
            $parameter = static fn (string $name) => container()->getParameter("kernel.$name");

            return [
                container(App\Greeter::class)->hello(), $parameter('project_dir'), container('kernel')->isDebug(),
                (new ReflectionObject(container('kernel')->getContainer()))->getFileName(),
                $parameter('cache_dir'), $parameter('logs_dir'),
            ];
            SNIPPET;
        PHP;

    /**
     * @param list<string> $what
     * @dataProvider users
     */
    public function testItIsCompiledOnceForAllRunsOutsideOfTheProject(array $what, int $owner): void
    {
        $this->symfony(owner: $owner);
        $before = $this->application->tree();
        $seen = $this->ask($what, '$first = $warm($look); return [$cold($look), $first, $ask($look)];');
        [$cold, $first, $second] = $seen;

        $root = $this->application->root;
        foreach (['cold' => $cold, 'warm' => $first] as $expected => [$start, $value, $result]) {
            self::assertSame($expected, $start, var_export($result, true));
            self::assertSame(['hello', $root, true], array_slice($value, 0, 3));
            self::assertStringStartsWith($this->outside->path('tmp') . '/', $value[3]);
            self::assertStringStartsWith($this->outside->path('tmp') . '/', $value[4]);
        }
        self::assertSame($first[1], $second[1], 'It is the same container.');
        self::assertSame($before, $this->application->tree(), 'The project is unchanged.');
    }

    public function testWhatARunLogsIsItsOwn(): void
    {
        $this->symfony();
        $log = <<<'SNIPPET'
            $file = container()->getParameter('kernel.logs_dir') . '/dev.log';
            $was = file_exists($file);

            return [$was, file_put_contents($file, 'x'), str_starts_with($file, sys_get_temp_dir() . '/')];
            SNIPPET;
        $seen = $this->ask(['mounts'], '$warm("return 1;"); $log = ' . var_export($log, true)
            . '; return [$ask($log), $ask($log), $cold($log)];');

        foreach ($seen as [, $value, $result]) {
            self::assertSame([false, 1, true], $value, var_export($result, true));
        }
    }

    public function testWhatSymfonyWouldWriteWhenARunFirstNeedsItIsWrittenBefore(): void
    {
        $this->symfony(['src/Kernel.php' => str_replace(
            ['configureRoutes(object $routes): void', '_dir()])'],
            ['configureRoutes(object $routes): void { $routes->add("shop", "/shop/{id}"); } function unused()', ''],
            Library::symfony()['src/Kernel.php'],
        )]);
        $route = var_export('return container("router")->generate("shop", ["id" => 7]);', true);
        $seen = $this->ask(['mounts'], "\$warm('return 1;'); return [\$ask($route), \$ask($route), \$cold($route)];");

        foreach ($seen as [, $value, $result]) {
            self::assertSame('/shop/7', $value, var_export($result, true));
        }
    }

    /**
     * In `prod` Symfony looks at nothing but its container.
     *
     * @param list<string> $what
     * @dataProvider users
     */
    public function testTheContainerOfADeploymentIsUsedWhereItIs(array $what, int $owner): void
    {
        $this->symfony(['.env' => 'APP_ENV=prod']);
        $this->deploy();
        $this->application->giveTo($owner, $owner);
        $before = $this->application->tree();
        [$cold, $warm] = $this->ask($what, 'return [$cold($look), $warm($look)];');

        $root = $this->application->root;
        foreach (['cold' => $cold, 'warm' => $warm] as $expected => [$start, $value, $result]) {
            self::assertSame($expected, $start, var_export($result, true));
            self::assertSame(['hello', $root, false], array_slice($value, 0, 3));
            self::assertStringStartsWith("$root/var/cache/prod/", $value[3]);
            self::assertSame("$root/var/cache/prod", $value[4]);
        }
        self::assertSame($before, $this->application->tree(), 'The project is unchanged.');
    }

    public function testTheNextDeploymentIsSeen(): void
    {
        $this->symfony(['.env' => 'APP_ENV=prod']);
        $this->deploy();
        $kernel = $this->application->path('src/Kernel.php');
        $see = "'return (new ReflectionObject(container(App\\Greeter::class)->clock))->getProperty(\"in\")->getValue("
            . "container(App\\Greeter::class)->clock);'";
        $seen = $this->ask(['mounts'], sprintf(
            '$see = %s; $before = $warm($see); file_put_contents(%2$s, str_replace("%%kernel.environment%%", "next", '
            . 'file_get_contents(%2$s))); $changed = $ask($see); exec(%3$s); usleep(50000); '
            . 'return [$before, $changed, $ask($see), $cold($see)];',
            $see,
            var_export($kernel, true),
            var_export($this->deployment(), true),
        ));

        [$before, $changed, $after, $cold] = array_column($seen, 1);
        self::assertSame('prod', $before);
        self::assertSame('prod', $changed, 'Symfony looks at its container alone.');
        self::assertSame(['next', 'next'], [$after, $cold]);
        self::assertSame('warm', $seen[0][0]);
    }

    public function testWithoutADeploymentItIsCompiledInProdToo(): void
    {
        $this->symfony(['.env' => 'APP_ENV=prod']);
        $seen = $this->ask(['mounts'], 'return [$warm($look), $cold($look)];');

        foreach ($seen as [, $value, $result]) {
            self::assertSame(['hello', false], [$value[0], $value[2]], var_export($result, true));
            self::assertStringStartsWith($this->outside->path('tmp') . '/', $value[3]);
        }
    }

    /** The project's own container may be older than its files, and logs into the project. */
    public function testWhatIsDebuggedIsCompiledAnewAlsoAfterAChange(): void
    {
        $this->symfony(['.env' => 'APP_ENV=dev']);
        $this->deploy();
        $kernel = var_export($this->application->path('src/Kernel.php'), true);
        $see = "'return container(App\\Greeter::class)->clock->in;'";
        $seen = $this->ask(['mounts'], "\$see = $see; \$before = \$warm(\$see); file_put_contents($kernel, str_replace("
            . "'%kernel.environment%', 'next', file_get_contents($kernel))); usleep(50000);"
            . 'return [$before, $ask($see), $cold($see), $ask($look)];');

        self::assertSame(['dev', 'next', 'next'], array_slice(array_column($seen, 1), 0, 3));
        self::assertStringStartsWith($this->outside->path('tmp') . '/', $seen[3][1][3]);
    }

    public function testADeploymentThatComesLaterIsSeen(): void
    {
        $this->symfony(['.env' => 'APP_ENV=prod']);
        $deploy = var_export($this->deployment(), true);
        $seen = $this->ask(
            ['mounts'],
            "\$before = \$warm(\$look); exec($deploy); usleep(50000); return [\$before, \$ask(\$look)];",
        );

        [[$start, $before], [, $after]] = $seen;
        self::assertSame('warm', $start);
        self::assertStringStartsWith($this->outside->path('tmp') . '/', $before[3]);
        self::assertStringStartsWith($this->application->root . '/var/cache/prod/', $after[3]);
    }

    public function testAContainerOfItsOwnFileIsCompiledOutsideOfTheProjectToo(): void
    {
        $this->symfony(['config/container.php' => '<?php $kernel = new App\Kernel("own", true); $kernel->boot();
            return $kernel->getContainer();']);
        $seen = $this->ask(['mounts'], '$see = "return [container(App\\Greeter::class)->hello(),'
            . ' container()->getParameter(\'kernel.cache_dir\')];"; return [$cold($see), $warm($see)];');

        foreach (['cold', 'warm'] as $call => $start) {
            self::assertSame($start, $seen[$call][0], var_export($seen[$call][2], true));
            self::assertSame('hello', $seen[$call][1][0]);
            self::assertStringEndsWith('/symfony/own', $seen[$call][1][1]);
        }
    }

    public function testARunThatCannotAddToTheCacheSaysWhy(): void
    {
        $this->symfony();
        $add = "'return @file_put_contents(container()->getParameter(\"kernel.cache_dir\") . \"/new\", 1);'";
        [[$start, $value, $result], [, $cold]] = $this->ask(['mounts'], "return [\$warm($add), \$cold($add)];");

        self::assertSame(['warm', false, 1], [$start, $value, $cold]);
        [$blocked] = $result['diagnostics']['blocked'];
        self::assertStringStartsWith("write symfony/dev/new: a framework's cache", $blocked['what']);
        self::assertSame('filesystem', $blocked['guard']);
    }

    public function testAKernelThatMustWriteToTheProjectSaysWhy(): void
    {
        $this->symfony(['src/Kernel.php' => str_replace(
            'public function registerBundles',
            'public function getCacheDir(): string { return $this->getProjectDir() . "/cache"; }'
            . ' public function registerBundles',
            Library::symfony()['src/Kernel.php'],
        )]);
        $seen = $this->ask(['mounts'], 'return [$cold("return 1;"), $ask("return 1;")];');

        foreach ($seen as [, , $result]) {
            self::assertSame('boot_failed', $result['diagnostics']['outcome']);
            $message = $result['exception']['message'];
            self::assertStringContainsString('Unable to create', $message);
            self::assertStringContainsString('does not use the variables APP_CACHE_DIR', $message);
        }
    }

    /** A private root without a layer, as with a mount below the project: there is no template. */
    public function testInAPrivateRootWithoutALayerEachRunCompilesItForItself(): void
    {
        if (posix_geteuid() !== 0) {
            Skip::NeedsRoot->because('Only root can mount something below the project to begin with.');
        }
        $this->symfony();
        mkdir($this->application->path('volume'));
        $program = $this->program(self::ASK . 'return array_slice($cold($look), 1);');
        $inner = 'mount -t tmpfs x ' . escapeshellarg($this->application->path('volume'))
            . ' && exec setpriv --reuid=65534 --regid=65534 --clear-groups '
            . implode(' ', array_map('escapeshellarg', $program));
        [, $output, $errors] = Without::command([], ['unshare', '-m', 'sh', '-c', $inner]);
        [$value, $result] = json_decode($output, true) ?? self::fail($output . $errors);

        $state = $result['diagnostics']['guards']['filesystem'];
        self::assertStringStartsWith('degraded to a read-only project: ', $state);
        self::assertSame(['hello', $this->application->root], array_slice($value, 0, 2), var_export($result, true));
        self::assertSame(['/tmp/altair-caches/symfony/dev', '/tmp/log'], array_slice($value, 4));
    }

    public function testADirectoryThatIsSetStays(): void
    {
        $this->symfony(['.env' => 'APP_ENV=prod']);
        $this->deploy();
        $see = "'return [\$_SERVER[\"APP_LOG_DIR\"], container(\"kernel\")->getLogDir()];'";
        [[, $value]] = $this->ask(['mounts'], "return [\$cold($see)];", ['APP_LOG_DIR' => '/srv/log']);

        self::assertSame(['/srv/log', '/srv/log'], $value);
    }

    /** @param array<string, string> $files */
    private function symfony(array $files = [], int $owner = 0): void
    {
        $this->application = new TemporaryApplication(Library::symfony($files));
        if (posix_geteuid() === 0) {
            $this->application->giveTo($owner, $owner);
        }
        usleep(50000);
    }

    /** Compiles the container in the project, as `cache:clear` in a deployment would. */
    private function deploy(): void
    {
        exec($this->deployment(), $output, $status);
        self::assertSame(0, $status, implode("\n", $output));
        usleep(50000);
    }

    private function deployment(): string
    {
        $code = 'require "vendor/autoload.php"; (new Symfony\Component\Dotenv\Dotenv())->bootEnv(".env"); '
            . '(new Symfony\Component\Filesystem\Filesystem())->remove("var/cache"); '
            . '(new App\Kernel($_SERVER["APP_ENV"] ?? "dev", $_SERVER["APP_DEBUG"] !== "0"))->boot();';
        return 'cd ' . escapeshellarg($this->application->root) . ' && ' . escapeshellarg(PHP_BINARY) . ' -r '
            . escapeshellarg($code) . ' 2>&1';
    }

    /**
     * @param list<string> $what
     * @param array<string, string> $variables
     * @return list<array{string, mixed, array<string, mixed>}> start, value and answer of each call
     */
    private function ask(array $what, string $code, array $variables = []): array
    {
        return $this->host($what, self::ASK . $code, [], $variables);
    }
}
