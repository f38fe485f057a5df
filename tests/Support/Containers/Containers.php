<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Containers;

use Altair\Eval\Tests\Support\Database\MariaDb;
use Altair\Eval\Tests\Support\DockerEngine;
use Altair\Eval\Tests\Support\Library;
use Altair\Eval\Tests\Support\TemporaryApplication;
use RuntimeException;

/**
 * Applications in containers of the tests' Docker engine, and a database that they reach by the machine's loopback.
 */
final class Containers
{
    /** What the containers call the database's host, as Compose would. */
    private const DATABASE = 'db';

    /** Where containers have the applications. */
    private const APPLICATIONS = '/srv/applications';

    /** Seconds after which a container that hangs is removed. */
    private const PATIENCE = 60;

    private readonly DockerEngine $engine;

    private readonly MariaDb $database;

    private readonly TemporaryApplication $files;

    /** @var array<string, Setting>|null */
    private ?array $settings = null;

    public function __construct()
    {
        $this->engine = DockerEngine::shared();
        $this->database = MariaDb::shared();
        $this->database->reset();
        PhpImage::in($this->engine);
        $applications = [
            'shop' => ['vendor/autoload.php' => "<?php\n"],
            'symfony' => Library::symfony(),
            'laravel' => Library::laravel(),
        ];
        $files = [];
        foreach (['probe.php', 'time.php'] as $script) {
            $files[$script] = (string) file_get_contents(__DIR__ . "/$script");
        }
        foreach ($applications as $name => $contents) {
            foreach ($contents as $path => $text) {
                $files["$name/$path"] = $text;
            }
        }
        $this->files = new TemporaryApplication($files);
        mkdir($this->files->path('tmp'));
    }

    /**
     * @return array<string, Setting> by name
     */
    public function settings(): array
    {
        return $this->settings ??= Setting::all($this->profile('docker'), $this->profile('kubernetes'));
    }

    public function setting(string $name): Setting
    {
        return $this->settings()[$name];
    }

    /** Writes a profile, and gives its path. */
    public function write(string $profile): string
    {
        return $this->files->write('profile-' . bin2hex(random_bytes(4)) . '.json', $profile);
    }

    /**
     * Runs a command in a container of its own.
     *
     * @param list<string> $flags
     * @param non-empty-list<string> $command
     * @return array{int, string, string} status, output, errors
     */
    public function docker(array $flags, array $command): array
    {
        return $this->execute([
            'docker', "--host={$this->engine->host()}", 'run', '--rm', '--network=host', '--env=ALTAIR_EVAL_POOL=off',
            "--volume={$this->files->root}:" . self::APPLICATIONS, '--workdir=' . self::APPLICATIONS,
            ...$flags, PhpImage::ALTAIR, ...$command,
        ]);
    }

    /**
     * @return array<string, mixed> the answers of probe.php in a setting
     */
    public function probe(Setting $setting, int $calls): array
    {
        $this->files->giveTo($setting->uid, $setting->uid);
        $before = $this->files->tree();
        $port = $this->database->port();
        $directory = $this->applications($setting);
        // The machine has no name for the database but its own, by which its clients take the socket.
        $name = $setting->flags === null ? [] : [self::DATABASE . ":$port"];
        $answers = $this->answers(
            $setting,
            ['php', "$directory/probe.php", $directory, (string) $calls, "127.0.0.1:$port", ...$name],
            ['SHOP_USER' => $this->database->user(), 'SHOP_PASSWORD' => $this->database->password()],
        );
        $answers['left'] = [...$answers['left'], ...array_values(array_diff($this->files->tree(), $before))];

        return $answers;
    }

    /**
     * How many times the time outside of containers a warm call takes in a setting: the median of rounds, each with the
     * least of many calls here and there, one right after the other, as a machine is not equally fast for long. Of more
     * rounds where it is more than `$most`.
     */
    public function slowdown(Setting $setting, float $most): float
    {
        $outside = $this->setting('no container, ' . ($setting->uid === Setting::ROOT ? 'root' : 'user'));
        $ratios = [];
        do {
            $least = [];
            foreach ([$setting, $outside] as $index => $where) {
                $this->files->giveTo($where->uid, $where->uid);
                $directory = $this->applications($where);
                $answer = $this->answers($where, ['php', "$directory/time.php", $directory, '50']);
                $least[$index] = $answer['least_ms'];
            }
            $ratios[] = $least[0] / $least[1];
            sort($ratios);
            $rounds = count($ratios);
            $median = ($ratios[intdiv($rounds - 1, 2)] + $ratios[intdiv($rounds, 2)]) / 2;
        } while ($rounds < 3 || $rounds < 15 && $median > $most);

        return $median;
    }

    /**
     * @return array<string, mixed> what `altair doctor` says in a setting
     */
    public function doctor(Setting $setting): array
    {
        return $this->answers($setting, ['altair', 'doctor', '--format=json']);
    }

    /** The directory of the applications, as it is called in a setting. */
    private function applications(Setting $setting): string
    {
        return $setting->flags === null ? $this->files->root : self::APPLICATIONS;
    }

    /** The file with a profile that the doctor prints in a container. */
    private function profile(string $kind): string
    {
        [$status, $output, $errors] = $this->docker([], ['altair', 'doctor', "--$kind-profile"]);

        return $status === 0 ? $this->write($output) : throw new RuntimeException($errors);
    }

    /**
     * @param non-empty-list<string> $command
     * @param array<string, string> $environment
     * @return array<string, mixed> the JSON that a command prints
     */
    private function answers(Setting $setting, array $command, array $environment = []): array
    {
        $command = $setting->flags === null
            ? $this->outside($setting, $command)
            : $this->inside($setting, $command, array_keys($environment));
        [$status, $output, $errors] = $this->execute($command, $environment);
        $answers = json_decode($output, true);

        return is_array($answers) ? $answers
            : throw new RuntimeException("$setting->name: status $status\n$output\n$errors");
    }

    /**
     * @param non-empty-list<string> $command
     * @param list<string> $variables that the container has, too
     * @return non-empty-list<string>
     */
    private function inside(Setting $setting, array $command, array $variables): array
    {
        return [
            'docker', "--host={$this->engine->host()}", 'run', '--rm', '--network=host', '--env=ALTAIR_EVAL_POOL=off',
            '--add-host=' . self::DATABASE . ':127.0.0.1', "--user=$setting->uid:$setting->uid",
            "--volume={$this->files->root}:" . self::APPLICATIONS, '--workdir=' . self::APPLICATIONS . '/shop',
            ...array_map(static fn (string $name): string => "--env=$name", $variables),
            ...$setting->flags ?? [], PhpImage::ALTAIR, ...$command,
        ];
    }

    /**
     * @param non-empty-list<string> $command
     * @return non-empty-list<string>
     */
    private function outside(Setting $setting, array $command): array
    {
        $php = [PHP_BINARY, '-d', 'extension=' . PhpImage::extension()];
        $program = $command[0] === 'php' ? $php : [PhpImage::native()];
        $user = ["--reuid=$setting->uid", "--regid=$setting->uid", '--clear-groups'];

        return ['setpriv', ...$user, ...$program, ...array_slice($command, 1)];
    }

    /**
     * @param non-empty-list<string> $command
     * @param array<string, string> $environment
     * @return array{int, string, string} status, output, errors
     */
    private function execute(array $command, array $environment = []): array
    {
        $streams = [tmpfile(), tmpfile()];
        $process = proc_open(
            ['timeout', '--kill-after=1', (string) self::PATIENCE, ...$command],
            [['file', '/dev/null', 'r'], ...$streams],
            $pipes,
            '/',
            $environment + [
                'TMPDIR' => $this->files->path('tmp'),
                'ALTAIR_EVAL_EXTENSION' => PhpImage::extension(),
                'ALTAIR_EVAL_POOL' => 'off',
            ] + getenv(),
        );
        $status = proc_close($process ?: throw new RuntimeException('No process.'));
        $read = static function ($stream): string {
            rewind($stream);

            return (string) stream_get_contents($stream);
        };

        return [$status, ...array_map($read, $streams)];
    }
}
