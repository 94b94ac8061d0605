//! Words of a shell, for commands that are shown for copying or written into a script.

use std::path::Path;

/// As a word of a POSIX shell.
pub(crate) fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+".contains(c);
    let is_plain = !word.is_empty() && word.chars().all(is_plain);
    if is_plain { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

/// A path as a word of a POSIX shell.
pub(crate) fn quoted_path(path: &Path) -> String {
    quoted(&path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn paths_are_one_word_of_a_shell() {
        assert_eq!(quoted("/a/b-c.d"), "/a/b-c.d");
        assert_eq!(quoted("/a b"), "'/a b'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
        assert_eq!(quoted("geschätzt"), "geschätzt");
        assert_eq!(quoted("$HOME \"`id`\""), "'$HOME \"`id`\"'");
    }
}
