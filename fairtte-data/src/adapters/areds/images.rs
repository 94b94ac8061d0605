//! The photographs: every picture below a folder, or every line of a text file of relative paths.
//!
//! The text of the path, relative and with forward slashes, is the identity of the sample. In a folder, files whose
//! ending announces no picture are not listed; in a text file, every line that is not blank and no `#` comment is.

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

/// Lists the pictures below `folder`, links followed, in the order of their names.
///
/// # Errors
/// [`DataError::Read`] for a folder that cannot be read.
pub(super) fn walk(folder: &Path) -> Result<Vec<Listed>, DataError> {
    let mut listed = Vec::new();
    for entry in WalkDir::new(folder).follow_links(true).sort_by_file_name() {
        let entry = entry.map_err(|error| walk_error(folder, error))?;
        let is_picture = Ending::of(&entry.file_name().to_string_lossy()).is_some();
        if is_picture && entry.file_type().is_file() {
            let relative = entry.path().strip_prefix(folder).unwrap_or(entry.path());
            let parts: Vec<_> = relative.iter().map(|part| part.to_string_lossy()).collect();
            listed.push(Listed { path: parts.join("/"), row: listed.len() + 1 });
        }
    }
    Ok(listed)
}

pub(super) fn walk_error(folder: &Path, error: walkdir::Error) -> DataError {
    let path: PathBuf = error.path().unwrap_or(folder).to_owned();
    DataError::read(&path, error.into())
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
        for file in ["b/2 00 F2 RE LS.tif", "a/04/1 04 F2 RE LS.JPG", "a/00/1 00 F2 RE LS.jpg", "notes.txt", "a/x.jpg/y"] {
            let path = folder.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let expected = [("a/00/1 00 F2 RE LS.jpg", 1), ("a/04/1 04 F2 RE LS.JPG", 2), ("b/2 00 F2 RE LS.tif", 3)];
        assert_eq!(paths(&walk(folder.path()).unwrap()), expected);
        let message = walk(&folder.path().join("none")).unwrap_err().to_string();
        assert!(message.starts_with("cannot read ") && message.contains("none"), "{message}");
    }
}
