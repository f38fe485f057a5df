<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\EvalRequest;
use Altair\Eval\EvalResult;
use Altair\Eval\Evaluator;
use Altair\Eval\Tests\Support\EvaluationTestCase;
use Altair\Eval\Tests\Support\TemporaryApplication;

/**
 * A short class name means the one class of the project that has it, as if the snippet had imported it.
 */
final class ShortNamesTest extends EvaluationTestCase
{
    private const USER = '<?php namespace App\Models; class User extends \Exception { const A = "const"; '
        . 'public static $s = "static"; static function f() { return static::class; } }';

    /**
     * @dataProvider places
     */
    public function testItIsKnownWhereverAClassIsNamed(string $snippet, mixed $value): void
    {
        $this->project(['src/Models/User.php' => self::USER]);

        foreach ([false, true] as $unsafe) {
            $result = $this->evaluate($snippet, unsafe: $unsafe);

            self::assertOutcome('returned', $result, 0, value: true);
            self::assertSame($value, self::plain($result->result));
            self::assertSame(['User' => 'App\Models\User'], $result->diagnostics['resolved'] ?? null);
        }
    }

    public static function places(): iterable
    {
        $name = 'App\Models\User';
        yield 'new' => ['get_class(new User())', $name];
        yield 'static method' => ['User::f()', $name];
        yield 'without the last semicolon' => ['$n = 1; User::f()', $name];
        yield 'constant' => ['User::A', 'const'];
        yield 'static property' => ['User::$s', 'static'];
        yield 'its name' => ['User::class', $name];
        yield 'instanceof' => ['$u = new \App\Models\User(); $u instanceof User', true];
        yield 'catch' => [
            'try { throw new \App\Models\User(); } catch (RuntimeException | User) { 1; } "caught";',
            'caught',
        ];
        yield 'parameter' => ['(fn (User $u) => get_class($u))(new \App\Models\User())', $name];
        yield 'nullable parameter' => ['(fn (?User $u) => 1)(new \App\Models\User())', 1];
        yield 'one of several types' => ['(function (int|User $u): int { return 1; })(new \App\Models\User())', 1];
        yield 'return type' => ['get_class((function (): User { return new \App\Models\User(); })())', $name];
        yield 'property' => ['class A { public ?User $u = null; } $a = new A(); $a->u = new \App\Models\User(); 1', 1];
        yield 'parent' => ['class A extends User {} get_parent_class("A")', $name];
        yield 'first-class callable' => ['(User::f(...))()', $name];
        yield 'behind declare' => ['declare(strict_types=1); User::f()', $name];
    }

    /**
     * @dataProvider othersOfThatName
     */
    public function testANameThatMeansSomethingElseIsLeftAlone(string $snippet, mixed $value): void
    {
        $this->project(['src/Models/User.php' => self::USER, 'own.php' => '<?php class User {}']);

        $result = $this->evaluate($snippet);

        self::assertOutcome('returned', $result, 0, value: true);
        self::assertSame($value, self::plain($result->result));
        self::assertArrayNotHasKey('resolved', $result->diagnostics);
    }

    public static function othersOfThatName(): iterable
    {
        yield 'declared' => ['class User {} get_class(new User())', 'User'];
        yield 'declared in a block' => ['if (true) { class User {} } get_class(new User())', 'User'];
        yield 'imported' => ['use ArrayObject as User; User::class', 'ArrayObject'];
        yield 'imported in a group' => ['use App\{Other\User}; User::class', 'App\Other\User'];
        yield 'in a namespace' => ['namespace A; User::class', 'A\User'];
        yield 'of the global namespace' => ['\User::class', 'User'];
        yield 'a string' => ['class_exists("User")', false];
        yield 'included' => ['require "own.php"; get_class(new User())', 'User'];
        yield 'an alias' => ['class Own {} class_alias("Own", "User"); get_class(new User())', 'Own'];
        yield 'an own autoloader' => [
            'class Own {} spl_autoload_register(fn ($c) => class_alias("Own", $c)); get_class(new User())',
            'Own',
        ];
        yield 'of the engine' => ['ArrayObject::class', 'ArrayObject'];
        yield 'nobody has one' => ['Nobody::class', 'Nobody'];
    }

    public function testAClassThatAnAutoloaderMakesIsLeftAlone(): void
    {
        $files = ['src/Models/User.php' => self::USER, 'User.php' => '<?php class User {}'];
        $this->project($files, ' spl_autoload_register(function ($c) {'
            . ' if ($c === "User") { require __DIR__ . "/../User.php"; } });');

        $result = $this->evaluate('get_class(new User())');

        self::assertSame('User', self::plain($result->result));
        self::assertArrayNotHasKey('resolved', $result->diagnostics);
    }

    public function testTheApplicationsOwnAnswersStayWhatTheyWere(): void
    {
        $this->project([
            'src/Models/User.php' => self::USER,
            'src/Asks.php' => '<?php namespace App; class Asks { static function it() { return [class_exists("User"),'
                . ' class_exists("User", false), is_a("User", \App\Models\User::class, true)]; } }',
        ]);

        self::assertSame([false, false, false], $this->value('$u = new User(); App\Asks::it()'));
    }

    /**
     * @dataProvider autoloadersThatEndIt
     */
    public function testAnAutoloaderThatThrowsOrExitsDoesAsItWould(string $body, string $outcome, int $exitCode): void
    {
        $this->project(
            ['src/Models/User.php' => self::USER],
            " spl_autoload_register(function (\$c) { if (\$c === 'User') { $body } });",
        );

        $result = $this->evaluate('new User()');

        self::assertOutcome($outcome, $result, $exitCode, exception: $outcome === 'threw');
        self::assertSame($outcome === 'threw' ? 'of the autoloader' : null, $result->exception['message'] ?? null);
    }

    public static function autoloadersThatEndIt(): iterable
    {
        yield 'throws' => ['throw new \LogicException("of the autoloader");', 'threw', 1];
        yield 'exits' => ['exit(3);', 'exited', 3];
        yield 'is fatal' => ['eval("class A { function f(); }");', 'fatal', 255];
    }

    public function testSeveralOfThatNameAreAnErrorThatListsThem(): void
    {
        $this->project([
            'src/Models/User.php' => self::USER,
            'src/Api/User.php' => '<?php namespace App\Api; interface User {}',
        ]);

        $result = $this->evaluate("echo 'ran';\n\nUser::f();");

        self::assertOutcome('threw', $result, 1, exception: true);
        self::assertSame('Error', $result->exception['class']);
        self::assertStringContainsString('"User"', $result->exception['message']);
        self::assertStringContainsString('App\Api\User, App\Models\User', $result->exception['message']);
        self::assertSame(['snippet', 3, ''], [$result->exception['file'], $result->exception['line'], $result->stdout]);
        self::assertSame('App\Api\User', $this->value('use App\Api\User; User::class'));
    }

    public function testItIsFoundInClassMapsAndByPsr0ButNotInVendor(): void
    {
        $this->project([
            'lib/deep/things.php' => '<?php namespace Mapped; final class Thing { const IT = "thing"; }',
            'old/Acme/Sub/Part.php' => '<?php namespace Acme\Sub; class Part { const IT = "part"; }',
            'vendor/acme/src/Foreign.php' => '<?php namespace Vendor; class Foreign { const IT = "foreign"; }',
            'vendor/acme/src/Mapped.php' => '<?php namespace Vendor; class Mapped { const IT = "mapped"; }',
        ], ' $l->addClassMap(["Mapped\\\\Thing" => __DIR__ . "/composer/../../lib/deep/things.php",'
            . ' "Vendor\\\\Mapped" => __DIR__ . "/acme/src/Mapped.php"]); $l->add("Acme", __DIR__ . "/../old");'
            . ' $l->addPsr4("Vendor\\\\", __DIR__ . "/acme/src");');

        self::assertSame(['thing', 'part'], $this->value('[Thing::IT, Part::IT]'));
        foreach (['Foreign', 'Mapped'] as $class) {
            $message = $this->evaluate("$class::IT")->exception['message'] ?? null;
            self::assertSame("Class \"$class\" not found", $message);
        }
    }

    public function testWhatIsGoneOrOnlyLooksLikeItIsNotTakenForAClass(): void
    {
        $this->project([
            'src/Models/User.php' => self::USER,
            'src/Views/User.php' => '<h1>A class of user</h1>',
            'src/Moved/User.php' => '<?php namespace App\Elsewhere; class User {}',
            'src/Users/User.php' => '<?php namespace App\Users; class UserList {}',
        ], ' $l->addClassMap(["App\\\\Gone\\\\User" => __DIR__ . "/../src/Gone/User.php",'
            . ' "App\\\\Gone" => __DIR__ . "/../src/Gone.php"]);');

        posix_mkfifo($this->application()->path('src/Gone.php'), 0600);
        self::assertSame('App\Models\User', $this->value('User::f()'));
        self::assertSame('Class "Gone" not found', $this->evaluate('Gone::f()')->exception['message']);
    }

    public function testNothingOutsideOfTheProjectIsLookedAt(): void
    {
        $outside = new TemporaryApplication(['Far.php' => '<?php namespace App\Link; class Far { const IT = 1; }']);
        $application = $this->project(
            ['src/Near.php' => '<?php namespace App; class Near {}'],
            " \$l->addPsr4('Out\\\\', '$outside->root'); \$l->addPsr4('App\\\\Link\\\\', '{$outside->root}');"
            . " \$l->addClassMap(['App\\\\Link\\\\Far' => '$outside->root/Far.php']);",
        );
        symlink($outside->root, $application->path('src/Link'));
        mkdir($application->path('src/Other'));
        symlink($outside->path('Far.php'), $application->path('src/Other/Far.php'));
        symlink($application->path('src'), $application->path('src/Loop'));

        $result = $this->evaluate('Far::IT', unsafe: true);
        self::assertSame('Class "Far" not found', $result->exception['message'] ?? null);
        self::assertSame('App\Near', $this->value('Near::class'));
    }

    public function testAWarmTemplateSeesAClassThatWasJustWritten(): void
    {
        $application = $this->project(['src/Models/User.php' => self::USER]);
        $evaluator = new Evaluator();
        $evaluate = static fn (string $snippet): EvalResult
            => $evaluator->evaluate(new EvalRequest($snippet, $application->root, timeoutMs: self::LONG_MS));

        self::assertTrue($evaluate('1')->ok());
        self::assertSame('Fresh', $evaluate('Fresh::class')->result['value']);
        $application->write('src/Fresh.php', '<?php namespace App; class Fresh {}');
        $result = $evaluate('Fresh::class');

        self::assertSame('App\Fresh', $result->result['value']);
        self::assertSame(['Fresh' => 'App\Fresh'], $result->diagnostics['resolved']);
        $application->remove('src/Fresh.php');
        self::assertSame('Fresh', $evaluate('Fresh::class')->result['value']);
    }

    public function testADeadlineThatPassesLaterStillTellsOfThem(): void
    {
        $this->project(['src/Models/User.php' => self::USER]);

        $result = $this->evaluate('User::f(); for (;;);', timeoutMs: self::SHORT_MS);

        self::assertOutcome('timed_out', $result, 124, timedOut: true);
        self::assertSame(['User' => 'App\Models\User'], $result->diagnostics['resolved']);
    }

    /**
     * An application with Composer's own class loader, which knows `App\` below `src/`.
     *
     * @param array<string, string> $files
     */
    private function project(array $files, string $more = ''): TemporaryApplication
    {
        return $this->application($files + [
            'vendor/composer/ClassLoader.php' => (string) file_get_contents(
                __DIR__ . '/../examples/shop/vendor/composer/ClassLoader.php',
            ),
            'vendor/autoload.php' => '<?php require_once __DIR__ . "/composer/ClassLoader.php";'
                . ' $l = new \Composer\Autoload\ClassLoader(__DIR__);'
                . ' $l->addPsr4("App\\\\", dirname(__DIR__) . "/src");'
                . " \$l->register();$more",
        ]);
    }
}
