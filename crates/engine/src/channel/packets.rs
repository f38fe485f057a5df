//! Encodes messages and tasks as packets, and decodes them.

use altair_sandbox::{Outgoing, Parts};
use serde::de::DeserializeOwned;

use super::message::{KIND_MAX_BYTES, Message, MessageRef, StoppedRef};
use super::secret::{SECRET_BYTES, Secret};
use super::task::{Code, Order, Task};

/// Bytes of a packet's content. Several packets must fit into a socket buffer of the system's
/// default size (`net.core.wmem_default`, 212992 bytes).
pub const PACKET_BYTES: usize = 32 * 1024;

/// The packet is a whole message. It may arrive between two packets of a longer message: the
/// deadline's signal handler does not wait until a report has been sent.
const WHOLE: u8 = 0;
/// More packets of the same message follow this one.
const MORE: u8 = 1;
/// This packet ends a message of several packets.
const LAST: u8 = 2;

/// The packet holds a part of a value or of a file, as it is.
const PART: u8 = 3;

/// Splits a task into packets.
///
/// # Errors
///
/// Never for a task of this module's types; the error is `postcard`'s.
pub fn encode_task(task: &Task) -> postcard::Result<Vec<Vec<u8>>> {
    Ok(packets(&[], &postcard::to_allocvec(task)?))
}

/// Splits code into packets, which follow those of its task.
///
/// # Errors
///
/// Never for code of this module's types; the error is `postcard`'s.
pub fn encode_code(code: &Code) -> postcard::Result<Vec<Vec<u8>>> {
    Ok(packets(&[], &postcard::to_allocvec(code)?))
}

/// Splits a message into authenticated packets.
///
/// # Errors
///
/// Never for a message of this module's types; the error is `postcard`'s.
pub fn encode_message(secret: &Secret, message: &Message) -> postcard::Result<Vec<Vec<u8>>> {
    Ok(packets(secret.bytes(), &postcard::to_allocvec(message)?))
}

/// Writes a [`Message::Stopped`] as one packet into `buffer` without allocating, for a signal
/// handler. `None` if it does not fit.
pub fn encode_stopped<'b>(
    secret: &Secret,
    stopped: &StoppedRef<'_>,
    buffer: &'b mut [u8],
) -> Option<&'b [u8]> {
    let header = SECRET_BYTES + 1;
    let (head, body) = buffer.split_at_mut_checked(header)?;
    head[..SECRET_BYTES].copy_from_slice(secret.bytes());
    head[SECRET_BYTES] = WHOLE;
    let used = postcard::to_slice(&MessageRef::Stopped(stopped), body)
        .ok()?
        .len();
    buffer.get(..header + used)
}

/// What a host gives an isolated PHP: an order, and the bytes that follow it.
///
/// # Errors
///
/// Never for an order of this module's types; the error is `postcard`'s.
pub fn encode_order(
    order: &Order,
    bytes: Box<dyn AsRef<[u8]> + Send>,
) -> postcard::Result<[Outgoing; 2]> {
    let order = postcard::to_allocvec(order)?;
    let parts = Parts {
        prefix: &[PART],
        bytes,
        each: PACKET_BYTES,
        sent: 0,
    };
    let order = [&[WHOLE], order.as_slice()].concat();
    Ok([Outgoing::Packet(order), Outgoing::Parts(parts)])
}

/// Splits a value into authenticated packets.
pub fn encode_value<'v>(secret: &'v Secret, value: &'v [u8]) -> impl Iterator<Item = Vec<u8>> {
    let chunks = value.chunks(PACKET_BYTES);
    chunks.map(|chunk| [secret.bytes(), [PART].as_slice(), chunk].concat())
}

/// What a packet of the host to an isolated PHP is.
#[derive(Debug)]
pub enum Given<'p> {
    /// An order.
    Order(Order),
    /// The next bytes of what the last order has announced.
    Part(&'p [u8]),
}

/// Reads a packet of the host to an isolated PHP. An order fits in one packet.
///
/// # Errors
///
/// [`UnreadableTask`] for packets that [`encode_order`] does not produce.
pub fn read_given(packet: &[u8]) -> Result<Given<'_>, UnreadableTask> {
    match packet.split_first() {
        Some((&PART, bytes)) => Ok(Given::Part(bytes)),
        Some((&WHOLE, order)) => postcard::from_bytes(order)
            .map(Given::Order)
            .map_err(|_| UnreadableTask),
        _ => Err(UnreadableTask),
    }
}

fn packets(prefix: &[u8], content: &[u8]) -> Vec<Vec<u8>> {
    let last = content.len().div_ceil(PACKET_BYTES).saturating_sub(1);
    let packet = |(at, chunk): (usize, &[u8])| {
        let flag = match at {
            _ if last == 0 => WHOLE,
            at if at < last => MORE,
            _ => LAST,
        };
        [prefix, &[flag], chunk].concat()
    };
    content
        .chunks(PACKET_BYTES)
        .enumerate()
        .map(packet)
        .collect()
}

/// Returns whether a host would accept a message.
#[must_use]
pub fn fits(message: &Message) -> bool {
    postcard::to_allocvec(message).is_ok_and(|content| {
        content.len() <= most(&content) && postcard::from_bytes::<Message>(&content).is_ok()
    })
}

/// The maximum bytes of a message that begins with `content`.
fn most(content: &[u8]) -> usize {
    // The variant's number is one byte.
    let kind = content.first().copied().map(usize::from);
    kind.and_then(|kind| KIND_MAX_BYTES.get(kind).copied())
        .unwrap_or(0)
}

/// Assembles the contents of packets.
#[derive(Debug, Default)]
struct Assembly {
    content: Vec<u8>,
    /// The content has become too long: everything up to its end is dropped.
    is_overlong: bool,
}

impl Assembly {
    /// Takes a packet without its secret; returns the content once it is complete. `Err` for a
    /// packet that no sender of this module produces. `most`: the maximum length of content that
    /// begins so.
    fn push(&mut self, packet: &[u8], most: fn(&[u8]) -> usize) -> Result<Option<Vec<u8>>, ()> {
        let (flag, chunk) = packet.split_first().ok_or(())?;
        let begins = match self.content.is_empty() {
            true => chunk,
            false => &self.content,
        };
        let fits = self.content.len() + chunk.len() <= most(begins);
        match *flag {
            WHOLE if chunk.len() <= most(chunk) => return Ok(Some(chunk.to_vec())),
            MORE if self.is_overlong => return Err(()),
            LAST if self.is_overlong => {
                self.is_overlong = false;
                return Err(());
            }
            MORE | LAST if fits => self.content.extend_from_slice(chunk),
            MORE | LAST => {
                self.content = Vec::new();
                self.is_overlong = *flag == MORE;
                return Err(());
            }
            _ => return Err(()),
        }
        Ok((*flag == LAST).then(|| std::mem::take(&mut self.content)))
    }
}

/// Assembles a task, or its code, from the packets that the child reads.
#[derive(Debug, Default)]
pub struct TaskReader(Assembly);

/// A task that cannot be read: the other end is a different build, or not a host of this project.
#[derive(Debug, thiserror::Error)]
#[error("the task on the channel cannot be read")]
pub struct UnreadableTask;

impl TaskReader {
    /// Takes the next packet; returns the task, or the code, once it is complete.
    ///
    /// # Errors
    ///
    /// [`UnreadableTask`] for packets that [`encode_task`] and [`encode_code`] do not produce.
    pub fn push<M: DeserializeOwned>(
        &mut self,
        packet: &[u8],
    ) -> Result<Option<M>, UnreadableTask> {
        match self.0.push(packet, |_| usize::MAX) {
            Ok(Some(content)) => postcard::from_bytes(&content)
                .map(Some)
                .map_err(|_| UnreadableTask),
            Ok(None) => Ok(None),
            Err(()) => Err(UnreadableTask),
        }
    }
}

/// Assembles messages from the packets that arrive.
#[derive(Debug)]
pub struct MessageReader {
    secret: Secret,
    assembly: Assembly,
}

impl MessageReader {
    /// Creates a reader for one run.
    #[must_use]
    pub fn new(secret: Secret) -> Self {
        Self {
            secret,
            assembly: Assembly::default(),
        }
    }

    /// The bytes of a packet that is a part of a value.
    #[must_use]
    pub fn part<'p>(&self, packet: &'p [u8]) -> Option<&'p [u8]> {
        let packet = packet.strip_prefix(self.secret.bytes().as_slice())?;
        packet.strip_prefix(&[PART])
    }

    /// Takes a packet; returns a message once one is complete. Drops a packet without the secret,
    /// and a message that cannot be read or is too long.
    pub fn push(&mut self, packet: &[u8]) -> Option<Message> {
        let packet = packet.strip_prefix(self.secret.bytes().as_slice())?;
        let content = self.assembly.push(packet, most).ok().flatten()?;
        postcard::from_bytes(&content).ok()
    }
}
