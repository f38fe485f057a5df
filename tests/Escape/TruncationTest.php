<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Escape;

use Altair\Eval\Tests\Support\Escape\Place;
use Altair\Eval\Tests\Support\TemporaryApplication;
use Altair\Eval\Tests\Support\Without;
use PHPUnit\Framework\TestCase;

/**
 * Where nothing can be mounted and Landlock is older than version 3 (before Linux 6.2), which does not govern it, a run
 * empties no file either.
 */
final class TruncationTest extends TestCase
{
    /** Ways to empty `$f`, none of which opens it to be written: Landlock asks for the right to write for that. */
    private const WAYS = [
        'truncate' => '$c->truncate($f, 0)',
        'opened to be read' => '$c->open($f, O_TRUNC)',
        'opened for neither' => '$c->open($f, 3 | O_TRUNC)',
    ];

    /**
     * @return iterable<string, array{list<string>}>
     */
    public static function places(): iterable
    {
        if (!Place::hasMounts()) {
            yield 'this place' => [[]];

            return;
        }
        foreach ([1, 2, 3] as $version) {
            yield "version $version" => [['mounts', 'copies', "landlock=$version"]];
        }
    }

    /**
     * @param list<string> $what
     * @dataProvider places
     */
    public function testNoFileIsEmptied(array $what): void
    {
        foreach (self::WAYS as $way => $call) {
            [$result, $project, $outside] = $this->attack($what, $call, false);

            self::assertSame([-1, -1], $result, $way);
            self::assertSame(['data', 'outside'], [$project, $outside], $way);
        }
    }

    public function testInAnUnsafeRunEachIs(): void
    {
        foreach (self::WAYS as $way => $call) {
            [, $project, $outside] = $this->attack([], $call, true);

            self::assertSame(['', ''], [$project, $outside], $way);
        }
    }

    /** What is opened to be written is emptied as ever. */
    public function testPhpStillReplacesWhatItMayWrite(): void
    {
        $application = new TemporaryApplication();
        $snippet = '$f = sys_get_temp_dir() . "/f"; foreach (["w", "w+", "c+"] as $mode) {'
            . ' file_put_contents($f, "before"); $h = fopen($f, $mode); $mode === "c+" && ftruncate($h, 0);'
            . ' $sizes[] = fstat($h)["size"]; } return $sizes;';
        $request = ['snippet' => $snippet, 'projectRoot' => $application->root];
        [[$what]] = array_values([...self::places()]);
        $result = Without::evaluate($what, $request);

        self::assertSame([0, 0, 0], array_column($result['result']['value'], 'value'));
    }

    /**
     * @param list<string> $what
     * @return array{list<int>, string, string} what the calls gave, and the two files afterwards
     */
    private function attack(array $what, string $call, bool $unsafe): array
    {
        $files = ['app/data' => 'data', 'app/vendor/autoload.php' => '<?php', 'x' => 'outside'];
        $place = new TemporaryApplication($files);
        $outside = var_export($place->path('x'), true);
        $snippet = '$c = FFI::cdef("int truncate(const char *, long); int open(const char *, int, ...);");'
            . " foreach (['data', $outside] as \$f) { \$got[] = $call; } return \$got;";
        $request = [
            'snippet' => strtr($snippet, ['O_TRUNC' => '01000']),
            'projectRoot' => $place->path('app'),
            'unsafe' => $unsafe,
            'timeoutMs' => 60000,
        ];
        $result = Without::evaluate($what, $request, ['altair_eval.omit' => 'ini', 'ffi.enable' => '1']);

        return [
            array_column($result['result']['value'], 'value'),
            (string) file_get_contents($place->path('app/data')),
            (string) file_get_contents($place->path('x')),
        ];
    }
}
