//! A folder of DICOM slices in a store.

#[path = "../../../images/src/dicom_series/tests/make.rs"]
#[expect(dead_code, reason = "the tests of the reader need more of it")]
mod make;

use std::path::Path;

use self::make::Series;
use crate::ImageStore;
use crate::cohort::{Cohort, Exclusion, Reason, Sample};
use crate::image::{ImageConfig, Pixels, StoredPixels, prepare_image};

/// A cohort with the series in `folders`, whose store reports its exclusions.
fn stored(folders: &[&Path], cache: &Path) -> (ImageStore, Vec<Exclusion>) {
    let sample = |(i, folder): (usize, &&Path)| Sample {
        sample_id: format!("s{i}").into(),
        subject_id: format!("p{i}").into(),
        unit: None,
        image: folder.to_path_buf(),
        time: 1.0,
        event: true,
        competing: None,
        source_row: i + 2,
    };
    let cohort = Cohort {
        name: "made-up".to_owned(),
        time_unit: "days".to_owned(),
        source: "made-up.csv".into(),
        samples: folders.iter().enumerate().map(sample).collect(),
        attributes: Vec::new(),
        provenance: None,
        cause: None,
    };
    let config = ImageConfig { size: vec![3, 4, 5], ..ImageConfig::default() };
    ImageStore::open_or_build(&cohort, &config, cache, &|_, _| {}).unwrap()
}

#[test]
fn series_are_stored_and_a_changed_slice_makes_another_store() {
    let [good, bad, cache] = std::array::from_fn(|_| tempfile::tempdir().unwrap());
    Series::new().write(good.path());
    let mut gap = Series::new();
    gap.slices[2].position[2] += 2.0;
    gap.slices.push(Series::new().slices.remove(0));
    gap.slices[3].position[2] = 28.0;
    gap.write(bad.path());
    let (store, exclusions) = stored(&[good.path(), bad.path()], cache.path());
    assert_eq!((store.n(), store.size()), (1, [3, 4, 5].as_slice()));
    assert_eq!((exclusions.len(), exclusions[0].reason), (1, Reason::ImageUnreadable));
    assert!(exclusions[0].source.contains("a slice is missing: IM899.dcm and IM898.dcm"), "{}", exclusions[0].source);
    let StoredPixels::Volume(voxels) = store.pixels(0) else { panic!("a volume is expected") };
    let config = ImageConfig { size: vec![3, 4, 5], ..ImageConfig::default() };
    assert_eq!(prepare_image(good.path(), &config), Ok(Pixels::Volume(voxels.to_vec())));

    let before = store.path().to_owned();
    assert_eq!(stored(&[good.path(), bad.path()], cache.path()).0.path(), before, "nothing changed");
    // Of the same length, in a file that was there: the folder itself looks as before.
    let mut other = Series::new();
    other.slices[1].samples[7] += 1;
    let changed = tempfile::tempdir().unwrap();
    other.write(changed.path());
    std::fs::write(good.path().join("IM899.dcm"), std::fs::read(changed.path().join("IM899.dcm")).unwrap()).unwrap();
    assert_ne!(stored(&[good.path(), bad.path()], cache.path()).0.path(), before);
}
