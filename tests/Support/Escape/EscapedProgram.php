<?php

declare(strict_types=1);

namespace Altair\Eval\Tests\Support\Escape;

/**
 * A program that needs nothing but the kernel: no shell, no interpreter, no library, none of which a private root has.
 *
 * It prints the mark `escaped`, stops itself so that it can be looked at, and ends when it is continued.
 */
final class EscapedProgram
{
    /** write(1, mark, 9); kill(getpid(), SIGSTOP); exit_group(0) */
    private const CODE = [
        'x86_64' => 'b801000000bf01000000488d3525000000ba090000000f05b8270000000f05'
            . '89c7be13000000b83e0000000f0531ffb8e70000000f05',
        'aarch64' => '200080d281010010220180d2080880d2010000d4881580d2010000d4610280d2281080d2010000d4'
            . '000080d2c80b80d2010000d4',
    ];

    /** `e_machine` of an ELF file. */
    private const MACHINE = ['x86_64' => 62, 'aarch64' => 183];

    private const ADDRESS = 0x400000;
    private const HEADERS = 64 + 56;

    /** The file's content: an ELF header, one loadable segment, the code. */
    public static function bytes(): string
    {
        $machine = php_uname('m');
        $code = hex2bin(self::CODE[$machine]) . Run::mark('escaped');
        $size = self::HEADERS + strlen($code);
        $header = "\x7fELF\x02\x01\x01" . str_repeat("\0", 9)
            . pack('vvVPPPV', 2, self::MACHINE[$machine], 1, self::ADDRESS + self::HEADERS, 64, 0, 0)
            . pack('vvvvvv', 64, 56, 1, 64, 0, 0);
        $segment = pack('VVPPPPPP', 1, 5, 0, self::ADDRESS, self::ADDRESS, $size, $size, 0x1000);

        return $header . $segment . $code;
    }
}
