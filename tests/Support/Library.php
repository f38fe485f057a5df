<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support;

/**
 * PHP libraries that Debian packages, each with an autoloader of its own on the include path, and small applications
 * on them. `scripts/setup.sh frameworks` installs them; where a distribution has no package, its tests are skipped.
 */
final class Library
{
    private const AUTOLOADER = <<<'PHP'
        <?php
        LIBRARIES
        // Composer's own, which Symfony asks for optional packages.
        class_exists(Composer\InstalledVersions::class) || require __DIR__ . '/composer/InstalledVersions.php';
        spl_autoload_register(static function (string $class): void {
            $file = __DIR__ . '/../src/' . strtr(substr($class, 4), '\\', '/') . '.php';
            if (str_starts_with($class, 'App\\') && is_file($file)) {
                require $file;
            }
        });
        PHP;

    private const INSTALLED = '<?php namespace Composer;
        class InstalledVersions { static function isInstalled($package) { return false; } }';

    private const KERNEL = <<<'PHP'
        <?php
        namespace App;

        use Symfony\Component\DependencyInjection\Loader\Configurator\ContainerConfigurator;

        class Kernel extends \Symfony\Component\HttpKernel\Kernel
        {
            use \Symfony\Bundle\FrameworkBundle\Kernel\MicroKernelTrait;

            public function registerBundles(): iterable
            {
                return [new \Symfony\Bundle\FrameworkBundle\FrameworkBundle()];
            }

            protected function configureContainer(ContainerConfigurator $container): void
            {
                $container->extension('framework', [
                    'secret' => 's', 'http_method_override' => false, 'test' => $this->environment === 'test',
                ]);
                $services = $container->services();
                $services->set(Clock::class)->args(['%kernel.environment%']);
                $clock = new \Symfony\Component\DependencyInjection\Reference(Clock::class);
                $services->set(Greeter::class)->args([$clock])->public();
                if (class_exists(\Altair\Eval\Bridge\Symfony\EvalCommand::class)) {
                    $services->set(\Altair\Eval\Bridge\Symfony\EvalCommand::class)->autoconfigure()->autowire();
                }
            }

            protected function configureRoutes(object $routes): void
            {
            }
        }
        PHP;

    /** The worker's side of the same application: messages are files in a directory, named by the variable QUEUE. */
    private const WORKER_KERNEL = <<<'PHP'
        <?php
        namespace App;

        use Symfony\Component\DependencyInjection\Loader\Configurator\ContainerConfigurator;

        class WorkerKernel extends Kernel
        {
            protected function configureContainer(ContainerConfigurator $container): void
            {
                parent::configureContainer($container);
                $container->extension('framework', ['messenger' => ['transports' => ['files' => 'files://']]]);
                $services = $container->services();
                $services->set(Queue::class)->tag('messenger.transport_factory');
                $services->set(Handler::class)->tag('messenger.message_handler');
            }
        }
        PHP;

    private const QUEUE = <<<'PHP'
        <?php
        namespace App;

        use Symfony\Component\Messenger\Envelope;
        use Symfony\Component\Messenger\Transport\Serialization\SerializerInterface;
        use Symfony\Component\Messenger\Transport\TransportFactoryInterface;
        use Symfony\Component\Messenger\Transport\TransportInterface;

        class Queue implements TransportFactoryInterface, TransportInterface
        {
            public function supports(string $dsn, array $options): bool
            {
                return $dsn === 'files://';
            }

            public function createTransport(string $dsn, array $options, SerializerInterface $by): TransportInterface
            {
                return $this;
            }

            public function get(): iterable
            {
                foreach (glob(getenv('QUEUE') . '/*.message') as $file) {
                    $body = file_get_contents($file);
                    unlink($file);
                    return [new Envelope(new Message(basename($file, '.message'), $body))];
                }
                return [];
            }

            public function ack(Envelope $envelope): void
            {
            }

            public function reject(Envelope $envelope): void
            {
            }

            public function send(Envelope $envelope): Envelope
            {
                throw new \LogicException('Messages come from outside.');
            }
        }
        PHP;

    private function __construct()
    {
    }

    /** The file that autoloads a library; the test that asks is skipped where it is not installed. */
    public static function autoloader(string $library): string
    {
        $file = stream_resolve_include_path("$library/autoload.php");
        if ($file === false) {
            Skip::NotInstalled->because("$library is not installed, and `scripts/setup.sh frameworks` would.");
        }

        return $file;
    }

    /**
     * The files of an application on Symfony's framework bundle, with a service and a private one below it.
     *
     * @param array<string, string> $files more, or others
     * @return array<string, string>
     */
    public static function symfony(array $files = []): array
    {
        return $files + [
            'vendor/autoload.php' => self::autoloading(
                'Symfony/Bundle/FrameworkBundle',
                'Symfony/Component/Console',
                'Symfony/Component/Dotenv',
            ),
            // By it a kernel knows its project's directory.
            'composer.json' => '{"autoload": {"psr-4": {"App\\\\": "src/"}}}',
            'vendor/composer/InstalledVersions.php' => self::INSTALLED,
            'src/Kernel.php' => self::KERNEL,
            'src/Clock.php' => '<?php namespace App; class Clock { function __construct(public $in) { } }',
            'src/Greeter.php' => '<?php namespace App;
                class Greeter { function __construct(public Clock $clock) { } function hello() { return "hello"; } }',
        ];
    }

    /**
     * The same with Messenger, and a command line for its worker: a message is a file `<name>.message` in the directory
     * QUEUE, and is handled by `App\Handler`, which is to be given.
     *
     * @param array<string, string> $files more, or others
     * @return array<string, string>
     */
    public static function messenger(array $files = []): array
    {
        $autoloader = self::autoloading(
            'Symfony/Bundle/FrameworkBundle',
            'Symfony/Component/Console',
            'Symfony/Component/Messenger',
        );

        return self::symfony($files + [
            'vendor/autoload.php' => $autoloader,
            'src/WorkerKernel.php' => self::WORKER_KERNEL,
            'src/Message.php' => '<?php namespace App;
                class Message { function __construct(public string $name, public string $body) { } }',
            'src/Queue.php' => self::QUEUE,
            'bin/console' => '<?php require __DIR__ . "/../vendor/autoload.php";
                $kernel = new App\WorkerKernel("dev", false);
                (new Symfony\Bundle\FrameworkBundle\Console\Application($kernel))->run();',
        ]);
    }

    /**
     * The files of a Laravel application, with a service `greeting`.
     *
     * @param array<string, string> $files more, or others
     * @return array<string, string>
     */
    public static function laravel(array $files = []): array
    {
        return $files + [
            'vendor/autoload.php' => self::autoloading('Illuminate'),
            'vendor/composer/InstalledVersions.php' => self::INSTALLED,
            'bootstrap/app.php' => '<?php
                use Illuminate\Contracts\{Console, Debug};
                $app = new Illuminate\Foundation\Application(dirname(__DIR__));
                // From Laravel 11 on it has defaults, which are not in the package.
                if (method_exists($app, "dontMergeFrameworkConfiguration")) {
                    $app->dontMergeFrameworkConfiguration();
                }
                $app->singleton(Console\Kernel::class, Illuminate\Foundation\Console\Kernel::class);
                $app->singleton(Debug\ExceptionHandler::class, Illuminate\Foundation\Exceptions\Handler::class);
                return $app;',
            'bootstrap/cache/.gitignore' => '*',
            'config/app.php' => '<?php return ["name" => env("APP_NAME", "unnamed"), "env" => env("APP_ENV", "local"),
                "timezone" => "UTC", "providers" => [App\Provider::class], "aliases" => []];',
            'src/Provider.php' => '<?php namespace App; class Provider extends \Illuminate\Support\ServiceProvider {
                function register() { $this->app->singleton("greeting", fn () => "hello from " . config("app.name")); }
            }',
        ];
    }

    /**
     * The files of an application with two entities of Doctrine's ORM: an author with five private fields and a lazy
     * collection of books, in a database of its own that is in memory. `em()` is its entity manager.
     *
     * @return array<string, string>
     */
    public static function doctrine(): array
    {
        return [
            'vendor/autoload.php' => self::autoloading('Doctrine/ORM', 'Symfony/Component/Cache')
                . 'require __DIR__ . "/../em.php";',
            'vendor/composer/InstalledVersions.php' => self::INSTALLED,
            'src/Author.php' => '<?php namespace App; use Doctrine\ORM\Mapping as ORM;
                #[ORM\Entity] class Author {
                    #[ORM\Id, ORM\Column, ORM\GeneratedValue] private ?int $id = null;
                    #[ORM\Column] private string $name = "a default, which would lie";
                    #[ORM\Column] private int $age = 36;
                    #[ORM\Column] private string $password = "s3cret";
                    #[ORM\Column(type: "datetime_immutable")] private \DateTimeImmutable $born;
                    #[ORM\OneToMany(targetEntity: Book::class, mappedBy: "author")] private $books;
                    function __construct(string $name) {
                        $this->name = $name;
                        $this->born = new \DateTimeImmutable("1815-12-10 UTC");
                        $this->books = new \Doctrine\Common\Collections\ArrayCollection();
                    }
                    function name() { return $this->name; }
                    function books() { return $this->books; }
                }',
            'src/Book.php' => '<?php namespace App; use Doctrine\ORM\Mapping as ORM;
                #[ORM\Entity] class Book {
                    #[ORM\Id, ORM\Column, ORM\GeneratedValue] private ?int $id = null;
                    #[ORM\Column] private string $title;
                    #[ORM\ManyToOne(targetEntity: Author::class, inversedBy: "books")] private $author;
                    function __construct(string $title, Author $author) {
                        $this->title = $title;
                        $this->author = $author;
                    }
                    function author() { return $this->author; }
                }',
            'em.php' => '<?php
                use App\{Author, Book};
                use Doctrine\{DBAL\DriverManager, ORM\EntityManager, ORM\ORMSetup, ORM\Tools\SchemaTool};
                function em(): EntityManager {
                    static $em = null;
                    if ($em === null) {
                        $config = ORMSetup::createAttributeMetadataConfiguration([], true, sys_get_temp_dir());
                        $database = DriverManager::getConnection(["driver" => "pdo_sqlite", "memory" => true]);
                        $em = new EntityManager($database, $config);
                        $classes = array_map([$em, "getClassMetadata"], [Author::class, Book::class]);
                        (new SchemaTool($em))->createSchema($classes);
                        $em->persist($ada = new Author("Ada"));
                        $em->persist(new Book("Notes", $ada));
                        $em->flush();
                        $em->clear();
                    }
                    return $em;
                }',
        ];
    }

    private static function autoloading(string ...$libraries): string
    {
        $require = static fn (string $library): string => 'require_once '
            . var_export(self::autoloader($library), true) . ';';

        return str_replace('LIBRARIES', implode("\n", array_map($require, $libraries)), self::AUTOLOADER);
    }
}
