//! Messages and tasks as packets, and back.

use super::message::{KIND_MAX_BYTES, Message, MessageRef, StoppedRef};
use super::secret::{SECRET_BYTES, Secret};
use super::task::Task;

/// Bytes of a packet's content. A packet has to fit a socket buffer of the system's default size
/// (`net.core.wmem_default`, 212992 bytes) several times over.
pub const PACKET_BYTES: usize = 32 * 1024;

/// The packet is a whole message. One may stand between two packets of a longer message: the
/// deadline's signal handler does not wait for a report to be sent.
const WHOLE: u8 = 0;
/// More packets of the same message follow this one.
const MORE: u8 = 1;
/// This packet ends a message of several.
const LAST: u8 = 2;

/// Splits a task into packets.
///
/// # Errors
///
/// Never for a task of this module's types; the error is `postcard`'s.
pub fn encode_task(task: &Task) -> postcard::Result<Vec<Vec<u8>>> {
    Ok(packets(&[], &postcard::to_allocvec(task)?))
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
/// handler. `None` where it does not fit.
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

/// Whether a host would read a message.
#[must_use]
pub fn fits(message: &Message) -> bool {
    postcard::to_allocvec(message).is_ok_and(|content| {
        content.len() <= most(&content) && postcard::from_bytes::<Message>(&content).is_ok()
    })
}

/// Bytes that a message may have which begins so.
fn most(content: &[u8]) -> usize {
    // The number of the variant, which is one byte.
    let kind = content.first().copied().map(usize::from);
    kind.and_then(|kind| KIND_MAX_BYTES.get(kind).copied())
        .unwrap_or(0)
}

/// Puts the contents of packets together.
#[derive(Debug, Default)]
struct Assembly {
    content: Vec<u8>,
    /// It has become too long: what comes up to its end is nothing.
    is_overlong: bool,
}

impl Assembly {
    /// Takes a packet behind its secret; the content, once it is whole. `Err` for a packet that no
    /// sender of this module makes. `most`: how long what begins so may be.
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

/// Puts a task together from the packets that the child reads.
#[derive(Debug, Default)]
pub struct TaskReader(Assembly);

/// A task that cannot be read: the other end is another build, or no host of this project.
#[derive(Debug, thiserror::Error)]
#[error("the task on the channel cannot be read")]
pub struct UnreadableTask;

impl TaskReader {
    /// Takes the next packet; the task, once it is whole.
    ///
    /// # Errors
    ///
    /// [`UnreadableTask`] for packets that are not of [`encode_task`].
    pub fn push(&mut self, packet: &[u8]) -> Result<Option<Task>, UnreadableTask> {
        match self.0.push(packet, |_| usize::MAX) {
            Ok(Some(content)) => postcard::from_bytes(&content)
                .map(Some)
                .map_err(|_| UnreadableTask),
            Ok(None) => Ok(None),
            Err(()) => Err(UnreadableTask),
        }
    }
}

/// Puts messages together from whatever arrives.
#[derive(Debug)]
pub struct MessageReader {
    secret: Secret,
    assembly: Assembly,
}

impl MessageReader {
    /// A reader for one run.
    #[must_use]
    pub fn new(secret: Secret) -> Self {
        Self {
            secret,
            assembly: Assembly::default(),
        }
    }

    /// Takes a packet; a message, once one is whole. A packet without the secret, and a message
    /// that cannot be read or is too long, is dropped.
    pub fn push(&mut self, packet: &[u8]) -> Option<Message> {
        let packet = packet.strip_prefix(self.secret.bytes().as_slice())?;
        let content = self.assembly.push(packet, most).ok().flatten()?;
        postcard::from_bytes(&content).ok()
    }
}
