//! A thread that does one of two things at the same time.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, RecvError, SyncSender, TryRecvError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

type Job = Box<dyn FnOnce() + Send>;

/// How long the helper is waited for without sleeping. Both take nearly the same time, and whom the
/// helper wakes goes on on its processor, next to what has run there before: the fork that is to be
/// woken next.
const AT_ONCE: Duration = Duration::from_micros(100);

/// What is to be done by whoever takes it.
struct Offered(Mutex<Option<Job>>);

impl Offered {
    fn do_unless_done(&self) {
        let job = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(job) = job {
            job();
        }
    }
}

/// A thread that helps others. It ends with this object.
#[derive(Debug)]
pub(crate) struct Helper {
    to: SyncSender<Arc<Offered>>,
    /// Whether there is a processor for it besides that of whom it helps.
    has_processor: bool,
}

impl std::fmt::Debug for Offered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Offered").finish_non_exhaustive()
    }
}

impl Helper {
    /// # Errors
    /// If there can be no further thread.
    pub(crate) fn start() -> io::Result<Self> {
        let (to, offered) = sync_channel::<Arc<Offered>>(1);
        std::thread::Builder::new()
            .name("altair-helper".into())
            .spawn(move || {
                for offered in offered {
                    // Whoever has offered it is told by the end of its channel.
                    let _ = catch_unwind(AssertUnwindSafe(|| offered.do_unless_done()));
                }
            })?;
        let has_processor = std::thread::available_parallelism().is_ok_and(|n| n.get() > 1);
        Ok(Self { to, has_processor })
    }

    /// Does both, the first one on the helper's thread if that has begun with it by the end of the
    /// second one.
    ///
    /// # Errors
    /// If the first one has panicked there.
    pub(crate) fn both<A: Send + 'static, B>(
        &self,
        first: impl FnOnce() -> A + Send + 'static,
        second: impl FnOnce() -> B,
    ) -> io::Result<(A, B)> {
        let (tell, told) = sync_channel(1);
        let offered = Arc::new(Offered(Mutex::new(Some(Box::new(move || {
            let _ = tell.send(first());
        })))));
        // A helper with something else to do is not waited for.
        let _ = self.to.try_send(Arc::clone(&offered));
        let second = second();
        offered.do_unless_done();
        let first = self.await_told(&told).map_err(io::Error::other)?;
        Ok((first, second))
    }

    fn await_told<A>(&self, told: &Receiver<A>) -> Result<A, RecvError> {
        let until = Instant::now() + AT_ONCE;
        while self.has_processor && Instant::now() < until {
            match told.try_recv() {
                Err(TryRecvError::Empty) => std::hint::spin_loop(),
                Err(TryRecvError::Disconnected) => return Err(RecvError),
                Ok(first) => return Ok(first),
            }
        }
        told.recv()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_are_done_once_whether_it_helps_or_not() -> io::Result<()> {
        let helper = Helper::start()?;
        let (busy, free) = std::sync::mpsc::channel::<()>();
        let inner = Helper::start()?;
        // Done by this thread, as the helper waits for it.
        let waits = move || free.recv().is_ok();
        let (waited, done) = inner.both(waits, || {
            let own = std::thread::current().id();
            let both = helper.both(move || std::thread::current().id() == own, || 7);
            busy.send(()).map(|()| both)
        })?;
        assert!(waited);
        assert!(matches!(done, Ok(Ok((_, 7)))));
        Ok(())
    }

    #[test]
    fn what_has_panicked_is_told() -> io::Result<()> {
        let helper = Helper::start()?;
        let begun = Arc::new(std::sync::Barrier::new(2));
        let begins = Arc::clone(&begun);
        let told = helper.both(
            move || -> i32 {
                begins.wait();
                std::panic::resume_unwind(Box::new("no"))
            },
            || begun.wait(),
        );
        assert!(told.is_err());
        // It helps still.
        let begins = Arc::clone(&begun);
        let waits = move || begins.wait().is_leader();
        let (first, second) = helper.both(waits, || begun.wait().is_leader())?;
        assert_ne!(first, second);
        Ok(())
    }
}
