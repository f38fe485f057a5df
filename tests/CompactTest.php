<?php

declare(strict_types=1);

namespace Altair\Eval\Tests;

use Altair\Eval\Encoder\ValueEncoder;
use Altair\Eval\EvalResult;
use Altair\Eval\Support\Answer;
use Altair\Eval\Tests\Support\Compact\Canonical;
use Altair\Eval\Tests\Support\Compact\Decoder;
use Altair\Eval\Tests\Support\Compact\Faces;
use Altair\Eval\Tests\Support\Compact\Original;
use Altair\Eval\Tests\Support\Compact\Values;
use Altair\Eval\Tests\Support\Skip;
use PHPUnit\Framework\TestCase;

/**
 * The compact encoding loses nothing: what two decoders read, in PHP and in JavaScript, is what was encoded.
 */
final class CompactTest extends TestCase
{
    private const VALUES = 100_000;

    public function testGeneratedValuesComeBackTheSameInPhpAndInJavaScript(): void
    {
        $seed = (int) (getenv('SEED') ?: random_int(1, 1 << 31));
        // What the encoder does not tell cannot come back.
        $isWhole = isset(ValueEncoder::encode(new Faces(1, 2))['private']);
        $values = new Values($seed, $isWhole);
        $original = new Original($isWhole);
        [$exact, $numbers] = [new Canonical(), new Canonical(isJavaScript: true)];
        $lines = (string) tempnam(sys_get_temp_dir(), 'compact');
        $file = fopen($lines, 'w');
        self::assertIsResource($file);
        $expected = [];
        for ($n = 0; $n < self::VALUES; ++$n) {
            $value = $values->next();
            $json = self::compact(ValueEncoder::encode($value));
            $shown = $original->shown($value);
            $text = $exact->text($shown);
            if ($text !== $exact->text(Decoder::decode($json))) {
                self::assertSame($text, $exact->text(Decoder::decode($json)), "SEED=$seed, value $n: $json");
            }
            $expected[] = md5($numbers->text($shown));
            fwrite($file, "$json\n");
        }
        fclose($file);
        try {
            self::assertSame([], array_diff_assoc($expected, self::hashesOfNode($lines)), "SEED=$seed");
        } finally {
            unlink($lines);
        }
        self::assertCount(self::VALUES, $expected);
    }

    /**
     * @return list<string> of each line's canonical text, as Node.js decodes it
     */
    private static function hashesOfNode(string $lines): array
    {
        $decoder = __DIR__ . '/Support/Compact/decode.mjs';
        exec('node ' . escapeshellarg($decoder) . ' ' . escapeshellarg($lines), $out, $code);
        if ($code === 127) {
            Skip::NotInstalled->because('There is no Node.js.');
        }
        self::assertSame(0, $code);

        return $out;
    }

    /**
     * @param array<string, mixed> $typed
     */
    private static function compact(array $typed): string
    {
        $json = Answer::toJson(new EvalResult($typed, '', '', null, 0, 0, 0, false), compact: true);
        // {"ok":true,"result":…,"duration_ms":0}
        return substr($json, 20, -18);
    }
}
