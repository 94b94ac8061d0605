//! One line that describes how image files become pixels: decoders with versions, rules, filter. It is part of the
//! fingerprint and of the header of a store, so that pixels made differently are never mistaken for the same.

use super::{ImageConfig, picture};

/// Incremented when the pixels change although no version below does.
const REVISION: u32 = 2;

/// Describes how images are decoded and resized with these settings.
///
/// ```
/// use fairtte_images::{ImageConfig, recipe};
///
/// let config = ImageConfig { size: vec![224, 224], ..ImageConfig::default() };
/// assert!(recipe(&config).contains("224 x 224"));
/// assert_ne!(recipe(&config), recipe(&ImageConfig { exact: true, ..config.clone() }));
/// ```
pub fn recipe(config: &ImageConfig) -> String {
    let size = config.size.iter().map(usize::to_string).collect::<Vec<_>>().join(" x ");
    // Named as when the decoders were part of fairtte-data, so that stores made then are found again.
    let version = env!("CARGO_PKG_VERSION");
    if config.is_mask {
        let decoders = picture::decoders(true);
        return format!(
            "revision {REVISION}; mask: fairtte-data {version}, {decoders}, nifti 0.18.0; resized to {size} by the nearest neighbour; \
             classes of 8 bits"
        );
    }
    if config.is_volume() {
        let series = if cfg!(feature = "dicom") { "; dicom series" } else { "" };
        return format!(
            "revision {REVISION}; volume: fairtte-data {version}, nifti 0.18.0{series}; {:?}, {:?}; resized to {size}, \
             fast_image_resize 6.1.0; 16 bits",
            config.volume.range, config.volume.resample
        );
    }
    let resize = format!("resized to {size} by an antialiased triangle filter, fast_image_resize 6.1.0");
    let decoders = picture::decoders(config.exact);
    let colours = if config.channels == 1 { "gray by BT.601 luma" } else { "RGB" };
    format!("revision {REVISION}; picture: fairtte-data {version}, {decoders}; upright, {colours}; {resize}; 8 bits")
}

#[cfg(test)]
#[expect(clippy::print_stdout, reason = "a skipped test says so")]
mod tests {
    use super::*;

    /// Every `crate 1.2.3` named in a recipe.
    fn versions(recipe: &str) -> Vec<(String, String)> {
        let words: Vec<&str> = recipe.split([' ', ',', ';']).filter(|word| !word.is_empty()).collect();
        let is_version = |word: &str| word.split('.').count() == 3 && word.split('.').all(|n| n.parse::<u32>().is_ok());
        let pairs = words.windows(2).filter(|pair| is_version(pair[1]));
        pairs.map(|pair| (pair[0].to_owned(), pair[1].to_owned())).collect()
    }

    #[test]
    fn the_versions_named_are_those_that_are_locked() {
        let lock = concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.lock");
        let Ok(lock) = std::fs::read_to_string(lock) else {
            println!("skipped: the crate is not in its workspace");
            return;
        };
        let volume = ImageConfig { size: vec![8, 8, 8], ..ImageConfig::default() };
        let named = [ImageConfig::default(), ImageConfig::default().of_masks(), volume]
            .map(|config| versions(&recipe(&config)))
            .concat();
        assert!(named.len() >= 6, "{named:?}");
        for (name, version) in named {
            if name == "fairtte-data" {
                continue;
            }
            let entry = format!("name = \"{name}\"\nversion = \"{version}\"\n");
            assert!(lock.contains(&entry), "{name} {version} is not what Cargo.lock has");
        }
    }

    #[test]
    fn every_setting_that_changes_pixels_changes_the_recipe() {
        let base = ImageConfig::default();
        let recipes = [
            recipe(&base),
            recipe(&ImageConfig { exact: true, ..base.clone() }),
            recipe(&ImageConfig { channels: 3, ..base.clone() }),
            recipe(&ImageConfig { size: vec![64, 65], ..base.clone() }),
            recipe(&base.of_masks()),
            recipe(&ImageConfig { size: vec![64, 64, 64], ..base }),
        ];
        for (i, one) in recipes.iter().enumerate() {
            assert!(recipes[..i].iter().all(|other| other != one), "{one}");
        }
    }
}
