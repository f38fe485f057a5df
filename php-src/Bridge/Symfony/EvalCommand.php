<?php

declare(strict_types=1);

namespace Altair\Eval\Bridge\Symfony;

use Altair\Eval\Cli\Format;
use Altair\Eval\Cli\RequestOptions;
use Altair\Eval\Cli\SnippetSource;
use Altair\Eval\EvalRequest;
use Altair\Eval\EvalResult;
use Altair\Eval\Evaluator;
use Altair\Eval\Exception\EvalException;
use Altair\Eval\Exception\InvalidRequestException;
use Altair\Eval\Support\HumanOutput;
use Altair\Eval\Support\Variables;
use Symfony\Component\Console\Attribute\AsCommand;
use Symfony\Component\Console\Command\Command;
use Symfony\Component\Console\Completion\CompletionInput;
use Symfony\Component\Console\Completion\CompletionSuggestions;
use Symfony\Component\Console\Input\InputArgument;
use Symfony\Component\Console\Input\InputInterface;
use Symfony\Component\Console\Input\InputOption;
use Symfony\Component\Console\Output\ConsoleOutputInterface;
use Symfony\Component\Console\Output\OutputInterface;
use Symfony\Component\Console\Output\StreamOutput;
use Symfony\Component\HttpKernel\KernelInterface;

// Without Symfony's Console the class is not declared, and autoloading it is not an error.
if (!class_exists(Command::class)) {
    return;
}

/**
 * `eval` for Symfony's Console, 5.4 to 8: `bin/console eval 'container("doctrine")->getConnection()->getDatabase()'`.
 *
 * As a service it evaluates in the project of the kernel; in a plain console application, in the working directory. It
 * prints the same as `altair eval`.
 */
#[AsCommand(name: 'eval', description: 'Evaluate a PHP snippet in the application, confined, in a process of its own')]
final class EvalCommand extends Command
{
    /**
     * @param Evaluator|null $evaluator the evaluator; null creates one
     * @param string|null $projectRoot the directory of the application; null is the kernel's, or without a kernel the
     *     working directory
     */
    public function __construct(
        private readonly ?Evaluator $evaluator = null,
        private readonly ?string $projectRoot = null,
    ) {
        parent::__construct();
    }

    protected function configure(): void
    {
        if (!self::hasExtension()) {
            // Whatever is given, execute() says why it does not run.
            $this->ignoreValidationErrors();
            $this->setHelp(self::withoutExtension());

            return;
        }
        $timeout = EvalRequest::DEFAULT_TIMEOUT_MS;
        $memory = EvalRequest::DEFAULT_MEMORY_MB;
        $formats = implode(', ', Format::names()) . '; with --verbose the last two show what is as it should be, too';
        $takes = InputOption::VALUE_REQUIRED;
        $flag = InputOption::VALUE_NONE;
        $this
            ->addArgument('snippet', InputArgument::OPTIONAL, 'PHP code; its last expression or return is the result')
            ->addOption('file', null, $takes, 'Read the snippet from this file; - is standard input')
            ->addOption('timeout-ms', null, $takes, 'Deadline in milliseconds, boot included', $timeout)
            ->addOption('memory-mb', null, $takes, 'Memory limit in MiB', $memory)
            ->addOption('writes', null, $flag, 'Make writes to the project and its databases real')
            ->addOption('rollback', null, $flag, 'Let database sessions write, and roll all of it back')
            ->addOption('database', null, $takes, 'What database sessions may do: read-only, rollback or write')
            ->addOption('queries', null, $flag, 'Tell what databases were asked, and from where')
            ->addOption(
                'arg',
                null,
                $takes | InputOption::VALUE_IS_ARRAY,
                'A variable of the snippet and its text, as in id=7',
            )
            ->addOption(
                'arg-json',
                null,
                $takes | InputOption::VALUE_IS_ARRAY,
                'A variable of the snippet as JSON, as in ids=[1,2]',
            )
            ->addOption('depth', null, $takes, 'How deep arrays and objects are shown, 1 to 10')
            ->addOption('max-items', null, $takes, 'How many items of each array, object or iterable are shown')
            ->addOption('max-string', null, $takes, 'How many bytes of each string are shown')
            ->addOption('diff', null, $flag, 'Show what changed in text files as a diff')
            ->addOption('network', null, $flag, 'Open outbound connections')
            ->addOption('unsafe', null, $flag, 'Run without guards; audited')
            ->addOption('bootstrap', null, $takes, 'The file in the project that returns the container')
            ->addOption(
                'service',
                null,
                $takes | InputOption::VALUE_IS_ARRAY,
                'What may be connected to, host:port or a socket, in place of what the environment names; none',
            )
            ->addOption(
                'read',
                null,
                $takes | InputOption::VALUE_IS_ARRAY,
                'A file or directory that may be read beside the project',
            )
            // The console of a kernel has an option env of its own, which names the kernel's environment.
            ->addOption(
                'pass-env',
                null,
                $takes | InputOption::VALUE_IS_ARRAY,
                'A variable of the environment that the run gets, although it would be withheld',
            )
            ->addOption('no-redact', null, $flag, 'Show the values of variables whose names look secret')
            ->addOption('format', null, $takes, $formats, Format::Human->value)
            ->setHelp(<<<'HELP'
                In the snippet <info>container()</info> is the container, and <info>container('id')</info> a service:

                  <info>%command.full_name% 'container(App\Repository\UserRepository::class)->find(1)'</info>

                Only a kernel's public services are available; with <info>framework.test</info>, private ones, too.
                Writes to the project are thrown away, database sessions are read-only, and connections to others than
                the application's own services are refused, unless an option allows them.

                The exit code is 0 after a clean run, 1 after an exception, a timeout or another exit code of the
                snippet, and 2 if the run is refused.
                HELP);
    }

    public function complete(CompletionInput $input, CompletionSuggestions $suggestions): void
    {
        if ($input->mustSuggestOptionValuesFor('format')) {
            $suggestions->suggestValues(Format::names());
        }
    }

    protected function execute(InputInterface $input, OutputInterface $output): int
    {
        if (!self::hasExtension()) {
            $errors = $output instanceof ConsoleOutputInterface ? $output->getErrorOutput() : $output;
            $raw = OutputInterface::OUTPUT_RAW | OutputInterface::VERBOSITY_QUIET;
            $errors->writeln('altair: ' . self::withoutExtension(), $raw);

            return self::INVALID;
        }
        try {
            $format = Format::named(self::text($input, 'format') ?? '');
            $snippet = $input->getArgument('snippet');
            $request = new EvalRequest(
                SnippetSource::read($snippet === null ? null : (string) $snippet, self::text($input, 'file')),
                $this->projectRoot(),
                self::number($input, 'timeout-ms'),
                self::number($input, 'memory-mb'),
                (bool) $input->getOption('writes'),
                (bool) $input->getOption('network'),
                (bool) $input->getOption('unsafe'),
                self::text($input, 'bootstrap'),
                RequestOptions::services(self::texts($input, 'service')),
                RequestOptions::readable(self::texts($input, 'read')),
                redact: !$input->getOption('no-redact'),
                database: $input->getOption('rollback') ? 'rollback' : self::text($input, 'database'),
                queries: (bool) $input->getOption('queries'),
                arguments: RequestOptions::arguments(self::texts($input, 'arg'), self::texts($input, 'arg-json')),
                depth: self::numberOrNull($input, 'depth'),
                maxItems: self::numberOrNull($input, 'max-items'),
                maxString: self::numberOrNull($input, 'max-string'),
                diff: (bool) $input->getOption('diff'),
                env: self::texts($input, 'pass-env'),
            );
            // This process ends, but the pool may have a template.
            $evaluator = $this->evaluator ?? new Evaluator();
            $result = Variables::with($this->environment(), static fn () => $evaluator->evaluate($request));
        } catch (EvalException $refused) {
            $errors = $output instanceof ConsoleOutputInterface ? $output->getErrorOutput() : $output;
            $message = HumanOutput::line(rtrim($refused->getMessage()));
            // Like the console's own errors, also with --quiet.
            $errors->writeln("altair: $message", OutputInterface::OUTPUT_RAW | OutputInterface::VERBOSITY_QUIET);

            return self::INVALID;
        }
        $terminal = $output instanceof StreamOutput && stream_isatty($output->getStream());
        $text = $format->render(self::inOwnWords($result), $output->isDecorated(), $output->isVerbose(), $terminal);
        $output->write($text, false, OutputInterface::OUTPUT_RAW);

        return $result->ok() ? self::SUCCESS : self::FAILURE;
    }

    /** The result with the names that this command has for what allows something. */
    private static function inOwnWords(EvalResult $result): EvalResult
    {
        $diagnostics = $result->diagnostics;
        foreach ($diagnostics['blocked'] ?? [] as $n => ['lift' => $lift]) {
            if (str_starts_with($lift ?? '', '--env=')) {
                $diagnostics['blocked'][$n]['lift'] = '--pass-env=' . substr($lift, strlen('--env='));
            }
        }

        return new EvalResult(
            $result->result,
            $result->stdout,
            $result->stderr,
            $result->exception,
            $result->durationMs,
            $result->memoryPeakBytes,
            $result->exitCode,
            $result->timedOut,
            $diagnostics,
        );
    }

    private static function hasExtension(): bool
    {
        return extension_loaded('altair_eval');
    }

    /** How to get the extension, which has the evaluator: Composer installs none. */
    private static function withoutExtension(): string
    {
        return 'This PHP (' . PHP_VERSION . ', ' . PHP_BINARY . ') does not load the extension altair_eval, which this '
            . "command needs.\n`make install` in " . dirname(__DIR__, 3) . ' builds it and enables it for every SAPI; '
            . "`altair doctor` says whether it works.";
    }

    private function projectRoot(): string
    {
        return $this->projectRoot ?? $this->kernel()?->getProjectDir() ?? (string) getcwd();
    }

    /**
     * With these variables the run boots the same kernel as this console, even if an option such as `--env` chose it.
     *
     * @return array<string, string>
     */
    private function environment(): array
    {
        $kernel = $this->kernel();

        return $kernel === null ? [] : [
            'APP_ENV' => $kernel->getEnvironment(),
            'APP_DEBUG' => $kernel->isDebug() ? '1' : '0',
            'KERNEL_CLASS' => $kernel::class,
        ];
    }

    /** The application of the framework bundle has a kernel; a plain one does not. */
    private function kernel(): ?KernelInterface
    {
        $application = $this->getApplication();

        return $application !== null && method_exists($application, 'getKernel') ? $application->getKernel() : null;
    }

    /**
     * @throws InvalidRequestException where it is given and none
     */
    private static function numberOrNull(InputInterface $input, string $option): ?int
    {
        return self::text($input, $option) === null ? null : self::number($input, $option);
    }

    /**
     * @throws InvalidRequestException where it is none
     */
    private static function number(InputInterface $input, string $option): int
    {
        $value = self::text($input, $option);
        $number = filter_var($value, FILTER_VALIDATE_INT);

        return is_int($number)
            ? $number
            : throw new InvalidRequestException("invalid value '$value' for --$option: a whole number is needed");
    }

    /**
     * @return list<string>
     */
    private static function texts(InputInterface $input, string $option): array
    {
        return array_map(strval(...), array_values((array) $input->getOption($option)));
    }

    /**
     * @throws InvalidRequestException if a program has passed another type
     */
    private static function text(InputInterface $input, string $option): ?string
    {
        $value = $input->getOption($option);

        return match (true) {
            $value === null => null,
            is_scalar($value) => (string) $value,
            default => throw new InvalidRequestException("invalid value for --$option: a text is needed"),
        };
    }
}
