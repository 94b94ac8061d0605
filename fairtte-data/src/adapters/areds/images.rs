//! The photographs: every picture below a folder, or every line of a text file of relative paths.
//!
//! The text of the path, relative and with forward slashes, is the identity of the sample. In a folder, files without
//! the ending of a picture are not listed; in a text file, every line is listed except blank lines and `#` comments.

use std::io;
use std::path::{Path, PathBuf};

use walkdir::WalkDir;

use super::name::Ending;
use crate::DataError;

/// One file of the listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Listed {
    /// Relative path with forward slashes.
    pub path: String,
    /// Line in the text file, or position in the folder sorted by name, counted from 1.
    pub row: usize,
}

/// Reads the text file at `path`.
///
/// # Errors
/// [`DataError::Read`], [`DataError::EmptyTable`] if no line names a file.
pub(super) fn read_list(path: &Path) -> Result<Vec<Listed>, DataError> {
    let bytes = std::fs::read(path).map_err(|source| DataError::read(path, source))?;
    let listed = parse_list(&String::from_utf8_lossy(&bytes));
    if listed.is_empty() {
        return Err(DataError::EmptyTable { path: path.to_owned() });
    }
    Ok(listed)
}

fn parse_list(text: &str) -> Vec<Listed> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let lines = (1..).zip(text.lines().map(str::trim));
    let files = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    files.map(|(row, line)| Listed { path: with_forward_slashes(line), row }).collect()
}

fn with_forward_slashes(path: &str) -> String {
    let path = path.replace('\\', "/");
    path.trim_start_matches("./").to_owned()
}

/// Lists the pictures below `folder` in the order of their names, and the folders that cannot be listed.
///
/// # Errors
/// [`DataError::Read`] if `folder` itself cannot be read.
pub(super) fn walk(folder: &Path) -> Result<(Vec<Listed>, Vec<PathBuf>), DataError> {
    let Below { files, unlisted } = files_below(folder, None, |name| Ending::of(name).is_some())?;
    let listed = |(row, path): (usize, PathBuf)| {
        let relative = path.strip_prefix(folder).unwrap_or(&path);
        let parts: Vec<_> = relative.iter().map(|part| part.to_string_lossy()).collect();
        Listed { path: parts.join("/"), row }
    };
    Ok(((1..).zip(files).map(listed).collect(), unlisted))
}

/// The files below a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Below {
    /// The requested files, in the order of their names.
    pub files: Vec<PathBuf>,
    /// Folders that cannot be listed.
    pub unlisted: Vec<PathBuf>,
}

/// Files below `folder` whose name `is_wanted`, in the order of their names; links are followed, `leave_out` is not
/// entered.
///
/// A broken link is listed as a file; reading it gives the error.
///
/// # Errors
/// [`DataError::Read`] if `folder` itself cannot be read; unreadable folders below it are returned and hold no files.
pub(super) fn files_below(
    folder: &Path,
    leave_out: Option<&Path>,
    is_wanted: impl Fn(&str) -> bool,
) -> Result<Below, DataError> {
    let mut below = Below::default();
    let entries = WalkDir::new(folder).follow_links(true).sort_by_file_name().into_iter();
    for entry in entries.filter_entry(|entry| entry.depth() == 0 || leave_out != Some(entry.path())) {
        let path = match entry {
            Ok(entry) if entry.file_type().is_file() => entry.into_path(),
            Ok(_) => continue,
            // A link to a parent folder: its files are listed already.
            Err(error) if error.loop_ancestor().is_some() => continue,
            Err(error) => match (error.path(), error.io_error().map(io::Error::kind)) {
                (Some(path), Some(io::ErrorKind::NotFound)) if error.depth() > 0 => path.to_owned(),
                (Some(path), _) if error.depth() > 0 => {
                    below.unlisted.push(path.to_owned());
                    continue;
                }
                _ => return Err(DataError::read(folder, error.into())),
            },
        };
        if is_wanted(&path.file_name().unwrap_or_default().to_string_lossy()) {
            below.files.push(path);
        }
    }
    Ok(below)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
mod tests {
    use super::*;

    fn paths(listed: &[Listed]) -> Vec<(&str, usize)> {
        listed.iter().map(|entry| (entry.path.as_str(), entry.row)).collect()
    }

    #[test]
    fn every_line_that_names_a_file_is_listed_with_its_line() {
        let text = "\u{feff}# photographs\r\n\r\n./a/1 00 F2 RE LS.jpg \r\nb\\2_00_F2_LE_LS.JPG\r\nnotes\r\n";
        assert_eq!(paths(&parse_list(text)), [("a/1 00 F2 RE LS.jpg", 3), ("b/2_00_F2_LE_LS.JPG", 4), ("notes", 5)]);
    }

    #[test]
    fn a_list_without_lines_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("areds_images.txt");
        std::fs::write(&path, "# nothing\n\n").unwrap();
        let message = read_list(&path).unwrap_err().to_string();
        assert_eq!(message, format!("{} has no rows, expected at least one", path.display()));
    }

    #[test]
    fn a_folder_is_listed_by_name_whatever_lies_in_it() {
        let folder = tempfile::tempdir().unwrap();
        for file in
            ["b/2 00 F2 RE LS.tif", "a/04/1 04 F2 RE LS.JPG", "a/00/1 00 F2 RE LS.jpg", "notes.txt", "a/x.jpg/y"]
        {
            let path = folder.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let expected = [("a/00/1 00 F2 RE LS.jpg", 1), ("a/04/1 04 F2 RE LS.JPG", 2), ("b/2 00 F2 RE LS.tif", 3)];
        assert_eq!(paths(&walk(folder.path()).unwrap().0), expected);
        let message = walk(&folder.path().join("none")).unwrap_err().to_string();
        assert!(message.starts_with("cannot read ") && message.contains("none"), "{message}");
    }

    #[cfg(unix)]
    #[test]
    fn a_folder_that_cannot_be_listed_is_remembered_and_stops_nothing() {
        use std::os::unix::fs::PermissionsExt as _;

        let folder = tempfile::tempdir().unwrap();
        let locked = folder.path().join("lost+found");
        std::fs::create_dir(&locked).unwrap();
        std::fs::write(folder.path().join("2 00 F2 RE LS.jpg"), "").unwrap();
        std::fs::set_permissions(&locked, std::fs::Permissions::from_mode(0o0)).unwrap();
        // A user with all permissions sees an empty folder.
        let expected = if std::fs::read_dir(&locked).is_err() { vec![locked.clone()] } else { Vec::new() };
        let (listed, unlisted) = walk(folder.path()).unwrap();
        std::fs::set_permissions(&locked, std::fs::Permissions::from_mode(0o700)).unwrap();
        assert_eq!((paths(&listed), unlisted), (vec![("2 00 F2 RE LS.jpg", 1)], expected));
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_and_neither_a_loop_nor_a_link_to_nothing_stops_the_walk() {
        let folder = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        std::fs::write(elsewhere.path().join("2 00 F2 RE LS.jpg"), "").unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), folder.path().join("a")).unwrap();
        std::os::unix::fs::symlink(folder.path(), folder.path().join("loop")).unwrap();
        std::os::unix::fs::symlink(folder.path().join("nothing"), folder.path().join("z.jpg")).unwrap();
        std::os::unix::fs::symlink(folder.path().join("nothing"), folder.path().join("z.doc")).unwrap();
        assert_eq!(paths(&walk(folder.path()).unwrap().0), [("a/2 00 F2 RE LS.jpg", 1), ("z.jpg", 2)]);
    }
}
