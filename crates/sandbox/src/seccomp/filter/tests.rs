//! Interprets the filter and checks that it gives the answers of the table.
#![allow(clippy::unwrap_used)]

use super::*;

/// A call as the kernel passes it to a filter (linux/seccomp.h, `struct seccomp_data`).
struct Called {
    number: u32,
    arch: u32,
    /// After the instruction that makes it.
    address: u64,
    args: [u64; 6],
}

/// `AUDIT_ARCH_…` (linux/audit.h).
const OWN_ARCH: u32 = if cfg!(target_arch = "x86_64") {
    0xC000_003E
} else {
    0xC000_00B7
};
const I386: u32 = 0x4000_0003;
/// `__X32_SYSCALL_BIT`.
const X32: u32 = 0x4000_0000;

const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;
const ASKS: u32 = libc::SECCOMP_RET_USER_NOTIF;
const OWN_PID: u32 = 4711;

fn errno(errno: Errno) -> u32 {
    libc::SECCOMP_RET_ERRNO | errno as u32
}

impl Called {
    fn word(&self, offset: u32) -> u32 {
        let args = offset.checked_sub(16).map(|rest| {
            let arg = self.args[rest as usize / 8];
            if rest % 8 == 0 {
                arg as u32
            } else {
                (arg >> 32) as u32
            }
        });
        match offset {
            0 => self.number,
            4 => self.arch,
            8 => self.address as u32,
            12 => (self.address >> 32) as u32,
            _ => args.unwrap(),
        }
    }

    /// What a filter returns for it.
    fn verdict(&self, program: &[sock_filter]) -> u32 {
        let (mut at, mut word) = (0, 0);
        loop {
            let sock_filter { code, jt, jf, k } = program[at];
            let branch = |taken: bool| usize::from(if taken { jt } else { jf });
            at += 1 + match code {
                0x20 => {
                    word = self.word(k);
                    0
                }
                0x54 => {
                    word &= k;
                    0
                }
                0x05 => k as usize,
                0x15 => branch(word == k),
                0x25 => branch(word > k),
                0x35 => branch(word >= k),
                0x06 => return k,
                other => panic!("instruction {other:#x}"),
            };
        }
    }
}

fn policy(network: bool, metadata: bool) -> Seccomp {
    Seccomp {
        network,
        metadata,
        ..Seccomp::default()
    }
}

fn policies() -> impl Iterator<Item = (Seccomp, Ask)> {
    [Ask::Listener, Ask::Nobody].into_iter().flat_map(|ask| {
        [(false, false), (false, true), (true, false), (true, true)]
            .map(|(network, metadata)| (policy(network, metadata), ask))
    })
}

fn call(number: libc::c_long, args: &[u64]) -> Called {
    let mut all = [0; 6];
    all[..args.len()].copy_from_slice(args);
    Called {
        number: u32::try_from(number).unwrap(),
        arch: OWN_ARCH,
        address: 0,
        args: all,
    }
}

/// The answer of a policy's filter to a call.
fn verdict(policy: &Seccomp, number: libc::c_long, args: &[u64]) -> u32 {
    let program = compile(policy, For::Process(OWN_PID), Ask::Listener).unwrap();
    call(number, args).verdict(&program)
}

fn plain(number: libc::c_long, args: &[u64]) -> u32 {
    verdict(&policy(false, false), number, args)
}

/// The answer of a command's filter.
fn to_command(policy: Command, number: libc::c_long, args: &[u64]) -> u32 {
    let policy = Seccomp {
        command: Some(policy),
        ..Seccomp::default()
    };
    let program = compile(&policy, For::Command, Ask::Listener).unwrap();
    call(number, args).verdict(&program)
}

#[test]
fn a_command_gets_no_listener_of_its_own() {
    let filter = |flags: u64| {
        let args = [libc::SECCOMP_SET_MODE_FILTER.into(), flags];
        to_command(Command::default(), libc::SYS_seccomp, &args)
    };
    assert_eq!(filter(0), ALLOW);
    assert_eq!(filter(libc::SECCOMP_FILTER_FLAG_TSYNC), ALLOW);
    for flags in [0, libc::SECCOMP_FILTER_FLAG_TSYNC, 1 << 32] {
        let listening = flags | libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
        assert_eq!(filter(listening), errno(Errno::EPERM));
    }
}

#[test]
fn what_the_host_connects_is_never_slow_to_close() {
    let linger = [
        0,
        u64::from(libc::SOL_SOCKET.cast_unsigned()),
        u64::from(libc::SO_LINGER.cast_unsigned()),
    ];
    for local in [false, true] {
        let policy = Seccomp {
            network: true,
            local,
            command: Some(Command::default()),
            ..Seccomp::default()
        };
        let program = compile(&policy, For::Command, Ask::Listener).unwrap();
        let verdict = call(libc::SYS_setsockopt, &linger).verdict(&program);
        assert_eq!(verdict == ALLOW, !local);
    }
}

#[test]
fn where_signals_are_not_kept_in_no_descriptor_sends_them() {
    let number = |number: i32| u64::from(number.cast_unsigned());
    for signals in [false, true] {
        let policy = || Command {
            signals,
            ..Command::default()
        };
        let fcntl = |which: i32, arg: i32| {
            let args = [0, number(which), number(arg)];
            to_command(policy(), libc::SYS_fcntl, &args) == ALLOW
        };
        let ioctl = |which: u64| to_command(policy(), libc::SYS_ioctl, &[0, which]) == ALLOW;
        // F_SETSIG, F_SETOWN_EX.
        for which in [libc::F_SETOWN, 10, 15] {
            assert_eq!(fcntl(which, 0), signals, "{which}");
        }
        assert_eq!(fcntl(libc::F_SETFL, libc::O_ASYNC), signals);
        assert_eq!(ioctl(libc::FIOASYNC), signals);
        // FIOSETOWN, SIOCSPGRP.
        for which in [0x8901, 0x8902] {
            assert!(!ioctl(which), "{which:#x}");
        }
        // With F_SET_RW_HINT, F_SET_FILE_RW_HINT and F_SETDELEG.
        for which in [libc::F_SETLEASE, libc::F_NOTIFY, 1036, 1038, 1040] {
            assert!(!fcntl(which, 0), "{which}");
        }
        for which in [
            libc::F_GETFL,
            libc::F_SETFL,
            libc::F_SETLK,
            libc::F_OFD_SETLK,
            libc::F_DUPFD_CLOEXEC,
            libc::F_SETPIPE_SZ,
            libc::F_ADD_SEALS,
        ] {
            assert!(fcntl(which, libc::O_NONBLOCK), "{which}");
        }
        for which in [
            libc::TCGETS,
            libc::TIOCSPGRP,
            libc::TIOCGWINSZ,
            libc::FIONREAD,
        ] {
            assert!(ioctl(which), "{which:#x}");
        }
    }
}

#[test]
fn a_command_makes_the_requests_that_programs_need_and_no_other() {
    let answer = |network, request: u64| {
        let policy = Seccomp {
            network,
            command: Some(Command::default()),
            ..Seccomp::default()
        };
        let program = compile(&policy, For::Command, Ask::Listener).unwrap();
        call(libc::SYS_ioctl, &[0, request]).verdict(&program)
    };
    for request in [
        libc::TCSETSW,
        libc::TIOCSWINSZ,
        libc::TIOCSCTTY,
        libc::TIOCOUTQ,
        libc::FIONBIO,
        libc::FIOCLEX,
        // FICLONE, FS_IOC_GETFLAGS.
        0x4004_9409,
        0x8008_6601,
    ] {
        assert_eq!(answer(false, request), ALLOW, "{request:#x}");
        assert_eq!(answer(false, request | 1 << 32), ALLOW, "{request:#x}");
    }
    // SIOCGIFCONF, SIOCGIFINDEX.
    for request in [0x8912, 0x8933] {
        assert_eq!(answer(false, request), errno(Errno::ENOTTY));
        assert_eq!(answer(true, request), ALLOW);
    }
    for (name, request) in [
        ("TIOCSTI", 0x5412),
        ("TIOCLINUX", 0x541C),
        ("TIOCCONS", 0x541D),
        ("TIOCSETD", 0x5423),
        ("TIOCGPTPEER", 0x5441),
        ("TIOCVHANGUP", 0x5437),
        ("KDSETMODE", 0x4B3A),
        ("VT_ACTIVATE", 0x5606),
        ("FS_IOC_SETFLAGS", 0x4008_6602),
        ("FS_IOC_SETVERSION", 0x4008_7602),
        ("FS_IOC_FSSETXATTR", 0x401C_5820),
        ("FS_IOC_SETFSLABEL", 0x4100_9432),
        ("FS_IOC_SET_ENCRYPTION_POLICY", 0x800C_6613),
        ("FS_IOC_ADD_ENCRYPTION_KEY", 0xC050_6617),
        ("FS_IOC_REMOVE_ENCRYPTION_KEY", 0xC040_6618),
        ("FS_IOC_REMOVE_ENCRYPTION_KEY_ALL_USERS", 0xC040_6619),
        ("FS_IOC_ENABLE_VERITY", 0x4080_6685),
        ("FS_IOC_FIEMAP", 0xC020_660B),
        ("FIDEDUPERANGE", 0xC018_9436),
        ("FITRIM", 0xC018_5879),
        ("FIFREEZE", 0xC004_5877),
        ("FITHAW", 0xC004_5878),
        ("FS_IOC_SHUTDOWN", 0x8004_587D),
        ("EXT4_IOC_MOVE_EXT", 0xC028_660F),
        ("EXT4_IOC_RESIZE_FS", 0x4008_6610),
        ("EXT4_IOC_SWAP_BOOT", 0x6611),
        ("BTRFS_IOC_SNAP_CREATE_V2", 0x5000_9417),
        ("BTRFS_IOC_SUBVOL_SETFLAGS", 0x4008_941A),
        ("BTRFS_IOC_DEFRAG", 0x5000_9402),
        ("BLKDISCARD", 0x1277),
        ("SECCOMP_IOCTL_NOTIF_SEND", 0xC018_2101),
        ("NS_GET_USERNS", 0xB701),
        ("PIDFD_GET_MNT_NAMESPACE", 0xFF03),
        ("UFFDIO_API", 0xC018_AA3F),
        ("SIOCSIFFLAGS", 0x8914),
        ("SIOCGIFHWADDR", 0x8927),
        ("SIOCETHTOOL", 0x8946),
        ("F2FS_IOC_START_ATOMIC_WRITE", 0xF501),
    ] {
        for network in [false, true] {
            assert_eq!(answer(network, request), errno(Errno::ENOTTY), "{name}");
            let upper = request | 1 << 32;
            assert_eq!(answer(network, upper), errno(Errno::ENOTTY), "{name}");
        }
    }
}

#[test]
fn a_command_binds_what_it_likes_in_its_own_network_alone() {
    let answer = |network, own_network, ask, number: libc::c_long, args: &[u64]| {
        let policy = Seccomp {
            network,
            command: Some(Command {
                own_network,
                ..Command::default()
            }),
            ..Seccomp::default()
        };
        let program = compile(&policy, For::Command, ask).unwrap();
        call(number, args).verdict(&program)
    };
    let bind = |network, own_network, ask, length: u64| {
        let args = [3, 8, length];
        answer(network, own_network, ask, libc::SYS_bind, &args)
    };
    // `struct sockaddr_in`, `sockaddr_in6`, and the longest.
    for length in [16, 28, 128, 16 | 1 << 32] {
        assert_eq!(bind(true, true, Ask::Nobody, length), ALLOW);
        assert_eq!(bind(true, false, Ask::Nobody, length), ALLOW);
        assert_eq!(bind(true, false, Ask::Listener, length), ASKS);
        assert_eq!(bind(false, false, Ask::Listener, length), ASKS);
        let alone = bind(false, false, Ask::Nobody, length);
        assert_eq!(alone, errno(Errno::EPERM));
    }
    // Addresses of Unix sockets.
    for length in [2, 3, 15, 17, 27, 29, 110] {
        assert_eq!(bind(true, true, Ask::Nobody, length), ALLOW);
        let alone = bind(true, false, Ask::Nobody, length);
        assert_eq!(alone, errno(Errno::EPERM), "{length}");
    }
    let option = |own_network, level: i32, name: i32| {
        let args = [
            3,
            u64::from(level.cast_unsigned()),
            u64::from(name.cast_unsigned()),
        ];
        answer(
            true,
            own_network,
            Ask::Listener,
            libc::SYS_setsockopt,
            &args,
        ) == ALLOW
    };
    for own_network in [false, true] {
        for name in [libc::SO_PASSCRED, 76] {
            assert_eq!(option(own_network, libc::SOL_SOCKET, name), own_network);
        }
        assert!(option(own_network, libc::SOL_SOCKET, libc::SO_REUSEADDR));
        assert!(option(own_network, libc::IPPROTO_TCP, libc::SO_PASSCRED));
    }
}

#[test]
fn every_number_gets_what_its_line_says_and_all_others_eperm() {
    for (policy, ask) in policies() {
        let program = compile(&policy, For::Process(OWN_PID), ask).unwrap();
        assert!(program.len() < 4096);
        for number in 0..2000 {
            let verdict = call(number, &[]).verdict(&program);
            let line = calls::all().find(|line| line.number == number);
            let refused = |refuse: Refuse| match ask {
                Ask::Listener if refuse.told().is_some() => ASKS,
                _ => errno(refuse.errno()),
            };
            let name = line.map_or("no line", Call::name);
            match line.map(|line| &line.answer) {
                None => assert_eq!(verdict, errno(Errno::EPERM), "{number}"),
                Some(Answer::Allow) => assert_eq!(verdict, ALLOW, "{name}"),
                Some(Answer::Refuse(refuse)) => assert_eq!(verdict, refused(*refuse), "{name}"),
                Some(Answer::AllowIf(_, refuse)) => {
                    assert!(verdict == ALLOW || verdict == refused(*refuse), "{name}");
                }
            }
        }
    }
}

#[test]
fn another_architectures_entry_ends_the_process_and_x32_is_refused() {
    for (policy, ask) in policies() {
        let program = compile(&policy, For::Process(OWN_PID), ask).unwrap();
        for number in 0..600 {
            let called = Called {
                arch: I386,
                ..call(number, &[])
            };
            assert_eq!(called.verdict(&program), libc::SECCOMP_RET_KILL_PROCESS);
            let called = Called {
                number: u32::try_from(number).unwrap() | X32,
                ..call(number, &[])
            };
            assert_eq!(called.verdict(&program), errno(Errno::EPERM));
        }
        // Numbers that are negative to the kernel.
        for number in [u32::MAX, u32::MAX - 38, 0x8000_0000] {
            let called = Called {
                number,
                ..call(0, &[])
            };
            assert_eq!(called.verdict(&program), errno(Errno::EPERM));
        }
    }
}

#[test]
fn threads_are_made_and_processes_are_not() {
    let alone = compile(&policy(false, false), For::Process(OWN_PID), Ask::Nobody).unwrap();
    // Without a listener, the filter decides; with one, the filter asks it about all.
    let clone = |flags: u64| {
        assert_eq!(plain(libc::SYS_clone, &[flags]), ASKS);
        call(libc::SYS_clone, &[flags]).verdict(&alone)
    };
    // What glibc and musl pass.
    let thread = 0x003d_0f00;
    assert_eq!(clone(thread), ALLOW);
    assert_eq!(clone(0x007d_0f00), ALLOW);
    for flag in [
        libc::CLONE_NEWNS,
        libc::CLONE_NEWUSER,
        libc::CLONE_NEWPID,
        libc::CLONE_NEWNET,
        libc::CLONE_NEWIPC,
        libc::CLONE_NEWUTS,
        libc::CLONE_NEWCGROUP,
        libc::CLONE_NEWTIME,
        libc::CLONE_VFORK,
        libc::CLONE_PTRACE,
        libc::CLONE_UNTRACED,
        libc::CLONE_PARENT,
        libc::CLONE_PIDFD,
        libc::CLONE_IO,
        libc::SIGCHLD,
    ] {
        let flags = thread | u64::from(flag.cast_unsigned());
        assert_eq!(clone(flags), errno(Errno::EPERM), "{flag:#x}");
    }
    for flag in [libc::CLONE_THREAD, libc::CLONE_VM, libc::CLONE_SIGHAND] {
        let flags = thread & !u64::from(flag.cast_unsigned());
        assert_eq!(clone(flags), errno(Errno::EPERM), "{flag:#x}");
    }
    assert_eq!(clone(17), errno(Errno::EPERM));
    assert_eq!(plain(libc::SYS_clone3, &[]), errno(Errno::ENOSYS));
}

#[test]
fn a_signal_goes_to_the_process_itself_only() {
    let own = u64::from(OWN_PID);
    let minus_one = u64::from(u32::MAX);
    for number in [
        libc::SYS_kill,
        libc::SYS_tkill,
        libc::SYS_tgkill,
        libc::SYS_rt_sigqueueinfo,
        libc::SYS_rt_tgsigqueueinfo,
    ] {
        assert_eq!(plain(number, &[own, 9, 9]), ALLOW);
        // The kernel ignores the upper half of a register for an int.
        assert_eq!(plain(number, &[own | 7 << 32, 9, 9]), ALLOW);
        for other in [0, 1, own + 1, minus_one, u64::MAX, minus_one - own + 1] {
            assert_eq!(plain(number, &[other, 9, 9]), ASKS, "{other}");
        }
    }
}

#[test]
fn nothing_is_asked_about_or_set_for_another_process() {
    let own = u64::from(OWN_PID);
    let cases = [
        (libc::SYS_prlimit64, 0),
        (libc::SYS_getpgid, 0),
        (libc::SYS_getsid, 0),
        (libc::SYS_sched_getaffinity, 0),
        (libc::SYS_getpriority, 1),
    ];
    for (number, index) in cases {
        for (pid, verdict) in [(0, ALLOW), (own, ALLOW), (1, errno(Errno::EPERM))] {
            let mut args = [0; 6];
            args[index] = pid;
            assert_eq!(plain(number, &args), verdict, "{number} {pid}");
        }
    }
}

#[test]
fn sockets_are_tcp_and_udp_with_the_network_on_and_none_else() {
    let flags = (libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK) as u64;
    let (inet, inet6) = (libc::AF_INET as u64, libc::AF_INET6 as u64);
    let (stream, datagram) = (libc::SOCK_STREAM as u64, libc::SOCK_DGRAM as u64);
    let on = policy(true, false);
    for (family, kind, protocol) in [
        (inet, stream, 0),
        (inet, stream | flags, 6),
        (inet6, stream, 6),
        (inet, datagram, 0),
        (inet, datagram | flags, 17),
        (inet6, datagram, 17),
    ] {
        let args = [family, kind, protocol];
        assert_eq!(verdict(&on, libc::SYS_socket, &args), ALLOW, "{args:?}");
        assert_eq!(plain(libc::SYS_socket, &args), ASKS, "{args:?}");
    }
    let raw = libc::SOCK_RAW as u64;
    for (family, kind, protocol) in [
        (inet, raw, 1),
        (inet, raw, 255),
        (inet, datagram, 1),
        (inet, stream, 132),
        (inet, stream, 262),
        (inet, libc::SOCK_SEQPACKET as u64, 0),
        (libc::AF_UNIX as u64, stream, 0),
        (libc::AF_UNIX as u64, datagram, 0),
        (libc::AF_NETLINK as u64, raw, 0),
        (libc::AF_PACKET as u64, raw, 0),
        (libc::AF_VSOCK as u64, stream, 0),
        (libc::AF_ALG as u64, libc::SOCK_SEQPACKET as u64, 0),
        (libc::AF_BLUETOOTH as u64, raw, 0),
    ] {
        let args = [family, kind, protocol];
        assert_eq!(verdict(&on, libc::SYS_socket, &args), ASKS, "{args:?}");
    }
    assert_eq!(plain(libc::SYS_connect, &[]), ASKS);
    assert_eq!(verdict(&on, libc::SYS_connect, &[]), ALLOW);
    for number in [
        libc::SYS_bind,
        libc::SYS_listen,
        libc::SYS_accept,
        libc::SYS_accept4,
    ] {
        assert_eq!(verdict(&on, number, &[]), ASKS);
    }
}

#[test]
fn a_pair_of_sockets_cannot_send_elsewhere() {
    let unix = libc::AF_UNIX as u64;
    let pair = |family, kind: i32| plain(libc::SYS_socketpair, &[family, kind as u64, 0]);
    assert_eq!(pair(unix, libc::SOCK_STREAM), ALLOW);
    assert_eq!(pair(unix, libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC), ALLOW);
    assert_eq!(pair(unix, libc::SOCK_DGRAM), errno(Errno::EPERM));
    assert_eq!(pair(30, libc::SOCK_SEQPACKET), errno(Errno::EPERM));
    let fast_open = libc::MSG_FASTOPEN as u64;
    let on = policy(true, true);
    assert_eq!(
        verdict(&on, libc::SYS_sendto, &[3, 0, 0, fast_open]),
        errno(Errno::EPERM)
    );
    assert_eq!(
        verdict(&on, libc::SYS_sendmsg, &[3, 0, fast_open]),
        errno(Errno::EPERM)
    );
    assert_eq!(
        verdict(&on, libc::SYS_sendmmsg, &[3, 0, 0, fast_open]),
        errno(Errno::EPERM)
    );
    assert_eq!(
        plain(libc::SYS_sendto, &[3, 0, 0, libc::MSG_NOSIGNAL as u64]),
        ALLOW
    );
}

#[test]
fn socket_options_that_reach_further_are_refused() {
    let on = policy(true, true);
    let set =
        |level: i32, name: i32| verdict(&on, libc::SYS_setsockopt, &[3, level as u64, name as u64]);
    for (level, name) in [
        (libc::SOL_SOCKET, libc::SO_KEEPALIVE),
        (libc::SOL_SOCKET, libc::SO_RCVTIMEO),
        (libc::SOL_SOCKET, libc::SO_REUSEADDR),
        (libc::IPPROTO_TCP, libc::TCP_NODELAY),
        (libc::IPPROTO_TCP, libc::TCP_KEEPIDLE),
        (libc::IPPROTO_IP, libc::IP_RECVERR),
        (libc::IPPROTO_IPV6, libc::IPV6_V6ONLY),
    ] {
        assert_eq!(set(level, name), ALLOW, "{level} {name}");
    }
    for (level, name) in [
        (libc::SOL_SOCKET, libc::SO_LINGER),
        (libc::SOL_SOCKET, libc::SO_ATTACH_FILTER),
        (libc::SOL_SOCKET, libc::SO_ATTACH_BPF),
        (libc::SOL_SOCKET, libc::SO_BINDTODEVICE),
        (libc::SOL_SOCKET, libc::SO_PASSCRED),
        (libc::SOL_SOCKET, libc::SO_SNDBUFFORCE),
        (libc::IPPROTO_TCP, libc::TCP_FASTOPEN_CONNECT),
        (libc::IPPROTO_TCP, libc::TCP_FASTOPEN),
        (libc::IPPROTO_TCP, libc::TCP_ULP),
        (libc::IPPROTO_TCP, libc::TCP_REPAIR),
        (libc::IPPROTO_IP, libc::IP_ADD_MEMBERSHIP),
        (libc::IPPROTO_IP, libc::IP_HDRINCL),
    ] {
        assert_eq!(set(level, name), errno(Errno::EPERM), "{level} {name}");
    }
    let get =
        |level: i32, name: i32| verdict(&on, libc::SYS_getsockopt, &[3, level as u64, name as u64]);
    assert_eq!(get(libc::SOL_SOCKET, libc::SO_ERROR), ALLOW);
    assert_eq!(
        get(libc::SOL_SOCKET, libc::SO_PEERPIDFD),
        errno(Errno::EPERM)
    );
}

#[test]
fn memory_that_no_limit_counts_is_not_mapped() {
    let mmap = |flags: i32| plain(libc::SYS_mmap, &[0, 4096, 3, flags as u64]);
    let anonymous = libc::MAP_ANONYMOUS;
    for flags in [
        libc::MAP_PRIVATE | anonymous,
        libc::MAP_PRIVATE | anonymous | libc::MAP_NORESERVE | libc::MAP_STACK,
        libc::MAP_PRIVATE | libc::MAP_FIXED | libc::MAP_DENYWRITE,
        libc::MAP_SHARED,
        libc::MAP_SHARED_VALIDATE,
    ] {
        assert_eq!(mmap(flags), ALLOW, "{flags:#x}");
    }
    for flags in [
        libc::MAP_SHARED | anonymous,
        libc::MAP_SHARED_VALIDATE | anonymous,
        libc::MAP_PRIVATE | anonymous | libc::MAP_HUGETLB,
        libc::MAP_PRIVATE | anonymous | libc::MAP_GROWSDOWN,
        libc::MAP_SHARED | libc::MAP_HUGETLB,
    ] {
        assert_eq!(mmap(flags), errno(Errno::EPERM), "{flags:#x}");
    }
    assert_eq!(plain(libc::SYS_memfd_create, &[]), errno(Errno::ENOSYS));
    assert_eq!(plain(libc::SYS_shmget, &[]), errno(Errno::EPERM));
    let advise = |advice: i32| plain(libc::SYS_madvise, &[0, 0, advice as u64]);
    assert_eq!(
        advice_all(
            &[libc::MADV_DONTNEED, libc::MADV_FREE, libc::MADV_HUGEPAGE],
            advise
        ),
        [ALLOW; 3]
    );
    assert_eq!(
        advice_all(&[libc::MADV_MERGEABLE, libc::MADV_HWPOISON], advise),
        [errno(Errno::EPERM); 2]
    );
}

fn advice_all(all: &[i32], advise: impl Fn(i32) -> u32) -> Vec<u32> {
    all.iter().map(|advice| advise(*advice)).collect()
}

#[test]
fn in_memory_that_is_shared_there_is_waiting_and_waking_alone() {
    let futex = |operation: i32| plain(libc::SYS_futex, &[0x1000, operation as u64]);
    let shared = [
        libc::FUTEX_WAIT,
        libc::FUTEX_WAKE,
        libc::FUTEX_WAIT_BITSET,
        libc::FUTEX_WAKE_BITSET,
        libc::FUTEX_WAIT | libc::FUTEX_CLOCK_REALTIME,
        libc::FUTEX_WAIT_BITSET | libc::FUTEX_CLOCK_REALTIME,
    ];
    for operation in 0..=13 {
        for flags in [0, libc::FUTEX_CLOCK_REALTIME] {
            let operation = operation | flags;
            let expected = match shared.contains(&operation) {
                true => ALLOW,
                false => errno(Errno::EPERM),
            };
            assert_eq!(futex(operation), expected, "{operation}");
            let private = operation | libc::FUTEX_PRIVATE_FLAG;
            assert_eq!(futex(private), ALLOW, "{private}");
        }
    }
}

#[test]
fn the_machines_page_cache_is_neither_told_of_nor_emptied() {
    let read = |flags: u64| plain(libc::SYS_preadv2, &[3, 0x1000, 1, 0, 0, flags]);
    let write = |flags: u64| plain(libc::SYS_pwritev2, &[3, 0x1000, 1, 0, 0, flags]);
    assert_eq!((read(0), write(0)), (ALLOW, ALLOW));
    for flag in 0..8 {
        let flags = 1 << flag;
        assert_eq!(read(flags), errno(Errno::EPERM), "{flags}");
        assert_eq!(write(flags), errno(Errno::EPERM), "{flags}");
    }
    let advise = |advice: i32| plain(libc::SYS_fadvise64, &[3, 0, 0, advice as u64]);
    for advice in 0..8 {
        let expected = match advice {
            0..=3 | libc::POSIX_FADV_NOREUSE => ALLOW,
            _ => errno(Errno::EPERM),
        };
        assert_eq!(advise(advice), expected, "{advice}");
    }
    let memory = |advice: i32| plain(libc::SYS_madvise, &[0x1000, 4096, advice as u64]);
    assert_eq!(memory(libc::MADV_DONTNEED), ALLOW);
    assert_eq!(memory(libc::MADV_POPULATE_READ), ALLOW);
    for advice in [libc::MADV_COLD, libc::MADV_PAGEOUT] {
        assert_eq!(memory(advice), errno(Errno::EPERM), "{advice}");
    }
    assert_eq!(
        plain(libc::SYS_mincore, &[0x1000, 4096, 0x2000]),
        errno(Errno::ENOSYS)
    );
}

#[test]
fn the_limit_for_core_files_is_told_and_stays() {
    const OWN: u64 = OWN_PID as u64;
    let core = u64::from(libc::RLIMIT_CORE);
    let prlimit = |pid, resource, new| plain(libc::SYS_prlimit64, &[pid, resource, new, 0x1000]);
    for pid in [0, OWN] {
        assert_eq!(prlimit(pid, core, 0), ALLOW);
        for new in [0x1000, 1 << 32] {
            assert_eq!(prlimit(pid, core, new), errno(Errno::EPERM));
        }
        for other in (0..16).filter(|resource| *resource != core) {
            assert_eq!(prlimit(pid, other, 0x1000), ALLOW, "{other}");
        }
    }
    assert_eq!(prlimit(1, 0, 0), errno(Errno::EPERM));
    assert_eq!(
        plain(libc::SYS_setrlimit, &[core, 0x1000]),
        errno(Errno::EPERM)
    );
    assert_eq!(plain(libc::SYS_setrlimit, &[core + 1, 0x1000]), ALLOW);
}

#[test]
fn threads_share_one_table_of_descriptors() {
    let close = |flags: u32| plain(libc::SYS_close_range, &[4, 9, flags.into()]);
    assert_eq!(close(0), ALLOW);
    assert_eq!(close(libc::CLOSE_RANGE_CLOEXEC), ALLOW);
    for flags in [
        libc::CLOSE_RANGE_UNSHARE,
        libc::CLOSE_RANGE_UNSHARE | libc::CLOSE_RANGE_CLOEXEC,
    ] {
        assert_eq!(close(flags), errno(Errno::EPERM), "{flags}");
    }
}

#[test]
fn attributes_are_set_in_a_layer_alone() {
    let with = |metadata, attributes| Seccomp {
        metadata,
        attributes,
        command: None,
        ..Seccomp::default()
    };
    for number in [libc::SYS_setxattr, libc::SYS_lsetxattr, libc::SYS_fsetxattr] {
        assert_eq!(verdict(&with(true, true), number, &[]), ALLOW);
        for (metadata, attributes) in [(false, false), (false, true), (true, false)] {
            let refused = verdict(&with(metadata, attributes), number, &[]);
            assert_eq!(refused, errno(Errno::EPERM));
        }
    }
    assert_eq!(
        verdict(&with(true, false), libc::SYS_removexattr, &[]),
        ALLOW
    );
}

#[test]
fn who_shows_the_pass_may_set_a_fork_up_and_forks_by_the_hosts_leave_alone() {
    const PASS: u64 = 0x1234_5678_9abc_def0;
    const RECORDING: u64 = 0x0fed_cba9_8765_4321;
    let passes = Passes {
        set_up: PASS,
        recording: RECORDING,
    };
    let program = compile(&policy(false, true), For::Template(passes), Ask::Listener);
    let program = program.unwrap();
    let shown = |number, args: [u64; 5], pass| {
        let mut all = args.to_vec();
        all.push(pass);
        call(number, &all).verdict(&program)
    };
    let namespace = [libc::CLONE_NEWNS as u64, 0, 0, 0, 0];
    assert_eq!(shown(libc::SYS_unshare, namespace, PASS), ALLOW);
    assert_ne!(shown(libc::SYS_unshare, namespace, PASS + 1), ALLOW);
    assert_ne!(shown(libc::SYS_unshare, namespace, 0), ALLOW);
    assert_ne!(shown(libc::SYS_unshare, namespace, RECORDING), ALLOW);
    let filter = |flags| [libc::SECCOMP_SET_MODE_FILTER.into(), flags, 0x1000, 0, 0];
    for pass in [PASS, RECORDING] {
        assert_eq!(shown(libc::SYS_seccomp, filter(0), pass), ALLOW);
    }
    assert_ne!(shown(libc::SYS_seccomp, filter(0), 0), ALLOW);
    // A listener of its own, or a filter for the thread that waits.
    for flags in [
        libc::SECCOMP_FILTER_FLAG_NEW_LISTENER,
        libc::SECCOMP_FILTER_FLAG_TSYNC,
    ] {
        assert_ne!(shown(libc::SYS_seccomp, filter(flags), RECORDING), ALLOW);
    }
    let fork = [fork_setup::FORK.into(), 0, 0x1000, 0, 0];
    for pass in [PASS, 0] {
        assert_eq!(shown(libc::SYS_clone, fork, pass), ASKS);
    }
}

#[test]
fn the_recorder_intercepts_what_it_sees_unless_it_makes_it() {
    const EXEMPT: [usize; 2] = [0x7fff_1234_5678, 0x7fff_1234_5690];
    const MARK: u16 = 0x0123;
    let trap = crate::seccomp::Trap {
        architecture: OWN_ARCH,
        seen: |number| [libc::SYS_openat, libc::SYS_statx].contains(&number),
        exempt: EXEMPT,
        mark: MARK,
    };
    let program = trap.compile();
    let from = |number, address: usize| Called {
        address: address as u64,
        ..call(number, &[])
    };
    let intercepted = libc::SECCOMP_RET_TRAP | u32::from(MARK);
    for number in [libc::SYS_openat, libc::SYS_statx] {
        for address in EXEMPT {
            assert_eq!(from(number, address).verdict(program.instructions()), ALLOW);
            for elsewhere in [address - 1, address + 1, address & 0xffff_ffff, 0] {
                let verdict = from(number, elsewhere).verdict(program.instructions());
                assert_eq!(verdict, intercepted, "{elsewhere:#x}");
            }
        }
    }
    for number in (0..600).filter(|number| !(trap.seen)(*number)) {
        let expected = match number {
            libc::SYS_seccomp => errno(Errno::EPERM),
            _ => ALLOW,
        };
        let verdict = call(number, &[]).verdict(program.instructions());
        assert_eq!(verdict, expected, "{number}");
    }
    for (arch, number) in [(I386, 5), (OWN_ARCH, X32 | 2)] {
        let other = Called {
            arch,
            number,
            ..call(0, &[])
        };
        assert_eq!(other.verdict(program.instructions()), intercepted);
    }
}

#[test]
fn descriptors_have_no_owner_to_signal_and_terminals_no_keys_to_take() {
    let fcntl =
        |command: i32, value: i32| plain(libc::SYS_fcntl, &[1, command as u64, value as u64]);
    for command in [
        libc::F_DUPFD,
        libc::F_GETFD,
        libc::F_SETFD,
        libc::F_GETFL,
        libc::F_GETLK,
        libc::F_SETLK,
        libc::F_SETLKW,
        libc::F_DUPFD_CLOEXEC,
    ] {
        assert_eq!(fcntl(command, 0), ALLOW, "{command}");
    }
    assert_eq!(fcntl(libc::F_SETFL, libc::O_NONBLOCK), ALLOW);
    assert_eq!(fcntl(libc::F_SETFL, libc::O_ASYNC), errno(Errno::EPERM));
    // F_SETOWN 8 to F_GETSIG 11, F_SETOWN_EX 15, F_OFD_GETLK to F_OFD_SETLKW, F_SETLEASE, F_NOTIFY,
    // F_SETPIPE_SZ, F_ADD_SEALS.
    for command in [8, 9, 10, 11, 15, 16, 36, 37, 38, 1024, 1026, 1031, 1033] {
        assert_eq!(fcntl(command, 0), errno(Errno::EPERM), "{command}");
    }
    let ioctl = |request: u64| plain(libc::SYS_ioctl, &[1, request]);
    assert_eq!(ioctl(libc::TCGETS), ALLOW);
    assert_eq!(ioctl(libc::FIONBIO), ALLOW);
    for request in [
        libc::TIOCSTI,
        libc::TIOCSCTTY,
        libc::TIOCSETD,
        libc::TCSETS,
        0x8901, // FIOSETOWN
        0x8902, // SIOCSPGRP
        libc::FIOASYNC,
        0x4004_9409, // FICLONE
        0x8933,      // SIOCGIFINDEX
        libc::TIOCSTI | 1 << 32,
    ] {
        assert_eq!(ioctl(request), errno(Errno::EPERM), "{request:#x}");
    }
}

#[test]
fn the_process_stays_what_it_is() {
    let prctl = |option: i32, value: u64| plain(libc::SYS_prctl, &[option as u64, value]);
    assert_eq!(prctl(libc::PR_SET_NAME, 1), ALLOW);
    assert_eq!(prctl(libc::PR_SET_DUMPABLE, 0), ALLOW);
    assert_eq!(prctl(libc::PR_SET_DUMPABLE, 1), errno(Errno::EPERM));
    for option in [
        libc::PR_SET_PDEATHSIG,
        libc::PR_SET_MM,
        libc::PR_SET_SECCOMP,
        libc::PR_SET_CHILD_SUBREAPER,
        libc::PR_SET_PTRACER,
        libc::PR_SET_KEEPCAPS,
        libc::PR_SET_SECUREBITS,
        libc::PR_CAP_AMBIENT,
        libc::PR_CAPBSET_DROP,
        libc::PR_SET_SPECULATION_CTRL,
        libc::PR_SET_TIMING,
        libc::PR_SET_UNALIGN,
    ] {
        assert_eq!(prctl(option, 0), errno(Errno::EPERM), "{option}");
    }
    assert_eq!(plain(libc::SYS_personality, &[u64::from(u32::MAX)]), ALLOW);
    assert_eq!(plain(libc::SYS_personality, &[0x0040_0000]), ASKS);
}

#[test]
fn files_are_made_plain_and_without_set_id_bits() {
    let open = |mode| plain(libc::SYS_openat, &[0, 0, libc::O_CREAT as u64, mode]);
    assert_eq!(open(0o666), ALLOW);
    assert_eq!(open(0o4755), errno(Errno::EPERM));
    assert_eq!(open(0o2755), errno(Errno::EPERM));
    let make = |mode: u32| plain(libc::SYS_mknodat, &[0, 0, u64::from(mode)]);
    assert_eq!(make(libc::S_IFIFO | 0o600), ALLOW);
    assert_eq!(make(libc::S_IFREG | 0o600), ALLOW);
    assert_eq!(make(0o600), ALLOW);
    for mode in [
        libc::S_IFCHR,
        libc::S_IFBLK,
        libc::S_IFSOCK,
        libc::S_IFREG | 0o4000,
    ] {
        assert_eq!(make(mode | 0o600), errno(Errno::EPERM), "{mode:o}");
    }
    let with_metadata = policy(false, true);
    let change = |policy: &Seccomp, mode| verdict(policy, libc::SYS_fchmodat, &[0, 0, mode]);
    assert_eq!(change(&with_metadata, 0o755), ALLOW);
    assert_eq!(change(&with_metadata, 0o4755), errno(Errno::EPERM));
    assert_eq!(change(&policy(false, false), 0o755), errno(Errno::EPERM));
}

#[test]
fn sockets_that_the_host_makes_are_asked_for_where_it_connects_them() {
    let tcp = [libc::AF_INET as u64, libc::SOCK_STREAM as u64, 0];
    for (network, local, own_network) in [
        (false, false, false),
        (true, true, false),
        (true, false, false),
        (true, false, true),
    ] {
        for sockets_by_host in [false, true] {
            let policy = Seccomp {
                network,
                local,
                tcp: true,
                sockets_by_host,
                command: own_network.then(|| Command {
                    own_network,
                    ..Command::default()
                }),
                ..Seccomp::default()
            };
            let asks = sockets_by_host && (!network || local) && !own_network;
            let expected = if asks { ASKS } else { ALLOW };
            assert_eq!(verdict(&policy, libc::SYS_socket, &tcp), expected);
            let linger = [0, libc::SOL_SOCKET as u64, libc::SO_LINGER as u64];
            let lingers = verdict(&policy, libc::SYS_setsockopt, &linger) == ALLOW;
            assert!(!(asks && lingers), "closing would block the host");
        }
    }
}

#[test]
fn only_what_may_be_a_lookup_of_a_name_is_asked_for() {
    let with = Seccomp {
        files_by_host: true,
        ..Seccomp::default()
    };
    let (here, to_read) = (libc::AT_FDCWD as u64, libc::O_CLOEXEC as u64);
    let open = |policy: &Seccomp, directory, flags| {
        verdict(policy, libc::SYS_openat, &[directory, 8, flags, 0])
    };
    let high_bits = u64::from(libc::AT_FDCWD.cast_unsigned());
    for (directory, flags, asks) in [
        (here, to_read, true),
        (high_bits, to_read | 1 << 32, true),
        (3, to_read, false),
        (here, 0, false),
        (here, to_read | libc::O_DIRECTORY as u64, false),
        (here, to_read | libc::O_NONBLOCK as u64, false),
        (here, to_read | libc::O_WRONLY as u64, false),
        (here, to_read | libc::O_CREAT as u64, false),
    ] {
        let expected = if asks { ASKS } else { ALLOW };
        assert_eq!(open(&with, directory, flags), expected, "{flags:#x}");
        assert_eq!(open(&Seccomp::default(), directory, flags), ALLOW);
    }
    #[cfg(target_arch = "x86_64")]
    {
        let open = |flags| verdict(&with, libc::SYS_open, &[8, flags, 0]);
        // As musl opens files.
        assert_eq!(open(to_read | 0o100_000), ASKS);
        assert_eq!(open(0o100_000), ALLOW);
    }
}
