//! What a fork mounts anew in its template's private root.

use std::ffi::{CStr, CString, OsStr};
use std::os::fd::RawFd;
use std::os::unix::ffi::OsStrExt;
use std::{fs, io};

use nix::libc::{self, c_long};

use super::backstage::hide_backstage;
use super::calls::{ALWAYS, bind, mount, unmount};
use super::files::make_directory;
use super::project::{mount_project, seal};
use crate::error::{Failure, Step};
use crate::system_calls;
use crate::view::renewal::{BACKSTAGE, Mounts, RUN, Renewal, kept as kept_name, upper_of_first};

/// The mounts of a process that its forks make anew.
pub(crate) struct Renewed {
    mounts: Mounts,
    temp: TempMount,
}

/// Where a fork's directory for temporary files is mounted.
struct TempMount {
    at: CString,
    options: CString,
    /// What is mounted below it: source and mount point.
    kept: Vec<(CString, CString)>,
    /// Whether the first directory's contents show through.
    over: bool,
}

impl Renewal {
    /// Unmounts what the forks of the calling process make anew. Its writes stay visible to the
    /// forks and no longer change.
    ///
    /// # Errors
    /// The error of the failed system call.
    pub(crate) fn settle(&self) -> io::Result<Renewed> {
        let text = |bytes: &[u8]| CString::new(bytes).map_err(io::Error::from);
        let is_empty = |path: &OsStr, but: Option<&[u8]>| {
            Ok::<_, io::Error>(
                fs::read_dir(path)?
                    .flatten()
                    .all(|entry| but.is_some_and(|but| entry.file_name().as_bytes() == but)),
            )
        };
        let temp = text(&self.temp)?;
        let over = !is_empty(OsStr::from_bytes(&self.temp), None)?;
        nix::unistd::chdir(c"/")?;
        unmount(&text(&self.project)?)?;
        unmount(BACKSTAGE)?;
        nix::unistd::chdir(BACKSTAGE)?;
        let mut written = Vec::new();
        for index in 0..self.layers() {
            let but = self.sealed.as_deref().filter(|_| index == 0);
            written.push(!is_empty(OsStr::new(&upper_of_first(index)), but)?);
        }
        let kept = self.kept.iter().enumerate();
        Ok(Renewed {
            mounts: self.mounts(RUN, &written).map_err(io::Error::other)?,
            temp: TempMount {
                at: temp,
                options: text(&self.temp_options)?,
                kept: kept
                    .map(|(index, path)| Ok((text(kept_name(index).as_bytes())?, text(path)?)))
                    .collect::<io::Result<_>>()?,
                over,
            },
        })
    }
}

/// Makes the mounts of a fork in its own mount namespace. Its working directory is [`BACKSTAGE`],
/// like its template's. Returns the directory of its layer, if it has one.
pub(crate) fn renew(renewed: &Renewed) -> Result<Option<RawFd>, Failure> {
    let namespace = c_long::from(libc::CLONE_NEWNS);
    // SAFETY: no pointer is passed.
    unsafe { system_calls::with_pass(libc::SYS_unshare, [namespace, 0, 0, 0, 0]) }
        .map_err(|e| Step::Namespace.failed(e))?;
    renew_temp(&renewed.temp).map_err(|e| Step::PrivateRoot.failed(e))?;
    let step = renewed.mounts.step();
    let store = mount_project(&renewed.mounts).map_err(|e| step.failed(e))?;
    seal(&renewed.mounts)?;
    hide_backstage().map_err(|e| step.failed(e))?;
    Ok(store)
}

fn renew_temp(temp: &TempMount) -> nix::Result<()> {
    let flags = ALWAYS | libc::MS_NOEXEC;
    let memory = |at: &CStr| {
        let source = Some(c"altair-temp");
        mount(source, at, Some(c"tmpfs"), flags, Some(&temp.options))
    };
    if !temp.over {
        return memory(&temp.at);
    }
    mount(
        Some(&temp.at),
        c".old",
        None,
        libc::MS_BIND | libc::MS_REC,
        None,
    )?;
    memory(c".temp")?;
    make_directory(libc::AT_FDCWD, c".temp/upper", 0o1777)?;
    make_directory(libc::AT_FDCWD, c".temp/work", 0o700)?;
    let options = c"lowerdir=.old,upperdir=.temp/upper,workdir=.temp/work,index=off,metacopy=off,redirect_dir=nofollow,userxattr";
    mount(
        Some(c"altair-temp"),
        &temp.at,
        Some(c"overlay"),
        flags,
        Some(options),
    )?;
    for (source, at) in &temp.kept {
        bind(source, at)?;
    }
    Ok(())
}
