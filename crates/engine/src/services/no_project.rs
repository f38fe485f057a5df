//! What no project may name, whoever listens there. The user may.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};

use nix::unistd::{Uid, User, geteuid};

use super::kind::is_database_socket;

/// Addresses and the bits of them that count, where clouds give keys, and what configures a machine, to
/// whoever asks from it.
const METADATA_V4: &[(Ipv4Addr, u32)] = &[
    // Nearly all clouds (AWS, Google, Azure, Oracle, OpenStack), and what AWS gives containers' keys at
    // (169.254.170.2, 169.254.170.23): all that is link-local (RFC 3927).
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    // Alibaba.
    (Ipv4Addr::new(100, 100, 100, 200), 32),
    // Azure's WireServer, which has a machine's extensions and their settings.
    (Ipv4Addr::new(168, 63, 129, 16), 32),
    // Oracle's former cloud.
    (Ipv4Addr::new(192, 0, 0, 192), 32),
];

/// The same for IPv6.
const METADATA_V6: &[(Ipv6Addr, u32)] = &[
    // All that is link-local (RFC 4291, 2.5.6), OpenStack's fe80::a9fe:a9fe among them.
    (Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), 10),
    // AWS: ::254, and ::23 for the pods of EKS.
    (Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0), 32),
    // Google.
    (Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0), 32),
    // Oracle.
    (Ipv6Addr::new(0xfd00, 0xc1, 0, 0, 0, 0, 0, 0), 32),
    // Scaleway.
    (Ipv6Addr::new(0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42), 128),
    // Linode.
    (Ipv6Addr::new(0xfd00, 0xa9fe, 0xa9fe, 0, 0, 0, 0, 1), 128),
];

/// Whether no project may name an address, in any of its forms: it is link-local, a cloud gives keys
/// there, or it is none (unspecified), which the kernel takes for this machine.
pub(super) fn is_of_nobody(ip: IpAddr) -> bool {
    ip.to_canonical().is_unspecified() || is_of_cloud(ip)
}

/// Whether an address is link-local, or one at which a cloud gives keys, in any of its forms.
fn is_of_cloud(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(v4) => is_of_cloud_v4(v4),
        IpAddr::V6(v6) => {
            let is = |(known, bits): &(Ipv6Addr, u32)| {
                (known.to_bits() ^ v6.to_bits()).leading_zeros() >= *bits
            };
            METADATA_V6.iter().any(is) || carried(v6).is_some_and(is_of_cloud_v4)
        }
    }
}

fn is_of_cloud_v4(ip: Ipv4Addr) -> bool {
    let is =
        |(known, bits): &(Ipv4Addr, u32)| (known.to_bits() ^ ip.to_bits()).leading_zeros() >= *bits;
    METADATA_V4.iter().any(is)
}

/// The IPv4 address that an IPv6 address leads to, if it carries one: mapped or compatible (RFC 4291,
/// 2.5.5), translated (RFC 6052, RFC 8215), or tunnelled by 6to4 (RFC 3056).
fn carried(ip: Ipv6Addr) -> Option<Ipv4Addr> {
    let last = |[.., a, b]: [u16; 8]| Ipv4Addr::from_bits(u32::from(a) << 16 | u32::from(b));
    match ip.segments() {
        all @ [0, 0, 0, 0, 0, 0 | 0xffff, ..] => Some(last(all)),
        all @ [0x64, 0xff9b, 0, 0, 0, 0, ..] => Some(last(all)),
        all @ [0x64, 0xff9b, 1, ..] => Some(last(all)),
        [0x2002, a, b, ..] => Some(Ipv4Addr::from_bits(u32::from(a) << 16 | u32::from(b))),
        _ => None,
    }
}

/// Directories in which users have their own sockets: a session's, temporary ones.
const OF_USERS: &[&str] = &["/run/user", "/tmp"];

/// Directories that hold the users' homes.
const HOMES: &[&str] = &["/home", "/root", "/var/home"];

/// Directories below which no project may name a Unix socket: their programs are the users' own.
pub(super) struct Places(Vec<PathBuf>);

impl Places {
    /// Those for the project at `root` whose runs run as `user`.
    pub(super) fn of(root: Option<&Path>, user: Option<u32>) -> Self {
        let uid = user.map_or_else(geteuid, Uid::from_raw);
        let home = User::from_uid(uid).ok().flatten().map(|user| user.dir);
        // That of a system's user may be the whole of it.
        let home = home.filter(|home| home.parent().is_some());
        let known = OF_USERS.iter().chain(HOMES).map(PathBuf::from);
        let own = root.map(Path::to_path_buf).into_iter().chain(home);
        // Their sockets are compared by their real places.
        let real = |path: PathBuf| path.canonicalize().unwrap_or(path);
        Self(known.chain(own).map(real).collect())
    }

    /// Whether a socket with this real path is in one of them, and is none of a database server's
    /// well-known ones.
    pub(super) fn have(&self, path: &Path) -> bool {
        self.0.iter().any(|place| path.starts_with(place)) && !is_well_known(path)
    }
}

/// Where the clients of MySQL and PostgreSQL look for a server in the directory that everybody may write to.
fn is_well_known(path: &Path) -> bool {
    let directory = path.parent();
    let is_temporary = directory == Some(Path::new("/tmp"))
        || directory == Path::new("/tmp").canonicalize().ok().as_deref();
    is_temporary && is_database_socket(path)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn no_address_at_all_is_this_machine_and_no_project_names_it() {
        for address in ["0.0.0.0", "::", "::ffff:0.0.0.0", "169.254.169.254"] {
            assert!(is_of_nobody(address.parse().unwrap()), "{address}");
        }
        for address in ["127.0.0.1", "::1", "192.0.2.1"] {
            assert!(!is_of_nobody(address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn what_clouds_give_keys_at_is_known_in_every_form() {
        for address in [
            "169.254.169.254",
            "169.254.170.2",
            "169.254.0.1",
            "100.100.100.200",
            "168.63.129.16",
            "192.0.0.192",
            "fe80::1",
            "febf::1",
            "fe80::a9fe:a9fe",
            "fd00:ec2::254",
            "fd00:ec2::23",
            "fd20:ce::254",
            "fd00:c1::a9fe:a9fe",
            "fd00:42::42",
            "fd00:a9fe:a9fe::1",
            "::ffff:169.254.169.254",
            "::ffff:100.100.100.200",
            "::168.63.129.16",
            "64:ff9b::169.254.169.254",
            "64:ff9b::168.63.129.16",
            "64:ff9b:1::100.100.100.200",
            "64:ff9b:1:2:3:4:169.254.169.254",
            "2002:a9fe:a9fe::1",
        ] {
            assert!(is_of_cloud(address.parse().unwrap()), "{address}");
        }
        for address in [
            "127.0.0.1",
            "10.0.0.5",
            "169.253.255.255",
            "169.255.0.0",
            "100.100.100.201",
            "168.63.129.17",
            "::1",
            "::ffff:10.0.0.5",
            "64:ff9b::10.0.0.5",
            "fd00:ec3::254",
            "fec0::1",
            "2001:db8::169.254.169.254",
        ] {
            assert!(!is_of_cloud(address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn sockets_of_users_are_no_project_s_but_for_those_of_database_servers() {
        let places = Places::of(Some(Path::new("/srv/app")), None);
        for path in [
            "/tmp/tmux-1000/default",
            "/tmp/x.sock",
            "/tmp/deeper/mysql.sock",
            "/tmp/.s.PGSQL.x/y",
            "/run/user/1000/bus",
            "/home/me/.gnupg/S.gpg-agent",
            "/root/x.sock",
            "/srv/app/var/own.sock",
            "/srv/app/mysql.sock",
        ] {
            assert!(places.have(Path::new(path)), "{path}");
        }
        for path in [
            "/tmp/mysql.sock",
            "/tmp/.s.PGSQL.5432",
            "/run/mysqld/mysqld.sock",
            "/var/lib/mysql/mysql.sock",
            "/srv/app2/x.sock",
            "/run/users.sock",
        ] {
            assert!(!places.have(Path::new(path)), "{path}");
        }
    }
}
