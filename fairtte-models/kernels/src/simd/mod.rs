//! The choice of the instruction set of the kernels at run time.
//!
//! The same source is compiled once for each set; `vectorized!` and `run` pick one. A silent fallback to the baseline
//! costs a factor of about six (measured on an EfficientNet-B0 step with AVX-512), so a test compares the choice with
//! the CPU and `examples/kernels.rs` prints it.

#![expect(clippy::inline_always, reason = "only what is inlined is compiled for the instruction set")]

pub(crate) mod elementary;
pub(crate) mod lanes;
pub(crate) mod prefetch;
mod squares;

use std::sync::OnceLock;

/// Name of the environment variable that requests a set below the best one of this CPU: `avx512`, `avx2` or `baseline`.
pub const VARIABLE: &str = "FAIRTTE_ISA";

/// An instruction set that the kernels are compiled for, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum InstructionSet {
    /// x86-64-v4: vectors of 16 single-precision numbers.
    Avx512,
    /// x86-64-v3: vectors of 8, with fused multiply-add.
    Avx2,
    /// The set of every CPU of the target: SSE2 on x86-64, NEON on `AArch64`.
    Baseline,
}

impl InstructionSet {
    /// All sets, best first.
    pub const ALL: [Self; 3] = [Self::Avx512, Self::Avx2, Self::Baseline];

    /// The name that [`VARIABLE`] uses.
    pub fn name(self) -> &'static str {
        match self {
            Self::Avx512 => "avx512",
            Self::Avx2 => "avx2",
            Self::Baseline => "baseline",
        }
    }

    /// Whether this CPU has the set.
    pub fn is_available(self) -> bool {
        match self {
            #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
            Self::Avx512 => pulp::x86::V4::is_available(),
            #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
            Self::Avx2 => pulp::x86::V3::is_available(),
            #[cfg(not(any(target_arch = "x86", target_arch = "x86_64")))]
            Self::Avx512 | Self::Avx2 => false,
            Self::Baseline => true,
        }
    }

    /// The best set of this CPU.
    pub fn best() -> Self {
        Self::ALL.into_iter().find(|set| set.is_available()).unwrap_or(Self::Baseline)
    }

    /// The set that `request`, a value of [`VARIABLE`], names; `None` for an unknown name and for a set that this CPU
    /// does not have.
    pub fn requested(request: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|set| set.name() == request && set.is_available())
    }

    /// The set that every kernel of this process uses: the one that [`VARIABLE`] names at the first call, otherwise the
    /// best one.
    ///
    /// A request that cannot be met is ignored here; programs report it to their users with
    /// `fairtte_models::check_environment`.
    pub fn in_use() -> Self {
        static IN_USE: OnceLock<InstructionSet> = OnceLock::new();
        *IN_USE.get_or_init(|| {
            let request = std::env::var(VARIABLE).ok();
            request.as_deref().and_then(Self::requested).unwrap_or_else(Self::best)
        })
    }
}

/// SIMD vectors with a multiply-add, fused where the CPU has such an instruction.
pub(crate) trait Vectors: pulp::Simd {
    /// `a * b + c`, rounded once where the set has fused multiply-add and twice otherwise (rounding once would then be
    /// a call into the C library for every value).
    #[inline(always)]
    fn multiply_add(self, a: Self::f32s, b: Self::f32s, c: Self::f32s) -> Self::f32s {
        self.mul_add_f32s(a, b, c)
    }

    /// `value`, but `bound` where it is less; NaN is kept.
    #[inline(always)]
    fn at_least(self, value: Self::f32s, bound: f32) -> Self::f32s {
        let bound = self.splat_f32s(bound);
        self.select_f32s(self.less_than_f32s(value, bound), bound, value)
    }

    /// `value`, but `bound` where it is greater; NaN is kept.
    #[inline(always)]
    fn at_most(self, value: Self::f32s, bound: f32) -> Self::f32s {
        let bound = self.splat_f32s(bound);
        self.select_f32s(self.less_than_f32s(bound, value), bound, value)
    }

    /// The values at the even and those at the odd places of two vectors one after the other.
    #[inline(always)]
    fn deinterleave(self, [a, b]: [Self::f32s; 2]) -> [Self::f32s; 2] {
        let mut values = [0.0; 2 * lanes::LONGEST];
        lanes::store(self, &mut values, 0, a);
        lanes::store(self, &mut values, Self::F32_LANES, b);
        let [mut even, mut odd] = [[0.0; lanes::LONGEST]; 2];
        for lane in 0..Self::F32_LANES {
            even[lane] = values[2 * lane];
            odd[lane] = values[2 * lane + 1];
        }
        [lanes::load(self, &even, 0), lanes::load(self, &odd, 0)]
    }

    /// The reverse of [`deinterleave`](Self::deinterleave).
    #[inline(always)]
    fn interleave(self, [even, odd]: [Self::f32s; 2]) -> [Self::f32s; 2] {
        let [mut first, mut second] = [[0.0; lanes::LONGEST]; 2];
        lanes::store(self, &mut first, 0, even);
        lanes::store(self, &mut second, 0, odd);
        let mut values = [0.0; 2 * lanes::LONGEST];
        for lane in 0..Self::F32_LANES {
            values[2 * lane] = first[lane];
            values[2 * lane + 1] = second[lane];
        }
        [lanes::load(self, &values, 0), lanes::load(self, &values, Self::F32_LANES)]
    }

    /// Transposes the first rows of a square, as many as a vector has values.
    #[inline(always)]
    fn transpose(self, square: &mut [Self::f32s; lanes::LONGEST]) {
        squares::transpose(self, square);
    }
}

/// Work that is written once for vectors of any length. [`run_on`](Self::run_on) must be `#[inline(always)]`, as everything
/// in it that is to be compiled for the set.
pub(crate) trait Kernel {
    type Output;
    fn run_on<S: Vectors>(self, simd: S) -> Self::Output;
}

/// Runs `kernel` on the instruction set in use.
#[inline]
pub(crate) fn run<K: Kernel>(kernel: K) -> K::Output {
    match InstructionSet::in_use() {
        #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
        InstructionSet::Avx512 => match pulp::x86::V4::try_new() {
            Some(simd) => simd.vectorize(Call { kernel, simd }),
            None => kernel.run_on(PORTABLE),
        },
        #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
        InstructionSet::Avx2 => match pulp::x86::V3::try_new() {
            Some(simd) => simd.vectorize(Call { kernel, simd }),
            None => kernel.run_on(PORTABLE),
        },
        #[cfg(target_arch = "aarch64")]
        InstructionSet::Baseline => match pulp::aarch64::Neon::try_new() {
            Some(simd) => simd.vectorize(Call { kernel, simd }),
            None => kernel.run_on(PORTABLE),
        },
        _ => kernel.run_on(PORTABLE),
    }
}

/// Arrays of four values, which the compiler maps to the vectors of the target.
const PORTABLE: pulp::Scalar128b = pulp::Scalar128b;

/// Used instead of a closure, because only this is certain to be inlined into the function compiled for the set.
struct Call<K, S> {
    kernel: K,
    simd: S,
}

impl<K: Kernel, S: Vectors> pulp::NullaryFnOnce for Call<K, S> {
    type Output = K::Output;

    #[inline(always)]
    fn call(self) -> Self::Output {
        self.kernel.run_on(self.simd)
    }
}

/// The two bounds in one instruction each: of two operands, of which one is NaN, x86 returns the second.
macro_rules! bounds_of_x86 {
    () => {
        #[inline(always)]
        fn at_least(self, value: Self::f32s, bound: f32) -> Self::f32s {
            use pulp::Simd as _;
            self.max_f32s(self.splat_f32s(bound), value)
        }

        #[inline(always)]
        fn at_most(self, value: Self::f32s, bound: f32) -> Self::f32s {
            use pulp::Simd as _;
            self.min_f32s(self.splat_f32s(bound), value)
        }
    };
}

#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
impl Vectors for pulp::x86::V4 {
    bounds_of_x86!();

    #[inline(always)]
    fn deinterleave(self, pair: [Self::f32s; 2]) -> [Self::f32s; 2] {
        const EVEN: [u32; 16] = [0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30];
        const ODD: [u32; 16] = [1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31];
        [permuted(self, pair, EVEN), permuted(self, pair, ODD)]
    }

    #[inline(always)]
    fn interleave(self, pair: [Self::f32s; 2]) -> [Self::f32s; 2] {
        const FIRST: [u32; 16] = [0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23];
        const SECOND: [u32; 16] = [8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31];
        [permuted(self, pair, FIRST), permuted(self, pair, SECOND)]
    }

    #[inline(always)]
    fn transpose(self, square: &mut [Self::f32s; lanes::LONGEST]) {
        squares::transpose_16(self, square);
    }
}

/// The values of two vectors, one after the other, at some places.
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
#[inline(always)]
fn permuted(simd: pulp::x86::V4, [a, b]: [pulp::f32x16; 2], places: [u32; 16]) -> pulp::f32x16 {
    pulp::cast(simd.avx512f._mm512_permutex2var_ps(pulp::cast(a), pulp::cast(places), pulp::cast(b)))
}

#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
impl Vectors for pulp::x86::V3 {
    bounds_of_x86!();

    #[inline(always)]
    fn deinterleave(self, [a, b]: [Self::f32s; 2]) -> [Self::f32s; 2] {
        let (avx, [a, b]) = (self.avx, [pulp::cast(a), pulp::cast(b)]);
        // Each half has two pairs of either vector; the pairs are put in order.
        let [even, odd] = [avx._mm256_shuffle_ps::<0b10_00_10_00>(a, b), avx._mm256_shuffle_ps::<0b11_01_11_01>(a, b)];
        [even, odd].map(|pairs| pulp::cast(self.avx2._mm256_permute4x64_pd::<0b11_01_10_00>(pulp::cast(pairs))))
    }

    #[inline(always)]
    fn interleave(self, [even, odd]: [Self::f32s; 2]) -> [Self::f32s; 2] {
        let (avx, [even, odd]) = (self.avx, [pulp::cast(even), pulp::cast(odd)]);
        let [low, high] = [avx._mm256_unpacklo_ps(even, odd), avx._mm256_unpackhi_ps(even, odd)];
        // Each half of a vector has four values of the other's half.
        [
            pulp::cast(avx._mm256_permute2f128_ps::<0b0010_0000>(low, high)),
            pulp::cast(avx._mm256_permute2f128_ps::<0b0011_0001>(low, high)),
        ]
    }

    #[inline(always)]
    fn transpose(self, square: &mut [Self::f32s; lanes::LONGEST]) {
        squares::transpose_8(self, square);
    }
}

#[cfg(target_arch = "aarch64")]
impl Vectors for pulp::aarch64::Neon {}

impl Vectors for pulp::Scalar128b {
    #[inline(always)]
    fn multiply_add(self, a: Self::f32s, b: Self::f32s, c: Self::f32s) -> Self::f32s {
        use pulp::Simd as _;
        self.add_f32s(self.mul_f32s(a, b), c)
    }
}

/// Evaluates an expression compiled for the instruction set in use. Functions that it calls must be `#[inline(always)]`.
///
/// Each set has its own closure with a single call site, without which a long one would stay out of line and be compiled
/// for the baseline. The expression is repeated, so it should be short, such as a call.
macro_rules! vectorized {
    ($body:expr) => {{
        #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
        let result = match $crate::simd::levels() {
            (Some(simd), _) => simd.vectorize(
                #[inline(always)]
                || $body,
            ),
            (None, Some(simd)) => simd.vectorize(
                #[inline(always)]
                || $body,
            ),
            (None, None) => $body,
        };
        #[cfg(not(any(target_arch = "x86", target_arch = "x86_64")))]
        let result = $body;
        result
    }};
}
pub(crate) use vectorized;

/// Proof that a set above the baseline is available and in use.
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
#[inline]
pub(crate) fn levels() -> (Option<pulp::x86::V4>, Option<pulp::x86::V3>) {
    match InstructionSet::in_use() {
        InstructionSet::Avx512 => (pulp::x86::V4::try_new(), None),
        InstructionSet::Avx2 => (None, pulp::x86::V3::try_new()),
        InstructionSet::Baseline => (None, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<S: Vectors>(simd: S) {
        let values: Vec<f32> = (0..2 * S::F32_LANES).map(|place| place as f32).collect();
        let pair = [lanes::load(simd, &values, 0), lanes::load(simd, &values, S::F32_LANES)];
        let parts = simd.deinterleave(pair);
        for (remainder, part) in parts.into_iter().enumerate() {
            let mut found = vec![f32::NAN; S::F32_LANES];
            lanes::store(simd, &mut found, 0, part);
            let expected: Vec<f32> = values.iter().copied().skip(remainder).step_by(2).collect();
            assert_eq!(found, expected);
        }
        let mut found = vec![f32::NAN; values.len()];
        for (index, vector) in simd.interleave(parts).into_iter().enumerate() {
            lanes::store(simd, &mut found, index * S::F32_LANES, vector);
        }
        assert_eq!(found, values);
    }

    #[test]
    fn even_and_odd_places_are_divided_and_joined_again_on_every_set() {
        #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
        {
            let _ = pulp::x86::V4::try_new().map(check);
            let _ = pulp::x86::V3::try_new().map(check);
        }
        #[cfg(target_arch = "aarch64")]
        let _ = pulp::aarch64::Neon::try_new().map(check);
        check(PORTABLE);
    }
}
