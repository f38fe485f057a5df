<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Escape;

use Altair\Eval\Tests\Support\TemporaryApplication;

/**
 * The files that every run starts from and can read: the extension and a directory of ini files.
 *
 * Everybody may write to them, so that only the guards stand before them.
 */
final class Surroundings
{
    /** A directory that PHP scans for ini files. Its program is what PHP sends mail with. */
    public readonly string $configuration;

    public readonly string $extension;

    /** @var array<string, string> */
    private array $kept = [];

    public function __construct(private readonly TemporaryApplication $directory)
    {
        $program = $directory->write('ini/escaped', EscapedProgram::bytes(), 0755);
        $this->configuration = $directory->path('ini');
        $directory->write(
            'ini/escape.ini',
            "sendmail_path=$program\nsqlite3.extension_dir=$this->configuration\n",
            0666,
        );
        chmod($this->configuration, 0777);
        $this->extension = $directory->path('altair_eval.so');
        $built = getenv('EXTENSION');
        $directory->write('altair_eval.so', $built === false ? '' : (string) file_get_contents($built), 0666);
    }

    public function keep(): void
    {
        $this->kept = $this->contents();
    }

    /**
     * @return list<string> files that are another than when they were kept; they are put back
     */
    public function changes(): array
    {
        $changes = array_keys([
            ...array_diff_assoc($this->contents(), $this->kept),
            ...array_diff_assoc($this->kept, $this->contents()),
        ]);
        foreach ($changes as $path) {
            $this->directory->remove($path);
            if (isset($this->kept[$path])) {
                $this->directory->write($path, $this->kept[$path], 0666);
            }
        }

        return $changes;
    }

    /**
     * @return array<string, string> path => content
     */
    private function contents(): array
    {
        $contents = ['altair_eval.so' => (string) file_get_contents($this->extension)];
        foreach (array_diff(scandir($this->configuration), ['.', '..']) as $name) {
            $contents["ini/$name"] = (string) file_get_contents("$this->configuration/$name");
        }

        return $contents;
    }
}
