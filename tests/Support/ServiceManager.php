<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support;

/**
 * A systemd of a test's own: process 1 of its own namespaces, below a control group of its own, with the services of
 * the test and no others. It ends with the last of them.
 */
final class ServiceManager
{
    private const PROGRAM = '/lib/systemd/systemd';

    /** Seconds that all services may take. */
    private const PATIENCE = 60;

    /** Control groups of version 2, as systems mount them. */
    private const GROUPS = ['/sys/fs/cgroup', '/sys/fs/cgroup/unified'];

    /** Its own name, number, processes and groups; nothing of it reaches the machine. */
    private const BOOT = <<<'SH'
        set -eu
        mount --make-rprivate /
        mount -t proc proc /proc
        mount -t tmpfs tmpfs /run
        umount -R /sys/fs/cgroup
        mount -t cgroup2 cgroup2 /sys/fs/cgroup
        mount -t tmpfs tmpfs /etc/systemd/system
        cp "$1"/*.service "$1"/*.target /etc/systemd/system/
        exec env -i container=test "$0" --system --unit=test.target --log-target=console --show-status=false
        SH;

    private const UNIT = <<<'UNIT'
        [Unit]
        DefaultDependencies=no
        %s
        [Service]
        Type=oneshot
        RemainAfterExit=yes
        ExecStart=/bin/sh %s
        StandardOutput=file:%s
        StandardError=inherit
        %s
        UNIT;

    private readonly TemporaryApplication $place;

    /** @var array<string, string> */
    private array $outputs = [];

    public function __construct()
    {
        $this->place = new TemporaryApplication();
    }

    /** Leaves the test out where there can be none. */
    public static function mustBePossible(): void
    {
        if (posix_geteuid() !== 0) {
            Skip::NeedsRoot->because('Only root can start a service manager.');
        }
        if (!is_executable(self::PROGRAM)) {
            Skip::NotInstalled->because('systemd is not installed, and `scripts/setup.sh drivers` would.');
        }
        if (self::groups() === null) {
            Skip::LacksKernel->because('There are no control groups of version 2.');
        }
    }

    /**
     * Adds a service, which is started when those before it have come to their end.
     *
     * @param string $script for a shell
     * @param list<string> $settings of the unit's section `[Service]`
     */
    public function add(string $name, string $script, array $settings = []): void
    {
        $after = $this->outputs === [] ? '' : 'After=' . array_key_last($this->outputs) . '.service';
        $this->outputs[$name] = $this->place->path("$name.output");
        $script = $this->place->write("$name.sh", $script);
        $unit = sprintf(self::UNIT, $after, $script, $this->outputs[$name], implode("\n", $settings));
        $this->place->write("units/$name.service", $unit . "\n");
    }

    /**
     * Runs all services to their end.
     *
     * @return array<string, string> what each has printed
     */
    public function run(): array
    {
        $units = implode('.service ', array_keys($this->outputs)) . '.service';
        $unit = "[Unit]\nDefaultDependencies=no\n";
        $last = "{$unit}After=$units\nSuccessAction=exit-force\n[Service]\nType=oneshot\nExecStart=/bin/true\n";
        $this->place->write('units/last.service', $last);
        $this->place->write('units/test.target', "{$unit}Wants=$units last.service\n");
        $group = self::groups() . '/altair-test-' . bin2hex(random_bytes(4));
        mkdir($group);
        try {
            $said = Command::of([
                'sh', '-c', 'echo $$ >"$0/cgroup.procs" && exec "$@"', $group,
                'timeout', (string) self::PATIENCE,
                'unshare', '--pid', '--mount', '--cgroup', '--ipc', '--uts', '--net', '--fork', '--kill-child',
                'sh', '-c', self::BOOT, self::PROGRAM, $this->place->path('units'),
            ]);
        } finally {
            self::remove($group);
        }
        $read = static fn (string $file): string => is_file($file) ? (string) file_get_contents($file) : $said->output;

        return array_map($read, $this->outputs);
    }

    /** Where the machine has groups of version 2. */
    private static function groups(): ?string
    {
        foreach (self::GROUPS as $directory) {
            if (is_file("$directory/cgroup.procs")) {
                return $directory;
            }
        }

        return null;
    }

    private static function remove(string $group): void
    {
        foreach (glob("$group/*", GLOB_ONLYDIR) ?: [] as $below) {
            self::remove($below);
        }
        // Its last process may be about to end.
        for ($try = 0; !@rmdir($group) && $try < 100; $try++) {
            usleep(10_000);
        }
    }
}
