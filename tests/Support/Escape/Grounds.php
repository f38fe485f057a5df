<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Escape;

use Altair\Eval\Tests\Support\TemporaryApplication;

/**
 * The files that an attack finds: a project, files beside it and far from it.
 *
 * Everything outside of the project can be read and written by everybody, so that only the guards stand before it.
 */
final class Grounds
{
    public readonly string $project;

    /** A file beside the project. */
    public readonly string $sibling;

    /** A directory that everybody may write to, neither in the project nor near it. */
    public readonly string $outside;

    private readonly TemporaryApplication $directory;

    private readonly string $untouched;

    /** @param string $outside where there is room for a directory that is far from the project */
    public function __construct(Setting $setting, string $secret, string $outside)
    {
        $this->directory = new TemporaryApplication([
            'app/data.txt' => 'data',
            'app/src/Kept.php' => '<?php return "kept";',
            'app/vendor/autoload.php' => '<?php',
            'app/.altair/events.jsonl' => "{}\n",
            'app/.altair/more/deep' => '',
            'sibling.txt' => $secret,
        ]);
        $this->project = $this->directory->path('app');
        $this->sibling = $this->directory->path('sibling.txt');
        $this->outside = $outside . '/' . bin2hex(random_bytes(4));
        mkdir($this->outside);
        $this->directory->write('app/bin/escaped', EscapedProgram::bytes(), 0755);
        symlink($this->outside . '/secret.txt', "$this->project/link");
        symlink($this->outside, "$this->project/directory-link");
        file_put_contents("$this->outside/secret.txt", $secret);
        file_put_contents("$this->outside/secret.php", "<?php return '$secret';");
        file_put_contents("$this->outside/run", "#!/bin/sh\necho\n");
        foreach (['secret.txt' => 0666, 'secret.php' => 0666, 'run' => 0777, '' => 0777] as $name => $mode) {
            chmod("$this->outside/$name", $mode);
        }
        if (posix_geteuid() === 0) {
            $this->directory->giveTo($setting->uid(), $setting->gid());
            foreach (['secret.txt', 'secret.php', 'run'] as $name) {
                chown("$this->outside/$name", $setting->uid());
                chgrp("$this->outside/$name", $setting->gid());
            }
        }
        $this->untouched = $this->state();
    }

    /** Whether a state is that of before the first attack. */
    public function isUntouched(string $state): bool
    {
        return $state === $this->untouched;
    }

    /** Every file with all that the kernel knows of it: the time of the last change covers content and metadata. */
    public function state(): string
    {
        return (string) shell_exec(
            'find ' . escapeshellarg($this->directory->root) . ' ' . escapeshellarg($this->outside)
                . ' -printf "%p\t%y\t%m\t%U\t%G\t%s\t%n\t%T@\t%C@\t%l\n"',
        );
    }
}
