//! Sizes of blocks from the caches of the processor, found at run time.
//!
//! Only sizes on which no result depends follow the caches: how many rows and columns of a product are packed at a time, and how many
//! columns or tiles make a task. How many steps of a sum are added at once is fixed, because it decides the last bits:
//! processors with the same instruction set give the same numbers, whatever their caches.
//!
//! The sizes were chosen on a processor with 1 MiB of L2 per core and scale with it. A size matters little near its best: at half
//! and twice the size layers take at most a few per cent more (`examples/kernels.rs --caches` prints the table of this machine).

use std::sync::OnceLock;

/// Name of the environment variable that states the L2 cache of a core, for example `512K` or `2M`, in place of the one found.
pub const VARIABLE: &str = "FAIRTTE_L2";

/// L2 of the processor on which the sizes were chosen, and that of one that does not say it.
const USUAL: usize = 1 << 20;

/// Sizes of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocks {
    /// L2 cache of a core in bytes from which the others follow.
    pub l2: usize,
    /// Rows of the left factor that are packed at a time, a multiple of the rows of every tile.
    pub rows: usize,
    /// Columns of the right factor that are packed at a time.
    pub columns: usize,
    /// Columns of a task of a dense convolution, about.
    pub task_columns: usize,
    /// Values in the transforms of the inputs of a task of Winograd's convolution, about.
    pub transformed: usize,
}

impl Blocks {
    /// Those for cores with `l2` bytes of L2 cache.
    pub fn of(l2: usize) -> Self {
        // Beyond these limits a task is too small for its overhead, or there are too few tasks.
        let l2 = l2.clamp(USUAL / 4, 4 * USUAL);
        let scaled = |size: usize, step: usize| (size * (l2 / 1024) / (USUAL / 1024)).next_multiple_of(step);
        Self {
            l2,
            rows: scaled(168, 42),
            columns: scaled(1024, 32),
            task_columns: scaled(800, 32),
            transformed: scaled(1 << 19, 16),
        }
    }

    /// Those that every kernel of this process uses: of the cache that [`VARIABLE`] states at the first call, otherwise of the
    /// one found, otherwise of 1 MiB. A value of the variable that cannot be read is ignored here; programs report it
    /// to their users with `fairtte_models::check_environment`.
    pub fn in_use() -> Self {
        static IN_USE: OnceLock<Blocks> = OnceLock::new();
        *IN_USE.get_or_init(|| {
            let stated = std::env::var(VARIABLE).ok().and_then(|text| bytes(&text));
            Self::of(stated.or_else(found).unwrap_or(USUAL))
        })
    }
}

/// A number of bytes as `512K`, `2M` or `1048576`; `None` for anything else, and for 0.
pub fn bytes(text: &str) -> Option<usize> {
    let text = text.trim();
    let (digits, unit) = match text.strip_suffix(['K', 'k']) {
        Some(digits) => (digits, 1 << 10),
        None => text.strip_suffix(['M', 'm']).map_or((text, 1), |digits| (digits, 1 << 20)),
    };
    digits.parse::<usize>().ok()?.checked_mul(unit).filter(|&bytes| bytes > 0)
}

/// The smallest L2 cache of a core: threads run on any of them. Linux says it in `/sys`.
fn found() -> Option<usize> {
    let cores = std::fs::read_dir("/sys/devices/system/cpu").ok()?;
    let of_core = |core: std::fs::DirEntry| {
        let caches = std::fs::read_dir(core.path().join("cache")).ok()?;
        let size = |cache: std::fs::DirEntry| {
            let read = |name: &str| std::fs::read_to_string(cache.path().join(name)).ok();
            (read("level")?.trim() == "2" && read("type")?.trim() != "Instruction").then(|| bytes(&read("size")?))?
        };
        caches.flatten().find_map(size)
    };
    cores.flatten().filter_map(of_core).min()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::print_stdout, reason = "a test that runs itself reads what it prints")]

    use std::process::Command;

    use super::*;
    use crate::conv::{self, ConvShape};
    use crate::{Activation, linear};

    #[test]
    fn the_sizes_of_the_usual_cache_are_those_that_were_chosen_on_it_and_others_scale() {
        let usual = Blocks::of(1 << 20);
        let expected = Blocks { l2: 1 << 20, rows: 168, columns: 1024, task_columns: 800, transformed: 1 << 19 };
        assert_eq!(usual, expected);
        let large = Blocks::of(2 << 20);
        assert_eq!((large.rows, large.columns, large.task_columns, large.transformed), (336, 2048, 1600, 1 << 20));
        // 84 rows, 512 columns; 400 columns of a task are rounded up to whole tiles.
        let small = Blocks::of(512 << 10);
        assert_eq!((small.rows, small.columns, small.task_columns, small.transformed), (84, 512, 416, 1 << 18));
        assert_eq!(Blocks::of(1), Blocks::of(256 << 10));
        assert_eq!(Blocks::of(usize::MAX), Blocks::of(4 << 20));
    }

    /// The bits of convolutions and products that are larger than the blocks of every cache, mixed into one number.
    fn digest() -> u64 {
        let wave =
            |n: usize| -> Vec<f32> { (0..n).map(|i| ((i * 2_654_435_761) % 1_000_003) as f32 / 5e5 - 1.0).collect() };
        let mut bits = 0xcbf2_9ce4_8422_2325_u64;
        let mut mix = |values: &[f32]| {
            for value in values {
                bits = (bits ^ u64::from(value.to_bits())).wrapping_mul(0x0100_0000_01b3);
            }
        };
        // Winograd, with a stride, and of one element; more columns than a task and more rows than a block has.
        for (inputs, outputs, side, kernel, stride) in [(48, 200, 40, 3, 1), (40, 190, 41, 3, 2), (70, 180, 46, 1, 1)] {
            let shape = ConvShape {
                batch: 2,
                inputs,
                outputs,
                size: [1, side, side],
                kernel: [1, kernel, kernel],
                stride: [1, stride, stride],
                padding: [0, kernel / 2, kernel / 2],
                groups: 1,
            };
            let [of_x, of_weight, of_y] = shape.lengths();
            let (x, weight, mut y) = (wave(of_x), wave(of_weight), vec![0.0; of_y]);
            let (mut dx, mut dw) = (vec![0.0; of_x], vec![0.0; of_weight]);
            conv::forward(&x, &weight, None, Activation::Relu, &shape, &mut y);
            conv::gradients(&x, &weight, &wave(of_y), &shape, Some(&mut dx), Some(&mut dw));
            for values in [y, dx, dw] {
                mix(&values);
            }
        }
        let sizes @ [rows, inputs, outputs] = [400, 500, 2300];
        let mut y = vec![0.0; rows * outputs];
        linear::forward(&wave(rows * inputs), &wave(inputs * outputs), sizes, None, Activation::Identity, &mut y);
        mix(&y);
        bits
    }

    #[test]
    fn no_bit_of_a_result_depends_on_the_caches() {
        if std::env::var_os(VARIABLE).is_some() {
            return println!("digest {:016x} with {:?}", digest(), Blocks::in_use());
        }
        let program = std::env::current_exe().expect("the test binary knows its path");
        let of_cache = |l2: &str| {
            let mut command = Command::new(&program);
            command.args(["--exact", "blocks::tests::no_bit_of_a_result_depends_on_the_caches", "--nocapture"]);
            let run = command.env(VARIABLE, l2).output().expect("the test binary starts");
            let text = String::from_utf8_lossy(&run.stdout).into_owned();
            let line = text.lines().find_map(|line| Some(line.split_once("digest ")?.1.to_owned()));
            line.unwrap_or_else(|| panic!("{l2}: {text}"))
        };
        let found = ["256K", "512K", "1M", "2M", "4M"].map(of_cache);
        let digests: Vec<&str> = found.iter().map(|line| &line[..16]).collect();
        assert!(digests.iter().all(|digest| *digest == digests[0]), "{found:?}");
        assert!(found[0] != found[4], "the sizes of blocks are the same: {found:?}");
    }

    #[test]
    fn sizes_of_caches_are_read_as_the_system_and_people_write_them() {
        assert_eq!(["1024K\n", "2M", "512k", "1048576"].map(bytes), [1 << 20, 2 << 20, 512 << 10, 1 << 20].map(Some));
        assert_eq!(["", "K", "0", "-1", "1G", "2 M", "99999999999999999999"].map(bytes), [None; 7]);
    }
}
