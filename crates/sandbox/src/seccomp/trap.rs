//! The filter by which the recorder of boot intercepts calls ([`crate::Recorder`]).

use std::collections::BTreeMap;
use std::io;

use nix::errno::Errno;
use nix::libc::{self, SYS_seccomp, c_long};
use seccompiler::BpfProgram;

use super::install;
use super::number_search::instruction;
use super::number_search::{self, IF_AT_LEAST, IF_EQUAL, LOAD, NUMBER, Program, RETURN};

/// The offsets in `struct seccomp_data` (linux/seccomp.h), both architectures being little-endian.
const ARCHITECTURE: u32 = 4;
const ADDRESS_LOW: u32 = 8;
const ADDRESS_HIGH: u32 = 12;

/// One more than the highest number of a call.
const NUMBERS: u32 = 512;
/// From this number on, calls are those of the x32 ABI (asm/unistd.h).
const X32: u32 = 0x4000_0000;

/// What is intercepted, and what is not.
pub(crate) struct Trap {
    /// `AUDIT_ARCH_…`: calls of others are intercepted.
    pub(crate) architecture: u32,
    /// Which calls are intercepted, by number.
    pub(crate) seen: fn(c_long) -> bool,
    /// The addresses after the instructions whose calls are not, in the same 4 GiB.
    pub(crate) exempt: [usize; 2],
    /// What the handler of the signal gets as `si_errno`.
    pub(crate) mark: u16,
}

/// A filter that is ready.
pub(crate) struct Compiled(BpfProgram);

impl Trap {
    /// Compiles it.
    ///
    /// The search for the number comes first: the kernel then knows which calls are always
    /// permitted, and does not run the filter for them.
    pub(crate) fn compile(&self) -> Compiled {
        let trap = returned(libc::SECCOMP_RET_TRAP | u32::from(self.mark));
        let line = self.line(trap.clone());
        let mut lines = BTreeMap::new();
        for number in 0..NUMBERS {
            if (self.seen)(c_long::from(number)) {
                lines.insert(number, line.clone());
            }
        }
        // Whoever is recorded installs no filter: it would be gone with the thread.
        if let Ok(number) = u32::try_from(SYS_seccomp) {
            let refused = libc::SECCOMP_RET_ERRNO | Errno::EPERM as u32;
            lines.insert(number, returned(refused));
        }
        let mut program = vec![
            instruction(LOAD, ARCHITECTURE, 0, 0),
            instruction(IF_EQUAL, self.architecture, 1, 0),
        ];
        program.extend(trap.clone());
        program.extend([
            instruction(LOAD, NUMBER, 0, 0),
            instruction(IF_AT_LEAST, X32, 0, 1),
        ]);
        program.extend(trap);
        program.extend(number_search::program(
            lines,
            returned(libc::SECCOMP_RET_ALLOW),
        ));
        Compiled(program)
    }

    /// The program for a call that is intercepted.
    fn line(&self, trap: Program) -> Program {
        let [call, signal_return] = self.exempt.map(|address| address as u32);
        let [high, _] = self.exempt.map(|address| (address as u64 >> 32) as u32);
        let mut line = vec![
            instruction(LOAD, ADDRESS_LOW, 0, 0),
            instruction(IF_EQUAL, call, 1, 0),
            instruction(IF_EQUAL, signal_return, 0, 3),
            instruction(LOAD, ADDRESS_HIGH, 0, 0),
            instruction(IF_EQUAL, high, 0, 1),
        ];
        line.extend(returned(libc::SECCOMP_RET_ALLOW));
        line.extend(trap);
        line
    }
}

fn returned(answer: u32) -> Program {
    vec![instruction(RETURN, answer, 0, 0)]
}

impl Compiled {
    /// The program.
    #[cfg(test)]
    pub(super) fn instructions(&self) -> &[seccompiler::sock_filter] {
        &self.0
    }

    /// Installs it on the calling thread.
    ///
    /// # Errors
    /// Those of seccomp(2).
    pub(crate) fn take(&self) -> io::Result<()> {
        // Unprivileged processes need it to install a filter (seccomp(2)). If a filter refuses it,
        // the call after it tells.
        let _ = nix::sys::prctl::set_no_new_privs();
        Ok(install::in_addition(&self.0)?)
    }
}
