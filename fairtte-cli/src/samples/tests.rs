//! The contact sheet of small pictures in a temporary folder.
#![expect(clippy::unwrap_used, reason = "a failed test may panic")]

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use super::*;
use crate::prepared::{Care, prepare};
use crate::run_folder::OpenRun;

/// A run on 40 pictures of 12 x 12, of which every fourth has no sex; `shade` gives the pixels of a picture.
fn prepared(folder: &Path, sets: &[&str], shade: impl Fn(u32, u32, u32) -> u8) -> (OpenRun, Prepared) {
    let mut table = "image,subject_id,time,event,sex\n".to_owned();
    for row in 0..40_u32 {
        let picture = image::GrayImage::from_fn(12, 12, |x, y| image::Luma([shade(row, x, y)]));
        picture.save(folder.join(format!("{row}.png"))).unwrap();
        let sex = ["F", "M", "F", ""][row as usize % 4];
        writeln!(table, "{row}.png,p{row},{},{},{sex}", f64::from(row) / 4.0 + 1.0, row % 2).unwrap();
    }
    std::fs::write(folder.join("table.csv"), table).unwrap();
    let text = format!(
        "name = \"small\"\noutput = '{0}/run'\ncache = '{0}/cache'\n[data.generic]\ntable = '{0}/table.csv'\n\
         time-unit = \"years\"\n[[attribute]]\nname = \"sex\"\n[image]\nsize = [12, 12]\nchannels = 1\n",
        folder.display()
    );
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    let open = OpenRun::for_preparation(RunFile::from_text(&text, "run.toml", &sets).unwrap()).unwrap();
    let prepared = prepare(&open, Care::Usual).unwrap();
    (open, prepared)
}

fn gradient(row: u32, x: u32, y: u32) -> u8 {
    u8::try_from((row * 5 + x * 7 + y * 3) % 256).unwrap()
}

#[test]
fn every_group_and_part_has_as_many_samples_as_asked_for_each_once() {
    let folder = tempfile::tempdir().unwrap();
    let (open, prepared) = prepared(folder.path(), &["augmentation.rotation=15"], gradient);
    let page = page(&open.file, &prepared, 3).unwrap();
    let [sex] = page.attributes.as_slice() else { panic!("one attribute") };
    let names: Vec<&str> = sex.groups.iter().map(|group| group.name.as_str()).collect();
    assert_eq!(names, ["F", "M", "no value"]);
    let sizes = |part: usize| sex.groups.iter().map(|group| group.parts[part].n).sum::<usize>();
    assert_eq!([sizes(0), sizes(1), sizes(2)], [24, 8, 8], "no sample is lost");
    let mut shown = [0; 3];
    for group in &sex.groups {
        for (part, n_views) in group.parts.iter().zip([3, 1, 1]) {
            assert_eq!(part.samples.len(), part.n.min(3), "{} {}", group.name, part.name);
            let ids: BTreeSet<&str> = part.samples.iter().map(|sample| sample.id.as_str()).collect();
            assert_eq!(ids.len(), part.samples.len(), "a sample is shown twice");
            for sample in &part.samples {
                let views: Vec<&str> = sample.views.iter().map(|view| view.name).collect();
                assert_eq!(views, ["without augmentation", "epoch 1", "epoch 2"][..n_views]);
                let row: usize = sample.id.trim_end_matches(".png").parse().unwrap();
                let of_row = ["F", "M", "F", "no value"][row % 4];
                assert_eq!((sample.group.as_str(), group.name.as_str()), (of_row, of_row));
                let what = ["censored", "event"][row % 2];
                assert_eq!(sample.outcome, format!("{what} at {} years", row as f64 / 4.0 + 1.0));
            }
            shown[Part::ALL.iter().position(|found| found.name() == part.name).unwrap()] += part.samples.len();
        }
    }
    let ranges: Vec<(&str, usize)> = page.ranges.iter().map(|row| (row.name, row.n)).collect();
    let [train, validation, test] = shown;
    assert_eq!(ranges, [("train", train), ("train, augmented", 2 * train), ("validation", validation), ("test", test)]);
}

#[test]
fn draws_are_those_of_the_training_and_other_views_are_cropped_to_the_centre() {
    let folder = tempfile::tempdir().unwrap();
    let sets = ["augmentation.crop=[8, 8]", "augmentation.rotation=15", "training-seed=5", "intensity=unit"];
    let (open, prepared) = prepared(folder.path(), &sets, gradient);
    let page = page(&open.file, &prepared, 2).unwrap();
    let (loader, _) = prepared.loader(&open.file, vec![None; 40]).unwrap();
    let train = prepared.split.rows(Part::Train);
    for (epoch, view) in [(0, 1), (1, 2)] {
        // Whole batches, as the training makes them.
        for batch in loader.batches(train, 7, &Sampling::Shuffled, 5, epoch).unwrap() {
            for (at, id) in batch.sample_ids.iter().enumerate() {
                let samples = page.attributes[0].groups.iter().flat_map(|group| &group.parts[0].samples);
                for sample in samples.filter(|sample| sample.id == id.as_str()) {
                    let pixels = &batch.pixels[at * 64..(at + 1) * 64];
                    let mean = pixels.iter().copied().map(f64::from).sum::<f64>() / 64.0;
                    assert_eq!(sample.views[view].range.mean.to_bits(), mean.to_bits(), "{id} in epoch {epoch}");
                }
            }
        }
    }
    let test = &page.attributes[0].groups[0].parts[2].samples[0];
    let row: u32 = test.id.trim_end_matches(".png").parse().unwrap();
    let centre = (2..10).flat_map(|y| (2..10).map(move |x| f64::from(gradient(row, x, y)) / 255.0));
    assert!((test.views[0].range.mean - centre.sum::<f64>() / 64.0).abs() < 1e-6);
    assert_eq!((test.views.len(), test.views[0].planes[0].height, test.views[0].planes[0].width), (1, 144, 144));
}

#[test]
fn a_constant_picture_shows_in_the_stated_range() {
    let folder = tempfile::tempdir().unwrap();
    // 51 is 0.2 of the full scale, which enters the model as (0.2 - 0.5) / 0.5.
    let (open, prepared) = prepared(folder.path(), &["intensity=symmetric"], |_, _, _| 51);
    let html = contact_sheet(&open.file, &prepared, 1).unwrap();
    let cells = "<td>-0.600</td><td>-0.600</td><td>-0.600</td><td>0.200</td><td>0.200</td><td>0.200</td>";
    for part in ["train", "validation", "test"] {
        assert!(html.contains(&format!("<th scope=\"row\">{part}</th><td>3</td>{cells}</tr>")), "{part}");
    }
    assert!(html.contains("No augmentation is set") && !html.contains("epoch 1"));
    assert!(html.contains("<span>-0.600 to -0.600</span><span>mean -0.600</span>"));
}

#[test]
fn another_seed_shows_other_samples_and_the_same_seed_the_same_page() {
    let folder = tempfile::tempdir().unwrap();
    let (open, prepared) = prepared(folder.path(), &[], gradient);
    let ids = |run: &RunFile| {
        let page = page(run, &prepared, 2).unwrap();
        let parts = page.attributes.into_iter().flat_map(|a| a.groups).flat_map(|group| group.parts);
        parts.flat_map(|part| part.samples).map(|sample| sample.id).collect::<Vec<_>>()
    };
    assert_eq!(ids(&open.file), ids(&open.file));
    assert_ne!(ids(&open.file), ids(&RunFile { seed: 2, ..open.file.clone() }));
}

#[test]
fn without_attributes_all_samples_are_one_group() {
    let folder = tempfile::tempdir().unwrap();
    let (open, prepared) = prepared(folder.path(), &["attribute=[]"], gradient);
    let page = page(&open.file, &prepared, 2).unwrap();
    assert_eq!((page.attributes.len(), page.attributes[0].name.as_str()), (1, "all samples"));
    assert_eq!(page.attributes[0].groups[0].parts[0].samples.len(), 2);
}
