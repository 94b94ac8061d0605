#![expect(clippy::unwrap_used, reason = "a failed test may panic")]
use approx::assert_abs_diff_eq;

use super::*;

fn cuts(largest: f64, n: usize) -> CutPoints {
    let train = Outcomes::new(vec![largest / 2.0, largest], vec![true, false]).unwrap();
    CutPoints::equidistant(&train, n).unwrap()
}

fn flags(bits: &[u8]) -> Vec<bool> {
    bits.iter().map(|bit| *bit == 1).collect()
}

/// `n_early` events at 0.5, one in each later unit of time, and one censoring at 10.
fn crowded(n_early: usize) -> Outcomes {
    let mut time = vec![0.5; n_early];
    time.extend((1..10).map(|unit| f64::from(unit) + 0.5));
    let mut event = vec![true; time.len()];
    time.push(10.0);
    event.push(false);
    Outcomes::new(time, event).unwrap()
}

#[test]
fn auto_is_equidistant_unless_an_interval_is_crowded() {
    // Ten intervals: the limit is four equal shares, 0.4. 6 of 15 events are not above it, 7 of 16 are.
    for (n_early, kind) in [(1, GridKind::Equidistant), (6, GridKind::Equidistant), (7, GridKind::Quantile)] {
        let train = crowded(n_early);
        let chosen = CutPoints::choose(&train, 11, GridKind::Auto).unwrap();
        let share = n_early as f64 / (n_early + 9) as f64;
        assert_eq!((chosen.kind, chosen.largest_share.to_bits()), (kind, share.to_bits()), "{n_early}");
        let cuts = CutPoints::fit(&train, 11, GridKind::Auto).unwrap();
        assert_eq!(cuts, CutPoints::fit(&train, 11, kind).unwrap(), "{n_early}");
        // What is requested by name is not changed.
        for named in [GridKind::Equidistant, GridKind::Quantile] {
            assert_eq!(CutPoints::choose(&train, 11, named).unwrap().kind, named);
        }
    }
    assert_ne!(
        CutPoints::fit(&crowded(7), 11, GridKind::Quantile).unwrap(),
        CutPoints::fit(&crowded(7), 11, GridKind::Equidistant).unwrap()
    );
}

#[test]
fn few_intervals_are_never_crowded_and_many_are_above_three_tenths() {
    assert!(crowded_share(4) >= 1.0);
    for (n, share) in [(8, 0.5), (13, 4.0 / 13.0), (14, 0.3), (127, 0.3)] {
        assert_abs_diff_eq!(crowded_share(n), share, epsilon = 1e-15);
    }
    let chosen = CutPoints::choose(&crowded(1000), 3, GridKind::Auto).unwrap();
    assert_eq!(chosen.kind, GridKind::Equidistant, "two intervals");
}

#[test]
fn events_at_time_0_are_in_no_interval() {
    let mut time = vec![0.0; 50];
    time.extend((1..=10).map(f64::from));
    let train = Outcomes::new(time, vec![true; 60]).unwrap();
    assert_eq!(CutPoints::choose(&train, 11, GridKind::Auto).unwrap().kind, GridKind::Equidistant);
}

// Golden: pycox 0.3.0 LabTransDiscreteTime(14, 'equidistant'), fitted on a largest duration of 13.
#[test]
fn events_round_up_and_censorings_round_down() {
    let time = [1e-9, 1e-9, 0.5, 0.5, 1.0, 1.0, 4.5, 4.5, 13.0, 13.0];
    let event = flags(&[1, 0, 1, 0, 1, 0, 1, 0, 1, 0]);
    let targets = cuts(13.0, 14).targets("test", &time, &event).unwrap().intervals;
    assert_eq!(targets.index, [1, 0, 1, 0, 1, 1, 5, 4, 13, 13]);
    assert_eq!(targets.event, event);
}

#[test]
fn events_of_other_causes_round_up_and_are_no_events() {
    let (time, event) = ([0.5, 0.5, 0.5, 13.5], flags(&[1, 0, 0, 0]));
    let targets = cuts(13.0, 14).targets_of_causes("test", &time, &event, &[0, 3, 0, 2]).unwrap();
    assert_eq!(targets.intervals.index, [1, 1, 0, 13]);
    assert_eq!(targets.intervals.event, event);
    assert_eq!(targets.causes, [1, 3, 0, 0]);
}

#[test]
fn times_beyond_the_grid_become_censorings_at_its_end() {
    let time = [13.0001, 20.0, 13.0001, 12.9999, 12.9999];
    let targets = cuts(13.0, 14).targets("test", &time, &flags(&[1, 1, 0, 1, 0])).unwrap().intervals;
    assert_eq!(targets.index, [13, 13, 13, 13, 12]);
    assert_eq!(targets.event, flags(&[0, 0, 0, 1, 0]));
}

#[test]
fn a_grid_that_is_not_made_of_integers() {
    let time = [1.0, 10.0, 10.0, 1000.0, 2000.0, 4000.0];
    let targets = cuts(4000.0, 128).targets("test", &time, &flags(&[0, 1, 0, 1, 0, 1])).unwrap().intervals;
    assert_eq!(targets.index, [0, 1, 0, 32, 63, 127]);
}

#[test]
fn training_without_an_event_is_refused() {
    let train = Outcomes::new(vec![1.0, 2.0], vec![false, false]).unwrap();
    let error = CutPoints::equidistant(&train, 5).unwrap_err();
    assert_eq!(error.to_string(), "the training part has no observed event (samples: 2), expected at least one");
}

#[test]
fn equal_training_times_and_negative_times_are_refused_with_their_part() {
    let train = Outcomes::new(vec![2.0, 2.0, 2.0], vec![true, false, true]).unwrap();
    for kind in [GridKind::Equidistant, GridKind::Quantile] {
        let error = CutPoints::fit(&train, 5, kind).unwrap_err();
        let expected = "all times of the training part are 2 (samples: 3), expected at least two different times";
        assert_eq!(error.to_string(), expected);
        assert_eq!(CutPoints::choose(&train, 5, kind).unwrap_err(), error);
    }
    let error = cuts(13.0, 14).targets("validation", &[1.0, -3.0], &[true, true]).unwrap_err();
    let expected = "time of row 1 of the validation part is -3, expected a finite number >= 0";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn a_file_that_holds_no_cut_points_is_refused() {
    let read = |text: &str| serde_json::from_str::<CutPoints>(text).map_err(|error| error.to_string());
    let written = cuts(13.0, 14);
    assert_eq!(read(&serde_json::to_string(&written).unwrap()).unwrap(), written);
    for (text, expected) in [
        ("[0.0]", "time.intervals is 1, expected 2 to 10000 cut points"),
        ("[1.0, 2.0]", "cut points that do not ascend from 0"),
        ("[0.0, 2.0, 2.0]", "cut points that do not ascend from 0"),
    ] {
        let error = read(text).unwrap_err();
        assert!(error.starts_with(expected), "{text}: {error}");
    }
}

// Cuts 0, 2, 4: an event on a cut belongs to the interval that ends there.
#[test]
fn pieces_hold_the_survived_share_of_an_interval() {
    let time = [0.0, 0.5, 2.0, 3.0, 4.0, 9.0];
    let pieces = cuts(4.0, 3).targets("test", &time, &[true; 6]).unwrap().pieces;
    assert_eq!(pieces.index, [0, 0, 0, 1, 1, 1]);
    assert_eq!(pieces.fraction, [0.0, 0.25, 1.0, 0.5, 1.0, 1.0]);
    assert_eq!(pieces.event, flags(&[0, 1, 1, 1, 1, 0]));
}
