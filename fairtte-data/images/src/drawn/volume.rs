//! A volume that looks like a head MRI (FLAIR: fluid dark, lesions bright): X = render(`X_Z`, `X_A`, nuisance).
//!
//! Coordinates are those of the head: x to the person's right, y forwards, z up; the volume spans [-1, 1] on each
//! axis. Only [`lesions`] reads the severity `X_Z`; only
//! [`Head::draw`] reads the attributes `X_A`:
//!
//! | attribute | trace in the volume |
//! |---|---|
//! | sex | size of the head |
//! | age | size of the ventricles, width of the furrows |
//! | race | the receiver's shading and gain, as when groups are scanned at different sites |
//!
//! The last row is an arbitrary mark, not a claim about people.

use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;

use super::shading::{SmoothField, bell, burden, edge, normal, scale_to_mean, spot_weight};
use super::{Attributes, Race};

/// Most lesions in a volume.
const MAX_LESIONS: usize = 16;
/// Mean brightness that lesions add to the brain when the burden is 1.
const FULL_BURDEN: f64 = 0.15;
/// Border of the brain as a share of the head's radius.
const BRAIN: f64 = 0.80;

/// A drawn volume before quantisation, `[depth, height, width]` in row-major order, and the position of its brain
/// and its disease.
#[derive(Clone, Debug)]
pub struct Volume {
    /// Brightness, nominally 0 to 1.
    pub brightness: Vec<f64>,
    /// 1 in the tissue of the brain, 0 in its fluid spaces and outside.
    pub brain: Vec<f64>,
    /// Brightness of tissue that the disease adds, >= 0.
    pub disease: Vec<f64>,
}

/// Draws a volume of `size` = `[depth, height, width]`; `x_z` is the
/// severity in standard deviations, `body` the stream of random numbers of the person, `rng` that of the image.
///
/// # Cost
/// Some hundred operations per voxel.
pub fn volume(size: [usize; 3], who: Attributes, x_z: f64, body: &mut ChaCha8Rng, rng: &mut ChaCha8Rng) -> Volume {
    let head = Head::draw(who, body);
    let pose = Pose::draw(rng);
    let spots = lesions(&head, burden(x_z), rng);

    let [depth, height, width] = size;
    let centre = |index: usize, side: usize| (2.0 * index as f64 + 1.0) / side as f64 - 1.0;
    let in_head: Vec<[f64; 3]> = (0..depth * height * width)
        .map(|voxel| {
            let (z, y, x) = (voxel / (height * width), voxel / width % height, voxel % width);
            pose.to_head([centre(x, width), centre(y, height), centre(z, depth)])
        })
        .collect();
    let brain: Vec<f64> =
        in_head.iter().map(|&place| edge(BRAIN - head.radius(place), 0.06) * (1.0 - head.ventricle(place))).collect();
    let shadows: Vec<f64> = in_head
        .iter()
        .zip(&brain)
        .map(|(&place, &brain)| if brain > 0.0 { brain * spots.at(place) } else { 0.0 })
        .collect();
    let scale = scale_to_mean(&shadows, &brain, spots.mean);
    let disease: Vec<f64> = shadows.iter().map(|shadow| scale * shadow).collect();

    let brightness = in_head
        .iter()
        .zip(&disease)
        .map(|(&place, &disease)| {
            let tissue = head.tissue(place) + disease;
            let lit = pose.gain * head.shading(place) * tissue;
            // Magnitude of a complex signal with noise in both parts.
            (lit + 0.025 * normal(rng)).hypot(0.025 * normal(rng))
        })
        .collect();
    Volume { brightness, brain, disease }
}

/// Orientation of the head and gain of the receiver.
struct Pose {
    /// Cosine and sine of the turn in the axial and in the sagittal plane.
    turn: [f64; 2],
    nod: [f64; 2],
    shift: [f64; 3],
    gain: f64,
}

impl Pose {
    fn draw(rng: &mut ChaCha8Rng) -> Self {
        let (turn, nod) = (0.05 * normal(rng), 0.05 * normal(rng));
        Self {
            turn: [turn.cos(), turn.sin()],
            nod: [nod.cos(), nod.sin()],
            shift: [0.02 * normal(rng), 0.02 * normal(rng), 0.02 * normal(rng)],
            gain: (0.012 * normal(rng)).exp(),
        }
    }

    fn to_head(&self, place: [f64; 3]) -> [f64; 3] {
        let [x, y, z] = [0, 1, 2].map(|axis| place[axis] - self.shift[axis]);
        let ([cos, sin], [nod_cos, nod_sin]) = (self.turn, self.nod);
        let (x, y) = (cos * x + sin * y, cos * y - sin * x);
        [x, nod_cos * y + nod_sin * z, nod_cos * z - nod_sin * y]
    }
}

/// The anatomy of one person, the same in all their volumes.
struct Head {
    /// Half axes of the outer surface.
    axes: [f64; 3],
    ventricles: f64,
    furrows: f64,
    /// Folds of the cortex.
    folds: SmoothField,
    /// Random fields of the skull's thickness and the scalp.
    bumps: SmoothField,
    shading_direction: [f64; 3],
    gain: f64,
}

impl Head {
    fn draw(who: Attributes, rng: &mut ChaCha8Rng) -> Self {
        let decades = f64::from(who.age) / 10.0 - 6.0;
        let size = if who.female { 0.955 } else { 1.0 } + 0.02 * normal(rng);
        let shape = 0.02 * normal(rng);
        let (shading_direction, gain) = match who.race {
            Race::White => ([0.0, 0.08, 0.0], 1.0),
            Race::Black => ([0.0, -0.08, 0.0], 1.03),
            Race::Asian => ([0.08, 0.0, 0.0], 0.98),
            Race::Other => ([-0.08, 0.0, 0.0], 1.01),
        };
        Self {
            axes: [0.76 * size * (1.0 + shape), 0.92 * size * (1.0 - shape), 0.94 * size],
            ventricles: (1.0 + 0.12 * decades + 0.06 * normal(rng)).max(0.5),
            furrows: (0.5 + 0.10 * decades + 0.05 * normal(rng)).clamp(0.1, 1.0),
            folds: SmoothField::draw(13, rng),
            bumps: SmoothField::draw(4, rng),
            shading_direction,
            gain,
        }
    }

    /// Distance from the centre as a share of the distance to the scalp.
    fn radius(&self, place: [f64; 3]) -> f64 {
        let scaled = self.scaled(place);
        // The base of the skull is flatter than its vault.
        let z = if scaled[2] < 0.0 { 1.12 * scaled[2] } else { scaled[2] };
        (scaled[0] * scaled[0] + scaled[1] * scaled[1] + z * z).sqrt()
    }

    fn scaled(&self, place: [f64; 3]) -> [f64; 3] {
        [0, 1, 2].map(|axis| place[axis] / self.axes[axis])
    }

    /// 1 inside the fluid spaces in the middle of the brain.
    fn ventricle(&self, place: [f64; 3]) -> f64 {
        let [x, y, z] = self.scaled(place);
        let v = self.ventricles;
        // A lateral ventricle bows outwards to the back.
        let middle = 0.11 * v.sqrt() + 0.10 * (0.1 - y).max(0.0);
        let bow = 0.14 - 0.5 * (y + 0.02) * (y + 0.02);
        let lateral =
            sq((x.abs() - middle) / (0.085 * v)) + sq((y + 0.04) / (0.42 * v.sqrt())) + sq((z - bow) / (0.16 * v));
        let third = sq(x / (0.045 * v)) + sq(y / 0.16) + sq((z + 0.12) / 0.16);
        edge(1.0 - lateral.sqrt(), 0.5).max(edge(1.0 - third.sqrt(), 0.5))
    }

    /// Brightness without disease, shading or noise.
    fn tissue(&self, place: [f64; 3]) -> f64 {
        let scaled = self.scaled(place);
        let radius = self.radius(place) + 0.012 * self.bumps.at(scaled);
        let outside = edge(1.0 - radius, 0.05);
        if outside <= 0.0 {
            return 0.02;
        }
        let scalp = edge(radius - 0.93, 0.05);
        let marrow = 0.16 * bell(sq((radius - 0.885) / 0.018));
        let brain = edge(BRAIN - radius, 0.05);
        let skull_and_fluid = 0.10 + marrow;
        let head = scalp * 0.72
            + (1.0 - scalp) * (brain * self.brain_tissue(scaled, radius, place) + (1.0 - brain) * skull_and_fluid);
        outside * head
    }

    /// Cortex, white matter, deep nuclei, furrows, midline, ventricles, cerebellum.
    fn brain_tissue(&self, scaled: [f64; 3], radius: f64, place: [f64; 3]) -> f64 {
        let [x, y, z] = scaled;
        let fold = self.folds.at(scaled.map(|c| 1.15 * c));
        let cortex = edge(radius - 0.64 - 0.05 * fold, 0.07);
        let nuclei = bell(sq((x.abs() - 0.27) / 0.09) + sq((y - 0.05) / 0.20) + sq((z - 0.02) / 0.13));
        let grey = cortex.max(0.8 * nuclei);
        let mut value = 0.42 + 0.14 * grey;
        let furrow = edge(0.16 * self.furrows - fold.abs() * 0.35, 0.08) * edge(radius - 0.62, 0.08);
        value -= 0.30 * self.furrows * furrow;
        let midline = bell(sq(x / 0.022)) * edge(radius - 0.45, 0.1) * edge(z + 0.15, 0.1);
        value -= 0.20 * midline;
        // The tent between cerebrum and cerebellum.
        let tent = bell(sq((z + 0.32 + 0.25 * (y + 0.25)) / 0.03)) * edge(-0.1 - y, 0.1);
        value -= 0.22 * tent;
        let fluid = self.ventricle(place);
        value * (1.0 - fluid) + 0.08 * fluid
    }

    /// Sensitivity of the receiver, 1 in the centre.
    fn shading(&self, place: [f64; 3]) -> f64 {
        let slope: f64 = (0..3).map(|axis| self.shading_direction[axis] * place[axis]).sum();
        self.gain * (1.0 + slope)
    }
}

fn sq(x: f64) -> f64 {
    x * x
}

/// Disease: bright spots in the white matter whose number, size and brightness grow with the burden.
struct Lesions {
    spots: Vec<Spot>,
    /// Mean brightness they add to the brain.
    mean: f64,
}

struct Spot {
    centre: [f64; 3],
    inverse_radius: f64,
    weight: f64,
}

/// Draws the lesions of a `burden` from 0 to 1; the number of draws does not depend on it.
fn lesions(head: &Head, burden: f64, rng: &mut ChaCha8Rng) -> Lesions {
    let count = 2.0 + 13.0 * burden;
    let spots = (0..MAX_LESIONS)
        .map(|index| {
            let direction = [normal(rng), normal(rng), 0.6 * normal(rng)];
            let length = direction.iter().map(|d| d * d).sum::<f64>().sqrt().max(1e-9);
            let radius = 0.26 + 0.34 * rng.random::<f64>();
            let mut centre = [0, 1, 2].map(|axis| head.axes[axis] * radius * direction[axis] / length);
            centre[2] += 0.12;
            let size = (0.075 + 0.05 * burden) * (0.2 * normal(rng)).exp();
            let weight = spot_weight(index, count) * (0.2 * normal(rng)).exp();
            Spot { centre, inverse_radius: 1.0 / size, weight }
        })
        .collect();
    Lesions { spots, mean: FULL_BURDEN * burden * (0.03 * normal(rng)).exp() }
}

impl Lesions {
    fn at(&self, place: [f64; 3]) -> f64 {
        let one = |spot: &Spot| {
            let squared: f64 = (0..3).map(|axis| sq((place[axis] - spot.centre[axis]) * spot.inverse_radius)).sum();
            spot.weight * bell(squared)
        };
        let summed: f64 = self.spots.iter().filter(|spot| spot.weight > 0.0).map(one).sum();
        // Where lesions overlap, tissue is replaced completely at most.
        1.0 - (-summed).exp()
    }
}
