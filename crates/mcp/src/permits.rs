//! What a server permits calls to ask for.

/// What calls may ask for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Permits {
    /// Real writes to the project.
    pub writes: bool,
    /// Database sessions that write and are rolled back.
    pub rollback: bool,
    /// Outbound connections.
    pub network: bool,
    /// Connections to the application's services, which no call has to ask for.
    pub services: bool,
}
