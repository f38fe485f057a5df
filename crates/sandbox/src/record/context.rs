//! What the kernel passes to a handler of `SIGSYS`.

/// `siginfo_t` as filled in for a system call (asm-generic/siginfo.h).
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Info {
    signal: i32,
    /// For [`SECCOMP`], the number that the filter returns with its answer.
    pub errno: i32,
    /// The cause: [`USER_DISPATCH`] or [`SECCOMP`].
    pub code: i32,
    padding: i32,
    address: usize,
    number: i32,
    /// The architecture of the call.
    pub architecture: u32,
}

/// `SYS_USER_DISPATCH` (asm-generic/siginfo.h).
pub(super) const USER_DISPATCH: i32 = 2;
/// `SYS_SECCOMP`: a filter answered with `SECCOMP_RET_TRAP`.
pub(crate) const SECCOMP: i32 = 1;

/// An alternate stack, `stack_t`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Stack {
    start: usize,
    flags: u64,
    bytes: usize,
}

const _: () = {
    assert!(core::mem::offset_of!(Info, architecture) == 28);
};
