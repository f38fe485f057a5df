<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Pool;

use Altair\Eval\Tests\Support\Command;
use Altair\Eval\Tests\Support\PoolTestCase;

/**
 * The command line as shells call it, in loops, from where they are, with the variables that they and terminals set.
 */
final class CommandLineTest extends PoolTestCase
{
    /** Each round is a login of its own, and names the project in two ways; `seen.php` changes when half are over. */
    private const LOOP = <<<'SH'
        altair=$1 round=0
        shift
        while [ $((round += 1)) -le 8 ]; do
            [ $round != 5 ] || echo "<?php return 'new';" >seen.php
            for place in . 'src/Deep/Deeper --root=../../..' vendor; do
                cd "${place% *}"
                export TERM="xterm-$round" COLUMNS=$((80 + round)) LINES=$round SSH_TTY="/dev/pts/$round" \
                    SSH_CONNECTION="10.0.0.$round 1 10.0.0.9 22" WINDOWID=$round TMUX="/tmp/tmux,$round" \
                    XDG_SESSION_ID=$round INVOCATION_ID=$round SHLVL=$round MAKELEVEL=$round
                "$altair" eval ${place#"${place% *}"} "$@"
                cd "$ROOT"
            done
        done
        SH;

    /**
     * @return iterable<string, array{string, string}> a shell, and what it calls
     */
    public static function shells(): iterable
    {
        yield 'sh and the native command' => ['sh', Command::native()];
        yield 'bash and the launcher' => ['bash', dirname(__DIR__, 2) . '/bin/altair'];
    }

    /**
     * @dataProvider shells
     */
    public function testALoopFromSeveralDirectoriesAndTerminalsIsOneBootUntilAnEdit(string $shell, string $altair): void
    {
        mkdir($this->shop->path('src/Deep/Deeper'), 0755, true);
        $this->pool->start();
        $options = ['--format=compact', '--verbose', '--', self::SEEN];

        $loop = Command::of(
            ['env', '-u', 'CI', $shell, '-ec', self::LOOP, '-', $altair, ...$options],
            $this->shop->root,
            environment: ['ROOT' => $this->shop->root, 'ALTAIR_NATIVE' => Command::native()] + $this->environment(),
        );

        self::assertSame(0, $loop->exitCode, $loop->errors);
        $told = [];
        foreach (explode("\n", trim($loop->output)) as $line) {
            ['result' => $value, 'diagnostics' => $diagnostics] = json_decode($line, true, flags: JSON_THROW_ON_ERROR);
            $told[] = [$value, $diagnostics['start'], $diagnostics['pool'] ?? false];
        }
        $boot = static fn (string $word): array
            => [[$word, 'first', true], ...array_fill(0, 11, [$word, 'warm', true])];
        self::assertSame([...$boot('old'), ...$boot('new')], $told);
    }
}
