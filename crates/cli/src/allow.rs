//! `altair allow`: what projects may use by the user's word.

use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use altair_engine::allowed::{Change, Entry, Root, Source};
use serde_json::{Value, json};

use crate::args::{AllowArgs, Format};
use crate::exit::Exit;
use crate::failure::{Failure, say};
use crate::human::Theme;
use crate::{escape, json, output, root};

/// Shows what is allowed, or changes it in the user's file.
///
/// # Errors
///
/// A value that cannot be allowed, or a file that cannot be trusted, understood or written.
pub fn run(args: AllowArgs) -> Result<Exit, Failure> {
    let AllowArgs {
        root,
        service,
        env,
        read,
        max_timeout_ms,
        max_memory_mb,
        list,
        remove,
        format,
    } = args;
    if list {
        return show(root.as_deref(), format);
    }
    let change = Change {
        services: service,
        env,
        read,
        max_timeout_ms,
        max_memory_mb,
    };
    let source = Source::users().ok_or_else(|| {
        Failure::new(
            "the user database has no home for this user: root can write /etc/altair/config.toml",
        )
    })?;
    let key = key(root, remove)?;
    let shown = format!("{} in {}", of(&key), source.path().display());
    if remove {
        let was_there = source.forbid(&key, &change).map_err(refused)?;
        say(&match was_there {
            true => format!("no longer allowed for {shown}: {}", text(&change)),
            false => format!("nothing of that was allowed for {shown}"),
        });
        return Ok(Exit::Clean);
    }
    change.check().map_err(Failure::new)?;
    if source.is_in(Path::new(key.as_str())) {
        return Err(Failure::new(format!(
            "{} is in this project, which could then allow itself anything: let root write /etc/altair/config.toml",
            source.path().display()
        )));
    }
    source.allow(&key, &change).map_err(refused)?;
    say(&format!("allowed for {shown}: {}", text(&change)));
    Ok(Exit::Clean)
}

fn refused(error: altair_engine::allowed::AllowedError) -> Failure {
    Failure::new(error.to_string().trim_end_matches('.'))
}

/// The key of an entry. A root whose name ends in a slash means all roots below, too.
fn key(named: Option<PathBuf>, may_be_gone: bool) -> Result<Root, Failure> {
    let is_prefix =
        (named.as_ref()).is_some_and(|named| named.as_os_str().as_bytes().ends_with(b"/"));
    let path = match named {
        Some(named) => match named.canonicalize() {
            Ok(path) if path.is_dir() => path,
            Err(_) if may_be_gone => std::path::absolute(&named).unwrap_or(named),
            _ => {
                return Err(Failure::new(format!(
                    "the project root '{}' is not a directory",
                    named.display()
                )));
            }
        },
        None => root::Root::of(None)?.path,
    };
    let path = (path.into_os_string().into_string())
        .map_err(|_| Failure::new("the project root's path is not encoded in UTF-8"))?;
    let path = path.trim_end_matches('/');
    let end = if is_prefix || path.is_empty() {
        "/"
    } else {
        ""
    };
    Root::try_from(format!("{path}{end}")).map_err(Failure::new)
}

/// What an entry is for, in words.
fn of(key: &Root) -> String {
    let key = key.as_str();
    match key.strip_suffix('/') {
        Some("") => "all projects".to_owned(),
        Some(path) => format!("{path} and all projects below it"),
        None => key.to_owned(),
    }
}

/// A change, or all of an entry if it is empty.
fn text(change: &Change) -> String {
    let Change {
        services,
        env,
        read,
        max_timeout_ms,
        max_memory_mb,
    } = change;
    let lists = [("service", services), ("variable", env), ("reading", read)];
    let lists = lists
        .into_iter()
        .flat_map(|(name, texts)| texts.iter().map(move |text| format!("{name} {text}")));
    let bounds = [
        max_timeout_ms.map(|ms| format!("deadlines up to {ms} ms")),
        max_memory_mb.map(|mb| format!("memory up to {mb} MiB")),
    ];
    let all: Vec<String> = lists.chain(bounds.into_iter().flatten()).collect();
    match all.is_empty() {
        true => "anything".to_owned(),
        false => all.join(", "),
    }
}

fn show(root: Option<&Path>, format: Format) -> Result<Exit, Failure> {
    let root = root.map(|root| root.canonicalize().unwrap_or_else(|_| root.to_owned()));
    let mut files = Vec::new();
    for source in Source::all() {
        let mut entries = source.entries().map_err(refused)?;
        entries.retain(|(key, _)| root.as_ref().is_none_or(|root| key.covers(root)));
        files.push((source, entries));
    }
    let text = match format {
        Format::Json => {
            let files: Vec<Value> = files
                .iter()
                .map(|(source, entries)| as_json(source, entries))
                .collect();
            json::result(&json!({ "files": files }), output::is_terminal())
        }
        Format::Human => render(&files, Theme::new(output::takes_color())),
    };
    output::print(text.as_bytes())?;
    Ok(Exit::Clean)
}

fn as_json(source: &Source, entries: &[(Root, Entry)]) -> Value {
    let projects: Vec<Value> = entries
        .iter()
        .map(|(key, entry)| {
            json!({
                "root": key.as_str(),
                "services": entry.services().collect::<Vec<_>>(),
                "env": entry.env().collect::<Vec<_>>(),
                "read": entry.read().collect::<Vec<_>>(),
                "max_timeout_ms": entry.max_timeout_ms(),
                "max_memory_mb": entry.max_memory_mb(),
            })
        })
        .collect();
    json!({ "file": source.path(), "projects": projects })
}

fn render(files: &[(Source, Vec<(Root, Entry)>)], theme: Theme) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    for (source, entries) in files.iter().filter(|(_, entries)| !entries.is_empty()) {
        let _ = writeln!(
            text,
            "{}",
            theme.dim(&escape::line(&source.path().display().to_string()))
        );
        for (key, entry) in entries {
            let _ = writeln!(text, "  {}", theme.name(&escape::line(&of(key))));
            for (name, values) in lines(entry) {
                let _ = writeln!(text, "    {name:<14}  {}", escape::line(&values));
            }
        }
    }
    if text.is_empty() {
        text.push_str("Nothing is allowed beyond what projects may use anyway.\n");
    }
    text
}

/// What an entry allows, by the options that allow it.
pub fn lines(entry: &Entry) -> Vec<(&'static str, String)> {
    let read = entry.read().map(|path| path.display().to_string());
    let lists = [
        ("service", entry.services().collect::<Vec<_>>()),
        ("env", entry.env().collect()),
        ("read", read.collect()),
    ];
    let bounds = [
        ("max-timeout-ms", entry.max_timeout_ms()),
        ("max-memory-mb", entry.max_memory_mb()),
    ];
    let lists = lists
        .into_iter()
        .filter(|(_, values)| !values.is_empty())
        .map(|(name, values)| (name, values.join("  ")));
    let bounds = bounds
        .into_iter()
        .filter_map(|(name, bound)| Some((name, bound?.to_string())));
    lists.chain(bounds).collect()
}
