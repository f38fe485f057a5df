//! What host and child say to each other: packets on a `SOCK_SEQPACKET` socket.
//!
//! The host sends one [`Task`], the child sends [`Message`]s. Each message of the child starts
//! with the run's [`Secret`], which only the two of them know. Whatever else arrives (a snippet
//! can find the descriptor and write to it) is dropped packet by packet and disturbs nothing:
//! that is why the socket keeps packet borders.

mod message;
mod packets;
mod secret;
mod task;
#[cfg(test)]
mod tests;

pub use message::{
    BootReport, Ending, INI_MAX, LocationRef, MESSAGE_MAX_BYTES, Message, Outside, Report,
    StoppedRef, VARIABLES_MAX, VARIABLES_MAX_BYTES,
};
pub use packets::{
    MessageReader, PACKET_BYTES, TaskReader, UnreadableTask, encode_message, encode_stopped,
    encode_task, fits,
};
pub use secret::{SECRET_BYTES, Secret};
pub use task::{
    PROTOCOL, Restricted, Restrictions, SnippetTask, Task, TemplateTask, Watched, Work,
};

/// The descriptor under which the child finds its end.
pub const DESCRIPTOR: i32 = 3;
