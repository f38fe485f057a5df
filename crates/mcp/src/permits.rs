//! What a server permits calls to ask for.

use altair_engine::Database;

use crate::arguments::Call;
use crate::tool::{DATABASE, NETWORK, WRITES};

/// What calls may ask for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Permits {
    /// Real writes to the project.
    pub writes: bool,
    /// Database sessions that write and are rolled back.
    pub rollback: bool,
    /// Outbound connections.
    pub network: bool,
    /// What calls may connect to without asking.
    pub services: Services,
}

/// The application's services, by what a run can do to them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Services {
    /// There are none.
    #[default]
    None,
    /// SQL databases whose sessions are read-only.
    Databases,
    /// At least one other: a cache, a queue.
    Others,
}

/// Something that a call wants and a server can refuse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// Real writes to the project.
    Writes,
    /// Connections to any address.
    Network,
    /// Database sessions that write and are rolled back.
    Rollback,
    /// Database sessions that write.
    DatabaseWrites,
}

impl Permits {
    /// What a call wants and is not permitted.
    pub fn lacks(self, call: &Call) -> Vec<Wanted> {
        let (rollback, write) = (Some(Database::Rollback), Some(Database::Write));
        let wanted = [
            (Wanted::Writes, call.allow_writes && !self.writes),
            (Wanted::Network, call.allow_network && !self.network),
            (
                Wanted::Rollback,
                call.database == rollback && !self.rollback,
            ),
            (
                Wanted::DatabaseWrites,
                call.database == write && !self.writes,
            ),
        ];
        let lacking = wanted.into_iter().filter(|(_, lacks)| *lacks);
        lacking.map(|(wanted, _)| wanted).collect()
    }
}

impl Wanted {
    /// The argument that asks for it.
    pub fn argument(self) -> String {
        match self {
            Self::Writes => format!("`{WRITES}`"),
            Self::Network => format!("`{NETWORK}`"),
            Self::Rollback => format!("`{DATABASE}` \"rollback\""),
            Self::DatabaseWrites => format!("`{DATABASE}` \"write\""),
        }
    }

    /// What the run could do with it, for a person.
    pub fn means(self) -> &'static str {
        match self {
            Self::Writes => {
                "change and delete files of the project for real, and data in its databases"
            }
            Self::Network => "connect to any address on the network",
            Self::Rollback => {
                "write to the application's databases, with everything rolled back at the end"
            }
            Self::DatabaseWrites => "change and delete data in the application's databases",
        }
    }

    /// What the agent has without it.
    fn otherwise(self) -> &'static str {
        match self {
            Self::Writes => {
                "what a run writes to the project is thrown away and told of in `diagnostics.file_changes`"
            }
            Self::Network => "a run reaches the application's own services only",
            Self::Rollback | Self::DatabaseWrites => "database sessions only read",
        }
    }
}

/// The arguments that ask for this, in words.
pub fn arguments(wanted: &[Wanted]) -> String {
    let names: Vec<String> = wanted.iter().map(|wanted| wanted.argument()).collect();
    names.join(" and ")
}

/// What the agent has without this, in a sentence.
pub fn without(wanted: &[Wanted]) -> String {
    let mut otherwise: Vec<&str> = wanted.iter().map(|wanted| wanted.otherwise()).collect();
    otherwise.dedup();
    format!("Without it, {}.", otherwise.join(", and "))
}

/// A refusal that nobody can be asked about.
pub fn refusal(wanted: &[Wanted]) -> String {
    format!(
        "Nothing was run. This server does not permit {}. {} Only the person who runs this server can permit more.",
        arguments(wanted),
        without(wanted)
    )
}
