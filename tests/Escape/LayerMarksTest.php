<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Escape;

use Altair\Eval\Tests\Support\Escape\Place;
use Altair\Eval\Tests\Support\Escape\Setting;
use Altair\Eval\Tests\Support\Escape\WarmHost;
use PHPUnit\Framework\TestCase;

/**
 * A run that may write leaves no marks in the project that later runs' layers would heed: attributes of files in which
 * overlayfs keeps what is missing, moved or elsewhere (`user.overlay.…`).
 *
 * It did: a file with `metacopy` could not be opened by any later run (EIO), and an empty one with `whiteout` was not
 * there.
 */
final class LayerMarksTest extends TestCase
{
    private const FILES = [
        'src/set.php' => '<?php return "set";',
        'src/unfollowed.php' => '<?php return "unfollowed";',
        'src/opened.php' => '<?php return "opened";',
        'src/empty.php' => '',
        'src/deep/kept.php' => '<?php return "kept";',
        'other/set.php' => '<?php return "other";',
    ];

    /** Marks: file, name and value. */
    private const MARKS = [
        'a file whose content is elsewhere' => ['src/set.php', 'user.overlay.metacopy', ''],
        'one that is moved' => ['src/set.php', 'user.overlay.redirect', '/other/set.php'],
        'a directory that is moved' => ['src/deep', 'user.overlay.redirect', '/other'],
        'one that hides others' => ['src/deep', 'user.overlay.opaque', 'y'],
        'one that has what is not there' => ['src', 'user.overlay.opaque', 'x'],
        'a root that has' => ['.', 'user.overlay.opaque', 'x'],
        'what is not there' => ['src/empty.php', 'user.overlay.whiteout', 'y'],
        'an origin' => ['src/opened.php', 'user.overlay.origin', ''],
    ];

    /** The ways to make one: the call, and what it is called with. */
    private const WAYS = [
        'setxattr' => 'raw("setxattr", $path, $name, $value, strlen($value), 0)',
        'lsetxattr' => 'raw("lsetxattr", $path, $name, $value, strlen($value), 0)',
        'fsetxattr' => 'raw("fsetxattr", raw("openat", -100, $path, 0, 0), $name, $value, strlen($value), 0)',
    ];

    /** What a later run finds. */
    private const LOOK = <<<'PHP'
        $found = [];
        foreach (['.', 'src', 'src/deep', 'other'] as $directory) {
            $found[] = implode(' ', @scandir($directory) ?: ['none']);
        }
        foreach (['set', 'unfollowed', 'opened', 'empty', 'deep/kept'] as $file) {
            $found[] = "$file: " . var_export(@file_get_contents("src/$file.php"), true);
            $found[] = "$file: " . var_export(@file_put_contents("src/$file.php", 'new'), true);
        }
        return implode("\n", $found);
        PHP;

    /**
     * @dataProvider ways
     */
    public function testNoMarkIsMade(string $way, string $start, Setting $setting): void
    {
        $host = new WarmHost($setting, self::FILES);
        if (!Place::hasMounts()) {
            $this->assertNoWrites($host, $start);

            return;
        }
        $marks = '';
        foreach (self::MARKS as $mark => [$path, $name, $value]) {
            $marks .= sprintf('[$path, $name, $value] = %s;', var_export([$path, $name, $value], true))
                . '$made[' . var_export($mark, true) . "] = $way;";
        }
        $made = $this->answer($host, $start, "$marks return json_encode(\$made);", ['allowWrites' => true]);

        self::assertSame(array_fill_keys(array_keys(self::MARKS), -1), json_decode($made, true));
    }

    /**
     * @dataProvider starts
     */
    public function testLaterRunsFindTheProjectAsItIs(string $start, Setting $setting): void
    {
        $host = new WarmHost($setting, self::FILES);
        if (!Place::hasMounts()) {
            $this->assertNoWrites($host, $start);

            return;
        }
        // It makes the directory of the log, which is there from then on.
        $this->answer($host, $start, 'return "";', ['allowWrites' => true]);
        $before = $this->look($host);
        $marks = 'foreach ([["set", "setxattr"], ["unfollowed", "lsetxattr"]] as [$file, $call]) {'
            . ' raw($call, "src/$file.php", "user.overlay.metacopy", "", 0, 0); }'
            . ' raw("fsetxattr", raw("openat", -100, "src/opened.php", 0, 0), "user.overlay.metacopy", "", 0, 0);'
            . ' foreach ([".", "src"] as $path) { raw("setxattr", $path, "user.overlay.opaque", "x", 1, 0); }'
            . ' raw("setxattr", "src/empty.php", "user.overlay.whiteout", "y", 1, 0); return "";';
        $this->answer($host, $start, $marks, ['allowWrites' => true]);

        self::assertSame($before, $this->look($host));
    }

    public static function starts(): iterable
    {
        foreach (Setting::NATIVE as $setting) {
            foreach ($setting->isPossible() ? ['cold', 'warm'] : [] as $start) {
                yield "$start: $setting->value" => [$start, $setting];
            }
        }
    }

    public static function ways(): iterable
    {
        foreach (self::starts() as $name => $start) {
            foreach (self::WAYS as $call => $way) {
                yield "$call: $name" => [$way, ...$start];
            }
        }
    }

    /** Where nothing can be mounted, no run may write, and there are no layers to mislead. */
    private function assertNoWrites(WarmHost $host, string $start): void
    {
        $this->expectExceptionMessage(Place::NO_WRITES);
        $this->answer($host, $start, 'return "";', ['allowWrites' => true]);
    }

    /**
     * @return list<string> what later runs find, by whatever means their layer is made
     */
    private function look(WarmHost $host): array
    {
        return [$this->answer($host, 'cold', self::LOOK), $this->answer($host, 'warm', self::LOOK)];
    }

    /**
     * @param array<string, mixed> $options
     */
    private function answer(WarmHost $host, string $start, string $snippet, array $options = []): string
    {
        if ($start === 'warm') {
            $host->evaluateWarm('return 1;', $options);
        }
        $host->ask(['start' => $start] + $host->request($snippet, $options));
        $result = $host->answered('result');
        self::assertSame('returned', $result['diagnostics']['outcome'], json_encode($result));
        self::assertSame($start, $result['diagnostics']['start']);

        return $result['result']['value'];
    }
}
