//! Turning a picture upright by its EXIF orientation: a permutation of pixels, never an interpolation.

use super::{DecodedPicture, Picture, Samples};

/// The position, in the stored picture of `width` x `height`, of the pixel at `column`, `row` of the upright one.
fn stored_place(orientation: u8, [width, height]: [usize; 2], [column, row]: [usize; 2]) -> [usize; 2] {
    // Whether rows become columns, and whether the stored picture is read from the right or from the bottom.
    let (transposed, from_right, from_bottom) = match orientation {
        2 => (false, true, false),
        3 => (false, true, true),
        4 => (false, false, true),
        5 => (true, false, false),
        6 => (true, false, true),
        7 => (true, true, true),
        8 => (true, true, false),
        _ => (false, false, false),
    };
    let (x, y) = if transposed { (row, column) } else { (column, row) };
    [if from_right { width - 1 - x } else { x }, if from_bottom { height - 1 - y } else { y }]
}

impl Picture {
    /// The picture with EXIF `orientation` (1 to 8) undone.
    pub(super) fn upright(self, orientation: u8) -> Self {
        if !(2..=8).contains(&orientation) {
            return self;
        }
        let stored = [self.width, self.height];
        let [width, height] = if orientation >= 5 { [self.height, self.width] } else { stored };
        let mut pixels = Vec::with_capacity(self.pixels.len());
        for row in 0..height {
            for column in 0..width {
                let [x, y] = stored_place(orientation, stored, [column, row]);
                let begin = (y * self.width + x) * self.channels;
                pixels.extend_from_slice(&self.pixels[begin..begin + self.channels]);
            }
        }
        Self { width, height, channels: self.channels, pixels }
    }
}

impl DecodedPicture {
    /// The samples of the stored pixel at `[column, row]`; `None` outside of the picture.
    pub fn stored_at(&self, [column, row]: [usize; 2]) -> Option<Vec<f64>> {
        if column >= self.width || row >= self.height {
            return None;
        }
        let begin = (row * self.width + column) * self.n_channels();
        let places = begin..begin + self.n_channels();
        Some(match &self.samples {
            Samples::U8(samples) => samples[places].iter().map(|sample| f64::from(*sample)).collect(),
            Samples::U16(samples) => samples[places].iter().map(|sample| f64::from(*sample)).collect(),
            Samples::I16(samples) => samples[places].iter().map(|sample| f64::from(*sample)).collect(),
        })
    }

    /// The samples of the pixel at `[column, row]` once the picture is upright; `None` outside of it.
    pub fn upright_at(&self, place: [usize; 2]) -> Option<Vec<f64>> {
        let size = self.oriented_size();
        if place[0] >= size[0] || place[1] >= size[1] {
            return None;
        }
        self.stored_at(stored_place(self.orientation, [self.width, self.height], place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The letter F, asymmetric in every direction, as each orientation stores it (EXIF 2.3, section 4.6.4).
    #[test]
    fn each_of_the_eight_orientations_gives_the_same_upright_letter() {
        let upright = ["##", "# ", "# "];
        let stored = [
            (1, vec!["##", "# ", "# "]),
            (2, vec!["##", " #", " #"]),
            (3, vec![" #", " #", "##"]),
            (4, vec!["# ", "# ", "##"]),
            (5, vec!["###", "#  "]),
            (6, vec!["#  ", "###"]),
            (7, vec!["  #", "###"]),
            (8, vec!["###", "  #"]),
        ];
        let letter = |rows: &[&str]| {
            let (width, height) = (rows[0].len(), rows.len());
            Picture { width, height, channels: 1, pixels: rows.concat().into_bytes() }
        };
        for (orientation, rows) in stored {
            assert_eq!(letter(&rows).upright(orientation), letter(&upright), "orientation {orientation}");
        }
    }

    #[test]
    fn the_channels_of_a_pixel_stay_together() {
        let picture = Picture { width: 2, height: 1, channels: 3, pixels: vec![1, 2, 3, 4, 5, 6] };
        assert_eq!(picture.upright(6), Picture { width: 1, height: 2, channels: 3, pixels: vec![1, 2, 3, 4, 5, 6] });
    }
}
