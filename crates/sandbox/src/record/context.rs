//! What the kernel passes to a handler of `SIGSYS` on x86-64.

/// `siginfo_t` as filled in for a system call (asm-generic/siginfo.h).
#[derive(Debug)]
#[repr(C)]
pub(super) struct Info {
    signal: i32,
    errno: i32,
    /// The cause: [`USER_DISPATCH`].
    pub code: i32,
    padding: i32,
    address: usize,
    number: i32,
    /// The architecture of the call: [`ARCHITECTURE`].
    pub architecture: u32,
}

/// `SYS_USER_DISPATCH` (asm-generic/siginfo.h).
pub(super) const USER_DISPATCH: i32 = 2;

/// `AUDIT_ARCH_X86_64` (linux/audit.h): not a call of a 32-bit program.
pub(super) const ARCHITECTURE: u32 = 0xC000_003E;

/// An alternate stack, `stack_t`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct Stack {
    start: usize,
    flags: u64,
    bytes: usize,
}

/// The state of the interrupted process, `struct ucontext` with its `struct sigcontext`
/// (asm-generic/ucontext.h, asm/sigcontext.h).
#[derive(Debug)]
#[repr(C)]
pub(super) struct Context {
    flags: u64,
    link: usize,
    pub stack: Stack,
    pub r8: usize,
    pub r9: usize,
    pub r10: usize,
    r11_to_r15: [usize; 5],
    pub rdi: usize,
    pub rsi: usize,
    rbp: usize,
    rbx: usize,
    pub rdx: usize,
    /// The number of the call, and its answer.
    pub rax: usize,
    rcx: usize,
    pub rsp: usize,
    pub rip: usize,
    rest: [u64; 15],
    /// The blocked signals.
    pub mask: u64,
}

/// The offset of the mask in it.
pub(super) const MASK_AT: usize = core::mem::offset_of!(Context, mask);

const _: () = {
    // Two numbers, the stack, 256 bytes of registers (`struct sigcontext_64`).
    assert!(MASK_AT == 16 + 24 + 256);
    assert!(core::mem::offset_of!(Info, architecture) == 28);
};
