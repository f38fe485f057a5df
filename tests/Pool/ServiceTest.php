<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Pool;

use Altair\Eval\Tests\Support\Command;
use Altair\Eval\Tests\Support\PoolTestCase;
use Altair\Eval\Tests\Support\ServiceManager;
use Altair\Eval\Tests\Support\TemporaryApplication;
use Altair\Eval\Tests\Support\Without;

/**
 * Services of a real systemd, which confines them as php-fpm's unit does in many distributions: all processes of a
 * service have its filters, and process 1 has none.
 */
final class ServiceTest extends PoolTestCase
{
    private const CONFINED = ['NoNewPrivileges=yes', 'SystemCallFilter=~swapon swapoff'];

    /** `ask` is a host of PHP in the service; its arguments are what confines it further. */
    private const PRELUDE = <<<'SH'
        %s
        ask() { "$@" %s -d extension=%s %s; }
        altair() { %s "$@"; }
        pool_pid() { altair pool --format=json | sed -n 's/.*"pid":\([0-9]*\),"age.*/\1/p'; }
        wait_for_pool() { until [ -n "$(pool_pid)" ]; do sleep 0.02; done; }
        SH;

    public function testProcessesOfAServiceShareAPoolWithNobodyElse(): void
    {
        ServiceManager::mustBePossible();
        $scripts = new TemporaryApplication();
        $scripts->write('ask.php', "<?php {$this->asking()} echo json_encode(\$told), \"\\n\";");
        $variables = '';
        $kept = array_intersect_key(getenv(), ['PATH' => '', 'TMPDIR' => '', 'ALTAIR_TEST_MARK' => '']);
        foreach ($this->pool->environment + $kept as $name => $value) {
            $variables .= "export $name=" . escapeshellarg($value) . "\n";
        }
        $paths = [PHP_BINARY, Without::extension(), $scripts->path('ask.php'), Command::native()];
        $prelude = sprintf(self::PRELUDE, $variables, ...array_map(escapeshellarg(...), $paths)) . "\n";
        $further = implode(' ', array_map(escapeshellarg(...), Without::under(['filter'])));
        $edit = 'echo ' . escapeshellarg("<?php return 'new';") . ' >' . escapeshellarg($this->shop->path('seen.php'));

        $services = new ServiceManager();
        $start = 'altair pool --start "$XDG_RUNTIME_DIR/altair" && wait_for_pool';
        $asks = "ask; ask; ask $further; ask; $edit; ask; ask";
        $services->add('confined', "$prelude$start; pool_pid >\"\$XDG_RUNTIME_DIR/pid\"\n$asks", self::CONFINED);
        $others = 'kill -0 "$(cat "$XDG_RUNTIME_DIR/pid")" && ask';
        $services->add('other', "$prelude$others", self::CONFINED);
        $services->add('free', "$prelude$others; $start; ask; ask");
        $told = array_map(
            static fn (string $output): array => array_map(
                static fn (string $line): array => array_slice(json_decode($line, true) ?? [$line], 0, 3),
                explode("\n", trim($output)),
            ),
            $services->run(),
        );

        // A host that evaluates by itself.
        $first = ['new', $told['other'][0][1] ?? '', false];
        $booted = [['new', 'first', true], ['new', 'warm', true]];
        self::assertSame(['other' => [$first], 'free' => [$first, ...$booted]], array_slice($told, 1));
        $alone = ['old', $first[1], false];
        self::assertSame(
            [['old', 'first', true], ['old', 'warm', true], $alone, ['old', 'warm', true], ...$booted],
            $told['confined'],
        );
    }
}
