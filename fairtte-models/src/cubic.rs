//! Cubic interpolation of a line: weights of four source points for each place (Keys 1981, A = -0.75).
//!
//! Place `i` of `to` is at `(i + 1/2) from / to - 1/2` of the source (half-pixel centres), and sources beyond the ends
//! are the last ones, as in PyTorch's bicubic interpolation without anti-aliasing (`align_corners=False`). Used for the
//! positions of a vision transformer on import (`weights/positions.rs`) and in every pass with another picture size
//! (`vit.rs`).

/// Four source points with their weights, for each of `to` points.
pub(crate) fn taps(from: usize, to: usize) -> Vec<[(usize, f64); 4]> {
    const A: f64 = -0.75;
    let near = |x: f64| ((A + 2.0) * x - (A + 3.0)) * x * x + 1.0;
    let far = |x: f64| ((A * x - 5.0 * A) * x + 8.0 * A) * x - 4.0 * A;
    let last = from - 1;
    let of_place = |place: usize| {
        let position = (place as f64 + 0.5) * from as f64 / to as f64 - 0.5;
        let (floor, t) = (position.floor(), position - position.floor());
        [(-1.0, far(t + 1.0)), (0.0, near(t)), (1.0, near(1.0 - t)), (2.0, far(2.0 - t))].map(|(step, weight)| {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to the line")]
            let source = (floor + step).clamp(0.0, last as f64) as usize;
            (source, weight)
        })
    };
    (0..to).map(of_place).collect()
}
