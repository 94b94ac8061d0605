//! A distribution shift from the settings to the batches: only the training samples of one group look different.

use fairtte_data::shift::{GaussianBlur, GroupBlur, ShiftConfig, apply_shift, image_blur, shifted_rows};
use fairtte_data::{HostBatch, Part, Sampling, SplitConfig, split_by_subject};
use fairtte_metrics::{GroupId, Groups};

use crate::loader::{World, world_of};

fn batches(world: &World, blurred: Option<GroupBlur>) -> Vec<HostBatch> {
    let rows = world.cohort.all_rows();
    let mut loader = world.plain();
    if let Some(blur) = blurred {
        loader = loader.with_transform(Box::new(blur));
    }
    loader.batches(&rows, 8, &Sampling::Shuffled, 5, 2).unwrap().collect()
}

#[test]
fn batches_of_a_shifted_cohort_differ_in_training_samples_of_the_group_only() {
    let world = world_of(40, 3, &[12, 10]);
    let split = split_by_subject(&world.cohort, &SplitConfig::default(), 3).unwrap();
    let train = split.rows(Part::Train);
    let membership = (0..40).map(|row| Some(GroupId(u32::from(row % 2 == 0)))).collect();
    let groups = [Groups::new("sex", vec!["F".to_owned(), "M".to_owned()], membership).unwrap()];
    let settings =
        "attribute = 'sex'\ngroup = 'F'\nblur = 1.5\ntime-noise = { fraction = [-0.5, 0.5] }\ncensoring-flip = 0.9";
    let settings: ShiftConfig = toml::from_str(settings).unwrap();
    let (shifted, record) = apply_shift(&world.cohort, train, &groups, &settings, 3).unwrap();
    let blur = image_blur(&world.cohort, train, &groups, &settings).unwrap();
    let gaussian = GaussianBlur::new(1.5).unwrap();
    let mut n_changed = 0;
    for (before, after) in batches(&world, None).iter().zip(batches(&world, blur)) {
        assert_eq!(before.rows, after.rows);
        for (i, &row) in before.rows.iter().enumerate() {
            let is_target = row % 2 == 1 && train.contains(&row);
            let image = |batch: &HostBatch| batch.pixels[i * 360..(i + 1) * 360].to_vec();
            let mut expected = image(before);
            if is_target {
                gaussian.apply(&mut expected, &[3, 12, 10]);
                assert_ne!(image(before), expected, "row {row}");
                n_changed += 1;
            }
            for (found, expected) in image(&after).iter().zip(&expected) {
                let same = found.to_bits() == expected.to_bits();
                assert!(same || is_target && (found - expected).abs() < 1e-6, "row {row}: {found}, {expected}");
            }
            assert!(is_target || world.cohort.samples[row] == shifted.samples[row], "row {row}");
        }
    }
    assert_eq!((n_changed, record.changed.len()), (record.n_group, record.n_group));
    assert!(n_changed > 5 && n_changed < train.len());
}

#[test]
fn a_permuted_image_is_another_samples_and_the_outcome_stays() {
    let world = world_of(40, 3, &[12, 10]);
    let split = split_by_subject(&world.cohort, &SplitConfig::default(), 3).unwrap();
    let train = split.rows(Part::Train);
    let membership: Vec<_> = (0..40).map(|row| Some(GroupId(u32::from(row % 2 == 0)))).collect();
    let groups = [Groups::new("sex", vec!["F".to_owned(), "M".to_owned()], membership).unwrap()];
    let settings: ShiftConfig =
        toml::from_str("attribute = 'sex'\ngroup = 'F'\npermute = 0.8\nundersample = 0.2").unwrap();
    let rows = shifted_rows(&world.cohort, train, &groups, &settings, 3).unwrap();
    let kept = split.without_rows(Part::Train, &rows.left_out);
    assert_eq!(kept.rows(Part::Train).len() + rows.left_out.len(), train.len());
    assert_eq!(kept.rows(Part::Test), split.rows(Part::Test));
    assert!(!rows.left_out.is_empty() && rows.n_permuted() > 3);
    let batch = |loader: &fairtte_data::Loader<'_>| {
        loader.batches(&world.cohort.all_rows(), 40, &Sampling::Sequential, 1, 1).unwrap().next().unwrap()
    };
    let plain = batch(&world.plain());
    let permuted = batch(&world.plain().with_inputs_of(rows.inputs(40)).unwrap());
    let image = |batch: &HostBatch, row: usize| batch.pixels[row * 360..(row + 1) * 360].to_vec();
    for row in 0..40 {
        let giver = rows.giver(row).unwrap_or(row);
        assert_eq!(image(&permuted, row), image(&plain, giver), "row {row}");
        assert_eq!(giver == row, image(&permuted, row) == image(&plain, row), "row {row}");
    }
    assert_eq!((&permuted.sample_ids, &permuted.time, &permuted.event), (&plain.sample_ids, &plain.time, &plain.event));
    for wrong in [vec![0; 39], vec![40; 40]] {
        let error = world.plain().with_inputs_of(wrong).map(drop).unwrap_err().to_string();
        assert!(error.contains("rows whose inputs are used"), "{error}");
    }
}

#[test]
fn volumes_are_blurred_along_all_three_axes() {
    let mut volume = vec![0.0; 5 * 7 * 9];
    volume[(2 * 7 + 3) * 9 + 4] = 1.0;
    GaussianBlur::new(0.7).unwrap().apply(&mut volume, &[1, 5, 7, 9]);
    let at = |z: usize, y: usize, x: usize| volume[(z * 7 + y) * 9 + x];
    for (a, b) in [(at(1, 3, 4), at(2, 3, 5)), (at(2, 2, 4), at(2, 3, 3)), (at(1, 2, 3), at(3, 4, 5))] {
        assert!(a > 0.0 && (a - b).abs() < 1e-7, "{a} and {b} are as far from the centre");
    }
    assert!((volume.iter().sum::<f32>() - 1.0).abs() < 1e-5);
}
