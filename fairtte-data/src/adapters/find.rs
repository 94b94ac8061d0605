//! Finds the files of a data set below a folder, however they were unpacked.
//!
//! A wanted file is described by name patterns without their ending (`*` stands for any text, case does not matter) and
//! by endings (`.csv`, `.csv.gz`, ..); with `dated`, a date suffix as LONI and others append it may follow the pattern
//! (`_12Oct2023`, `_2023-10-12`, `_7_02_2022`). Sub-folders are searched a few levels deep, but not hidden ones and not
//! those full of images. If several files match, two rules apply: in one folder, the newest date is used, and for the
//! same name the plain file is preferred to the gzipped one. All other cases are errors that name two of the files.

use std::path::{Path, PathBuf};

use jiff::civil::Date;
use walkdir::{DirEntry, WalkDir};

use crate::DataError;

/// Levels of folders below the root that are searched: `root/physionet.org/files/mimiciv/3.1/hosp/patients.csv`.
const DEPTH: usize = 6;

/// The name and the content of a file to be found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    /// The content of the file, for messages: `the patients of MIMIC-IV`.
    pub(crate) what: &'static str,
    /// Patterns of the name without its ending; `*` stands for any text.
    pub(crate) patterns: &'static [&'static str],
    /// Endings in lower case, with the dot; the first is preferred if all else is equal.
    pub(crate) endings: &'static [&'static str],
    /// Whether a date may follow the pattern.
    pub(crate) dated: bool,
}

/// Endings of a comma-separated table.
pub(crate) const CSV: &[&str] = &[".csv", ".csv.gz"];

/// A file that matches, and the criteria for choosing between several.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Candidate {
    path: PathBuf,
    /// Name without date and ending, in lower case.
    stem: String,
    date: Option<Date>,
    /// Position of the ending in [`Wanted::endings`].
    ending: usize,
}

/// The only file below `root` that matches; `root` itself, if it is a file.
///
/// # Errors
/// [`DataError::FileNotFound`] with the names looked for, [`DataError::SeveralFiles`] naming two that match equally
/// well, [`DataError::Read`] if a folder cannot be listed.
pub(crate) fn find_file(root: &Path, wanted: &Wanted) -> Result<PathBuf, DataError> {
    let candidates = find_candidates(root, wanted)?;
    let Some(best) = candidates.iter().max_by(|a, b| preference(a).cmp(&preference(b))) else {
        return Err(not_found(root, wanted));
    };
    let rival = candidates.iter().find(|other| *other != best && !is_decided(best, other));
    match rival {
        None => Ok(best.path.clone()),
        Some(rival) => {
            let (first, second) =
                (best.path.clone().min(rival.path.clone()), best.path.clone().max(rival.path.clone()));
            Err(DataError::SeveralFiles { what: wanted.what, first, second })
        }
    }
}

/// Like [`find_file`], but `None` if there is none.
pub(crate) fn find_optional(root: &Path, wanted: &Wanted) -> Result<Option<PathBuf>, DataError> {
    match find_file(root, wanted) {
        Ok(path) => Ok(Some(path)),
        Err(DataError::FileNotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Every file below `root` that matches, one per folder and name: the newest date, plain before gzipped. Sorted by
/// path.
///
/// # Errors
/// [`DataError::FileNotFound`] if there is none, [`DataError::Read`] if a folder cannot be listed.
pub(crate) fn find_all(root: &Path, wanted: &Wanted) -> Result<Vec<PathBuf>, DataError> {
    let candidates = find_candidates(root, wanted)?;
    let is_beaten = |one: &Candidate| {
        candidates.iter().any(|other| other != one && preference(other) > preference(one) && is_decided(other, one))
    };
    let mut paths: Vec<PathBuf> = candidates.iter().filter(|one| !is_beaten(one)).map(|one| one.path.clone()).collect();
    paths.sort();
    if paths.is_empty() { Err(not_found(root, wanted)) } else { Ok(paths) }
}

fn not_found(root: &Path, wanted: &Wanted) -> DataError {
    let date = if wanted.dated { "[_date]" } else { "" };
    let names = wanted.patterns.iter().map(|pattern| format!("{pattern}{date}{{{}}}", wanted.endings.join("|")));
    DataError::FileNotFound {
        what: wanted.what,
        looked_for: names.collect::<Vec<_>>().join(" or "),
        root: root.to_owned(),
    }
}

/// Later dates and earlier endings are better; a file without a date counts as older than one with a date.
fn preference(candidate: &Candidate) -> (Option<Date>, std::cmp::Reverse<usize>) {
    (candidate.date, std::cmp::Reverse(candidate.ending))
}

/// Whether date or ending may choose between two files: only in the same folder and with the same name.
fn is_decided(a: &Candidate, b: &Candidate) -> bool {
    a.path.parent() == b.path.parent() && a.stem == b.stem && preference(a) != preference(b)
}

fn find_candidates(root: &Path, wanted: &Wanted) -> Result<Vec<Candidate>, DataError> {
    if root.is_file() {
        return Ok(vec![Candidate { path: root.to_owned(), stem: String::new(), date: None, ending: 0 }]);
    }
    let mut candidates = Vec::new();
    for entry in WalkDir::new(root).max_depth(DEPTH).follow_links(true).into_iter().filter_entry(is_searched) {
        let entry = match entry {
            Ok(entry) => entry,
            // A broken link or a link to its own parent must not prevent reading the files beside it.
            Err(error) if error.depth() > 0 => continue,
            Err(error) => {
                let path = error.path().unwrap_or(root).to_owned();
                return Err(DataError::Read { path, source: error.into() });
            }
        };
        if entry.file_type().is_file()
            && let Some(candidate) = candidate(&entry, wanted)
        {
            candidates.push(candidate);
        }
    }
    Ok(candidates)
}

/// Hidden folders hold no tables, and the image folders of MIMIC-CXR and ADNI hold several hundred thousand files. The
/// downloads of `PhysioNet` begin with a folder `files` too, but it holds no folders `p10`, `p11`, ..
fn is_searched(entry: &DirEntry) -> bool {
    let name = entry.file_name().to_string_lossy();
    if entry.depth() == 0 || !entry.file_type().is_dir() {
        return true;
    }
    let is_image_folder = name.len() == 3 && name.starts_with('p') && name[1..].bytes().all(|b| b.is_ascii_digit());
    let is_adni_subject = name.split('_').nth(1) == Some("S") && name.split('_').count() == 3;
    !name.starts_with('.') && !is_image_folder && !is_adni_subject
}

fn candidate(entry: &DirEntry, wanted: &Wanted) -> Option<Candidate> {
    let name = entry.file_name().to_str()?.to_lowercase();
    // A file that another program hides beside the real one (`._patients.csv` on a Mac's disk) is not a table.
    if name.starts_with('.') {
        return None;
    }
    // If both `.csv` and `.csv.gz` match, only the longer one can be meant.
    let endings = wanted.endings.iter().enumerate().filter(|(_, ending)| name.ends_with(*ending));
    let (ending, text) = endings.max_by_key(|(_, text)| text.len())?;
    let stem = &name[..name.len() - text.len()];
    let fits = |stem: &str| wanted.patterns.iter().any(|pattern| matches_pattern(&pattern.to_lowercase(), stem));
    let found = |stem: &str, date| Candidate { path: entry.path().to_owned(), stem: stem.to_owned(), date, ending };
    if wanted.dated
        && let Some((undated, date)) = split_date(stem)
        && fits(undated)
    {
        return Some(found(undated, Some(date)));
    }
    fits(stem).then(|| found(stem, None))
}

/// Whether `text` matches `pattern`, in which `*` stands for any text, also for none.
pub(crate) fn matches_pattern(pattern: &str, text: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut text) = text.strip_prefix(start) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let end = parts.pop().unwrap_or_default();
    for part in parts {
        let Some(at) = text.find(part) else { return false };
        text = &text[at + part.len()..];
    }
    text.ends_with(end)
}

/// The name without its date suffix, and the date.
fn split_date(stem: &str) -> Option<(&str, Date)> {
    let starts = stem.char_indices().filter(|(_, c)| matches!(c, '_' | '-')).map(|(at, _)| at);
    starts.into_iter().find_map(|at| Some((&stem[..at], parse_suffix(&stem[at + 1..])?)))
}

/// `12oct2023`, `2023-10-12`, `2023_10_12`, `20231012` or `10_12_2023` (month first, as LONI writes it).
fn parse_suffix(text: &str) -> Option<Date> {
    const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    let number = |text: &str| text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse::<i16>().ok())?;
    let date = |year: i16, month: i16, day: i16| {
        let plausible = (1990..2200).contains(&year);
        plausible.then(|| Date::new(year, month.try_into().ok()?, day.try_into().ok()?).ok())?
    };
    if let Some(at) = text.find(|c: char| c.is_ascii_alphabetic()) {
        let (day, rest) = text.split_at(at);
        let (name, year) = rest.split_at_checked(3)?;
        let month = MONTHS.iter().position(|month| *month == name)?;
        return date(number(year)?, i16::try_from(month).ok()? + 1, number(day)?);
    }
    let parts: Vec<&str> = text.split(['-', '_']).collect();
    match parts.as_slice() {
        [one] if one.len() == 8 && one.is_ascii() => date(number(&one[..4])?, number(&one[4..6])?, number(&one[6..])?),
        [year, month, day] if year.len() == 4 => date(number(year)?, number(month)?, number(day)?),
        [month, day, year] if year.len() == 4 => date(number(year)?, number(month)?, number(day)?),
        _ => None,
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
mod tests {
    use super::*;

    const PATIENTS: Wanted = Wanted { what: "the patients", patterns: &["patients"], endings: CSV, dated: false };
    const DIAGNOSES: Wanted =
        Wanted { what: "the diagnoses", patterns: &["DXSUM_PDXCONV_ADNIALL", "dxsum"], endings: CSV, dated: true };

    fn folder(files: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for file in files {
            let path = folder.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, b"").unwrap();
        }
        folder
    }

    fn found(files: &[&str], wanted: &Wanted) -> Result<String, String> {
        let folder = folder(files);
        let shown = |path: &Path| path.strip_prefix(folder.path()).unwrap().display().to_string();
        let prefix = format!("{}/", folder.path().display());
        find_file(folder.path(), wanted).map(|path| shown(&path)).map_err(|e| e.to_string().replace(&prefix, ""))
    }

    #[test]
    fn a_file_is_found_in_any_case_and_some_folders_below() {
        for file in [
            "patients.csv",
            "hosp/patients.csv.gz",
            "a/b/3.1/HOSP/Patients.CSV",
            "physionet.org/files/m/3.1/hosp/patients.csv",
        ] {
            assert_eq!(found(&[file, "hosp/patients_old.csv", "patients.txt"], &PATIENTS), Ok(file.to_owned()));
        }
    }

    #[test]
    fn image_folders_and_hidden_files_are_not_searched() {
        let error = found(&["files/p10/patients.csv", ".trash/patients.csv", "._patients.csv"], &PATIENTS).unwrap_err();
        assert!(error.starts_with("the patients was not found: looked for patients{.csv|.csv.gz} in "), "{error}");
    }

    #[test]
    fn plain_wins_over_gzipped_and_the_newest_date_wins_in_one_folder() {
        assert_eq!(found(&["patients.csv.gz", "patients.csv"], &PATIENTS), Ok("patients.csv".to_owned()));
        let files = ["DXSUM_12Oct2023.csv", "dxsum_2024-01-05.csv", "dxsum_3Feb2023.csv", "dxsum.csv"];
        assert_eq!(found(&files, &DIAGNOSES), Ok("dxsum_2024-01-05.csv".to_owned()));
        assert_eq!(found(&["dxsum_7_02_2022.csv"], &DIAGNOSES), Ok("dxsum_7_02_2022.csv".to_owned()));
    }

    #[test]
    fn two_files_that_nothing_decides_between_are_both_named() {
        let error = found(&["hosp/patients.csv", "core/patients.csv.gz"], &PATIENTS).unwrap_err();
        let expected =
            "the patients could be core/patients.csv.gz or hosp/patients.csv, expected one file: remove or name one";
        assert_eq!(error, expected);
        let error = found(&["dxsum_12Oct2023.csv", "DXSUM_PDXCONV_ADNIALL.csv"], &DIAGNOSES).unwrap_err();
        assert!(error.contains("dxsum_12Oct2023.csv") && error.contains("DXSUM_PDXCONV_ADNIALL.csv"), "{error}");
    }

    #[test]
    fn all_files_that_fit_are_given_once() {
        let folder =
            folder(&["c1/x.fundus.EDO.txt", "c1/x.fundus.EDO.txt.gz", "c2/x.fundus.GRU.txt.gz", "c2/other.txt"]);
        let fundus =
            Wanted { what: "gradings", patterns: &["*.fundus.*"], endings: &[".txt", ".txt.gz"], dated: false };
        let expected = ["c1/x.fundus.EDO.txt", "c2/x.fundus.GRU.txt.gz"].map(|name| folder.path().join(name));
        assert_eq!(find_all(folder.path(), &fundus).unwrap(), expected);
        assert_eq!(find_optional(folder.path(), &PATIENTS).unwrap(), None);
    }

    #[test]
    fn a_root_that_is_not_there_is_named_and_a_root_that_is_a_file_is_taken() {
        let folder = folder(&["my table.csv"]);
        let file = folder.path().join("my table.csv");
        assert_eq!(find_file(&file, &PATIENTS).unwrap(), file);
        let error = find_file(&folder.path().join("nowhere"), &PATIENTS).unwrap_err().to_string();
        assert!(error.starts_with("cannot read ") && error.contains("nowhere"), "{error}");
    }

    #[test]
    fn patterns_match_whole_names() {
        for (pattern, text, expected) in [
            ("a*", "a", true),
            ("*.fundus.*", "phs1.fundus.gru", true),
            ("*.fundus.*", "phs1.fundus", false),
            ("a*b*c", "a-b-b-c", true),
            ("a*bc", "abc", true),
            ("ab*bc", "abc", false),
            ("dxsum", "dxsum2", false),
        ] {
            assert_eq!(matches_pattern(pattern, text), expected, "{pattern} {text}");
        }
    }
}
