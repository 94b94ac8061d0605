use super::*;

#[test]
fn every_number_is_in_one_part() {
    let mut values: Vec<f32> = (0u8..2 * 5 * 3).map(f32::from).collect();
    let groups = by_channels(&mut values, 5, 3, 2);
    assert_eq!(groups.len(), 3);
    assert_eq!(groups[1], [&[6.0, 7.0, 8.0, 9.0, 10.0, 11.0][..], &[21.0, 22.0, 23.0, 24.0, 25.0, 26.0][..]]);
    assert_eq!(groups[2], [&[12.0, 13.0, 14.0][..], &[27.0, 28.0, 29.0][..]]);
    assert_eq!(units_per_task(10, 7, 20), 2);
    assert_eq!(units_per_task(10, 100, 20), 1);
    assert_eq!(units_per_task(10, 0, 20), 10);
}
