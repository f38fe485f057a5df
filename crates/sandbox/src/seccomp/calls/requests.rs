//! Requests of ioctl(2). The same call asks terminals, sockets, file systems and drivers for all that
//! has no call of its own, and for most of it a descriptor that may only be read is enough: so each
//! request is permitted by its number, of which the kernel reads the lower 32 bits.

use nix::libc::*;

use crate::seccomp::call::{Rules, is};

/// Those of an evaluation: others can insert input into a terminal, have signals sent, clone files or
/// reach a driver.
pub(super) const OF_EVALUATIONS: Rules = &[
    &[is(1, TCGETS as u32)],
    // TCGETS2, with which newer C libraries recognize a terminal. The same on both architectures
    // (asm-generic/ioctls.h).
    &[is(1, 0x802C_542A)],
    &[is(1, TIOCGWINSZ as u32)],
    &[is(1, FIONREAD as u32)],
    &[is(1, FIONBIO as u32)],
    &[is(1, FIOCLEX as u32)],
    &[is(1, FIONCLEX as u32)],
];

/// Those of every command: its own terminal, what waits in a pipe or socket, flags of descriptors, and
/// facts about files.
///
/// Left out on purpose: what types or pastes for the user (`TIOCSTI`, `TIOCLINUX`), other terminals
/// and consoles (`TIOCCONS`, `TIOCSETD`, `KDSETMODE`), the other end of pseudoterminals, of which a
/// command can make none, and what changes files or file systems by a descriptor that may only be
/// read (`FS_IOC_SETFLAGS`, `FS_IOC_REMOVE_ENCRYPTION_KEY`, `FIDEDUPERANGE`, `FITRIM`, `FIFREEZE`).
pub(super) const OF_COMMANDS: Rules = &[
    // Terminals (tty_ioctl(4), asm-generic/ioctls.h), by the C library: tcgetattr(), isatty().
    &[is(1, TCGETS as u32)],
    // tcsetattr(), in its three forms.
    &[is(1, TCSETS as u32)],
    &[is(1, TCSETSW as u32)],
    &[is(1, TCSETSF as u32)],
    // TCGETS2, TCSETS2, TCSETSW2, TCSETSF2: the same by newer C libraries and Rust's.
    &[is(1, 0x802C_542A)],
    &[is(1, 0x402C_542B)],
    &[is(1, 0x402C_542C)],
    &[is(1, 0x402C_542D)],
    // tcdrain(), tcsendbreak().
    &[is(1, TCSBRK as u32)],
    &[is(1, TCSBRKP as u32)],
    // tcflow().
    &[is(1, TCXONC as u32)],
    // tcflush().
    &[is(1, TCFLSH as u32)],
    // tcgetpgrp(), tcsetpgrp(): jobs of shells.
    &[is(1, TIOCGPGRP as u32)],
    &[is(1, TIOCSPGRP as u32)],
    // tcgetsid(): jobs of shells.
    &[is(1, TIOCGSID as u32)],
    // Sizes: editors, pagers, stty. The terminal is the command's own.
    &[is(1, TIOCGWINSZ as u32)],
    &[is(1, TIOCSWINSZ as u32)],
    // setsid -c: a session of its own at its own terminal. Never another session's: that takes
    // CAP_SYS_ADMIN.
    &[is(1, TIOCSCTTY as u32)],
    // Programs that detach themselves.
    &[is(1, TIOCNOTTY as u32)],
    // Terminals, pipes, sockets, inotify: how much can be read.
    &[is(1, FIONREAD as u32)],
    // Terminals, sockets (SIOCOUTQ): how much waits to be sent.
    &[is(1, TIOCOUTQ as u32)],
    // As O_NONBLOCK and FD_CLOEXEC of fcntl(): libuv, Python, Ruby.
    &[is(1, FIONBIO as u32)],
    &[is(1, FIOCLEX as u32)],
    &[is(1, FIONCLEX as u32)],
    // SIOCATMARK: sockatmark().
    &[is(1, 0x8905)],
    // FICLONE and FICLONERANGE (ioctl_ficlone(2)): cp --reflink. Only into a file that is open for
    // writing; copy_file_range(), which is permitted, does the same.
    &[is(1, 0x4004_9409)],
    &[is(1, 0x4020_940D)],
    // FS_IOC_GETFLAGS, FS_IOC_GETVERSION, FS_IOC_FSGETXATTR (linux/fs.h): lsattr, archivers.
    &[is(1, 0x8008_6601)],
    &[is(1, 0x8008_7601)],
    &[is(1, 0x801C_581F)],
];

/// Where signals reach only the command: `FIOASYNC`, the same as `O_ASYNC`: servers that tell their
/// workers by a signal.
pub(super) const WITH_SIGNALS: Rules = &[&[is(1, FIOASYNC as u32)]];

/// With a network: facts about its interfaces (netdevice(7)), for name resolution, Java and servers.
/// Not the addresses of network cards, which tell the machine.
pub(super) const WITH_NETWORK: Rules = &[
    // SIOCGIFNAME, SIOCGIFINDEX: if_indextoname(), if_nametoindex().
    &[is(1, 0x8910)],
    &[is(1, 0x8933)],
    // SIOCGIFCONF, SIOCGIFFLAGS: which there are.
    &[is(1, 0x8912)],
    &[is(1, 0x8913)],
    // SIOCGIFADDR, SIOCGIFDSTADDR, SIOCGIFBRDADDR, SIOCGIFNETMASK: their addresses.
    &[is(1, 0x8915)],
    &[is(1, 0x8917)],
    &[is(1, 0x8919)],
    &[is(1, 0x891B)],
    // SIOCGIFMTU.
    &[is(1, 0x8921)],
];
