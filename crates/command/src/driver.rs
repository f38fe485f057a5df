//! What enforces a policy.

use std::str::FromStr;

use crate::CommandError;

/// What enforces a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Driver {
    /// Nothing but the deadlines, the environment and the caps on output; the memory limit, if one
    /// was chosen.
    Host,
    /// `docker run`.
    Docker,
    /// `podman run`.
    Podman,
    /// `firejail`.
    Firejail,
    /// `bwrap`.
    Bubblewrap,
    /// This library, without another program.
    Native,
}

impl Driver {
    /// All drivers, in the order in which messages list them.
    pub const ALL: [Self; 6] = [
        Self::Host,
        Self::Docker,
        Self::Podman,
        Self::Firejail,
        Self::Bubblewrap,
        Self::Native,
    ];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Docker => "docker",
            Self::Podman => "podman",
            Self::Firejail => "firejail",
            Self::Bubblewrap => "bubblewrap",
            Self::Native => "native",
        }
    }

    /// The program that it needs, and the variable that names another one. `None`: it needs none.
    #[must_use]
    pub fn program(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Host | Self::Native => None,
            Self::Docker => Some(("docker", "DOCKER_BIN")),
            Self::Podman => Some(("podman", "PODMAN_BIN")),
            Self::Firejail => Some(("firejail", "FIREJAIL_BIN")),
            Self::Bubblewrap => Some(("bwrap", "BWRAP_BIN")),
        }
    }
}

impl FromStr for Driver {
    type Err = CommandError;

    /// Finds a driver by its name.
    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let known = Self::ALL.into_iter().find(|driver| driver.name() == name);
        known.ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            CommandError::Invalid(format!(
                "Unsupported sandbox driver: {name}. Allowed: {names}"
            ))
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_driver_is_refused_with_the_known_ones() {
        for driver in Driver::ALL {
            assert_eq!(driver.name().parse::<Driver>().unwrap(), driver);
        }
        assert_eq!(
            "lxc".parse::<Driver>().unwrap_err().to_string(),
            "Unsupported sandbox driver: lxc. Allowed: host, docker, podman, firejail, bubblewrap, native"
        );
    }
}
