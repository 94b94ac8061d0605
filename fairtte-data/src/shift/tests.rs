//! The changed samples and their changes; all other samples are unchanged.
#![expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

use proptest::prelude::*;

use super::*;

/// Sample `i` is of subject `i / 2`, in group `i mod 3` (none for 2), has the time `i + 1` and an event
/// unless `i mod 4` is 0.
fn cohort(n: usize) -> (Cohort, Vec<Groups>) {
    let sample = |i: usize| Sample {
        sample_id: format!("s{i}").into(),
        subject_id: format!("p{}", i / 2).into(),
        unit: None,
        image: format!("s{i}.png").into(),
        time: i as f64 + 1.0,
        event: !i.is_multiple_of(4),
        competing: None,
        source_row: i + 2,
    };
    let cohort = Cohort {
        name: "made-up".to_owned(),
        time_unit: "days".to_owned(),
        source: "made-up.csv".into(),
        samples: (0..n).map(sample).collect(),
        attributes: Vec::new(),
        provenance: None,
        cause: None,
    };
    let membership = (0..n).map(|i| [Some(GroupId(0)), Some(GroupId(1)), None][i % 3]).collect();
    let sex = Groups::new("sex", vec!["F".to_owned(), "M".to_owned()], membership).unwrap();
    let age = Groups::new("age", vec!["<= 60".to_owned(), "> 60".to_owned()], vec![Some(GroupId(0)); n]).unwrap();
    (cohort, vec![age, sex])
}

fn config(text: &str) -> ShiftConfig {
    toml::from_str(&format!("attribute = 'sex'\ngroup = 'F'\n{text}")).unwrap()
}

/// Two of three samples train.
fn train(n: usize) -> Vec<usize> {
    (0..n).filter(|row| row % 9 < 6).collect()
}

#[test]
fn only_training_samples_of_the_group_change() {
    let (cohort, groups) = cohort(900);
    let train = train(900);
    let all = config("blur = 2\ntime-noise = { fraction = [-0.3, 0.3] }\ncensoring-flip = 0.9");
    let (shifted, record) = apply_shift(&cohort, &train, &groups, &all, 7).unwrap();
    let blur = image_blur(&cohort, &train, &groups, &all).unwrap().unwrap();
    for row in 0..900 {
        let is_target = row % 9 < 6 && row % 3 == 0;
        let (before, after) = (&cohort.samples[row], &shifted.samples[row]);
        assert_eq!(blur.is_blurred(row), is_target, "row {row}");
        assert_eq!(before.time.to_bits() != after.time.to_bits(), is_target, "row {row}");
        assert!(is_target || before == after, "row {row}");
        assert!(after.time.is_finite() && after.time > 0.0, "row {row}: {}", after.time);
    }
    assert_eq!((record.n_train, record.n_group, record.changed.len()), (600, 200, 200));
    assert_eq!((record.n_blurred, record.n_times_changed), (200, 200));
    let n_events = train.iter().filter(|&&row| row % 3 == 0 && row % 4 != 0).count();
    assert_eq!((record.n_group_events, n_events), (150, 150));
    assert_eq!(record.n_flipped, 135, "nine of ten events");
    assert_eq!(shifted.n_events() + 135, cohort.n_events());
}

#[test]
fn each_change_leaves_the_others_alone() {
    let (cohort, groups) = cohort(90);
    let train = train(90);
    let (shifted, record) = apply_shift(&cohort, &train, &groups, &config("blur = 1.5"), 1).unwrap();
    assert_eq!(shifted, cohort, "a blur happens when the image is loaded");
    assert!(
        record.changed.iter().all(|sample| sample.blurred && sample.time.to_bits() == sample.time_before.to_bits())
    );
    let settings = config("time-noise = { absolute = [-5.0, 5.0] }");
    let (noisy, record) = apply_shift(&cohort, &train, &groups, &settings, 1).unwrap();
    assert_eq!(noisy.n_events(), cohort.n_events());
    assert_eq!((record.n_blurred, record.n_flipped), (0, 0));
    assert_eq!(image_blur(&cohort, &train, &groups, &settings).unwrap(), None);
    let flip = config("censoring-flip = 0.5");
    let (flipped, record) = apply_shift(&cohort, &train, &groups, &flip, 1).unwrap();
    assert!(flipped.samples.iter().zip(&cohort.samples).all(|(a, b)| a.time.to_bits() == b.time.to_bits()));
    assert_eq!(record.changed.len(), record.n_flipped, "a sample that did not change is not listed");
    let both = config("time-noise = { absolute = [-5.0, 5.0] }\ncensoring-flip = 0.5");
    let (both, _) = apply_shift(&cohort, &train, &groups, &both, 1).unwrap();
    for row in 0..90 {
        assert_eq!(both.samples[row].time.to_bits(), noisy.samples[row].time.to_bits(), "row {row}");
        assert_eq!(both.samples[row].event, flipped.samples[row].event, "row {row}");
    }
}

#[test]
fn the_other_group_is_changed_when_it_is_named() {
    let (cohort, groups) = cohort(90);
    let flip = "censoring-flip = 1.0";
    let of_women = apply_shift(&cohort, &train(90), &groups, &config(flip), 1).unwrap().1;
    for group in ["'M'", "'m'", "1"] {
        let of_men: ShiftConfig = toml::from_str(&format!("attribute = 'sex'\ngroup = {group}\n{flip}")).unwrap();
        let (shifted, of_men) = apply_shift(&cohort, &train(90), &groups, &of_men, 1).unwrap();
        assert_eq!(of_men.group, "M");
        let touched = |id: &SampleId| of_women.changed.iter().any(|sample| sample.sample_id == *id);
        assert!(of_men.changed.iter().all(|sample| !touched(&sample.sample_id)));
        assert_eq!(shifted.n_events() + of_men.n_group_events, cohort.n_events());
    }
}

#[test]
fn noise_is_uniform_over_the_range_and_cut_only_where_it_would_reach_0() {
    let (mut cohort, groups) = cohort(9000);
    cohort.samples.iter_mut().for_each(|sample| sample.time = 100.0);
    let train: Vec<usize> = (0..9000).collect();
    let noise = config("time-noise = { fraction = [-0.2, 0.6] }");
    let (_, record) = apply_shift(&cohort, &train, &groups, &noise, 3).unwrap();
    assert_eq!((record.noise_range, record.n_ranges_cut), (Some([-20.0, 60.0]), 0));
    let times: Vec<f64> = record.changed.iter().map(|sample| sample.time).collect();
    assert!(times.iter().all(|time| (80.0..=160.0).contains(time)));
    for (from, to) in [(80.0, 100.0), (100.0, 120.0), (120.0, 140.0), (140.0, 160.0)] {
        let n = times.iter().filter(|time| (from..to).contains(*time)).count();
        // A quarter of 3000, give or take four standard deviations.
        assert!((655..=845).contains(&n), "{n} of 3000 between {from} and {to}");
    }
    let (cut, record) =
        apply_shift(&cohort, &train, &groups, &config("time-noise = { absolute = [-300.0, 0.0] }"), 3).unwrap();
    assert_eq!(record.n_ranges_cut, 3000);
    assert!(cut.samples.iter().all(|sample| sample.time > 0.0 && sample.time <= 100.0));
    let mean = record.changed.iter().map(|sample| sample.time).sum::<f64>() / 3000.0;
    assert!((mean - 50.0).abs() < 2.2, "uniform between 0 and 100, but the mean is {mean}");
}

#[test]
fn a_time_of_0_stays_0_or_becomes_positive() {
    let (mut cohort, groups) = cohort(6);
    cohort.samples[0].time = 0.0;
    for (range, positive) in [("[-5.0, 0.0]", false), ("[-5.0, 2.0]", true)] {
        let noise = config(&format!("time-noise = {{ absolute = {range} }}"));
        let (shifted, _) = apply_shift(&cohort, &[0, 1, 2, 3], &groups, &noise, 1).unwrap();
        assert_eq!(shifted.samples[0].time > 0.0, positive, "{range}: {}", shifted.samples[0].time);
    }
}

#[test]
fn the_largest_training_time_ignores_the_other_parts() {
    let (mut cohort, groups) = cohort(90);
    let noise = config("time-noise = { fraction = [0.0, 1.0] }");
    let before = apply_shift(&cohort, &train(90), &groups, &noise, 1).unwrap().1;
    cohort.samples[89].time = 1e6;
    assert!(!train(90).contains(&89));
    assert_eq!(apply_shift(&cohort, &train(90), &groups, &noise, 1).unwrap().1, before);
}

#[test]
fn adding_samples_draws_nothing_anew() {
    let ((small, small_groups), (large, large_groups)) = (cohort(300), cohort(303));
    let settings = config("time-noise = { absolute = [-5.0, 5.0] }\ncensoring-flip = 0.5");
    let rows: Vec<usize> = (0..303).collect();
    let (a, _) = apply_shift(&small, &rows[..300], &small_groups, &settings, 4).unwrap();
    let (b, _) = apply_shift(&large, &rows, &large_groups, &settings, 4).unwrap();
    let mut n_moved = 0;
    for (a, b) in a.samples.iter().zip(&b.samples) {
        assert_eq!(a.time.to_bits(), b.time.to_bits());
        n_moved += usize::from(a.event != b.event);
    }
    assert!(n_moved <= 1, "{n_moved} flips moved although one sample of the group was added");
}

#[test]
fn seeds_differ_and_repeat() {
    let (cohort, groups) = cohort(300);
    let settings = config("time-noise = { absolute = [-5.0, 5.0] }\ncensoring-flip = 0.5");
    let shift = |seed| apply_shift(&cohort, &train(300), &groups, &settings, seed).unwrap();
    assert_eq!(shift(1), shift(1));
    assert_ne!(shift(1).0, shift(2).0);
}

#[test]
fn impossible_settings_name_the_key_and_what_exists() {
    let (cohort, groups) = cohort(30);
    for (text, expected) in [
        (
            "",
            "shift is without any change, expected at least one of blur, time-noise, censoring-flip, permute and undersample",
        ),
        ("blur = -1", "blur is -1, expected a number of pixels in (0, 100]"),
        ("censoring-flip = 90", "censoring-flip is 90, expected a number in (0, 1]"),
        ("censoring-flip = 0", "censoring-flip is 0, expected a number in (0, 1]"),
        ("time-noise = { absolute = [3.0, 3.0] }", "time-noise is [3, 3], expected two finite numbers"),
        ("time-noise = { absolute = [-3.0, -1.0] }", "time-noise is [-3, -1], expected two finite numbers"),
        ("time-noise = { absolute = [0.0, inf] }", "time-noise is [0, inf], expected two finite numbers"),
        ("time-noise = { fraction = [0.0, 1e308] }", "expected noise that leaves every time finite"),
    ] {
        let message = apply_shift(&cohort, &[0, 1, 2], &groups, &config(text), 1).unwrap_err().to_string();
        assert!(message.contains(expected), "{text}: {message}");
    }
    for (attribute, group, expected) in [
        ("race", "'F'", "the attribute of the shift is none of the attributes [\"age\", \"sex\"]"),
        (
            "sex",
            "'FF'",
            "the group of the shift is \"FF\", expected one of the levels [\"F\", \"M\"], nearest is \"F\"",
        ),
        ("sex", "2", "the group of the shift is 2, expected one of the levels [\"F\", \"M\"]"),
        ("age", "'> 60'", "no training sample is in the group \"> 60\""),
    ] {
        let text = format!("attribute = '{attribute}'\ngroup = {group}\nblur = 1");
        let settings: ShiftConfig = toml::from_str(&text).unwrap();
        for result in [
            apply_shift(&cohort, &[0, 1, 2], &groups, &settings, 1).map(|_| ()),
            image_blur(&cohort, &[0, 1, 2], &groups, &settings).map(|_| ()),
        ] {
            let message = result.unwrap_err().to_string();
            assert!(message.contains(expected), "{text}: {message}");
        }
    }
    let short = [Groups::new("sex", vec!["F".to_owned()], vec![Some(GroupId(0))]).unwrap()];
    let message = apply_shift(&cohort, &[0], &short, &config("blur = 1"), 1).unwrap_err().to_string();
    assert_eq!(message, "list of groups has length 1, expected 30");
}

#[test]
fn features_of_a_table_cannot_be_blurred() {
    assert!(config("censoring-flip = 0.9").check_for_features().is_ok());
    let message = config("blur = 2\ncensoring-flip = 0.9").check_for_features().unwrap_err().to_string();
    assert!(message.starts_with("blur is 2, expected no blur"), "{message}");
    assert!(config("").check_for_features().is_err());
}

#[test]
fn settings_survive_a_round_trip_and_misspelt_keys_do_not() {
    for text in [
        "attribute = \"sex\"\ngroup = \"F\"\nblur = 1.5\ncensoring-flip = 0.9\n\n[time-noise]\nfraction = [-0.1, 0.25]\n",
        "attribute = \"race\"\ngroup = 1\n\n[time-noise]\nabsolute = [0.0, 30.0]\n",
    ] {
        let settings: ShiftConfig = toml::from_str(text).unwrap();
        assert_eq!(toml::to_string(&settings).unwrap(), text);
    }
    for text in ["blurr = 1", "time-noise = { relative = [0.0, 1.0] }", "censoring_flip = 0.9"] {
        assert!(toml::from_str::<ShiftConfig>(&format!("attribute = 'a'\ngroup = 'b'\n{text}")).is_err(), "{text}");
    }
    let message = toml::from_str::<ShiftConfig>("attribute = 'a'\ngroup = -1\nblur = 1").unwrap_err().to_string();
    assert!(message.contains("counted from 0"), "{message}");
}

#[test]
fn the_record_is_written_and_told() {
    let (cohort, groups) = cohort(90);
    let settings = config("blur = 2\ntime-noise = { fraction = [-0.5, 0.5] }\ncensoring-flip = 0.9");
    let (shifted, record) = apply_shift(&cohort, &train(90), &groups, &settings, 1).unwrap();
    let json = serde_json::to_string(&record).unwrap();
    assert_eq!(serde_json::from_str::<ShiftRecord>(&json).unwrap(), record);
    let told = record.to_string();
    let expected = "distribution shift in the training part, sex F (20 of 60 samples): 20 images blurred (sigma 2 \
                    pixels), noise between -43.5 and 43.5 (-0.5 to 0.5 of the largest training time) added to 20 times, \
                    for 10 of them only its part that keeps the time above 0, 13 of 14 events made censored (share 0.9)";
    assert_eq!(told, expected);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run/shift.csv");
    record.write_csv(&path).unwrap();
    let table = crate::table::Table::read(&path).unwrap();
    let names =
        ["sample_id", "subject_id", "blurred", "time_before", "time", "event_before", "event", "inputs_of", "left_out"];
    assert_eq!(table.names(), names);
    assert_eq!(table.n_rows(), 20);
    let (ids, times) = (table.text("sample_id").unwrap(), table.numbers("time").unwrap());
    for (id, time) in ids.into_iter().zip(times) {
        let sample = shifted.samples.iter().find(|sample| Some(sample.sample_id.as_str()) == id.as_deref()).unwrap();
        assert_eq!(time.unwrap().to_bits(), sample.time.to_bits(), "written in full");
    }
}

#[test]
fn permuted_samples_have_the_inputs_of_another_one_of_the_group_and_left_out_ones_are_counted() {
    let (cohort, groups) = cohort(900);
    let train = train(900);
    let both = config("permute = 0.5\nundersample = 0.25");
    let (shifted, record) = apply_shift(&cohort, &train, &groups, &both, 7).unwrap();
    assert_eq!(shifted, cohort, "identities and outcomes stay");
    let rows = shifted_rows(&cohort, &train, &groups, &both, 7).unwrap();
    // 200 of the group train: a quarter leaves, half of the other 150 exchange.
    assert_eq!((rows.left_out.len(), rows.n_permuted()), (50, 75));
    assert_eq!((record.n_group, record.n_left_out, record.n_permuted, record.changed.len()), (200, 50, 75, 125));
    let is_target = |row: usize| row % 9 < 6 && row.is_multiple_of(3);
    assert!(rows.left_out.iter().all(|row| is_target(*row)));
    let inputs = rows.inputs(900);
    let exchanged: Vec<usize> = (0..900).filter(|row| inputs[*row] != *row).collect();
    assert_eq!(exchanged.len(), 75, "no sample that exchanges keeps its own inputs");
    let mut givers: Vec<usize> = exchanged.iter().map(|row| inputs[*row]).collect();
    givers.sort_unstable();
    assert_eq!(givers, exchanged, "everybody gives to one");
    assert!(exchanged.iter().all(|row| is_target(*row) && !rows.left_out.contains(row)));
    for changed in &record.changed {
        let row = cohort.samples.iter().position(|sample| sample.sample_id == changed.sample_id).unwrap();
        let expected = rows.giver(row).map(|giver| cohort.samples[giver].sample_id.clone());
        assert_eq!((&changed.inputs_of, changed.left_out), (&expected, rows.left_out.contains(&row)));
    }
    let told = record.to_string();
    assert!(
        told.ends_with(
            "75 samples have the inputs of another (share 0.5), 50 samples left out of training (share 0.25)"
        ),
        "{told}"
    );
    assert_ne!(shifted_rows(&cohort, &train, &groups, &both, 8).unwrap(), rows);
    let without = shifted_rows(&cohort, &train, &groups, &config("blur = 1"), 7).unwrap();
    assert_eq!((without.n_permuted(), without.left_out.len(), without.giver(0)), (0, 0, None));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shift.csv");
    record.write_csv(&path).unwrap();
    let table = crate::table::Table::read(&path).unwrap();
    assert_eq!(table.text("inputs_of").unwrap().iter().flatten().count(), 75);
    assert_eq!(table.numbers("left_out").unwrap().iter().flatten().sum::<f64>().to_bits(), 50.0_f64.to_bits());
}

#[test]
fn a_single_sample_stays_and_keeps_its_inputs() {
    let (cohort, groups) = cohort(30);
    let rows = |text: &str| shifted_rows(&cohort, &[0, 1, 2], &groups, &config(text), 1).unwrap();
    assert_eq!(rows("permute = 1.0").n_permuted(), 0);
    assert!(rows("undersample = 0.99").left_out.is_empty());
    let message = |text: &str| config(text).check().unwrap_err().to_string();
    assert_eq!(message("permute = 1.5"), "permute is 1.5, expected a number in (0, 1]");
    assert!(message("undersample = 1.0").starts_with("undersample is 1, expected a number in (0, 1)"));
    assert!(config("permute = 1.0\nundersample = 0.5").check_for_features().is_ok());
}

proptest! {
    /// The order of the training rows, and naming a row twice, changes nothing; shuffled samples keep their changes.
    #[test]
    fn the_order_of_the_rows_changes_nothing(seed in 0_u64..1000, turn in 0_usize..60, share in 0.01_f64..=1.0) {
        let (cohort, groups) = cohort(60);
        let settings = ShiftConfig { censoring_flip: Some(share), ..config("time-noise = { absolute = [-9.0, 4.0] }") };
        let rows = train(60);
        let (shifted, record) = apply_shift(&cohort, &rows, &groups, &settings, seed).unwrap();
        let mut turned = rows.clone();
        turned.rotate_left(turn % rows.len());
        turned.push(rows[0]);
        prop_assert_eq!(&apply_shift(&cohort, &turned, &groups, &settings, seed).unwrap(), &(shifted.clone(), record));
        let mut reordered = cohort.clone();
        reordered.samples.rotate_left(turn);
        let membership = (0..60).map(|row| groups[1].membership()[(row + turn) % 60]).collect();
        let groups = [Groups::new("sex", groups[1].levels().to_vec(), membership).unwrap()];
        let rows: Vec<usize> = rows.iter().map(|row| (row + 60 - turn) % 60).collect();
        let (mut again, _) = apply_shift(&reordered, &rows, &groups, &settings, seed).unwrap();
        again.samples.rotate_right(turn);
        prop_assert_eq!(again.samples, shifted.samples);
    }
}
