<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Escape;

use Altair\Eval\Tests\Support\TemporaryApplication;
use PDO;
use RuntimeException;

/**
 * A project with what projects have: Composer's class loader, data, an archive, ten thousand files.
 */
final class RealProject
{
    /** `many/d0` and on. */
    public const DIRECTORIES = 100;

    /** In each of them, `f0.txt` and on. */
    public const FILES_EACH = 100;

    /** MD5 of the contents of all of these, in order. */
    public readonly string $digest;

    private readonly TemporaryApplication $application;

    public function __construct(Setting $setting)
    {
        $this->application = $application = new TemporaryApplication([
            'composer.json' => json_encode(['autoload' => [
                'psr-4' => ['Life\\' => 'src/'],
                'classmap' => ['old/'],
                'files' => ['src/functions.php'],
            ]], JSON_THROW_ON_ERROR),
            'src/functions.php' => '<?php namespace Life; function helper(): string { return "helped"; }',
            'src/Mapped/Deep.php' => '<?php namespace Life\Mapped;'
                . ' class Deep { public function name(): string { return self::class; } }',
            'old/anything.php' => '<?php'
                . ' class UnmappedByName { public function name(): string { return self::class; } }',
            'lines.csv' => "1,one\n2,two\n",
            'config.php' => '<?php return ["key" => "value"];',
            'doc.xml' => '<r><a>text</a></r>',
            'entity.xml' => '<!DOCTYPE r [<!ENTITY e SYSTEM "entity.txt">]><r>&e;</r>',
            'entity.txt' => 'inside the project',
        ]);
        (new PDO('sqlite:' . $application->path('data.db')))->exec('CREATE TABLE t (v); INSERT INTO t VALUES (1)');
        exec(escapeshellarg(PHP_BINARY) . ' -d phar.readonly=0 -r ' . escapeshellarg(
            '$p = new Phar($argv[1]); $p["inside.txt"] = "inside"; $p["code.php"] = "<?php return 6 * 7;";',
        ) . ' -- ' . escapeshellarg($application->path('archive.phar')));
        $contents = '';
        for ($directory = 0; $directory < self::DIRECTORIES; $directory++) {
            mkdir($application->path("many/d$directory"), 0755, true);
            for ($file = 0; $file < self::FILES_EACH; $file++) {
                $contents .= $content = "content of $directory/$file\n";
                file_put_contents($application->path("many/d$directory/f$file.txt"), $content);
            }
        }
        $this->digest = md5($contents);
        exec('cd ' . escapeshellarg($application->root) . ' && COMPOSER_ALLOW_SUPERUSER=1 COMPOSER_DISABLE_NETWORK=1'
            . ' composer --no-interaction --quiet dump-autoload --optimize', $output, $code);
        if ($code !== 0) {
            throw new RuntimeException('Composer: ' . implode("\n", $output));
        }
        if (posix_geteuid() === 0) {
            $application->giveTo($setting->uid(), $setting->gid());
        }
    }

    public function root(): string
    {
        return $this->application->root;
    }
}
