//! A session that only plays one: what it does stands in the line.

use std::cell::RefCell;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use altair_engine::guards::Guard;
use altair_engine::shell::{
    Answer, Booted, Completion, Judgement, Name, NameKind, Session, Standing,
};
use altair_engine::{
    Blocked, Diagnostics, EvalError, EvalResult, FileChange, FileChanges, Observer, Outcome,
};

use super::super::{Setting, Shared, talk};
use crate::human::Theme;

/// A session without an application.
#[derive(Default)]
pub struct Played {
    boots: usize,
    changed: Vec<PathBuf>,
}

/// The project that is played.
pub const ROOT: &str = "/srv/shop";

pub fn setting() -> Setting {
    Setting {
        root: ROOT.into(),
        deadline: Duration::from_secs(5),
        writes: false,
        theme: Theme::new(false),
    }
}

pub fn shared() -> Shared {
    Rc::new(RefCell::new(Box::new(Played::default())))
}

/// A result of this outcome that has printed `stdout`.
pub fn result(outcome: Outcome, exit_code: i32, stdout: &str) -> EvalResult {
    EvalResult {
        result: None,
        stdout: stdout.to_owned(),
        stderr: String::new(),
        exception: None,
        duration_ms: 1,
        memory_peak_bytes: 1 << 20,
        exit_code,
        timed_out: false,
        diagnostics: Diagnostics::of(outcome),
    }
}

impl Session for Played {
    fn restart(&mut self, _: &mut dyn Observer) -> Result<Booted, EvalError> {
        self.boots += 1;
        if std::env::var_os("PLAYED_BOOT_FAILS").is_some() {
            let failed = result(Outcome::BootFailed, 1, "");
            return Ok(Booted::Failed(Box::new(failed)));
        }
        Ok(Booted::Ready)
    }

    fn line(&mut self, code: &[u8], observer: &mut dyn Observer) -> Result<Answer, EvalError> {
        let code = String::from_utf8_lossy(code);
        let code = code.trim();
        let ran = format!("ran: {}", code.replace('\n', "|"));
        let answer = |outcome, exit_code, standing| Answer {
            result: Some(result(outcome, exit_code, &ran)),
            standing,
        };
        Ok(match code {
            "sleep" => {
                let _ = writeln!(std::io::stderr(), "sleeping");
                while observer.tick() == ControlFlow::Continue(()) {
                    std::thread::sleep(Duration::from_millis(5));
                }
                Answer {
                    result: None,
                    standing: Standing::Kept,
                }
            }
            "crash" => {
                let standing = Standing::Restarted {
                    lost: vec!["orders".into(), "mailer".into()],
                    why: "the process crashed".into(),
                };
                answer(Outcome::Signalled, 139, standing)
            }
            "fatal" => answer(Outcome::Fatal, 255, Standing::Kept),
            "throw" => answer(Outcome::Threw, 1, Standing::Kept),
            "exit(3)" => answer(Outcome::Exited, 3, Standing::Over { status: 3 }),
            "gone" => return Err(EvalError::Launch("no process could be started".into())),
            "touch" => {
                self.changed = vec![format!("{ROOT}/src/Mailer.php").into(), "/lib/x.php".into()];
                answer(Outcome::Returned, 0, Standing::Kept)
            }
            _ => answer(Outcome::Returned, 0, Standing::Kept),
        })
    }

    fn judge(&mut self, text: &[u8]) -> Result<Judgement, EvalError> {
        let count = |sought: u8| text.iter().filter(|byte| **byte == sought).count();
        Ok(match count(b'{') > count(b'}') {
            true => Judgement::Unfinished,
            false => Judgement::Whole,
        })
    }

    fn complete(&mut self, text: &[u8]) -> Result<Completion, EvalError> {
        let text = std::str::from_utf8(text).expect("what is typed is UTF-8");
        let is_part = |c: char| c == '$' || c == '_' || c.is_alphanumeric();
        let from = text.rfind(|c| !is_part(c)).map_or(0, |at| at + 1);
        let known = [
            ("$orders", NameKind::Variable),
            ("array_map", NameKind::Function),
            ("array_merge", NameKind::Function),
        ];
        let names = known.into_iter().map(|(text, kind)| Name {
            text: text.into(),
            kind,
        });
        let names = names.filter(|name| name.text.starts_with(&text[from..]));
        Ok(Completion {
            from,
            names: names.collect(),
        })
    }

    fn changes(&mut self) -> Result<Option<FileChanges>, EvalError> {
        let created = vec![FileChange {
            path: "var/report.txt".into(),
            size: 12,
            ..FileChange::default()
        }];
        Ok(Some(FileChanges {
            created,
            ..FileChanges::default()
        }))
    }

    fn blocked(&mut self) -> Result<Vec<Blocked>, EvalError> {
        Ok(vec![Blocked {
            what: "connect to 192.0.2.1:80".into(),
            guard: Guard::Seccomp,
            lift: Some("--network".into()),
        }])
    }

    fn changed_files(&mut self) -> Vec<PathBuf> {
        std::mem::take(&mut self.changed)
    }
}

/// Not a test but the program that the tests of this module type into.
#[test]
#[ignore = "other tests run it, with a terminal or a pipe"]
fn plays_the_shell() {
    if std::env::var_os("PLAYED_SHELL").is_none() {
        return;
    }
    let exit = talk(Box::new(Played::default()), &setting());
    std::process::exit(
        exit.unwrap_or_else(|failure| failure.report())
            .code()
            .into(),
    );
}
