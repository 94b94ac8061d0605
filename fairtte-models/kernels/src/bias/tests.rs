use super::gradient;

#[test]
fn each_channel_gets_the_sum_of_its_own_values() {
    for (batch, channels, plane) in [(1, 1, 1), (3, 2, 35), (2, 5, 1), (1, 3, 64)] {
        let value = |sample: usize, channel: usize, place: usize| (sample * 100 + channel * 7 + place) as f32;
        let mut dy = Vec::new();
        let mut expected = vec![0.0; channels];
        for sample in 0..batch {
            for (channel, expected) in expected.iter_mut().enumerate() {
                for place in 0..plane {
                    dy.push(value(sample, channel, place));
                    *expected += value(sample, channel, place);
                }
            }
        }
        let mut found = vec![f32::NAN; channels];
        gradient(&dy, channels, plane, &mut found);
        assert_eq!(found, expected, "{batch} x {channels} x {plane}");
    }
}

#[test]
fn a_long_sum_of_small_values_keeps_its_digits() {
    let mut found = [0.0];
    gradient(&vec![0.1_f32; 1_000_003], 1, 1_000_003, &mut found);
    assert!((f64::from(found[0]) - f64::from(0.1_f32) * 1_000_003.0).abs() < 0.01);
}

#[test]
fn nan_stays_in_its_channel() {
    let mut found = [0.0; 2];
    gradient(&[1.0, f32::NAN, 2.0, 3.0], 2, 2, &mut found);
    assert!(found[0].is_nan());
    assert_eq!(found[1].to_bits(), 5.0_f32.to_bits());
}
