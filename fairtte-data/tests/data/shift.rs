//! A distribution shift from the settings to the batches: only the training samples of one group look different.

use fairtte_data::shift::{GaussianBlur, GroupBlur, ShiftConfig, apply_shift, image_blur};
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
