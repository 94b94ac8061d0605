//! The pixels of a mask that border on what is outside, and their distances from the surface of another mask.

use super::MaskGrid;
use super::distance_transform::distances;

/// The pixels of `mask` with a neighbour outside it along an axis; beyond the grid is outside. `mask` is `[n_pixels]`.
///
/// The same as `mask ^ binary_erosion(mask)` of scipy with its default structure, apart from axes of extent 1, which have no
/// neighbours here.
pub(super) fn surface(grid: &MaskGrid, mask: &[bool]) -> Vec<bool> {
    let (extents, strides) = (grid.all_extents(), grid.strides());
    let axes: Vec<usize> = (0..3).filter(|axis| extents[*axis] > 1).collect();
    let borders = |place: usize| {
        axes.iter().any(|&axis| {
            let (at, stride) = (place / strides[axis] % extents[axis], strides[axis]);
            at == 0 || at + 1 == extents[axis] || !mask[place - stride] || !mask[place + stride]
        })
    };
    // A single pixel along every axis is a surface by itself.
    mask.iter().enumerate().map(|(place, inside)| *inside && (axes.is_empty() || borders(place))).collect()
}

/// The distance of every pixel of the surface `from` to the nearest pixel of the surface `to`.
pub(super) fn distances_between(grid: &MaskGrid, from: &[bool], to: &[bool]) -> Vec<f64> {
    let nearest = distances(grid, to);
    from.iter().zip(nearest).filter(|(is_surface, _)| **is_surface).map(|(_, distance)| distance).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(extents: &[usize], mask: &str) -> String {
        let grid = MaskGrid::new(extents, &vec![1.0; extents.len()]).unwrap();
        let mask: Vec<bool> = mask.chars().filter(|c| !c.is_whitespace()).map(|c| c == '#').collect();
        surface(&grid, &mask).into_iter().map(|is_surface| if is_surface { '#' } else { '.' }).collect()
    }

    #[test]
    fn a_surface_has_a_neighbour_outside_along_an_axis_and_the_edge_of_the_image_is_outside() {
        let mask = "##### ##### ##### ##..# .....";
        assert_eq!(shown(&[5, 5], mask), ["#####", "#...#", "#.###", "##..#", "....."].concat());
        assert_eq!(shown(&[3, 3], "### ### ###"), "####.####");
        // A corner is no neighbour.
        assert_eq!(shown(&[3, 3], ".## ### ###"), ".###.####");
    }

    #[test]
    fn an_axis_of_one_pixel_has_no_outside_and_a_volume_has_six_neighbours() {
        assert_eq!(shown(&[3, 1, 3], "### ### ###"), "####.####");
        assert_eq!(shown(&[1, 1], "#"), "#");
        let cube = shown(&[3, 3, 3], &"#".repeat(27));
        assert_eq!(cube.matches('.').count(), 1, "{cube}");
        assert_eq!(cube.chars().nth(13), Some('.'));
    }
}
