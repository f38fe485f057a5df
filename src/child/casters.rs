//! How the application shows its own objects: `extra.altair-eval.casters` in composer.json names a
//! PHP file that returns a callable for each class. It is the application's code, read at the first
//! object that is shown, and runs under the guards and the deadline of the run.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use altair_engine::encode::{Key, Node, OwnCasters, Shape, Thrown, UserCode};

use crate::zend::node::{ZvalNode, call, require};

/// What is wrong where no code of the application has thrown.
const MISUSE: &str = "UnexpectedValueException";

/// The casters of an application.
pub struct Casters {
    /// The project's directory and the file, or why there is none.
    file: Result<(PathBuf, String), String>,
    /// A class and the callable that shows its objects, in the file's order.
    casters: Vec<(String, ZvalNode)>,
    /// Which of them shows the objects of a class.
    chosen: HashMap<usize, Option<usize>>,
}

impl Casters {
    /// Those that a project at `root` declares; nothing is read yet.
    pub fn declared(root: &[u8], file: &Result<String, String>) -> Self {
        let root = PathBuf::from(OsStr::from_bytes(root));
        Self {
            file: file.clone().map(|file| (root, file)),
            casters: Vec::new(),
            chosen: HashMap::new(),
        }
    }

    fn load(&mut self) -> UserCode<Result<(), String>> {
        let (root, file) = match &self.file {
            Ok(file) => file,
            Err(why) => return UserCode::Gave(Err(why.clone())),
        };
        let wrong = |why: &str| {
            UserCode::Gave(Err(format!(
                "The casters of extra.altair-eval.casters (composer.json) cannot be used: {file} {why}."
            )))
        };
        let path = match below(root, file) {
            Ok(path) => path,
            Err(why) => return wrong(&why),
        };
        let returned = match require(path.as_os_str().as_bytes()) {
            UserCode::Gave(returned) => returned,
            UserCode::Threw(thrown) => return UserCode::Threw(thrown),
            UserCode::Ended => return UserCode::Ended,
        };
        let Shape::Array { .. } = returned.shape() else {
            return wrong("returns no array of callables by class");
        };
        for (class, caster) in returned.entries(usize::MAX) {
            let Key::Bytes(class) = class else {
                self.casters.clear();
                return wrong("has an entry whose key is no class");
            };
            let class = String::from_utf8_lossy(&class);
            let class = class.strip_prefix('\\').unwrap_or(&class).to_owned();
            self.casters.push((class, caster));
        }
        UserCode::Gave(Ok(()))
    }

    /// The caster of an object's own class, else the first one of a class or interface above it.
    fn choose(&self, object: &ZvalNode) -> Option<usize> {
        let Shape::Object(shape) = object.shape() else {
            return None;
        };
        let own = |(class, _): &(String, ZvalNode)| class.eq_ignore_ascii_case(&shape.class);
        let above = |(class, _): &(String, ZvalNode)| object.is_a(class);
        let of_own = self.casters.iter().position(own);
        of_own.or_else(|| self.casters.iter().position(above))
    }
}

impl OwnCasters<ZvalNode> for Casters {
    fn trouble(&mut self) -> UserCode<Option<Thrown>> {
        match self.load() {
            UserCode::Gave(Ok(())) => UserCode::Gave(None),
            UserCode::Gave(Err(message)) => UserCode::Gave(Some(misuse(message))),
            UserCode::Threw(thrown) => UserCode::Threw(thrown),
            UserCode::Ended => UserCode::Ended,
        }
    }

    fn cast(&mut self, object: &ZvalNode) -> UserCode<Option<Vec<(Key, ZvalNode)>>> {
        if self.casters.is_empty() {
            return UserCode::Gave(None);
        }
        let key = object.class_key();
        let chosen = match self.chosen.get(&key) {
            Some(chosen) => *chosen,
            None => {
                let chosen = self.choose(object);
                self.chosen.insert(key, chosen);
                chosen
            }
        };
        let Some((class, caster)) = chosen.and_then(|at| self.casters.get(at)) else {
            return UserCode::Gave(None);
        };
        match call(caster, object) {
            UserCode::Gave(Some(fields)) => match fields.shape() {
                Shape::Array { .. } => UserCode::Gave(Some(fields.entries(usize::MAX))),
                _ => UserCode::Threw(misuse(format!("The caster of {class} returned no array."))),
            },
            UserCode::Gave(None) => {
                UserCode::Threw(misuse(format!("The caster of {class} cannot be called.")))
            }
            UserCode::Threw(thrown) => UserCode::Threw(thrown),
            UserCode::Ended => UserCode::Ended,
        }
    }
}

/// The file, where it really is, which has to be below the root.
fn below(root: &Path, file: &str) -> Result<PathBuf, String> {
    let unreadable = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::NotFound => "does not exist".to_owned(),
        kind => format!("cannot be read ({kind})"),
    };
    let root = root.canonicalize().map_err(unreadable)?;
    let path = root.join(file).canonicalize().map_err(unreadable)?;
    if !path.starts_with(&root) {
        return Err("is outside of the project".into());
    }
    let meta = path.metadata().map_err(unreadable)?;
    meta.is_file()
        .then_some(path)
        .ok_or_else(|| "is not a file".into())
}

fn misuse(message: String) -> Thrown {
    Thrown {
        class: MISUSE.into(),
        message,
    }
}
