//! Turning a picture upright by its EXIF orientation: a permutation of pixels, never an interpolation.

use super::Picture;

impl Picture {
    /// The picture with EXIF `orientation` (1 to 8) undone.
    pub(super) fn upright(self, orientation: u8) -> Self {
        // Whether rows become columns, and whether the stored picture is read from its right side or from its bottom.
        let (transposed, from_right, from_bottom) = match orientation {
            2 => (false, true, false),
            3 => (false, true, true),
            4 => (false, false, true),
            5 => (true, false, false),
            6 => (true, false, true),
            7 => (true, true, true),
            8 => (true, true, false),
            _ => return self,
        };
        let (width, height) = if transposed { (self.height, self.width) } else { (self.width, self.height) };
        let mut pixels = Vec::with_capacity(self.pixels.len());
        for row in 0..height {
            for column in 0..width {
                let (x, y) = if transposed { (row, column) } else { (column, row) };
                let x = if from_right { self.width - 1 - x } else { x };
                let y = if from_bottom { self.height - 1 - y } else { y };
                let begin = (y * self.width + x) * self.channels;
                pixels.extend_from_slice(&self.pixels[begin..begin + self.channels]);
            }
        }
        Self { width, height, channels: self.channels, pixels }
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
