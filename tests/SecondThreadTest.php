<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\Tests\Support\Script;
use Altair\Eval\Tests\Support\TemporaryApplication;
use PHPUnit\Framework\TestCase;

/**
 * A thread that an extension starts before the child takes its last guards would stay free of them: nothing is run.
 */
final class SecondThreadTest extends TestCase
{
    private const EXTENSION = <<<'C'
        #define _GNU_SOURCE
        #include "php.h"
        #include <pthread.h>
        #include <semaphore.h>
        #include <unistd.h>
        static sem_t named;
        static void *wait_for_ever(void *unused)
        {
            pthread_setname_np(pthread_self(), "telemetry");
            sem_post(&named);
            for (;;) pause();
            return unused;
        }
        static PHP_MINIT_FUNCTION(threaded)
        {
            pthread_t thread;
            (void) type, (void) module_number;
            if (sem_init(&named, 0, 0) != 0 || pthread_create(&thread, NULL, wait_for_ever, NULL) != 0) {
                return FAILURE;
            }
            return sem_wait(&named) == 0 ? SUCCESS : FAILURE;
        }
        zend_module_entry threaded_module_entry = {
            STANDARD_MODULE_HEADER, "threaded", NULL, PHP_MINIT(threaded), NULL, NULL, NULL, NULL, "1",
            STANDARD_MODULE_PROPERTIES
        };
        ZEND_GET_MODULE(threaded)
        C;

    private const RUN = <<<'PHP'
        try {
            [$application, $unsafe] = [getenv('ALTAIR_TEST_APPLICATION'), getenv('ALTAIR_TEST_UNSAFE') === '1'];
            say((new Evaluator())->evaluate(new EvalRequest('return 6 * 7;', $application, unsafe: $unsafe))->result);
        } catch (Throwable $thrown) {
            say([$thrown::class, $thrown->getMessage()]);
        }
        PHP;

    private TemporaryApplication $directory;

    protected function setUp(): void
    {
        $this->directory = new TemporaryApplication();
        $source = $this->directory->write('threaded.c', self::EXTENSION);
        $library = $this->directory->path('threaded.so');
        exec("cc -shared -fPIC -pthread $(php-config --includes) -o $library $source 2>&1", $output, $status);
        self::assertSame(0, $status, implode("\n", $output));
        $this->directory->write('ini/threaded.ini', "extension=$library\n");
    }

    public function testNothingIsRunAndTheThreadIsNamed(): void
    {
        [$class, $message] = json_decode($this->answer(), true);

        self::assertSame('Altair\Eval\Exception\LaunchException', $class);
        self::assertStringContainsString('second thread (telemetry)', $message);
    }

    public function testAnUnsafeRunTakesNoGuardsThatItCouldStayFreeOf(): void
    {
        self::assertSame('{"type":"int","value":42}', $this->answer('1'));
    }

    /** What a host says that was started with the extension among its ini files. */
    private function answer(string $unsafe = '0'): string
    {
        $variables = [
            // An empty item stands for the directory that PHP was built with.
            'PHP_INI_SCAN_DIR' => getenv('PHP_INI_SCAN_DIR') . ':' . $this->directory->path('ini'),
            'ALTAIR_TEST_APPLICATION' => $this->directory->root,
            'ALTAIR_TEST_UNSAFE' => $unsafe,
        ];
        $before = array_map(getenv(...), array_combine(array_keys($variables), array_keys($variables)));
        array_walk($variables, static fn (string $value, string $name): bool => putenv("$name=$value"));
        try {
            $script = new Script(self::RUN);
        } finally {
            foreach ($before as $name => $value) {
                putenv($value === false ? $name : "$name=$value");
            }
        }
        $line = $script->line();
        self::assertSame(0, $script->end()[0]);

        return $line;
    }
}
