//! Reports database queries to the host. New statements are reported when they are sent, since a
//! slow statement may be the last of a run.

use std::sync::{Mutex, PoisonError};

use altair_engine::channel::{Message, SnippetTask, Task};
use altair_engine::queries::News;

use super::channel_link::Voice;
use crate::zend::queries;

static VOICE: Mutex<Option<&'static Voice>> = Mutex::new(None);

/// Reports on `voice` from now on, if the run asks for it.
pub fn report_to(voice: &'static Voice, task: &Task, run: &SnippetTask) {
    if run.queries {
        *VOICE.lock().unwrap_or_else(PoisonError::into_inner) = Some(voice);
        queries::record(&task.root, tell);
    }
}

fn tell(news: News) {
    let voice = *VOICE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(voice) = voice {
        voice.send(&Message::Queries(news));
    }
}
