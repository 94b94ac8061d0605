//! A host batch on a device.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use burn::tensor::Device;
use fairtte_data::HostBatch;
use fairtte_fairness::Batch;
use fairtte_metrics::GroupId;
use fairtte_models::ModelError;
use fairtte_survival::Masks;

#[test]
fn a_batch_keeps_ids_outcomes_and_groups_beside_pixels() {
    let host = HostBatch {
        rows: vec![4, 7],
        sample_ids: vec!["a".into(), "b".into()],
        pixels: vec![0.5; 32],
        stored: None,
        shape: vec![2, 1, 4, 4],
        time: vec![1.0, 2.0],
        event: vec![true, false],
        competing: vec![0, 2],
        groups: vec![Some(GroupId(1)), None],
        masks: Some((0..32).map(|at| u8::from(at % 5 == 0)).collect()),
    };
    let short = HostBatch { pixels: vec![0.0; 31], ..host.clone() };
    let batch = Batch::from_host(host.clone(), &Device::flex()).unwrap();
    assert_eq!((batch.n(), batch.pixels.shape()), (2, vec![2, 1, 4, 4]));
    assert_eq!((batch.rows, batch.sample_ids, batch.time), (host.rows, host.sample_ids, host.time));
    assert_eq!(batch.masks, host.masks.map(|labels| Masks { labels, n_pixels: 16 }));
    assert_eq!((batch.event, batch.competing, batch.groups), (host.event, host.competing, host.groups));
    assert_eq!(
        Batch::from_host(short, &Device::flex()).unwrap_err(),
        ModelError::IncompleteBatch { shape: vec![2, 1, 4, 4], found: 31 }
    );
}
