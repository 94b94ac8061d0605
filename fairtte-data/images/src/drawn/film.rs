//! A picture that looks like a frontal chest film: X = render(`X_Z`, `X_A`, nuisance).
//!
//! Brightness is attenuation. Coordinates of the body: x from -1 (viewer's left) to 1, y from -1 (neck) to 1
//! (abdomen). Only [`opacities`] reads the severity `X_Z`; only [`Body::draw`] reads the attributes `X_A`:
//!
//! | attribute | trace in the picture |
//! |---|---|
//! | sex | breast shadows over the lower lungs, narrower chest |
//! | age | paler bones, wider aorta, calcified costal cartilage |
//! | race | the side marker's corner and the film's contrast, as when groups are filmed at different sites |
//!
//! The last row is an arbitrary mark, not a claim about people.

use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;

use super::shading::{SmoothField, bell, burden, edge, normal, scale_to_mean, spot_weight};
use super::{Attributes, Race};

/// Most opacities in a picture.
const MAX_OPACITIES: usize = 18;
/// Mean brightness that opacities add to the lungs when the burden is 1.
const FULL_BURDEN: f64 = 0.35;
/// Lung apex in body coordinates.
const LUNG_TOP: f64 = -0.74;

/// A drawn film before quantisation, row by row, and the position of its lungs and its disease.
#[derive(Clone, Debug)]
pub struct Film {
    /// Brightness, nominally 0 to 1.
    pub brightness: Vec<f64>,
    /// 1 inside the lung fields, 0 outside, in between at their edge.
    pub lungs: Vec<f64>,
    /// Attenuation that the disease adds, >= 0.
    pub disease: Vec<f64>,
}

/// Draws a film of `size` = `[height, width]`; `x_z` is the
/// severity in standard deviations, `body` the stream of random numbers of the person, `rng` that of the image.
///
/// # Cost
/// Some hundred operations per pixel.
pub fn film(size: [usize; 2], who: Attributes, x_z: f64, body: &mut ChaCha8Rng, rng: &mut ChaCha8Rng) -> Film {
    let body = Body::draw(who, body);
    let pose = Pose::draw(rng);
    let spots = opacities(&body, burden(x_z), rng);
    let unevenness = SmoothField::draw(4, rng);
    let texture = SmoothField::draw(14, rng);

    let [height, width] = size;
    let centre = |index: usize, side: usize| (2.0 * index as f64 + 1.0) / side as f64 - 1.0;
    let places: Vec<[f64; 2]> =
        (0..height * width).map(|pixel| [centre(pixel % width, width), centre(pixel / width, height)]).collect();
    let in_body: Vec<[f64; 2]> = places.iter().map(|&place| pose.to_body(place)).collect();
    let lungs: Vec<f64> = in_body.iter().map(|&[x, y]| body.lung(x, y)).collect();
    let shadows: Vec<f64> = in_body
        .iter()
        .zip(&lungs)
        .map(
            |(&[x, y], &lung)| {
                if lung > 0.0 { lung * (1.0 + 0.25 * texture.at([x, y, 0.0])).max(0.0) * spots.at(x, y) } else { 0.0 }
            },
        )
        .collect();
    let scale = scale_to_mean(&shadows, &lungs, spots.mean);
    let disease: Vec<f64> = shadows.iter().map(|shadow| scale * shadow).collect();

    let brightness = (0..places.len())
        .map(|pixel| {
            let ([u, v], [x, y]) = (places[pixel], in_body[pixel]);
            let tissue = body.attenuation(x, y, lungs[pixel]) + disease[pixel];
            let exposed = pose.gain * (1.0 - 0.10 * tissue) * tissue + 0.008 * unevenness.at([u, v, 0.0]);
            let marked = exposed.max(0.9 * body.marker(u, v));
            marked + pose.offset + 0.020 * normal(rng)
        })
        .collect();
    Film { brightness, lungs, disease }
}

/// Position of the person and exposure of the film.
struct Pose {
    cos: f64,
    sin: f64,
    zoom: f64,
    shift: [f64; 2],
    gain: f64,
    offset: f64,
}

impl Pose {
    fn draw(rng: &mut ChaCha8Rng) -> Self {
        let angle = 0.035 * normal(rng);
        Self {
            cos: angle.cos(),
            sin: angle.sin(),
            zoom: (0.02 * normal(rng)).exp(),
            shift: [0.025 * normal(rng), 0.03 * normal(rng)],
            gain: (0.02 * normal(rng)).exp(),
            offset: 0.02 + 0.004 * normal(rng),
        }
    }

    fn to_body(&self, [u, v]: [f64; 2]) -> [f64; 2] {
        let (u, v) = ((u - self.shift[0]) * self.zoom, (v - self.shift[1]) * self.zoom);
        [self.cos * u + self.sin * v, self.cos * v - self.sin * u]
    }
}

/// The anatomy of one person, the same in all their films.
struct Body {
    /// Width of chest and lungs relative to the drawing below.
    breadth: f64,
    soft_tissue: f64,
    bone: f64,
    heart: f64,
    aorta: f64,
    calcification: f64,
    breast: f64,
    /// Radius and height of the breast shadows.
    breast_shape: [f64; 2],
    /// Height of the diaphragm's domes: viewer's left, right.
    domes: [f64; 2],
    rib_phase: f64,
    vessel_phase: f64,
    gas: f64,
    marker: [f64; 2],
}

impl Body {
    fn draw(who: Attributes, rng: &mut ChaCha8Rng) -> Self {
        let decades = f64::from(who.age) / 10.0 - 6.0;
        let stature = normal(rng);
        let weight = normal(rng);
        let contrast = match who.race {
            Race::White => 1.0,
            Race::Black => 1.05,
            Race::Asian => 0.97,
            Race::Other => 1.02,
        };
        let marker = match who.race {
            Race::White => [0.86, -0.84],
            Race::Black => [-0.86, -0.84],
            Race::Asian => [0.86, 0.88],
            Race::Other => [-0.86, 0.88],
        };
        let breast = if who.female { 0.045 * (0.2 * normal(rng)).exp() } else { 0.0 * normal(rng) };
        Self {
            breadth: if who.female { 0.94 } else { 1.02 } + 0.025 * stature,
            soft_tissue: contrast * (1.0 + 0.02 * weight),
            bone: (0.085 - 0.010 * decades + 0.008 * normal(rng)).max(0.02),
            heart: 1.0 + 0.02 * weight + 0.03 * normal(rng),
            aorta: (1.0 + 0.12 * decades + 0.08 * normal(rng)).max(0.4),
            calcification: (0.06 + 0.035 * decades + 0.01 * normal(rng)).max(0.0),
            breast,
            breast_shape: [0.33 + 0.03 * normal(rng), 0.36 + 0.04 * normal(rng)],
            domes: [0.24 + 0.03 * normal(rng), 0.18 + 0.03 * normal(rng)],
            rib_phase: 0.03 * normal(rng),
            vessel_phase: 3.0 * normal(rng),
            gas: edge(normal(rng), 1.0),
            marker,
        }
    }

    /// Half width of the trunk at height `y`.
    fn trunk(&self, y: f64) -> f64 {
        let shoulders = edge(y + 0.72, 0.42);
        let flank = edge(y - 0.05, 1.1);
        self.breadth * (0.24 + 0.76 * shoulders - 0.10 * flank)
    }

    /// Medial and lateral border of a lung at share `t` of its height.
    fn lung_borders(&self, t: f64) -> [f64; 2] {
        let arc = |t: f64| (t * (2.0 - t)).max(0.0).sqrt();
        let medial = 0.31 - 0.17 * arc((t / 0.35).min(1.0)) + 0.03 * t;
        let lateral = 0.33 + 0.45 * arc((t / 0.85).min(1.0)) - 0.02 * t;
        [self.breadth * medial, self.breadth * lateral]
    }

    /// Height of the diaphragm below a point: lowest at the side, a dome in the middle.
    fn diaphragm(&self, x: f64) -> f64 {
        let from_dome = (x.abs() / self.breadth - 0.34) / 0.44;
        let [left, right] = self.domes;
        let (dome, base) = if x < 0.0 { (left, 0.64) } else { (right, 0.66) };
        base - dome * (1.0 - from_dome * from_dome).max(0.0).sqrt()
    }

    /// 1 inside the lungs.
    fn lung(&self, x: f64, y: f64) -> f64 {
        let t = (y - LUNG_TOP) / (0.66 - LUNG_TOP);
        let inside = edge(t, 0.06);
        if inside <= 0.0 {
            return 0.0;
        }
        let [medial, lateral] = self.lung_borders(t);
        inside * edge(lateral - x.abs(), 0.06) * edge(x.abs() - medial, 0.07) * edge(self.diaphragm(x) - y, 0.05)
    }

    /// Attenuation without disease.
    fn attenuation(&self, x: f64, y: f64, lung: f64) -> f64 {
        let half = self.trunk(y);
        let body = edge(half - x.abs(), 0.04);
        if body <= 0.0 {
            return 0.0;
        }
        let thickness = (1.0 - (x / half) * (x / half)).max(0.0).sqrt();
        let below = edge(y - self.diaphragm(x), 0.06) * edge(0.80 * half - x.abs(), 0.2);
        let chest = self.soft_tissue * (0.36 + 0.18 * thickness);
        let flesh = chest + self.soft_tissue * 0.16 * below;
        // Lungs take a share of the chest's depth, less at the apex.
        let air = lung * chest * (0.70 - 0.10 * edge(-0.3 - y, 0.6));
        let stomach = 0.16 * self.gas * bell(sq((x - 0.38) / 0.13) + sq((y - self.diaphragm(x) - 0.16) / 0.08));
        body * (flesh - air - stomach
            + self.mediastinum(x / self.breadth, x, y)
            + self.skeleton(x, y, lung)
            + self.soft_shadows(x, y, lung))
    }

    /// Heart, great vessels, trachea and spine.
    ///
    /// `x` is measured in chest widths, so that a narrow chest has a narrow heart; `x_body` is not.
    fn mediastinum(&self, x: f64, x_body: f64, y: f64) -> f64 {
        let (dx, dy) = (x - 0.16, y - 0.32);
        let (along, across) = (0.80 * dx + 0.60 * dy, 0.80 * dy - 0.60 * dx);
        let heart_radius = (sq(along / (0.44 * self.heart)) + sq(across / (0.29 * self.heart))).sqrt();
        let right_border = edge(0.19 - (sq((x + 0.02) / 0.9) + sq(y - 0.30)).sqrt(), 0.06);
        let heart = edge(1.0 - heart_radius, 0.22).max(right_border);
        let waist = 0.115 + 0.05 * sq(y + 0.30) + 0.02 * x.signum() * edge(y + 0.2, 0.4);
        let vessels = edge(waist - x.abs(), 0.06) * edge(y + 0.8, 0.3);
        let knob = edge(1.0 - (sq((x - 0.12) / 0.09) + sq((y + 0.27) / 0.10)).sqrt() / self.aorta, 0.35);
        let trachea = edge(0.045 - x.abs(), 0.03) * edge(-0.18 - y, 0.15);
        let spine = edge(0.085 - x.abs(), 0.03) * (1.0 + 0.35 * (38.0 * y).sin());
        let above = edge(self.diaphragm(x_body) - y + 0.02, 0.08);
        0.27 * heart.max(vessels).max(0.9 * knob) * above - 0.10 * trachea + 0.05 * spine
    }

    /// Ribs from behind and in front, collar bones, calcified cartilage.
    fn skeleton(&self, x: f64, y: f64, lung: f64) -> f64 {
        let side = x.abs() / self.breadth;
        let lateral = self.lung_borders((y - LUNG_TOP) / 1.4)[1];
        let cage = edge(lateral + 0.05 - x.abs(), 0.05) * edge(y + 0.78, 0.1) * (0.35 + 0.65 * lung);
        let behind = rib(y - self.rib_phase + 0.05 - 0.34 * sq(side - 0.08) - 0.05 * side, 0.155);
        let front = rib(y - self.rib_phase + 0.42 * sq(side - 0.72) - 0.11, 0.18) * edge(side - 0.26, 0.12);
        let collar = bell(sq((y + 0.60 + 0.16 * side - 0.03 * (7.0 * side).sin()) / 0.028)) * edge(0.85 - side, 0.1);
        let shoulder = edge(0.12 - (sq(side - 0.90) + sq(y + 0.46)).sqrt(), 0.09);
        let ends = rib(y - self.rib_phase + 0.42 * sq(side - 0.72) - 0.11, 0.18)
            * bell(sq((side - 0.30) / 0.06))
            * (0.6 + 0.4 * (60.0 * y + 45.0 * x).sin());
        self.bone * (cage * (behind + 0.6 * front) + 1.1 * collar * edge(y + 0.85, 0.1) + shoulder)
            + self.calcification * ends * lung
    }

    /// Lung vessels fanning out of the hila, and breasts.
    fn soft_shadows(&self, x: f64, y: f64, lung: f64) -> f64 {
        let (dx, dy) = (x.abs() - 0.17, y + 0.02);
        let distance = (dx * dx + dy * dy).sqrt();
        let fan = (11.0 * dy.atan2(dx + 0.02) + self.vessel_phase + 4.0 * distance + x.signum()).cos();
        let vessels =
            lung * (0.10 * bell(sq(distance / 0.10)) + 0.07 * fan.max(0.0).powi(2) * bell(sq(distance / 0.22)));
        let [radius, height] = self.breast_shape;
        let from_breast = (sq(x.abs() - 0.45 * self.breadth) + sq(y - height)).sqrt();
        // The lower edge of a breast is sharp, the upper one fades.
        let softness = if y > height { 0.06 } else { 0.30 };
        vessels + self.breast * edge(radius - from_breast, softness)
    }

    /// The letter in a corner, in film coordinates: R at the viewer's left, L at the right.
    fn marker(&self, u: f64, v: f64) -> f64 {
        let (du, dv) = (u - self.marker[0], v - self.marker[1]);
        let stroke = |distance: f64| edge(0.018 - distance.abs(), 0.03);
        let upright = stroke(du + 0.035) * edge(0.07 - dv.abs(), 0.03);
        let foot = stroke(dv - 0.06) * edge(0.05 - du.abs(), 0.03);
        let bowl = stroke((sq(du) + sq(dv + 0.03)).sqrt() - 0.035);
        let leg = stroke(0.7 * (du + 0.02 - dv)) * edge(0.03 - (dv - 0.04).abs(), 0.03);
        upright.max(if self.marker[0] < 0.0 { bowl.max(leg) } else { foot })
    }
}

/// A band repeating every `spacing`, brighter at its borders as a tube is.
fn rib(y: f64, spacing: f64) -> f64 {
    let from_centre = ((y / spacing).round() * spacing - y).abs();
    edge(0.036 - from_centre, 0.03) * (0.75 + 0.5 * edge(from_centre - 0.022, 0.02))
}

fn sq(x: f64) -> f64 {
    x * x
}

/// Disease: soft spots whose number, size and brightness grow with the burden.
struct Opacities {
    /// Centre, inverse radius along and across, direction, weight.
    spots: Vec<Spot>,
    /// Mean brightness added to the lungs.
    mean: f64,
}

struct Spot {
    centre: [f64; 2],
    cos: f64,
    sin: f64,
    inverse_radii: [f64; 2],
    weight: f64,
}

/// Draws the opacities of a `burden` from 0 to 1; the number of draws does not depend on it.
fn opacities(body: &Body, burden: f64, rng: &mut ChaCha8Rng) -> Opacities {
    let count = 2.0 + 15.0 * burden;
    let spots = (0..MAX_OPACITIES)
        .map(|index| {
            let right = rng.random::<f64>() < 0.5;
            let t = 0.12 + 0.80 * rng.random::<f64>();
            let [medial, lateral] = body.lung_borders(t);
            let across = 0.12 + 0.72 * rng.random::<f64>();
            let x = (medial + across * (lateral - medial)) * if right { 1.0 } else { -1.0 };
            let y = LUNG_TOP + t * (body.diaphragm(x) - LUNG_TOP);
            let radius = (0.065 + 0.035 * burden) * (0.3 * normal(rng)).exp();
            let stretch = (0.2 * normal(rng)).exp();
            let direction = std::f64::consts::PI * rng.random::<f64>();
            Spot {
                centre: [x, y],
                cos: direction.cos(),
                sin: direction.sin(),
                inverse_radii: [1.0 / (radius * stretch), stretch / radius],
                weight: spot_weight(index, count) * (0.2 * normal(rng)).exp(),
            }
        })
        .collect();
    Opacities { spots, mean: FULL_BURDEN * burden * (0.02 * normal(rng)).exp() }
}

impl Opacities {
    fn at(&self, x: f64, y: f64) -> f64 {
        let one = |spot: &Spot| {
            let (dx, dy) = (x - spot.centre[0], y - spot.centre[1]);
            let along = (spot.cos * dx + spot.sin * dy) * spot.inverse_radii[0];
            let across = (spot.cos * dy - spot.sin * dx) * spot.inverse_radii[1];
            spot.weight * bell(along * along + across * across)
        };
        let summed: f64 = self.spots.iter().filter(|spot| spot.weight > 0.0).map(one).sum();
        // Where spots overlap, the loss of air is limited to the total.
        1.0 - (-summed).exp()
    }
}
