//! The rule on small cases that can be verified manually, and its laws on generated visit histories.

use std::collections::BTreeMap;

use jiff::civil::{Date, date};
use proptest::prelude::*;

use super::super::config::{FinalVisit, Rounding, ScanOfDay};
use super::super::rule::{Fate, History, RuleOptions, Scan, days_between, label_scans};

fn day(days: i64) -> Date {
    date(2005, 1, 1).saturating_add(jiff::SignedDuration::from_hours(24 * days))
}

fn scan(index: usize, subject: usize, days: i64) -> Scan {
    Scan { index, id: 100 + index as u64, subject, date: day(days), preference: 2 }
}

fn diagnosed(event: Option<i64>) -> History {
    History { is_diagnosed: true, event: event.map(day), months: BTreeMap::new() }
}

fn times(scans: &[Scan], history: History, options: RuleOptions) -> Vec<Option<(u32, bool)>> {
    let time = |fate| match fate {
        Fate::Kept { half_years, event } => Some((half_years, event)),
        _ => None,
    };
    label_scans(scans, &[history], options).into_iter().map(time).collect()
}

#[test]
fn half_a_unit_is_rounded_up() {
    // 0.5 of 182.625 days is 91.3, 1.5 is 273.9.
    for (days, expected) in [(91, None), (92, Some(1)), (273, Some(1)), (274, Some(2)), (9863, Some(54))] {
        let found = times(&[scan(0, 0, 0)], diagnosed(Some(days)), RuleOptions::default());
        assert_eq!(found, [expected.map(|half_years| (half_years, true))], "{days} days");
    }
}

#[test]
fn scans_on_neighbouring_days_are_two_visits() {
    let scans = [scan(0, 0, 0), scan(1, 0, 1), scan(2, 0, 730), scan(3, 0, 731)];
    let found = times(&scans, diagnosed(None), RuleOptions::default());
    assert_eq!(found, [Some((4, false)), Some((4, false)), None, None]);
    let literal = RuleOptions { final_visit: FinalVisit::Literal, ..RuleOptions::default() };
    assert_eq!(
        times(&scans, diagnosed(Some(1461)), literal),
        [Some((8, true)), Some((8, true)), Some((4, true)), None]
    );
}

#[test]
fn the_best_description_wins_and_of_equals_the_lowest_number() {
    let mut scans = [scan(0, 0, 0), scan(1, 0, 0), scan(2, 0, 0), scan(3, 0, 400)];
    (scans[0].preference, scans[1].preference, scans[2].preference) = (1, 0, 0);
    (scans[1].id, scans[2].id) = (300, 200);
    let fates =
        |which| label_scans(&scans, &[diagnosed(None)], RuleOptions { scan_of_day: which, ..Default::default() });
    let kept = Fate::Kept { half_years: 2, event: false };
    let first = Fate::Repeat { kept: 0 };
    assert_eq!(fates(ScanOfDay::FirstListed)[..3], [kept, first, first]);
    let best = Fate::Repeat { kept: 2 };
    assert_eq!(fates(ScanOfDay::BestDescription)[..3], [best, best, kept]);
}

#[test]
fn scheduled_months_come_from_the_nearest_visit() {
    let months = BTreeMap::from([(day(10), 0), (day(300), 6), (day(400), 12)]);
    let history = History { months, ..diagnosed(Some(400)) };
    let options = RuleOptions { rounding: Rounding::VisitMonth, ..RuleOptions::default() };
    // Day 0 is month 0, day 290 month 6; by days they would be 2 and 1 before day 400, and day 320 none.
    let scans = [scan(0, 0, 0), scan(1, 0, 290), scan(2, 0, 320), scan(3, 0, 399)];
    assert_eq!(times(&scans, history.clone(), options), [Some((2, true)), Some((1, true)), Some((1, true)), None]);
    // Far from any visit the half-years in between count too; without any visit the days are used.
    assert_eq!(times(&[scan(0, 0, -730)], history, options), [Some((6, true))]);
    assert_eq!(times(&[scan(0, 0, 0)], diagnosed(Some(400)), options), [Some((2, true))]);
}

/// One generated subject: days of scans, days and findings of exams (1 CN, 2 MCI, 3 dementia).
type Person = (Vec<i64>, Vec<(i64, u8)>);

fn people() -> impl Strategy<Value = Vec<Person>> {
    // Few different days, so that scans of one day and exams on a day of a scan are common.
    let day = prop_oneof![0..4000_i64, (0..40_i64).prop_map(|step| step * 91)];
    let exams = prop::collection::vec((day.clone(), 1..=3_u8), 0..6);
    prop::collection::vec((prop::collection::vec(day, 0..8), exams), 1..5)
}

fn scans_of(people: &[Person]) -> Vec<Scan> {
    let mut scans = Vec::new();
    for (subject, (days, _)) in people.iter().enumerate() {
        for &days in days {
            scans.push(scan(scans.len(), subject, days));
        }
    }
    scans
}

fn histories_of(people: &[Person]) -> Vec<History> {
    let history = |(_, exams): &Person| {
        let event = exams.iter().filter(|(_, found)| *found == 3).map(|(days, _)| *days).min();
        History { is_diagnosed: !exams.is_empty(), ..diagnosed(event) }
    };
    people.iter().map(history).collect()
}

fn options() -> impl Strategy<Value = RuleOptions> {
    (any::<bool>(), any::<bool>(), any::<bool>()).prop_map(|(literal, months, best)| RuleOptions {
        final_visit: if literal { FinalVisit::Literal } else { FinalVisit::Rule },
        rounding: if months { Rounding::VisitMonth } else { Rounding::Days },
        scan_of_day: if best { ScanOfDay::BestDescription } else { ScanOfDay::FirstListed },
    })
}

/// The rule implemented again, row by row from the days, in floating point and without any of the functions under test.
fn brute_force(people: &[Person], subject: usize, day: i64, is_literal: bool) -> Result<(u32, bool), &'static str> {
    let (scans, exams) = &people[subject];
    if exams.is_empty() {
        return Err("no_diagnosis");
    }
    let last = scans.iter().copied().fold(day, i64::max);
    if is_literal && day == last {
        return Err("final_visit");
    }
    let mut end = last;
    let mut event = false;
    for &(exam, found) in exams {
        if found == 3 && (!event || exam < end) {
            (end, event) = (exam, true);
        }
    }
    let half_years = ((end - day) as f64 / 182.625 + 0.5).floor();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at least 1 and small")]
    match (half_years >= 1.0, event) {
        (true, _) => Ok((half_years as u32, event)),
        (false, true) => Err("at_or_after_event"),
        (false, false) => Err("final_visit"),
    }
}

fn plain(fate: Fate) -> Result<(u32, bool), &'static str> {
    match fate {
        Fate::Kept { half_years, event } => Ok((half_years, event)),
        Fate::Duplicate { .. } => Err("duplicate_image_id"),
        Fate::Repeat { .. } => Err("repeat_scan_same_visit"),
        Fate::NoDiagnosis => Err("no_diagnosis"),
        Fate::FinalVisit { .. } => Err("final_visit"),
        Fate::AtOrAfterEvent { .. } => Err("at_or_after_event"),
    }
}

proptest! {
    #[test]
    fn the_rule_agrees_with_brute_force(people in people(), is_literal: bool) {
        let final_visit = if is_literal { FinalVisit::Literal } else { FinalVisit::Rule };
        let scans = scans_of(&people);
        let fates = label_scans(&scans, &histories_of(&people), RuleOptions { final_visit, ..Default::default() });
        for (scan, fate) in scans.iter().zip(fates) {
            let days = days_between(day(0), scan.date);
            let is_repeat = scans[..scan.index].iter().any(|s| (s.subject, s.date) == (scan.subject, scan.date));
            let expected =
                if is_repeat { Err("repeat_scan_same_visit") } else { brute_force(&people, scan.subject, days, is_literal) };
            prop_assert_eq!(plain(fate), expected);
        }
    }

    #[test]
    fn no_scan_on_or_after_the_first_dementia_diagnosis_is_kept(
        people in people(), options in options(), months in prop::collection::vec((0..4000_i64, -12..200_i32), 0..6),
    ) {
        let (scans, mut histories) = (scans_of(&people), histories_of(&people));
        // Scheduled months that contradict the days must not help either.
        for history in &mut histories {
            history.months = months.iter().map(|&(days, month)| (day(days), month)).collect();
        }
        for (scan, fate) in scans.iter().zip(label_scans(&scans, &histories, options)) {
            if let Fate::Kept { half_years, event } = fate {
                let history = &histories[scan.subject];
                prop_assert!(half_years >= 1 && history.is_diagnosed);
                prop_assert_eq!(event, history.event.is_some());
                prop_assert!(history.event.is_none_or(|event| scan.date < event));
                // A censored time is never longer than the follow-up of the subject.
                let is_later = |other: &Scan| other.subject == scan.subject && scan.date < other.date;
                prop_assert!(event || scans.iter().any(is_later));
            }
        }
    }

    #[test]
    fn the_order_of_rows_decides_no_time_and_no_event(people in people(), options in options(), seed: u64) {
        let (scans, histories) = (scans_of(&people), histories_of(&people));
        let mut shuffled = scans.clone();
        shuffled.sort_by_key(|scan| (scan.id ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let outcomes = |scans: &[Scan]| {
            let fates = label_scans(scans, &histories, options);
            let all = scans.iter().zip(fates).map(|(scan, fate)| (scan.subject, scan.date, plain(fate)));
            let mut all: Vec<_> = all.collect();
            all.sort_unstable();
            all
        };
        prop_assert_eq!(outcomes(&scans), outcomes(&shuffled));
    }

    /// Findings before a scan do not affect its label, as long as none is dementia and some remain.
    #[test]
    fn what_was_found_before_a_scan_never_decides_its_label(people in people(), options in options(), found in 1..=2_u8) {
        let scans = scans_of(&people);
        let fates = label_scans(&scans, &histories_of(&people), options);
        for (scan, fate) in scans.iter().zip(fates) {
            if let Fate::Kept { .. } = fate {
                let mut other = people.clone();
                for exam in &mut other[scan.subject].1 {
                    if day(exam.0) < scan.date {
                        *exam = (exam.0 - 100, found);
                    }
                }
                let again = label_scans(&scans, &histories_of(&other), options);
                prop_assert_eq!(fate, again[scan.index]);
            }
        }
    }

    #[test]
    fn other_people_decide_nothing(people in people(), options in options()) {
        let scans = scans_of(&people);
        let together = label_scans(&scans, &histories_of(&people), options);
        for (subject, person) in people.iter().enumerate() {
            let own: Vec<Scan> = scans.iter().filter(|scan| scan.subject == subject).cloned().collect();
            let alone: Vec<Scan> = own.iter().map(|scan| Scan { subject: 0, ..scan.clone() }).collect();
            let alone = label_scans(&alone, &histories_of(std::slice::from_ref(person)), options);
            for (scan, fate) in own.iter().zip(alone) {
                prop_assert_eq!(together[scan.index], fate);
            }
        }
    }
}
