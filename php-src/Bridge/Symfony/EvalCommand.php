<?php

declare(strict_types=1);

namespace Altair\Eval\Bridge\Symfony;

use Altair\Eval\Cli\Format;
use Altair\Eval\Cli\SnippetSource;
use Altair\Eval\EvalRequest;
use Altair\Eval\Evaluator;
use Altair\Eval\Exception\EvalException;
use Altair\Eval\Exception\InvalidRequestException;
use Altair\Eval\Support\HumanOutput;
use Symfony\Component\Console\Attribute\AsCommand;
use Symfony\Component\Console\Command\Command;
use Symfony\Component\Console\Completion\CompletionInput;
use Symfony\Component\Console\Completion\CompletionSuggestions;
use Symfony\Component\Console\Input\InputArgument;
use Symfony\Component\Console\Input\InputInterface;
use Symfony\Component\Console\Input\InputOption;
use Symfony\Component\Console\Output\ConsoleOutputInterface;
use Symfony\Component\Console\Output\OutputInterface;

// Without Symfony's Console there is no such class, and to ask for it is no error.
if (!class_exists(Command::class)) {
    return;
}

/**
 * `eval` for Symfony's Console, 5.4 to 8: `bin/console eval 'container("doctrine")->getConnection()->getDatabase()'`.
 *
 * Registered as a service, it evaluates in the project of the kernel; in a plain console application, in the working
 * directory. What it prints is what `altair eval` prints.
 */
#[AsCommand(name: 'eval', description: 'Evaluate a PHP snippet in the application, confined, in a process of its own')]
final class EvalCommand extends Command
{
    /**
     * @param Evaluator|null $evaluator what evaluates; null is one of its own
     * @param string|null $projectRoot the directory of the application; null is the kernel's, and without a kernel
     *     the working directory
     */
    public function __construct(
        private readonly ?Evaluator $evaluator = null,
        private readonly ?string $projectRoot = null,
    ) {
        parent::__construct();
    }

    protected function configure(): void
    {
        $timeout = EvalRequest::DEFAULT_TIMEOUT_MS;
        $memory = EvalRequest::DEFAULT_MEMORY_MB;
        $formats = implode(' or ', Format::names());
        $takes = InputOption::VALUE_REQUIRED;
        $flag = InputOption::VALUE_NONE;
        $this
            ->addArgument('snippet', InputArgument::OPTIONAL, 'PHP code; a single expression needs no return')
            ->addOption('file', null, $takes, 'Read the snippet from this file; - is standard input')
            ->addOption('timeout-ms', null, $takes, 'Deadline in milliseconds, boot included', $timeout)
            ->addOption('memory-mb', null, $takes, 'Memory limit in MiB', $memory)
            ->addOption('writes', null, $flag, 'Make writes to the project real')
            ->addOption('network', null, $flag, 'Open outbound connections')
            ->addOption('unsafe', null, $flag, 'Run without guards; audited')
            ->addOption('bootstrap', null, $takes, 'The file in the project that returns the container')
            ->addOption('format', null, $takes, $formats, Format::Human->value)
            ->setHelp(<<<'HELP'
                In the snippet <info>container()</info> is the container, and <info>container('id')</info> a service:

                  <info>%command.full_name% 'container(App\Repository\UserRepository::class)->find(1)'</info>

                Of a kernel's services the public ones can be had; with <info>framework.test</info>, private ones, too.
                Writes to the project are thrown away, and connections are refused, unless an option allows them.

                The exit code is 0 after a clean run, 1 after an exception, a timeout or another exit code of the
                snippet, and 2 where nothing could be run.
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
        try {
            $format = Format::named($input->getOption('format'));
            $request = new EvalRequest(
                SnippetSource::read($input->getArgument('snippet'), $input->getOption('file')),
                $this->projectRoot(),
                self::number($input, 'timeout-ms'),
                self::number($input, 'memory-mb'),
                $input->getOption('writes'),
                $input->getOption('network'),
                $input->getOption('unsafe'),
                $input->getOption('bootstrap'),
            );
            // Once is cheaper without a template.
            $result = ($this->evaluator ?? new Evaluator(warm: false))->evaluate($request);
        } catch (EvalException $refused) {
            $errors = $output instanceof ConsoleOutputInterface ? $output->getErrorOutput() : $output;
            $message = HumanOutput::line(rtrim($refused->getMessage()));
            $errors->writeln("altair: $message", OutputInterface::OUTPUT_RAW);

            return self::INVALID;
        }
        $output->write($format->render($result, $output->isDecorated()), false, OutputInterface::OUTPUT_RAW);

        return $result->ok() ? self::SUCCESS : self::FAILURE;
    }

    private function projectRoot(): string
    {
        // The application of the framework bundle has a kernel, a plain one has not.
        $application = $this->getApplication();
        $kernel = $application !== null && method_exists($application, 'getKernel') ? $application->getKernel() : null;

        return $this->projectRoot ?? $kernel?->getProjectDir() ?? (string) getcwd();
    }

    /**
     * @throws InvalidRequestException where it is none
     */
    private static function number(InputInterface $input, string $option): int
    {
        $value = $input->getOption($option);
        $number = filter_var($value, FILTER_VALIDATE_INT);

        return is_int($number)
            ? $number
            : throw new InvalidRequestException("invalid value '$value' for --$option: a whole number is needed");
    }
}
