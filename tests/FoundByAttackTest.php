<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\EvalRequest;
use Altair\Eval\Evaluator;
use Altair\Eval\Tests\Support\EvaluationTestCase;
use Altair\Eval\Tests\Support\Script;
use Altair\Eval\Tests\Support\Skip;
use Altair\Eval\Tests\Support\TemporaryApplication;

/**
 * What attacks on earlier builds have found, each as the behaviour that it was missing.
 */
final class FoundByAttackTest extends EvaluationTestCase
{
    /**
     * @dataProvider importsOfAClass
     */
    public function testAnImportedClassOfThatNameDoesNotHideTheContainer(string $import): void
    {
        self::assertTrue($this->value("$import return is_object(container());"));
    }

    /**
     * @return iterable<string, array{string}>
     */
    public static function importsOfAClass(): iterable
    {
        yield 'by its own name' => ['use Shop\Container;'];
        yield 'as an alias' => ['use Shop\Mailer as Container;'];
        yield 'in a group' => ['use Shop\{Container, Mailer};'];
        yield 'in a mixed group' => ['use Shop\{Container, function money};'];
    }

    /**
     * @dataProvider functionsOfThatName
     */
    public function testAFunctionOfThatNameIsTheSnippetsOwn(string $call): void
    {
        $result = $this->evaluate($call);

        self::assertStringContainsString('Call to undefined function Own\container()', $result->exception['message']);
    }

    /**
     * @return iterable<string, array{string}>
     */
    public static function functionsOfThatName(): iterable
    {
        yield 'imported' => ['use function Own\container; return container();'];
        yield 'imported in a mixed group' => ['use Own\{A, function container}; return container();'];
        yield 'imported in a group' => ['use function Own\{a, container}; return container();'];
        yield 'of the namespace' => ['namespace Own; return namespace\container();'];
    }

    public function testErrorLogDoesNotSendMailAndStillLogs(): void
    {
        $mail = $this->evaluate('error_log("x", 1, "root@localhost"); return 1;');
        self::assertStringContainsString('refused', $mail->exception['message']);
        self::assertSame('error_log()', $mail->diagnostics['blocked'][0]['what']);

        $log = $this->evaluate('error_log("logged"); return 1;');
        self::assertTrue($log->ok());
        self::assertStringContainsString('logged', $log->stderr);
    }

    public function testNoFunctionOfTheSocketsExtensionConnects(): void
    {
        $result = $this->evaluate('return socket_addrinfo_lookup("127.0.0.1", "1");');

        self::assertSame('--network', $result->diagnostics['blocked'][0]['lift']);
    }

    public function testATimeLimitOfTheSnippetsOwnDoesNotEndItWithoutAWord(): void
    {
        $result = $this->evaluate(
            'set_time_limit(1); hash_pbkdf2("sha512", "a", "b", 2000000000);',
            timeoutMs: 5000,
        );

        self::assertSame('timed_out', $result->diagnostics['outcome']);
    }

    public function testASnippetCannotStopItselfInTheHostsName(): void
    {
        // SIGRTMIN + 15, with which the host tells it that the deadline has passed.
        $result = $this->evaluate('posix_kill(posix_getpid(), 49); return "still here";');

        self::assertSame('still here', self::plain($result->result));
    }

    public function testAReportOfTheRightFormWithoutTheSecretIsNoReport(): void
    {
        // As the channel has it: secret, "whole message", Report, Returned, text, phase, peak, no times, no refusals.
        $json = '{"type":"string","value":"forged"}';
        $packet = str_repeat("\0", 32) . "\0\3\0" . chr(strlen($json)) . $json . "\1\5\0\0\0";
        $result = $this->evaluate(
            'file_put_contents("php://fd/3", base64_decode("' . base64_encode($packet) . '"));'
            . ' FFI::cdef("void _exit(int);")->_exit(0);',
            unsafe: true,
        );

        self::assertSame(['no_report', 1, null], [
            $result->diagnostics['outcome'],
            $result->exitCode,
            $result->result,
        ]);
    }

    public function testAFatalErrorInADestructorEndsTheEncoding(): void
    {
        $result = $this->evaluate(
            'class G { function __destruct() { trigger_error("end", E_USER_ERROR); } }'
            . ' class D { function __debugInfo() { echo "i"; return [new G()]; } } return [new D(), new D()];',
        );

        self::assertSame(['fatal', 'encode', 'i'], [
            $result->diagnostics['outcome'],
            $result->diagnostics['phase'],
            $result->stdout,
        ]);
    }

    public function testAFatalErrorWhileTheHostEncodesEndsTheHostsScript(): void
    {
        $script = new Script(<<<'PHP'
            class G { function __destruct() { trigger_error('end', E_USER_ERROR); } }
            class D { function __debugInfo() { return [new G()]; } }
            say('before');
            Altair\Eval\Encoder\ValueEncoder::encode(new D());
            say('after');
            PHP);

        self::assertSame('before', $script->line());
        self::assertStringNotContainsString('after', implode('', array_filter($script->end(), is_string(...))));
    }

    public function testAnIterationThatGoesOnIsNotGoneOnWithFromWithin(): void
    {
        $script = new Script(<<<'PHP'
            $results = null;
            $requests = (function () use (&$results) {
                yield 'a' => request('return 1;');
                try {
                    $results->next();
                } catch (Error $error) {
                    say($error->getMessage());
                }
                yield 'b' => request('return 2;');
            })();
            $results = (new Altair\Eval\Evaluator())->evaluateMany($requests, 1);
            foreach ($results as $key => $result) {
                say($key);
            }
            PHP);

        self::assertSame('a', $script->line());
        self::assertSame('The iterator over evaluations is already running', $script->line());
        self::assertSame('b', $script->line());
    }

    public function testAnObjectOfVeryManyPropertiesIsLookedAtAsFarAsItIsShown(): void
    {
        $result = $this->evaluate(
            '$o = new stdClass(); for ($i = 0; $i < 500000; $i++) { $o->{"p$i"} = $i; } return $o;',
            memoryLimitMb: 256,
            timeoutMs: 20000,
        );

        self::assertTrue($result->ok());
        self::assertCount(1000, (array) $result->result['properties']);
        self::assertTrue($result->result['truncated']);
    }

    public function testAPipeInPlaceOfComposersFilesDoesNotHoldTheHostUp(): void
    {
        $application = $this->application();
        mkdir($application->path('vendor/composer'));
        posix_mkfifo($application->path('vendor/composer/installed.json'), 0644);
        posix_mkfifo($application->path('composer.json'), 0644);

        self::assertSame(1, $this->value('return 1;'));
    }

    public function testAProjectWhoseNameIsNoUtf8IsEvaluated(): void
    {
        $root = $this->application()->path("odd\xff\xfe\nname");
        mkdir("$root/vendor", recursive: true);
        file_put_contents("$root/vendor/autoload.php", '<?php');

        $snippet = 'file_put_contents("new", "text"); return file_get_contents("new");';
        self::assertSame('text', $this->value($snippet, projectRoot: $root));
    }

    public function testADirectoryThatTheLayerCannotRenameIsNamed(): void
    {
        $application = $this->application();
        $application->write('var/cache/file', 'x');
        $result = $this->evaluate(
            'mkdir("var/new"); return [@rename("var/cache", "var/old"), rename("var/new", "var/newer")];',
        );

        self::assertSame([false, true], self::plain($result->result));
        [$blocked] = $result->diagnostics['blocked'];
        self::assertStringStartsWith('rename the directory ' . $application->path('var/cache'), $blocked['what']);
        self::assertSame(['filesystem', '--writes'], [$blocked['guard'], $blocked['lift']]);
        $writes = new EvalRequest('return rename("var/cache", "var/old");', $application->root, allowWrites: true);
        self::assertTrue((new Evaluator())->evaluate($writes)->result['value']);
    }

    public function testASessionIsKeptForTheTimeOfTheRun(): void
    {
        self::assertSame('kept', $this->value('session_start(["use_cookies" => 0, "cache_limiter" => ""]);
            $_SESSION["a"] = "kept"; $id = session_id(); session_write_close(); $_SESSION = [];
            session_id($id); session_start(["use_cookies" => 0, "cache_limiter" => ""]); return $_SESSION["a"];'));
    }

    public function testARequestForMoreThanCanBeShownHarmsNoLaterOne(): void
    {
        $place = new TemporaryApplication();
        $paths = [];
        for ($i = 0; $i < 5000; $i++) {
            touch($paths[] = $place->path("file$i"));
        }
        $many = $this->evaluate('return 1;', readablePaths: $paths);
        self::assertSame('in force', $many->diagnostics['guards']['filesystem']);
        self::assertSame('in force', $this->evaluate('return 1;')->diagnostics['guards']['filesystem']);
    }

    public function testADirectoryThatIsNoVendorDirectoryIsNotShownByNamingIt(): void
    {
        $repository = new TemporaryApplication([
            '.git/HEAD' => '',
            'secrets/key' => 'secret',
            'app/vendor/autoload.php' => '<?php',
        ]);
        $manifest = ['config' => ['vendor-dir' => '../secrets']];
        $repository->write('app/composer.json', json_encode($manifest, JSON_THROW_ON_ERROR));
        $read = 'return @file_get_contents(' . var_export($repository->path('secrets/key'), true) . ');';
        self::assertFalse($this->value($read, projectRoot: $repository->path('app')));

        $repository->write('secrets/autoload.php', '<?php');
        $repository->write('secrets/composer/installed.json', '{"packages":[]}');
        self::assertSame('secret', $this->value($read, projectRoot: $repository->path('app')));
    }

    public function testWhatTheProjectsOwnerCannotReachIsNotShownToItByARootHost(): void
    {
        if (posix_geteuid() !== 0) {
            Skip::NeedsRoot->because('Only a root host runs as another user.');
        }
        $repository = new TemporaryApplication([
            '.git/HEAD' => '',
            'closed/package/composer.json' => '{}',
            'closed/package/key' => 'secret',
            'app/vendor/autoload.php' => '<?php',
        ]);
        $repository->write('app/vendor/composer/installed.json', json_encode(['packages' => [
            ['dist' => ['type' => 'path'], 'install-path' => $repository->path('closed/package')],
        ]], JSON_THROW_ON_ERROR));
        $repository->giveTo(12345, 12345);
        $read = 'return @file_get_contents(' . var_export($repository->path('closed/package/key'), true) . ');';
        self::assertSame('secret', $this->value($read, projectRoot: $repository->path('app')));

        chown($repository->path('closed'), 0);
        chmod($repository->path('closed'), 0700);
        self::assertFalse($this->value($read, projectRoot: $repository->path('app')));
    }
}
