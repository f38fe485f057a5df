//! Registers, signal frames and instructions of x86-64.
#![allow(unsafe_code)]

use core::arch::global_asm;
use core::mem::offset_of;

use nix::libc;

use super::context::Stack;
use super::handover::BROKEN;
use super::kernel::Call;

/// `AUDIT_ARCH_X86_64` (linux/audit.h): not a call of a 32-bit program.
pub(crate) const ARCHITECTURE: u32 = 0xC000_003E;

/// `io_pgetevents` (asm/unistd_64.h), which the `libc` crate lacks for some targets.
pub(super) const SYS_IO_PGETEVENTS: libc::c_long = 333;

/// The state of the interrupted process, `struct ucontext` with its `struct sigcontext`
/// (asm-generic/ucontext.h, asm/sigcontext.h).
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Context {
    flags: u64,
    link: usize,
    pub stack: Stack,
    r8: usize,
    r9: usize,
    r10: usize,
    r11_to_r15: [usize; 5],
    rdi: usize,
    rsi: usize,
    rbp: usize,
    rbx: usize,
    rdx: usize,
    /// The number of the call, and its answer.
    rax: usize,
    rcx: usize,
    rsp: usize,
    rip: usize,
    rest: [u64; 15],
    /// The blocked signals.
    pub mask: u64,
}

/// From the stack pointer at the rt_sigreturn(2) of a handler to the mask that it restores: the
/// pointer is at the context.
const MASK_AT: usize = offset_of!(Context, mask);

const _: () = {
    // Two numbers, the stack, 256 bytes of registers (`struct sigcontext_64`).
    assert!(MASK_AT == 16 + 24 + 256);
};

impl Context {
    /// The call that was intercepted.
    #[inline]
    pub(crate) fn call(&self) -> Call {
        Call {
            number: self.rax,
            args: [self.rdi, self.rsi, self.rdx, self.r10, self.r8, self.r9],
        }
    }

    /// Sets what the call returns.
    #[inline]
    pub(crate) fn answer(&mut self, answer: isize) {
        self.rax = answer as usize;
    }

    /// Makes the process continue at an address.
    pub(super) fn continue_at(&mut self, address: usize) {
        self.rip = address;
    }

    /// Where the mask is that the intercepted rt_sigreturn(2) restores.
    pub(super) fn mask_to_restore(&self) -> usize {
        self.rsp.wrapping_add(MASK_AT)
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
    /// The control bits of SSE and x87, which a function must preserve.
    sse_control: u32,
    x87_control: u32,
    /// `rsp`, `rbx`, `rbp`, `r12` to `r15`.
    registers: [usize; 7],
}

const _: () = {
    assert!(offset_of!(Held, alive) == 0 && offset_of!(Held, handed) == 4);
    assert!(offset_of!(Held, sse_control) == 8 && offset_of!(Held, x87_control) == 12);
    assert!(offset_of!(Held, registers) == 16);
};

// Dispatch: the kernel checks the return address of a call against the range, so the last
// instruction of the range must not be a call (kernel/entry/syscall_user_dispatch.c). The filter
// compares it with the two `.._made`, whose upper halves are the same because of the alignment.
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
    "mov rax, rdi",
    "mov rdi, rsi",
    "mov rsi, rdx",
    "mov rdx, rcx",
    "mov r10, r8",
    "mov r8, r9",
    "mov r9, [rsp + 8]",
    "syscall",
    "altair_record_call_made:",
    "ret",
    ".size altair_record_call, . - altair_record_call",
    // The return address of signal handlers: rt_sigreturn(2), which finds its frame at the stack
    // pointer.
    ".type altair_record_return, @function",
    "altair_record_return:",
    "mov eax, {sigreturn}",
    "syscall",
    "altair_record_return_made:",
    "ud2",
    ".size altair_record_return, . - altair_record_return",
    "altair_record_end:",
    // clone(2) with these flags and the address of `alive`. Returns 0 in the new thread of the kernel,
    // with the stack of the old one. The old one waits, without stack, until the other has ended,
    // and returns from `.._join`, or ends the process if nothing was handed over.
    ".type altair_record_part, @function",
    "altair_record_part:",
    "mov r9, rsi",
    "xor esi, esi",
    "mov rdx, r9",
    "mov r10, r9",
    "xor r8d, r8d",
    "mov eax, {clone}",
    "syscall",
    "test rax, rax",
    "jg 3f",
    "ret",
    "2: mov rdi, r9",
    "mov esi, {wait}",
    "xor r10d, r10d",
    "mov eax, {futex}",
    "syscall",
    "3: mov edx, [r9]",
    "test edx, edx",
    "jnz 2b",
    "cmp dword ptr [r9 + 4], 0",
    "jne 4f",
    "mov edi, {broken}",
    "mov eax, {exit_group}",
    "syscall",
    "ud2",
    "4: ldmxcsr [r9 + 8]",
    "fldcw [r9 + 12]",
    "mov rsp, [r9 + 16]",
    "mov rbx, [r9 + 24]",
    "mov rbp, [r9 + 32]",
    "mov r12, [r9 + 40]",
    "mov r13, [r9 + 48]",
    "mov r14, [r9 + 56]",
    "mov r15, [r9 + 64]",
    "ret",
    ".size altair_record_part, . - altair_record_part",
    // Ends the calling thread of the kernel. The other one continues with its stack and registers.
    ".type altair_record_join, @function",
    "altair_record_join:",
    "stmxcsr [rdi + 8]",
    "fnstcw [rdi + 12]",
    "mov [rdi + 16], rsp",
    "mov [rdi + 24], rbx",
    "mov [rdi + 32], rbp",
    "mov [rdi + 40], r12",
    "mov [rdi + 48], r13",
    "mov [rdi + 56], r14",
    "mov [rdi + 64], r15",
    "mov dword ptr [rdi + 4], 1",
    "xor edi, edi",
    "mov eax, {exit}",
    "syscall",
    "ud2",
    ".size altair_record_join, . - altair_record_join",
    // The shadow stack pointer, 0 without one: the instruction then does nothing.
    ".type altair_record_shadow, @function",
    "altair_record_shadow:",
    "xor eax, eax",
    "rdsspq rax",
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
