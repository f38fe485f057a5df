//! The protocol between host and child: packets on a `SOCK_SEQPACKET` socket.
//!
//! The host sends one [`Task`] and the [`Code`] for it, if it is for any, and an isolated PHP [`Order`]s
//! after that; the child sends [`Message`]s. Each message of the child starts with
//! the run's [`Secret`], which only host and child know. A snippet can find the descriptor and
//! write to it, so any other packet is dropped. The socket preserves packet boundaries, so a
//! dropped packet does not affect the others.

mod message;
mod packets;
mod secret;
mod task;
#[cfg(test)]
mod tests;

pub use message::{
    BootReport, Ending, INI_MAX, LOADED_MAX, Left, LocationRef, MESSAGE_MAX_BYTES, Message,
    Outside, RESOLVED_MAX, RESOLVED_MAX_BYTES, Report, SOUGHT_MAX, SOUGHT_NAME_MAX_BYTES,
    StoppedRef, VARIABLES_MAX, VARIABLES_MAX_BYTES, VARIABLES_NAMED_MAX,
};
pub use packets::{
    Given, MessageReader, PACKET_BYTES, TaskReader, UnreadableTask, encode_code, encode_message,
    encode_order, encode_stopped, encode_task, encode_value, fits, read_given,
};
pub use secret::{SECRET_BYTES, Secret};
pub use task::{
    Code, EntryOrder, Ground, Order, PROTOCOL, Restricted, Restrictions, RuntimeTask, SnippetTask,
    SourceFile, Task, TemplateTask, Watched, Work,
};

/// The descriptor of the child's end.
pub const DESCRIPTOR: i32 = 3;
