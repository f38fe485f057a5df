<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Escape;

use Altair\Eval\Tests\Support\EvaluationTestCase;

/**
 * A named pipe in the project's layer is the run's own: it neither takes what is in the machine's, nor puts
 * anything in.
 */
final class NamedPipeTest extends EvaluationTestCase
{
    public function testAPipeOfTheProjectsIsLeftAlone(): void
    {
        $application = $this->application();
        $path = $application->path('pipe');
        posix_mkfifo($path, 0666);
        $ends = fopen($path, 'r+n');
        fwrite($ends, 'meant for another');
        $attack = <<<'PHP'
            $taken = fread(fopen('pipe', 'rn'), 100);
            $put = fwrite(fopen('pipe', 'r+n'), 'harm');
            return "$taken, $put";
            PHP;

        self::assertSame(', 4', $this->value($attack));
        self::assertSame('meant for another', fread($ends, 100));
    }
}
