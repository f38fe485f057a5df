//! Which programs a host may start, and every way there is to start one that is not confined.

use std::fmt;

use crate::EvalError;

/// The ini setting that decides about programs.
pub const SETTING: &str = "altair_eval.programs";

/// The programs that a host may start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Programs {
    /// All.
    All,
    /// Only those that are confined: by the driver `native`, as an evaluation, or as a guarded runtime.
    Confined(Because),
}

/// Why a host may start only confined programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Because {
    /// The setting says so.
    OfSetting,
    /// PHP's own `proc_open()` is disabled, and the setting is `auto`.
    OfProcOpen,
    /// The value of the setting is none that there is.
    OfUnknownValue,
}

/// A way to start a program that no guard of the kernel's confines. Each place that starts one asks
/// [`Programs::permit`] for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unconfined {
    /// An unsafe run, or an unsafe runtime of a request.
    Run,
    /// An isolated PHP without guards.
    Runtime,
    /// Another PHP than the host's own as a child. It takes the last of its guards itself, so that
    /// any other program would go without.
    OtherPhp,
    /// `SubprocessRunner`.
    Subprocess,
    /// A driver that is not `native`: its name.
    Driver(&'static str),
    /// The command line within PHP, which has options for most of the above.
    CommandLine,
}

impl Programs {
    /// Whether a host may start a program in this way.
    ///
    /// # Errors
    /// [`Forbidden`], which names the setting and says what to do.
    pub fn permit(self, way: Unconfined) -> Result<(), Forbidden> {
        match self {
            Self::All => Ok(()),
            Self::Confined(because) => Err(Forbidden { way, because }),
        }
    }
}

/// A program that was not started, since its host may start only confined ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub struct Forbidden {
    way: Unconfined,
    because: Because,
}

impl fmt::Display for Forbidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.way {
            Unconfined::Run => f.write_str("An unsafe run would have no guards"),
            Unconfined::Runtime => {
                f.write_str("A runtime with `guarded: false` would have no guards")
            }
            Unconfined::OtherPhp => {
                f.write_str("`phpBinary` names another program than the PHP of this host")
            }
            Unconfined::Subprocess => {
                f.write_str("SubprocessRunner starts programs without guards")
            }
            Unconfined::Driver(name) => {
                write!(
                    f,
                    "The driver {name} starts a program without guards of its own"
                )
            }
            Unconfined::CommandLine => f.write_str("The command line starts programs of any kind"),
        }?;
        f.write_str(", and this PHP may only start confined ones: ")?;
        match self.because {
            Because::OfSetting => write!(f, "{SETTING} is `confined`. "),
            Because::OfProcOpen => {
                write!(f, "{SETTING} is `auto`, and proc_open() is disabled here. ")
            }
            Because::OfUnknownValue => {
                write!(f, "{SETTING} is none of `auto`, `confined` and `all`. ")
            }
        }?;
        f.write_str(match self.way {
            Unconfined::Run => "Leave out `unsafe`",
            Unconfined::Runtime => "Leave out `guarded`",
            Unconfined::OtherPhp => "Leave out `phpBinary`",
            Unconfined::Subprocess | Unconfined::Driver(_) => "Use the driver native",
            Unconfined::CommandLine => "Use the program altair",
        })?;
        write!(
            f,
            ", or set {SETTING}=all in php.ini or in the pool of php-fpm."
        )
    }
}

impl From<Forbidden> for EvalError {
    fn from(forbidden: Forbidden) -> Self {
        Self::Forbidden(forbidden)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Unconfined; 6] = [
        Unconfined::Run,
        Unconfined::Runtime,
        Unconfined::OtherPhp,
        Unconfined::Subprocess,
        Unconfined::Driver("host"),
        Unconfined::CommandLine,
    ];

    #[test]
    fn all_programs_are_permitted_or_none_that_is_not_confined() {
        for way in ALL {
            assert_eq!(Programs::All.permit(way), Ok(()));
            for because in [
                Because::OfSetting,
                Because::OfProcOpen,
                Because::OfUnknownValue,
            ] {
                let message = match Programs::Confined(because).permit(way) {
                    Err(forbidden) => forbidden.to_string(),
                    Ok(()) => panic!("{way:?} is permitted"),
                };
                assert!(message.contains("altair_eval.programs is "), "{message}");
                assert!(message.contains("altair_eval.programs=all"), "{message}");
            }
        }
    }
}
