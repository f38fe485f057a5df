//! Reads what a process's arguments point to. The process can change it at any time: the copy may
//! only be used for reports, and for what the host itself does with it.

use std::ffi::OsString;
use std::fs::File;
use std::io::IoSliceMut;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::time::Duration;

use nix::errno::Errno;
use nix::libc;
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::Pid;

use crate::connections::Address;
use crate::{RunAs, with_files_of};

/// Maximum number of bytes read of a path.
const PATH_BYTES: usize = 256;
/// Size of the longest address: that of a Unix socket (unix(7)).
const ADDRESS_BYTES: usize = 110;
/// Size of the smallest page. Reads are split at page boundaries: the last page may not be mapped.
const PAGE_BYTES: usize = 4096;

/// How long a thread may take that reads memory as another user. It takes microseconds, unless the
/// memory is a mapped file of a file system that does not answer.
const PATIENCE: Duration = Duration::from_secs(1);

/// The memory of processes that run as one user.
#[derive(Clone, Copy, Debug)]
pub(super) struct Memory {
    /// The user, if different from the host's.
    pub(super) user: Option<RunAs>,
}

impl Memory {
    /// The path at an address; only its beginning, if it is long.
    pub(super) fn path(self, pid: Pid, address: u64) -> Option<PathBuf> {
        let mut bytes = self.read(pid, address, PATH_BYTES)?;
        let end = bytes.iter().position(|byte| *byte == 0);
        bytes.truncate(end.unwrap_or(bytes.len()));
        (!bytes.is_empty()).then(|| OsString::from_vec(bytes).into())
    }

    /// The socket address at a memory address.
    pub(super) fn socket_address(self, pid: Pid, address: u64, length: u64) -> Option<Address> {
        let length = usize::try_from(length).ok()?.min(ADDRESS_BYTES);
        parsed(&self.read(pid, address, length)?)
    }

    fn read(self, pid: Pid, address: u64, length: usize) -> Option<Vec<u8>> {
        match read(pid, address, length)? {
            Ok(bytes) => Some(bytes),
            // A container's filter refuses the call, or it takes a right that the host does not
            // have: over another user. The file needs that user's rights alone (proc_pid_mem(5)).
            Err(Errno::EPERM | Errno::EACCES | Errno::ENOSYS) => {
                let look = move || read_file(pid, address, length);
                match self.user {
                    None => look(),
                    user => with_files_of(user, PATIENCE, look).ok().flatten(),
                }
            }
            Err(_) => None,
        }
    }
}

/// Reads by the process's file in `/proc`.
fn read_file(pid: Pid, address: u64, length: usize) -> Option<Vec<u8>> {
    let memory = File::open(format!("/proc/{pid}/mem")).ok()?;
    let mut bytes = vec![0; length];
    let count = memory.read_at(&mut bytes, address).ok()?;
    bytes.truncate(count);
    Some(bytes)
}

/// Parses a `struct sockaddr` (ip(7), ipv6(7), unix(7)).
pub(super) fn parsed(bytes: &[u8]) -> Option<Address> {
    let (family, rest) = bytes.split_first_chunk::<2>()?;
    let port = |bytes: &[u8]| Some(u16::from_be_bytes(*bytes.first_chunk::<2>()?));
    match i32::from(u16::from_ne_bytes(*family)) {
        libc::AF_INET => {
            let ip = Ipv4Addr::from(*rest.get(2..)?.first_chunk::<4>()?);
            Some(Address::Internet((ip, port(rest)?).into()))
        }
        // The port is followed by the flow label (4 bytes).
        libc::AF_INET6 => {
            let ip = Ipv6Addr::from(*rest.get(6..)?.first_chunk::<16>()?);
            // Absent in the first version of the structure (RFC 2133).
            let scope = rest.get(22..).and_then(<[u8]>::first_chunk::<4>);
            let scope = scope.map_or(0, |bytes| u32::from_ne_bytes(*bytes));
            let v6 = SocketAddrV6::new(ip, port(rest)?, 0, scope);
            Some(Address::Internet(SocketAddr::V6(v6)))
        }
        libc::AF_UNIX => {
            let (is_abstract, name) = match rest.split_first()? {
                (0, name) => (true, name),
                _ => (false, rest),
            };
            let end = name.iter().position(|byte| *byte == 0);
            let text = name.get(..end.unwrap_or(name.len()))?;
            match (is_abstract, text.is_empty()) {
                (_, true) => None,
                (true, false) => Some(Address::Abstract(text.to_vec())),
                (false, false) => Some(Address::Path(OsString::from_vec(text.to_vec()).into())),
            }
        }
        _ => None,
    }
}

/// `None`: there can be nothing at this address.
fn read(pid: Pid, address: u64, length: usize) -> Option<nix::Result<Vec<u8>>> {
    let base = usize::try_from(address).ok().filter(|base| *base != 0)?;
    let first = (PAGE_BYTES - base % PAGE_BYTES).min(length);
    // Fails past the end of the address space.
    let next = base.checked_add(first)?;
    let mut bytes = vec![0; length];
    let remote = [
        RemoteIoVec { base, len: first },
        RemoteIoVec {
            base: next,
            len: length - first,
        },
    ];
    let count = process_vm_readv(pid, &mut [IoSliceMut::new(&mut bytes)], &remote);
    Some(count.map(|count| {
        bytes.truncate(count);
        bytes
    }))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn address(family: i32, rest: &[u8]) -> Vec<u8> {
        let family = u16::try_from(family).unwrap();
        [&family.to_ne_bytes(), rest].concat()
    }

    #[test]
    fn addresses_are_said_in_words() {
        let v4 = address(libc::AF_INET, &[0x20, 0xfb, 127, 0, 0, 1]);
        assert_eq!(parsed(&v4).unwrap().to_string(), "127.0.0.1:8443");
        let mut v6 = vec![0, 80, 0, 0, 0, 0];
        v6.extend(Ipv6Addr::LOCALHOST.octets());
        let v6 = address(libc::AF_INET6, &v6);
        assert_eq!(parsed(&v6).unwrap().to_string(), "[::1]:80");
        let path = address(libc::AF_UNIX, b"/run/db.sock\0rest");
        assert_eq!(parsed(&path).unwrap().to_string(), "/run/db.sock");
        let name = address(libc::AF_UNIX, b"\0name");
        assert_eq!(parsed(&name).unwrap().to_string(), "@name");
    }

    #[test]
    fn what_is_no_address_is_not_said() {
        for bytes in [
            vec![],
            vec![2],
            address(libc::AF_INET, &[0, 80, 127]),
            address(libc::AF_INET6, &[0, 80, 0, 0, 0, 0, 1]),
            address(libc::AF_UNIX, b""),
            address(libc::AF_UNIX, b"\0"),
            address(libc::AF_NETLINK, &[0; 10]),
        ] {
            assert_eq!(parsed(&bytes), None, "{bytes:?}");
        }
    }

    #[test]
    fn a_path_at_the_end_of_memory_is_read() {
        let own = Pid::this();
        let text = b"/bin/true\0";
        let path = |at| Memory { user: None }.path(own, at);
        let there = path(text.as_ptr() as u64).unwrap();
        assert_eq!(there, PathBuf::from("/bin/true"));
        assert_eq!(path(0), None);
        assert_eq!(path(8), None);
        assert_eq!(path(u64::MAX - 3), None);
    }

    #[test]
    fn the_file_in_proc_gives_the_same() {
        let text = b"/bin/true\0";
        let bytes = read_file(Pid::this(), text.as_ptr() as u64, text.len());
        assert_eq!(bytes.unwrap(), text);
        assert_eq!(read_file(Pid::this(), 8, 4), None);
    }
}
