//! PHP's own switches: the functions and ini settings that a confined run is denied.
//!
//! They give clear errors; the kernel enforces the boundary. The lists are defined only here.

use crate::channel::{Restricted, Restrictions};
use crate::request::EvalRequest;

/// Disabled in every confined run. The first four and their order are a public contract.
pub const ALWAYS_DISABLED: &[&str] = &[
    "exec",
    "shell_exec",
    "passthru",
    "system",
    "proc_open",
    "proc_close",
    "proc_terminate",
    "proc_nice",
    "popen",
    "pclose",
    "pcntl_exec",
    "assert",
    "symlink",
    "link",
    "ini_set",
    "ini_alter",
    "ini_restore",
    "putenv",
    "mail",
];

/// Disabled in addition to [`ALWAYS_DISABLED`]: they start a process, load native code, send mail,
/// or create a System V object, which would outlive the run.
pub const ALSO_DISABLED: &[&str] = &[
    "pcntl_fork",
    "pcntl_rfork",
    "pcntl_unshare",
    "pcntl_setns",
    "dl",
    "mb_send_mail",
    "shm_attach",
    "shmop_open",
    "sem_get",
    "msg_get_queue",
];

/// Disabled in addition to [`ALWAYS_DISABLED`]: they listen for connections, which only `--unsafe`
/// allows.
pub const LISTENING_DISABLED: &[&str] = &[
    "socket_bind",
    "socket_addrinfo_bind",
    "socket_create_listen",
    "socket_listen",
    "stream_socket_server",
];

/// Methods that are refused in every confined run because they reach native code.
/// `disable_functions` does not cover methods.
pub const METHODS_REFUSED: &[&str] = &[
    "FFI::cdef",
    "FFI::load",
    "FFI::scope",
    "FFI::new",
    "FFI::cast",
    "FFI::type",
    // PHP 8.4's accepts any path; the older one only files in a directory that the ini files name.
    "Pdo\\Sqlite::loadExtension",
    "SQLite3::loadExtension",
];

/// Disabled unless the network is on or services are declared.
pub const NETWORK_DISABLED: &[&str] = &[
    "fsockopen",
    "pfsockopen",
    "stream_socket_client",
    "curl_exec",
    "curl_multi_exec",
];

/// Disabled in addition to [`NETWORK_DISABLED`]: they connect, send to an address, or query a name
/// server.
pub const NETWORK_ALSO_DISABLED: &[&str] = &[
    "socket_connect",
    "socket_addrinfo_lookup",
    "socket_addrinfo_connect",
    "stream_socket_sendto",
    "socket_sendto",
    "socket_sendmsg",
    "gethostbyname",
    "gethostbynamel",
    "gethostbyaddr",
    "checkdnsrr",
    "dns_check_record",
    "dns_get_record",
    "getmxrr",
    "dns_get_mx",
    "ftp_connect",
    "ftp_ssl_connect",
];

/// Functions from the lists above that the application's own code may still call, because a lazily
/// built service may need them. Only calls written in the snippet are refused.
pub const REFUSED_IN_SNIPPET_ONLY: &[&str] =
    &["ini_set", "ini_alter", "ini_restore", "putenv", "assert"];

/// ini settings of every confined run. No FFI, no loading of extensions, no writing of archives,
/// no code from a URL.
pub const INI: &[(&str, &str)] = &[
    ("ffi.enable", "0"),
    ("enable_dl", "0"),
    ("phar.readonly", "1"),
    ("allow_url_include", "0"),
];

/// ini settings of a run without network and without services.
pub const NETWORK_INI: &[(&str, &str)] = &[("allow_url_fopen", "0")];

/// The environment variables that tell a run what it is allowed.
pub const VARIABLES: [&str; 3] = [
    "ALTAIR_EVAL_ALLOW_WRITES",
    "ALTAIR_EVAL_ALLOW_NETWORK",
    "ALTAIR_EVAL_UNSAFE",
];

/// A request's policy in PHP's own terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SecurityProfile {
    memory_limit_mb: u32,
    allow_writes: bool,
    allow_network: bool,
    services: bool,
    unconfined: bool,
}

impl From<&EvalRequest> for SecurityProfile {
    fn from(request: &EvalRequest) -> Self {
        Self {
            memory_limit_mb: request.memory_limit_mb(),
            allow_writes: request.allow_writes,
            allow_network: request.allow_network,
            services: request
                .services
                .as_ref()
                .is_some_and(|services| !services.is_empty()),
            unconfined: request.unconfined,
        }
    }
}

impl SecurityProfile {
    /// The same profile, with services or without, whatever the request says.
    #[must_use]
    pub(crate) fn with_services(mut self, services: bool) -> Self {
        self.services = services;
        self
    }

    /// Returns whether PHP may connect; the kernel's guards restrict where to.
    fn connects(&self) -> bool {
        self.unconfined || self.allow_network || self.services
    }

    /// The functions that are disabled, in the order of the lists above; none when unsafe.
    pub fn disabled_functions(&self) -> impl Iterator<Item = &'static str> {
        let always = [ALWAYS_DISABLED, ALSO_DISABLED, LISTENING_DISABLED];
        let network = [NETWORK_DISABLED, NETWORK_ALSO_DISABLED];
        let always = if self.unconfined {
            [[].as_slice(); 3]
        } else {
            always
        };
        let network = if self.connects() {
            [[].as_slice(); 2]
        } else {
            network
        };
        always.into_iter().chain(network).flatten().copied()
    }

    /// The ini settings, without `memory_limit`; none when unsafe.
    pub fn ini(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let always = if self.unconfined { &[] } else { INI };
        let network = if self.connects() { &[] } else { NETWORK_INI };
        always.iter().chain(network).copied()
    }

    /// The arguments that give a plain `php` the same switches: `-d`, `name=value`, …; empty when
    /// unsafe.
    ///
    /// `already_disabled` is the host's own `disable_functions`, which stays disabled.
    #[must_use]
    pub fn php_flags(&self, allowed_base_dir: &str, already_disabled: &str) -> Vec<String> {
        if self.unconfined {
            return Vec::new();
        }
        let mut disabled: Vec<&str> = self.disabled_functions().collect();
        for name in already_disabled
            .split([',', ' '])
            .filter(|name| !name.is_empty())
        {
            if !disabled.contains(&name) {
                disabled.push(name);
            }
        }
        let mut settings = vec![
            format!("memory_limit={}M", self.memory_limit_mb),
            format!("open_basedir={allowed_base_dir}"),
            format!("disable_functions={}", disabled.join(",")),
        ];
        settings.extend(self.ini().map(|(name, value)| format!("{name}={value}")));
        settings
            .into_iter()
            .flat_map(|setting| ["-d".to_owned(), setting])
            .collect()
    }

    /// The three [`VARIABLES`] with the values `1` or `0`.
    #[must_use]
    pub fn env_vars(&self) -> [(&'static str, &'static str); 3] {
        let [writes, network, unconfined] = VARIABLES;
        [
            (writes, flag(self.allow_writes)),
            (network, flag(self.allow_network)),
            (unconfined, flag(self.unconfined)),
        ]
    }

    /// The restrictions that the child applies after boot; `None` for an unsafe run.
    #[must_use]
    pub fn restrictions(&self) -> Option<Restrictions> {
        if self.unconfined {
            return None;
        }
        let lift = |name: &str| {
            let network = NETWORK_DISABLED.contains(&name) || NETWORK_ALSO_DISABLED.contains(&name);
            if network { "--network" } else { "--unsafe" }
        };
        Some(Restrictions {
            readable: Vec::new(),
            ini: self
                .ini()
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
            functions: self
                .disabled_functions()
                .chain(METHODS_REFUSED.iter().copied())
                .map(|name| Restricted {
                    name: name.to_owned(),
                    snippet_only: REFUSED_IN_SNIPPET_ONLY.contains(&name),
                    lift: lift(name).to_owned(),
                })
                .collect(),
        })
    }
}

fn flag(on: bool) -> &'static str {
    if on { "1" } else { "0" }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn profile(change: impl FnOnce(&mut EvalRequest)) -> SecurityProfile {
        let mut request = EvalRequest::new("return 1;", "/srv");
        change(&mut request);
        SecurityProfile::from(&request)
    }

    #[test]
    fn the_flags_say_what_a_plain_php_takes() {
        let flags = profile(|_| ()).php_flags("/srv", "");
        assert_eq!(
            flags[..4],
            ["-d", "memory_limit=128M", "-d", "open_basedir=/srv"]
        );
        assert!(
            flags[5].starts_with("disable_functions=exec,shell_exec,passthru,system,proc_open,")
        );
        assert!(flags.contains(&"allow_url_fopen=0".to_owned()));
    }

    #[test]
    fn the_network_lifts_its_own_functions_and_nothing_else() {
        let flags = profile(|r| r.allow_network = true).php_flags("/srv", "");
        let disabled = flags[5].strip_prefix("disable_functions=").unwrap();
        assert!(!disabled.split(',').any(|name| name == "curl_exec"));
        assert!(disabled.split(',').any(|name| name == "mail"));
        assert!(!flags.contains(&"allow_url_fopen=0".to_owned()));
    }

    #[test]
    fn what_the_host_disables_stays_disabled() {
        let flags = profile(|_| ()).php_flags("/srv", "phpinfo, exec");
        let disabled = flags[5].strip_prefix("disable_functions=").unwrap();
        assert_eq!(
            disabled.split(',').filter(|name| *name == "exec").count(),
            1
        );
        assert!(disabled.ends_with(",phpinfo"));
    }

    #[test]
    fn an_unsafe_run_has_no_switches() {
        let profile = profile(|r| r.unconfined = true);
        assert!(profile.php_flags("/srv", "phpinfo").is_empty());
        assert_eq!(profile.restrictions(), None);
        assert_eq!(profile.env_vars()[2], ("ALTAIR_EVAL_UNSAFE", "1"));
    }

    #[test]
    fn a_restriction_names_the_flag_that_lifts_it() {
        let functions = profile(|_| ()).restrictions().unwrap().functions;
        let find = |name: &str| functions.iter().find(|f| f.name == name).unwrap();
        assert_eq!(find("curl_exec").lift, "--network");
        assert_eq!(find("exec").lift, "--unsafe");
        assert_eq!(find("FFI::cdef").lift, "--unsafe");
        assert_eq!(find("stream_socket_server").lift, "--unsafe");
        assert!(find("ini_set").snippet_only && !find("exec").snippet_only);
    }
}
