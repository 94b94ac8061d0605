//! Errors between a file and a batch; every message names the item, its value and what was expected.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use fairtte_images::{InvalidSetting, Settings};

use crate::predictions::looks_like::LooksLike;
use crate::predictions::other_scale::OtherScale;
use crate::predictions::repairs::{MOST_REPAIRED, REPAIR_LIMIT};
use crate::split::leak::Leak;
use crate::split::part::Part;

/// A row of a table, for error messages: the file and the row as a spreadsheet shows it (the header is row 1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The table.
    pub file: PathBuf,
    /// Row, counted from 1; in CSV and TSV files the header is row 1.
    pub row: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, row {}", self.file.display(), self.row)
    }
}

/// The settings of which a field is outside its range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SettingsOf {
    /// [`AdniConfig`](crate::adapters::AdniConfig).
    Adni,
    /// [`AredsConfig`](crate::adapters::AredsConfig).
    Areds,
    /// [`MimicCxrConfig`](crate::adapters::MimicCxrConfig).
    MimicCxr,
    /// [`FeatureConfig`](crate::features::FeatureConfig).
    Features,
    /// [`OutcomeConfig`](crate::cohort::OutcomeConfig).
    Outcome,
    /// [`HorizonConfig`](crate::cohort::HorizonConfig).
    Horizon,
    /// [`SplitConfig`](crate::SplitConfig).
    Split,
    /// [`ShiftConfig`](crate::shift::ShiftConfig).
    Shift,
    /// [`ImageConfig`](crate::ImageConfig).
    Image,
    /// [`IntensityConfig`](crate::IntensityConfig).
    Intensity,
    /// [`AugmentationConfig`](crate::loader::AugmentationConfig).
    Augmentation,
    /// The arguments of [`Loader::batches`](crate::Loader::batches).
    Batches,
}

/// An error while making a cohort, a split, an image store or a batch from files.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// A file could not be opened or read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A mask cannot be compared.
    #[error("the {which} mask of sample \"{sample}\" cannot be used: {detail} ({})", path.display())]
    Mask {
        /// `true` or `predicted`.
        which: &'static str,
        /// The sample.
        sample: String,
        /// Why, in a sentence.
        detail: String,
        /// The file.
        path: PathBuf,
    },
    /// A file could not be written (disk full, folder not writable); no partial file is left.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The file name of a table has no known ending.
    #[error("{} is not a table this program reads, expected a name ending in .csv, .tsv (either also .gz) or .parquet", path.display())]
    UnknownTableFormat {
        /// The file.
        path: PathBuf,
    },
    /// A table could not be parsed.
    #[error("{} cannot be read as a table: {detail}", path.display())]
    InvalidTable {
        /// The file.
        path: PathBuf,
        /// The message of the parser.
        detail: String,
    },
    /// The threads that read tables are those of another process.
    #[error(
        "{} cannot be read: this process was forked from one that has read tables, and has no threads that read; expected a \
         process that is started anew (spawn or forkserver), or a table that is read before the fork",
        path.display()
    )]
    ForkedReader {
        /// The file.
        path: PathBuf,
    },
    /// A column that the run file names does not exist.
    #[error("column \"{column}\" is not in {}{}", path.display(), nearest_hint(nearest.as_deref()))]
    MissingColumn {
        /// The requested column.
        column: String,
        /// The table.
        path: PathBuf,
        /// The existing column whose name is nearest.
        nearest: Option<String>,
    },
    /// A column name appears twice in a header.
    #[error("column \"{column}\" appears more than once in {}, expected each name once", path.display())]
    DuplicateColumn {
        /// The name.
        column: String,
        /// The table.
        path: PathBuf,
    },
    /// A cell does not hold what its column should hold.
    #[error("{column} of sample \"{sample}\" is {value}, expected {expected} ({place})")]
    InvalidCell {
        /// Name of the column in the table.
        column: String,
        /// Identity of the sample.
        sample: String,
        /// The value as in the table.
        value: String,
        /// What is allowed.
        expected: &'static str,
        /// File and row.
        place: Place,
    },
    /// A row of samples has no name.
    #[error("the name of the sample is empty, expected one in every row ({place})")]
    NoSampleName {
        /// File and row.
        place: Place,
    },
    /// The number of an event is none of those that `[outcome]` names.
    #[error("{column} of sample \"{sample}\" is {value}, expected {expected} as in [outcome] ({place})")]
    UnknownCause {
        /// Name of the column in the table.
        column: String,
        /// Identity of the sample.
        sample: String,
        /// The value as in the table.
        value: Box<str>,
        /// The numbers of `[outcome]` with what they are.
        expected: Box<str>,
        /// File and row.
        place: Place,
    },
    /// Events of a data set have no causes.
    #[error("[data.{data}] knows one kind of event, expected [data.tabular] or [data.generic] with [outcome]")]
    NoCauses {
        /// The data set, as a run file names it.
        data: &'static str,
    },
    /// A probability to be written is none.
    #[error("{column} of sample \"{sample}\" is {value}, expected a number in [0, 1]")]
    InvalidProbability {
        /// The sample.
        sample: String,
        /// The column.
        column: String,
        /// Its value.
        value: f64,
    },
    /// A class, where times are expected.
    #[error("{cohort} has a class (column \"{label}\") and no times, expected a cohort with time and event")]
    NoTimes {
        /// Name of the cohort.
        cohort: String,
        /// The column that the class was read from.
        label: String,
    },
    /// Masks, where times are expected.
    #[error("{cohort} has masks (column \"{column}\") and no times, expected a cohort with time and event")]
    OnlyMasks {
        /// Name of the cohort.
        cohort: String,
        /// The column that names them.
        column: String,
    },
    /// Times, where a class is expected.
    #[error("{cohort} has times and no class, expected [task] binary = {{ horizon = .. }} or a column of labels")]
    NoClass {
        /// Name of the cohort.
        cohort: String,
    },
    /// Events have several causes, where one kind of event is expected.
    #[error(
        "events of {cohort} have several causes, of which {cause} is predicted, expected events of one kind: what was asked for would \
         take those of other causes for censorings"
    )]
    SeveralCauses {
        /// Name of the cohort.
        cohort: String,
        /// The cause that is predicted.
        cause: u32,
    },
    /// A file has the incidence of a cause, where survival, or the incidence of another cause, is expected.
    #[error("the curves of {} are the cumulative incidence of cause {found}, expected {expected}", path.display())]
    OtherCurves {
        /// The file.
        path: PathBuf,
        /// The cause in the file.
        found: u32,
        /// What is expected.
        expected: String,
    },
    /// Two rows have the same sample identity.
    #[error("sample \"{sample}\" appears twice, expected each sample once ({place}; first in row {first_row})")]
    DuplicateSample {
        /// Identity of the sample.
        sample: String,
        /// The second appearance.
        place: Place,
        /// Row of the first appearance.
        first_row: usize,
    },
    /// No sample is left.
    #[error("no sample is left {stage} ({n_read} read from {}, {n_excluded} excluded: {reasons})", source_file.display())]
    NoSamples {
        /// After which step, for example `after labelling`.
        stage: &'static str,
        /// Rows read.
        n_read: usize,
        /// Rows excluded.
        n_excluded: usize,
        /// The reasons with their counts.
        reasons: String,
        /// The source of the rows.
        source_file: PathBuf,
    },
    /// Rows kept and rows excluded do not add up to rows read.
    #[error("{n_read} rows were read but {n_kept} kept and {n_excluded} excluded, expected kept + excluded = read")]
    RowsUnaccounted {
        /// Rows read.
        n_read: usize,
        /// Rows kept.
        n_kept: usize,
        /// Rows excluded.
        n_excluded: usize,
    },
    /// An attribute of the run file is not a column of the data.
    #[error("attribute \"{attribute}\" is not among the columns of {data}{}", nearest_hint(nearest.as_deref()))]
    UnknownAttribute {
        /// The requested attribute.
        attribute: String,
        /// The data set or file.
        data: String,
        /// The existing column whose name is nearest.
        nearest: Option<String>,
    },
    /// The settings of an attribute contradict each other or the training data.
    #[error("attribute \"{attribute}\": {problem}")]
    InvalidAttribute {
        /// The attribute.
        attribute: String,
        /// What is wrong and what was expected.
        problem: String,
    },
    /// A setting is outside its range.
    #[error("{field} is {value}, expected {expected}")]
    InvalidSetting {
        /// The settings that have the field.
        of: SettingsOf,
        /// The field in kebab case (`k-fold.folds`), or the name of the settings where several fields contradict each other.
        field: &'static str,
        /// The value found.
        value: String,
        /// What is allowed.
        expected: &'static str,
    },
    /// A part of the split has no subject.
    #[error("empty {part} part: too few subjects for this split ({n_subjects}), expected at least one in each part")]
    EmptyPart {
        /// The part.
        part: Part,
        /// Subjects in the cohort.
        n_subjects: usize,
    },
    /// A split file puts one subject into two parts.
    #[error("subject \"{subject}\" is in the {second} part and in the {first} part, expected one part ({place})")]
    SubjectInTwoParts {
        /// The subject.
        subject: String,
        /// Part of its first row.
        first: Part,
        /// Part of this row.
        second: Part,
        /// The second appearance.
        place: Place,
    },
    /// Subjects of the cohort are missing from a split file.
    #[error("{} of the cohort {} not in {}, expected every subject with its part", subjects_hint(subjects, *n_subjects), if *n_subjects == 1 { "is" } else { "are" }, path.display())]
    SubjectWithoutPart {
        /// The first few subjects.
        subjects: Vec<String>,
        /// How many there are.
        n_subjects: usize,
        /// The split file.
        path: PathBuf,
    },
    /// A value of `predictions` is missing or not a probability.
    #[error("survival of sample \"{sample}\" at time {time} is {value}, expected a probability in [0, 1]{}", place_hint(place.as_ref()))]
    InvalidSurvival {
        /// The sample.
        sample: String,
        /// The time (name of the column).
        time: String,
        /// The value found.
        value: String,
        /// File and row, if it came from a file.
        place: Option<Place>,
    },
    /// A column of `predictions` is not named by a time, or the times do not ascend.
    #[error("column \"{column}\" of {}: {problem}, expected sample_id and then one column per time, named by ascending times >= 0", path.display())]
    InvalidGrid {
        /// The column.
        column: String,
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: &'static str,
    },
    /// The length of an array does not match that of the identities beside it.
    #[error("{what} has length {found}, expected {expected}")]
    ShapeMismatch {
        /// The array.
        what: &'static str,
        /// Number found.
        found: usize,
        /// Number expected.
        expected: usize,
    },
    /// An attribute of a sample has other values in two files.
    #[error(
        "{column} of sample \"{sample}\" is {value} ({}, row {row}) and {other_value} in {}, expected the same in both",
        path.display(), other.display()
    )]
    DifferentAttribute {
        /// Name of the attribute.
        column: Box<str>,
        /// The sample.
        sample: Box<str>,
        /// The file that is read later.
        path: Box<Path>,
        /// Its row as people count: of a table of text the header is row 1, of Parquet the first sample.
        row: usize,
        /// Its value.
        value: Box<str>,
        /// The other file.
        other: Box<Path>,
        /// The value there.
        other_value: Box<str>,
    },
    /// A sample of the cohort has no prediction, or a prediction has no sample.
    #[error("sample \"{sample}\" {problem}")]
    UnmatchedSample {
        /// The sample.
        sample: String,
        /// What is wrong.
        problem: &'static str,
    },
    /// A file written by this crate is damaged or of another version.
    #[error("{} is damaged: {detail}; delete it to have it written again", path.display())]
    DamagedFile {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        detail: String,
    },
    /// The image store has no pixels for a sample.
    #[error("sample \"{sample}\" has no decoded image in {}", store.display())]
    ImageNotStored {
        /// The sample.
        sample: String,
        /// The store.
        store: PathBuf,
    },
    /// A cohort could not be simulated.
    #[error(transparent)]
    Simulation(#[from] crate::simulated::SimulationError),
    /// Outcomes or groups that the metrics crate rejects.
    #[error(transparent)]
    Metric(#[from] fairtte_metrics::MetricError),
    /// No column of a table of curves is named by a time.
    #[error("no column of {} is named by a time, expected one column of survival per grid time, whose name is a plain number such as 0.5{}", path.display(), look_alike_hint(look_alike.as_ref()))]
    NoGrid {
        /// The file.
        path: PathBuf,
        /// A column whose name contains a number among other characters, and that number.
        look_alike: Option<(String, String)>,
    },
    /// Two columns of a table of curves name the same time.
    #[error("columns \"{first}\" and \"{second}\" of {} both name the time {time}, expected each grid time once", path.display())]
    RepeatedTime {
        /// The column that comes first in the file.
        first: String,
        /// The other column.
        second: String,
        /// The time.
        time: f64,
        /// The file.
        path: PathBuf,
    },
    /// The times that name the columns of curves do not ascend.
    #[error("column \"{column}\" of {} comes after column \"{before}\", expected the grid times in ascending order", path.display())]
    UnsortedGrid {
        /// The column with the later time.
        before: String,
        /// The column after it, with the earlier time.
        column: String,
        /// The file.
        path: PathBuf,
    },
    /// A survival curve rises by more than numerical noise.
    #[error(
        "survival of sample \"{sample}\" rises from {before} at time {time_before} to {value} at time {time}, expected a curve that never rises ({place})"
    )]
    RisingSurvival {
        /// The sample.
        sample: String,
        /// Lowest value up to then.
        before: f64,
        /// Time of its column.
        time_before: f64,
        /// The higher value.
        value: f64,
        /// Time of its column.
        time: f64,
        /// File and row.
        place: Place,
    },
    /// The curves of a table are survival, where the cumulative incidence of a cause is expected.
    #[error(
        "the curves of {} look like survival ({n_rows} of {n} rows), expected the cumulative incidence of the cause, which rises \
         from 0; 1 - survival of a model that counts other causes as censorings is not one",
        path.display()
    )]
    NotIncidence {
        /// The file.
        path: PathBuf,
        /// Rows that show it.
        n_rows: usize,
        /// Rows of the table.
        n: usize,
    },
    /// A cumulative incidence is not a probability.
    #[error("incidence of sample \"{sample}\" at time {time} is {value}, expected a probability in [0, 1] ({place})")]
    InvalidIncidence {
        /// The sample.
        sample: String,
        /// The time (name of the column).
        time: String,
        /// The value found.
        value: f64,
        /// File and row.
        place: Place,
    },
    /// A cumulative incidence falls by more than numerical noise.
    #[error(
        "incidence of sample \"{sample}\" falls from {before} at time {time_before} to {value} at time {time}, expected a curve that never falls ({place})"
    )]
    FallingIncidence {
        /// The sample.
        sample: String,
        /// Highest value up to then.
        before: f64,
        /// Time of its column.
        time_before: f64,
        /// The lower value.
        value: f64,
        /// Time of its column.
        time: f64,
        /// File and row.
        place: Place,
    },
    /// The curves of a table are not survival as a whole: risk, percent or cumulative hazards.
    #[error("the curves of {} look like {looks_like} ({n_rows} of {n} rows): {}", path.display(), looks_like.remedy())]
    NotSurvival {
        /// The file.
        path: PathBuf,
        /// What they look like.
        looks_like: LooksLike,
        /// Rows that show it.
        n_rows: usize,
        /// Rows of the table.
        n: usize,
    },
    /// The numbers of a table are no probabilities as a whole: percent, logits or scores.
    #[error("the numbers of \"{column}\" of {} look like {scale} ({lowest} to {highest}), expected probabilities in [0, 1]: {}", path.display(), scale.remedy())]
    NotProbability {
        /// The column.
        column: String,
        /// The file.
        path: PathBuf,
        /// What they look like.
        scale: OtherScale,
        /// The lowest of them.
        lowest: f64,
        /// The highest of them.
        highest: f64,
    },
    /// The repair of rising curves would change a large part of them.
    #[error(
        "the running minimum would change {n_cells} of {n} cells of survival in {} by more than {REPAIR_LIMIT}, expected at most {MOST_REPAIRED} %",
        path.display()
    )]
    TooManyRepairs {
        /// The file.
        path: PathBuf,
        /// Cells that would change by more than 0.01.
        n_cells: usize,
        /// Cells of survival.
        n: usize,
    },
    /// No cell of a column has the value that was named.
    #[error("no cell of column \"{column}\" of {} is \"{value}\"{}", path.display(), nearest_hint(nearest.as_deref()))]
    NoSuchValue {
        /// The column.
        column: String,
        /// The value that was named.
        value: String,
        /// The table.
        path: PathBuf,
        /// The existing value that is nearest.
        nearest: Option<String>,
    },
    /// A text that stands for a missing value is in no attribute.
    #[error("no attribute of {} has the value \"{value}\"{}", path.display(), nearest_hint(nearest.as_deref()))]
    UnknownMissing {
        /// The text that was named.
        value: String,
        /// The table.
        path: PathBuf,
        /// The existing value that is nearest.
        nearest: Option<String>,
    },
    /// A table has two columns of which only one is expected.
    #[error("\"{first}\" and \"{second}\" are both columns of {}, expected one of the two", path.display())]
    AmbiguousColumn {
        /// One name.
        first: &'static str,
        /// The other name.
        second: &'static str,
        /// The table.
        path: PathBuf,
    },
    /// A table has a header and no rows.
    #[error("{} has no rows, expected at least one", path.display())]
    EmptyTable {
        /// The table.
        path: PathBuf,
    },
    /// An attribute has too many values to use each as a group.
    #[error(
        "attribute \"{attribute}\" has {n_levels} different values, expected at most {most} levels, or a number cut in two"
    )]
    TooManyLevels {
        /// The attribute.
        attribute: String,
        /// Different values found.
        n_levels: usize,
        /// What is allowed.
        most: usize,
    },
    /// A column has no value in any row.
    #[error("column \"{column}\" of {} is empty in every row, expected a value in some", path.display())]
    EmptyColumn {
        /// The column.
        column: String,
        /// The table.
        path: PathBuf,
    },
    /// A file of a data set was not found.
    #[error("{what} was not found: looked for {looked_for} in {} and the folders below", root.display())]
    FileNotFound {
        /// The content of the file.
        what: &'static str,
        /// The names that were looked for.
        looked_for: String,
        /// The folder that was searched.
        root: PathBuf,
    },
    /// Several files match equally well.
    #[error("{what} could be {} or {}, expected one file: remove or name one", first.display(), second.display())]
    SeveralFiles {
        /// The content of the file.
        what: &'static str,
        /// One file.
        first: PathBuf,
        /// Another.
        second: PathBuf,
    },
    /// A split has a person or an image in two parts.
    #[error("{}: {}", path.display(), leaks_hint(leaks, *n_leaks))]
    LeakingSplit {
        /// The first few leaks.
        leaks: Vec<Leak>,
        /// How many there are.
        n_leaks: usize,
        /// The split file.
        path: PathBuf,
    },
    /// The site to leave out has no sample.
    #[error("site \"{site}\" to leave out is not in column \"{column}\" of the cohort{}", nearest_hint(nearest.as_deref()))]
    UnknownSite {
        /// The column of the sites.
        column: String,
        /// The requested site.
        site: String,
        /// The existing site whose name is nearest.
        nearest: Option<String>,
    },
    /// Subjects without a site, which could be of the site to leave out.
    #[error(
        "subjects without {column}: {n_subjects} (the first is \"{subject}\"), expected a site for every subject when one site is left out"
    )]
    MissingSite {
        /// The column of the sites.
        column: String,
        /// The first such subject.
        subject: String,
        /// How many there are.
        n_subjects: usize,
    },
    /// The disk is too full for the image store.
    #[error("cannot write {}: {source}; {n_bytes} bytes of images are still to be written there", path.display())]
    NoRoom {
        /// The file that could not be written.
        path: PathBuf,
        /// Bytes of pixels that are not yet stored, including those of this file.
        n_bytes: u64,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A column cannot become a feature.
    #[error("column \"{column}\" of {}: {problem}", path.display())]
    InvalidFeature {
        /// The column.
        column: String,
        /// The table.
        path: PathBuf,
        /// The reason.
        problem: String,
    },
}

impl From<InvalidSetting> for DataError {
    fn from(InvalidSetting { of, field, value, expected }: InvalidSetting) -> Self {
        let of = match of {
            Settings::Image => SettingsOf::Image,
            Settings::Augmentation => SettingsOf::Augmentation,
            Settings::Blur => SettingsOf::Shift,
        };
        Self::InvalidSetting { of, field, value, expected }
    }
}

impl DataError {
    pub(crate) fn setting(
        of: SettingsOf,
        field: &'static str,
        value: impl fmt::Display,
        expected: &'static str,
    ) -> Self {
        Self::InvalidSetting { of, field, value: value.to_string(), expected }
    }

    pub(crate) fn read(path: &Path, source: io::Error) -> Self {
        Self::Read { path: path.to_owned(), source }
    }

    pub(crate) fn write(path: &Path, source: io::Error) -> Self {
        Self::Write { path: path.to_owned(), source }
    }

    pub(crate) fn invalid_table(path: &Path, detail: impl fmt::Display) -> Self {
        Self::InvalidTable { path: path.to_owned(), detail: detail.to_string() }
    }

    pub(crate) fn damaged(path: &Path, detail: impl fmt::Display) -> Self {
        Self::DamagedFile { path: path.to_owned(), detail: detail.to_string() }
    }
}

fn nearest_hint(nearest: Option<&str>) -> String {
    nearest.map(|name| format!(", nearest is \"{name}\"")).unwrap_or_default()
}

fn look_alike_hint(look_alike: Option<&(String, String)>) -> String {
    look_alike.map(|(name, time)| format!(" (rename \"{name}\" to \"{time}\")")).unwrap_or_default()
}

fn subjects_hint(subjects: &[String], n_subjects: usize) -> String {
    let named: Vec<String> = subjects.iter().map(|subject| format!("\"{subject}\"")).collect();
    match n_subjects {
        1 => format!("subject {}", named.join(", ")),
        n if n > named.len() => format!("subjects {}, .. ({n} in all)", named.join(", ")),
        _ => format!("subjects {}", named.join(", ")),
    }
}

fn leaks_hint(leaks: &[Leak], n_leaks: usize) -> String {
    let named: Vec<String> = leaks.iter().map(ToString::to_string).collect();
    let more = if n_leaks > named.len() { format!("; .. ({n_leaks} leaks in all)") } else { String::new() };
    format!("{}{more}", named.join("; "))
}

fn place_hint(place: Option<&Place>) -> String {
    place.map(|place| format!(" ({place})")).unwrap_or_default()
}
