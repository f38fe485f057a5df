//! Registers, signal frames and instructions of aarch64.
#![allow(unsafe_code)]

use core::arch::global_asm;
use core::mem::offset_of;

use nix::libc;

use super::context::Stack;
use super::handover::BROKEN;
use super::kernel::Call;

/// `AUDIT_ARCH_AARCH64` (linux/audit.h): not a call of a 32-bit program.
pub(crate) const ARCHITECTURE: u32 = 0xC000_00B7;

/// `io_pgetevents` (asm-generic/unistd.h), which the `libc` crate lacks for some targets.
pub(super) const SYS_IO_PGETEVENTS: libc::c_long = 292;

/// The state of the interrupted process, `struct ucontext` with its `struct sigcontext`
/// (arch/arm64/include/uapi/asm/ucontext.h, sigcontext.h).
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Context {
    flags: u64,
    link: usize,
    pub stack: Stack,
    /// The blocked signals.
    pub mask: u64,
    room_for_mask: [u64; 15],
    /// `struct sigcontext` is aligned to 16 bytes.
    padding: u64,
    fault_address: u64,
    /// `x0` to `x30`.
    x: [usize; 31],
    sp: usize,
    pc: usize,
    pstate: u64,
}

/// From the stack pointer at the rt_sigreturn(2) of a handler to the mask that it restores: the
/// pointer is at a `siginfo_t` of 128 bytes, which the context follows (`struct rt_sigframe`).
const MASK_AT: usize = 128 + offset_of!(Context, mask);

const _: () = {
    assert!(offset_of!(Context, mask) == 40);
    assert!(offset_of!(Context, fault_address) == 176);
    assert!(offset_of!(Context, pc) == 176 + 8 + 31 * 8 + 8);
};

impl Context {
    /// The call that was intercepted.
    #[inline]
    pub(crate) fn call(&self) -> Call {
        let [x0, x1, x2, x3, x4, x5, _, _, number, ..] = self.x;
        Call {
            number,
            args: [x0, x1, x2, x3, x4, x5],
        }
    }

    /// Sets what the call returns.
    #[inline]
    pub(crate) fn answer(&mut self, answer: isize) {
        let [x0, ..] = &mut self.x;
        *x0 = answer as usize;
    }

    /// Makes the process continue at an address.
    pub(super) fn continue_at(&mut self, address: usize) {
        self.pc = address;
    }

    /// Where the mask is that the intercepted rt_sigreturn(2) restores.
    pub(super) fn mask_to_restore(&self) -> usize {
        self.sp.wrapping_add(MASK_AT)
    }
}

/// What a thread of the kernel finds when it continues in the place of another.
#[derive(Debug, Default)]
#[repr(C)]
pub(super) struct Held {
    /// The id of the other one; 0 when that has ended.
    alive: u32,
    /// Not 0: the other one has handed over.
    handed: u32,
    /// The control bits of floating-point instructions.
    fpcr: u64,
    sp: usize,
    /// `x19` to `x30`.
    x: [usize; 12],
    /// `d8` to `d15`.
    d: [u64; 8],
}

const _: () = {
    assert!(offset_of!(Held, alive) == 0 && offset_of!(Held, handed) == 4);
    assert!(offset_of!(Held, fpcr) == 8);
    assert!(offset_of!(Held, sp) == 16 && offset_of!(Held, x) == 24);
    assert!(offset_of!(Held, d) == 120);
};

// The filter compares the return address of a call with the two `.._made`, whose upper halves are
// the same because of the alignment.
global_asm!(
    ".pushsection .text.altair_record,\"ax\",@progbits",
    ".balign 128",
    ".hidden altair_record_start",
    ".hidden altair_record_call",
    ".hidden altair_record_call_made",
    ".hidden altair_record_return",
    ".hidden altair_record_return_made",
    ".hidden altair_record_end",
    ".hidden altair_record_part",
    ".hidden altair_record_join",
    ".hidden altair_record_shadow",
    ".globl altair_record_start, altair_record_call, altair_record_call_made",
    ".globl altair_record_return, altair_record_return_made, altair_record_end",
    ".globl altair_record_part, altair_record_join, altair_record_shadow",
    "altair_record_start:",
    // Converts the C calling convention to the kernel's: the number, then up to six arguments.
    ".type altair_record_call, @function",
    "altair_record_call:",
    "mov x8, x0",
    "mov x0, x1",
    "mov x1, x2",
    "mov x2, x3",
    "mov x3, x4",
    "mov x4, x5",
    "mov x5, x6",
    "svc #0",
    "altair_record_call_made:",
    "ret",
    ".size altair_record_call, . - altair_record_call",
    // The return address of signal handlers: rt_sigreturn(2), which finds its frame at the stack
    // pointer.
    ".type altair_record_return, @function",
    "altair_record_return:",
    "mov x8, #{sigreturn}",
    "svc #0",
    "altair_record_return_made:",
    "brk #1",
    ".size altair_record_return, . - altair_record_return",
    "altair_record_end:",
    // clone(2) with these flags and the address of `alive`. Returns 0 in the new thread of the kernel,
    // with the stack of the old one. The old one waits, without stack, until the other has ended,
    // and returns from `.._join`, or ends the process if nothing was handed over.
    ".type altair_record_part, @function",
    "altair_record_part:",
    "mov x9, x1",
    "mov x1, #0",
    "mov x2, x9",
    "mov x3, #0",
    "mov x4, x9",
    "mov x8, #{clone}",
    "svc #0",
    "cmp x0, #0",
    "b.gt 3f",
    "ret",
    "2: mov x0, x9",
    "mov x1, #{wait}",
    "mov x3, #0",
    "mov x8, #{futex}",
    "svc #0",
    "3: ldar w2, [x9]",
    "cbnz w2, 2b",
    "ldr w10, [x9, #4]",
    "cbnz w10, 4f",
    "mov x0, #{broken}",
    "mov x8, #{exit_group}",
    "svc #0",
    "brk #1",
    "4:",
    "ldr x10, [x9, #8]",
    "msr fpcr, x10",
    "ldr x10, [x9, #16]",
    "mov sp, x10",
    "ldp x19, x20, [x9, #24]",
    "ldp x21, x22, [x9, #40]",
    "ldp x23, x24, [x9, #56]",
    "ldp x25, x26, [x9, #72]",
    "ldp x27, x28, [x9, #88]",
    "ldp x29, x30, [x9, #104]",
    "ldp d8, d9, [x9, #120]",
    "ldp d10, d11, [x9, #136]",
    "ldp d12, d13, [x9, #152]",
    "ldp d14, d15, [x9, #168]",
    "ret",
    ".size altair_record_part, . - altair_record_part",
    // Ends the calling thread of the kernel. The other one continues with its stack and registers.
    ".type altair_record_join, @function",
    "altair_record_join:",
    "mrs x10, fpcr",
    "str x10, [x0, #8]",
    "mov x10, sp",
    "str x10, [x0, #16]",
    "stp x19, x20, [x0, #24]",
    "stp x21, x22, [x0, #40]",
    "stp x23, x24, [x0, #56]",
    "stp x25, x26, [x0, #72]",
    "stp x27, x28, [x0, #88]",
    "stp x29, x30, [x0, #104]",
    "stp d8, d9, [x0, #120]",
    "stp d10, d11, [x0, #136]",
    "stp d12, d13, [x0, #152]",
    "stp d14, d15, [x0, #168]",
    "mov w10, #1",
    "str w10, [x0, #4]",
    // Before the kernel clears `alive`.
    "dmb ish",
    "mov x0, #0",
    "mov x8, #{exit}",
    "svc #0",
    "brk #1",
    ".size altair_record_join, . - altair_record_join",
    // Whether there is a guarded control stack: CHKFEAT clears bit 0 then, and does nothing on
    // processors without it.
    ".type altair_record_shadow, @function",
    "altair_record_shadow:",
    "mov x16, #1",
    "hint #40",
    "eor x0, x16, #1",
    "ret",
    ".size altair_record_shadow, . - altair_record_shadow",
    ".popsection",
    sigreturn = const libc::SYS_rt_sigreturn,
    clone = const libc::SYS_clone,
    futex = const libc::SYS_futex,
    exit = const libc::SYS_exit,
    exit_group = const libc::SYS_exit_group,
    // Not private: neither is the kernel's wake at the end of a thread (set_tid_address(2)).
    wait = const libc::FUTEX_WAIT,
    broken = const BROKEN,
);
