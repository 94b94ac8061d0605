//! The label rule of ADNI as a pure function from dated scans and diagnoses to a time or a reason.
//!
//! For a subject, `end` is the date of the first dementia diagnosis (later reversion is ignored) or, without one, of
//! the last imaging visit. A scan is kept if it is at least one half-year before `end`, half-years counted as
//! `floor(days / 182.625 + 0.5)`; that removes scans at the conversion visit even where they precede the exam by weeks.
//! Source: FairTTE, appendix C.3.2.
//!
//! Laws, each checked by a property test:
//! - No scan on or after the day of the first dementia diagnosis is kept, whatever the options.
//! - A label is censored only if no dementia diagnosis of the subject is dated at all, and `time` half-years after the
//!   scan the subject was still seen: there is a later scan. Diagnoses recorded before a scan never serve as
//!   evidence that no event follows: changing or moving them within that period changes no label.
//! - The order of rows decides which scan of one day is kept under `first listed` (that scan's id, description and
//!   age), and which of two rows of one image is the duplicate. It affects no time and no event, unless the rows of one
//!   image contradict each other about subject or day; then the first of them is used.
//!
//! The source assumes that no diagnosis is made between the last exam and a later scan; this is kept by default.

use std::collections::{BTreeMap, HashMap};

use jiff::civil::Date;

use super::config::{FinalVisit, Rounding, ScanOfDay};

/// One magnetic resonance image of the image list, typed.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Scan {
    /// Position in the image list.
    pub index: usize,
    /// The number of the image.
    pub id: u64,
    /// Which subject: position in the list of histories.
    pub subject: usize,
    /// Day of acquisition.
    pub date: Date,
    /// 0 for `Scaled`, 1 for `Scaled_2`, 2 for everything else.
    pub preference: u8,
}

/// What is known about the diagnoses of a subject.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct History {
    /// Whether any valid diagnosis is recorded.
    pub is_diagnosed: bool,
    /// Day of the first dementia diagnosis that counts as the event.
    pub event: Option<Date>,
    /// Scheduled month of dated visits, counted from baseline.
    pub months: BTreeMap<Date, i32>,
}

/// The options that the rule depends on.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RuleOptions {
    pub final_visit: FinalVisit,
    pub rounding: Rounding,
    pub scan_of_day: ScanOfDay,
}

/// The outcome of one scan. Positions are those in the image list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// A sample: half-years to the event or to the last imaging visit, at least 1.
    Kept { half_years: u32, event: bool },
    /// The scan `first` has the same image id.
    Duplicate { first: usize },
    /// The scan `kept` of the same subject and day is kept.
    Repeat { kept: usize },
    /// The subject has no valid diagnosis.
    NoDiagnosis,
    /// The last imaging visit (on `last`), or less than half a unit before it.
    FinalVisit { last: Date },
    /// Not at least half a unit before the first dementia diagnosis.
    AtOrAfterEvent { event: Date },
}

/// The outcome of every scan; `histories` has one entry per subject. Cost: O(n log n).
pub(super) fn label_scans(scans: &[Scan], histories: &[History], options: RuleOptions) -> Vec<Fate> {
    let mut fates = vec![None; scans.len()];
    mark_duplicates(scans, &mut fates);
    let last_visits = last_visits(scans, &fates);
    mark_repeats(scans, options.scan_of_day, &mut fates);
    let label = |(scan, fate): (&Scan, Option<Fate>)| {
        fate.unwrap_or_else(|| label(scan.date, &histories[scan.subject], last_visits[&scan.subject], options))
    };
    scans.iter().zip(fates).map(label).collect()
}

fn mark_duplicates(scans: &[Scan], fates: &mut [Option<Fate>]) {
    let mut first_rows = HashMap::with_capacity(scans.len());
    for (scan, fate) in scans.iter().zip(fates) {
        let first = *first_rows.entry(scan.id).or_insert(scan.index);
        *fate = (first != scan.index).then_some(Fate::Duplicate { first });
    }
}

/// Day of the last scan per subject; duplicates, whose row may contradict the first, are not counted.
fn last_visits(scans: &[Scan], fates: &[Option<Fate>]) -> HashMap<usize, Date> {
    let mut last_visits = HashMap::new();
    for (scan, _) in scans.iter().zip(fates).filter(|(_, fate)| fate.is_none()) {
        let last = last_visits.entry(scan.subject).or_insert(scan.date);
        *last = scan.date.max(*last);
    }
    last_visits
}

fn mark_repeats(scans: &[Scan], which: ScanOfDay, fates: &mut [Option<Fate>]) {
    let is_better = |scan: &Scan, than: &Scan| match which {
        ScanOfDay::FirstListed => false,
        ScanOfDay::BestDescription => (scan.preference, scan.id) < (than.preference, than.id),
    };
    let mut kept: HashMap<(usize, Date), &Scan> = HashMap::with_capacity(scans.len());
    for (scan, _) in scans.iter().zip(&*fates).filter(|(_, fate)| fate.is_none()) {
        let best = kept.entry((scan.subject, scan.date)).or_insert(scan);
        if is_better(scan, best) {
            *best = scan;
        }
    }
    for (scan, fate) in scans.iter().zip(fates).filter(|(_, fate)| fate.is_none()) {
        let kept = kept[&(scan.subject, scan.date)].index;
        *fate = (kept != scan.index).then_some(Fate::Repeat { kept });
    }
}

fn label(date: Date, history: &History, last: Date, options: RuleOptions) -> Fate {
    if !history.is_diagnosed {
        return Fate::NoDiagnosis;
    }
    if options.final_visit == FinalVisit::Literal && date == last {
        return Fate::FinalVisit { last };
    }
    let end = history.event.unwrap_or(last);
    let half_years = match options.rounding {
        Rounding::Days => half_years_of_days(days_between(date, end)),
        Rounding::VisitMonth => half_years_of_visits(date, end, &history.months),
    };
    match (u32::try_from(half_years), history.event) {
        // Scheduled months may be out of step with the days, but no scan after the diagnosis is before it.
        (Ok(half_years @ 1..), event) if date < end => Fate::Kept { half_years, event: event.is_some() },
        (_, Some(event)) => Fate::AtOrAfterEvent { event },
        (_, None) => Fate::FinalVisit { last },
    }
}

/// Days from `from` to `to`, negative if `to` is earlier.
pub(super) fn days_between(from: Date, to: Date) -> i64 {
    from.duration_until(to).as_hours() / 24
}

/// `floor(days / 182.625 + 0.5)` in whole numbers: 182.625 is 1461 / 8.
fn half_years_of_days(days: i64) -> i64 {
    (16 * days + 1461).div_euclid(2922)
}

/// `floor((month(to) - month(from)) / 6 + 0.5)`; by days if no visit of the subject has a scheduled month.
fn half_years_of_visits(from: Date, to: Date, months: &BTreeMap<Date, i32>) -> i64 {
    match (scheduled_month(from, months), scheduled_month(to, months)) {
        (Some(from), Some(to)) => (to - from + 3).div_euclid(6),
        _ => half_years_of_days(days_between(from, to)),
    }
}

/// The month of the visit nearest to `date` (of two equally near ones the earlier), plus six for every half-year
/// between.
fn scheduled_month(date: Date, months: &BTreeMap<Date, i32>) -> Option<i64> {
    let before = months.range(..=date).next_back();
    let after = months.range(date..).next();
    let nearest = [before, after].into_iter().flatten().min_by_key(|&(&visit, _)| days_between(visit, date).abs());
    nearest.map(|(&visit, &month)| i64::from(month) + 6 * half_years_of_days(days_between(visit, date)))
}
