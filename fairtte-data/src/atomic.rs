//! Files that are either complete or absent.
//!
//! The bytes go to a temporary file in the same folder, are flushed to the disk and then renamed over the final name;
//! a rename within one folder is atomic, so a reader (or a restarted run) sees the complete old or the complete new
//! file.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::Path;

use tempfile::NamedTempFile;

use crate::DataError;

/// The end of the name of a temporary file.
const TEMPORARY: &str = ".tmp";

/// Writes `path` through `write`, atomically.
///
/// The folder of `path` is created if it does not exist. If `write` fails, the temporary file is removed and an
/// existing file at `path` is left unchanged.
///
/// # Errors
/// [`DataError::Write`] naming `path` (disk full, folder not writable, or whatever `write` returned).
///
/// ```
/// use std::io::Write as _;
/// # let folder = tempfile::tempdir()?;
/// let path = folder.path().join("note.txt");
/// fairtte_data::write_atomically(&path, |writer| writer.write_all(b"kept"))?;
/// assert_eq!(std::fs::read(&path)?, b"kept");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write_atomically<T>(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<&File>) -> io::Result<T>,
) -> Result<T, DataError> {
    write_and_rename(path, write).map_err(|source| DataError::write(path, source))
}

/// As [`write_atomically`], with the error of the system alone.
pub(crate) fn write_and_rename<T>(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<&File>) -> io::Result<T>,
) -> io::Result<T> {
    let temporary = temporary_beside(path)?;
    let mut writer = BufWriter::new(temporary.as_file());
    let value = write(&mut writer)?;
    writer.flush()?;
    drop(writer);
    temporary.as_file().sync_all()?;
    temporary.persist(path).map_err(|failed| failed.error)?;
    sync_folder(folder_of(path));
    Ok(value)
}

/// Writes `path` under another name and renames it, without waiting for the disk: for many files that are synced together.
pub(crate) fn write_unsynced(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut temporary = temporary_beside(path)?;
    temporary.write_all(bytes)?;
    temporary.persist(path).map(|_| ()).map_err(|failed| failed.error)
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// A new file `.NAME.XXXXXX.tmp` in the folder of `path`, which is created.
fn temporary_beside(path: &Path) -> io::Result<NamedTempFile> {
    let folder = folder_of(path);
    let name = path.file_name().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "not a file name"))?;
    std::fs::create_dir_all(folder)?;
    let prefix = format!(".{}.", name.to_string_lossy());
    let mut builder = tempfile::Builder::new();
    builder.prefix(&prefix).suffix(TEMPORARY);
    // A temporary file is private to its owner by default; a result should be as readable as any other file.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    builder.tempfile_in(folder)
}

/// The name of the file that was to be written, of a temporary file called `name` that [`write_atomically`] made; `None` for
/// another file. A process that is killed leaves it.
///
/// ```
/// use fairtte_data::unfinished_name;
///
/// assert_eq!(unfinished_name(".cohort.csv.x7Qp2k.tmp"), Some("cohort.csv"));
/// assert_eq!(unfinished_name("cohort.csv"), None);
/// ```
pub fn unfinished_name(name: &str) -> Option<&str> {
    let (name, _) = name.strip_prefix('.')?.strip_suffix(TEMPORARY)?.rsplit_once('.')?;
    Some(name)
}

/// Removes what killed processes left in `folder` of the files that `is_ours` names, for a process that alone writes there. A
/// file that cannot be removed is harmless.
pub fn remove_unfinished(folder: &Path, is_ours: impl Fn(&str) -> bool) {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in entries {
        if entry.file_name().to_str().and_then(unfinished_name).is_some_and(&is_ours) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// Makes the rename itself durable. Not every file system supports flushing a folder, and the file is complete either
/// way, so a failure is ignored.
pub(crate) fn sync_folder(folder: &Path) {
    #[cfg(unix)]
    if let Ok(folder) = File::open(folder) {
        let _ = folder.sync_all();
    }
    #[cfg(not(unix))]
    let _ = folder;
}

/// Waits until no other process holds the lock `name` in `folder`; `None` if the file system has no locks. The operating system releases the lock when
/// the file is closed, however its process ends.
pub(crate) fn lock_folder(folder: &Path, name: &str) -> io::Result<Option<File>> {
    let file = File::options().create(true).truncate(false).write(true).open(folder.join(name))?;
    // Network file systems fail in several ways; none of them should prevent the work.
    Ok(file.lock().is_ok().then_some(file))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn a_failed_write_leaves_the_old_file_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("result.csv");
        write_atomically(&path, |writer| writer.write_all(b"old")).unwrap();
        let failed = write_atomically(&path, |writer| {
            writer.write_all(b"half of the new")?;
            writer.flush()?;
            Err::<(), _>(io::Error::from(io::ErrorKind::StorageFull))
        });
        let message = failed.unwrap_err().to_string();
        assert!(message.starts_with("cannot write ") && message.contains("result.csv"), "{message}");
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
        assert_eq!(names(folder.path()), ["result.csv"]);
    }

    #[test]
    fn what_a_killed_process_left_is_known_by_its_name_and_removed() {
        let folder = tempfile::tempdir().unwrap();
        let left = temporary_beside(&folder.path().join("a.b.csv")).unwrap().into_temp_path();
        let left = left.file_name().unwrap().to_str().unwrap().to_owned();
        assert_eq!(unfinished_name(&left), Some("a.b.csv"), "{left}");
        for other in [".c.csv.x7Qp2k.tmp", "a.b.csv", ".tmp", "x.tmp", ".a.b.csv"] {
            std::fs::write(folder.path().join(other), b"").unwrap();
        }
        remove_unfinished(folder.path(), |name| name == "a.b.csv");
        let mut names = names(folder.path());
        names.sort();
        assert_eq!(names, [".a.b.csv", ".c.csv.x7Qp2k.tmp", ".tmp", "a.b.csv", "x.tmp"]);
    }

    #[test]
    fn a_folder_that_is_a_file_is_an_error_that_names_the_path() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("plain");
        std::fs::write(&file, b"").unwrap();
        let message = write_atomically(&file.join("inside.csv"), |_| Ok(())).unwrap_err().to_string();
        assert!(message.contains("inside.csv"), "{message}");
    }

    /// `/dev/full` accepts an open and refuses every byte, like a full disk.
    #[test]
    #[cfg(target_os = "linux")]
    fn a_full_disk_is_an_error_that_names_the_path() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("result.csv");
        let failed = write_atomically(&path, |_| {
            let mut full = File::options().write(true).open("/dev/full")?;
            full.write_all(b"x")
        });
        let message = failed.unwrap_err().to_string();
        assert!(message.contains("result.csv") && message.contains("space"), "{message}");
        assert!(names(folder.path()).is_empty());
    }
}
