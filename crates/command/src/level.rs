//! How much of a private root the kernel makes for a command.

use std::path::{Path, PathBuf};

use altair_engine::ladder;
use altair_sandbox::{GuardState, Guards, Place, SpawnError, Step, landlock_version};

use crate::CommandError;

/// How much the kernel supports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Level {
    /// A private root and namespaces, layers in memory.
    Full,
    /// The same, layers in this directory on disk.
    LayerOnDisk(Place),
    /// The same, without layers over the toolchains in the home: they may only be read.
    NoLayer,
    /// Neither: Landlock and the filter. This directory is the command's own.
    NoRoot(Place),
}

impl Level {
    /// Whether there is a private root.
    pub(crate) fn has_root(&self) -> bool {
        match self {
            Self::Full | Self::LayerOnDisk(_) | Self::NoLayer => true,
            Self::NoRoot(_) => false,
        }
    }

    /// The command's own directory where there is no private root.
    pub(crate) fn own(&self) -> Option<&Path> {
        match self {
            Self::NoRoot(place) => Some(place.path()),
            Self::Full | Self::LayerOnDisk(_) | Self::NoLayer => None,
        }
    }
}

/// The layers that a command has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layers {
    /// None.
    None,
    /// Over directories of toolchains alone.
    Thrown,
    /// Over directories that the policy names: nothing runs without them.
    Needed {
        /// Whether there are others.
        with_thrown: bool,
    },
}

/// The next level after a failed start; `Err` if there is none. `own` makes a directory for a layer, or
/// for the command where it has no other.
pub(crate) fn step_down(
    level: &Level,
    error: &SpawnError,
    layers: Layers,
    own: impl FnOnce() -> Result<Place, CommandError>,
) -> Result<(Level, String), CommandError> {
    let Some((step, why)) = ladder::why_unsupported(error) else {
        return Err(CommandError::Start(error.to_string()));
    };
    let is_of_layer = step == Step::ProjectLayer;
    match (level, layers) {
        (Level::NoRoot(_), _) => Err(CommandError::Start(error.to_string())),
        (Level::Full, Layers::Thrown | Layers::Needed { .. }) if is_of_layer => {
            Ok((Level::LayerOnDisk(own()?), why))
        }
        // The toolchains may be what can have none.
        (Level::LayerOnDisk(_), Layers::Thrown | Layers::Needed { with_thrown: true })
            if is_of_layer =>
        {
            Ok((Level::NoLayer, why))
        }
        (_, Layers::Needed { .. }) => Err(CommandError::Start(format!(
            "No layer can be made here ({why}). `altair doctor` says how to get a private root."
        ))),
        (Level::Full | Level::LayerOnDisk(_) | Level::NoLayer, _) => match landlock_version() {
            Ok(_) => Ok((Level::NoRoot(own()?), why)),
            Err(landlock) => Err(CommandError::Start(format!(
                "The driver native cannot confine files here: {why}; {landlock}. `altair doctor` says what is missing."
            ))),
        },
    }
}

/// The guards that are not fully in force. `divided`: directories that Landlock could not grant as a
/// whole.
pub(crate) fn lacking(
    guards: &Guards,
    level: &Level,
    why: &str,
    divided: &[PathBuf],
) -> Vec<(&'static str, GuardState)> {
    let mut lacking = Vec::new();
    let filesystem = match level {
        Level::Full => GuardState::InForce,
        Level::LayerOnDisk(_) => GuardState::Degraded {
            to: format!("a layer on disk, whose size is not bounded: {why}"),
        },
        Level::NoLayer => GuardState::Degraded {
            to: format!("toolchains in the home that may only be read: {why}"),
        },
        Level::NoRoot(_) => GuardState::Missing {
            because: format!("no private root and no namespaces: {why}{}", said(divided)),
        },
    };
    let in_force = || GuardState::InForce;
    let taken = &guards.before_exec;
    for (name, state) in [
        ("process", guards.process.clone()),
        ("limits", guards.limits.clone()),
        ("privileges", guards.privileges.clone()),
        ("filesystem", filesystem),
        ("landlock", taken.landlock.clone().unwrap_or_else(in_force)),
        ("seccomp", taken.seccomp.clone().unwrap_or_else(in_force)),
        ("deadline", guards.deadline.clone()),
    ] {
        if state != GuardState::InForce {
            lacking.push((name, state));
        }
    }
    lacking
}

/// What a command misses since Landlock cannot leave out a part of a directory.
fn said(divided: &[PathBuf]) -> String {
    /// Directories named: the rest are below them or like them.
    const NAMED: usize = 4;
    let shown: Vec<String> = divided
        .iter()
        .filter(|path| {
            !divided
                .iter()
                .any(|other| path.as_path() != other && path.starts_with(other))
        })
        .take(NAMED)
        .map(|path| path.display().to_string())
        .collect();
    match shown.is_empty() {
        true => String::new(),
        false => format!(
            "; since something in them is kept from the command, these and what is new in them cannot be listed: {}",
            shown.join(", ")
        ),
    }
}
