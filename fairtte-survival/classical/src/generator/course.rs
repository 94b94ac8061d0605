//! The hazard of one person over time, with its cumulative hazard and the inverse of it, all in closed form.

/// Added to the time before its logarithm is taken, as printed in scenarios 9 and 10.
pub(super) const SHIFT: f64 = 0.01;

/// The hazard of one person over time, as a rate per unit of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Course {
    /// `rate` exp(`slope` t).
    Growth { rate: f64, slope: f64 },
    /// `rate` exp(`before` t) up to the time `knee`, `rate` exp(`after` t) later.
    Knee { rate: f64, before: f64, after: f64, knee: f64 },
    /// `rate` (t + 0.01)^`power`, that is exp(`power` log(t + 0.01)).
    Power { rate: f64, power: f64 },
}

impl Course {
    /// A hazard that does not change.
    pub(super) fn constant(rate: f64) -> Self {
        Self::Growth { rate, slope: 0.0 }
    }

    /// The same hazard times `factor`.
    pub(super) fn times(self, factor: f64) -> Self {
        match self {
            Self::Growth { rate, slope } => Self::Growth { rate: rate * factor, slope },
            Self::Knee { rate, before, after, knee } => Self::Knee { rate: rate * factor, before, after, knee },
            Self::Power { rate, power } => Self::Power { rate: rate * factor, power },
        }
    }

    /// The numbers that must be finite.
    pub(super) fn numbers(self) -> [f64; 3] {
        match self {
            Self::Growth { rate, slope } => [rate, slope, 0.0],
            Self::Knee { rate, before, after, .. } => [rate, before, after],
            Self::Power { rate, power } => [rate, power, 0.0],
        }
    }

    /// The hazard at time `t`.
    #[cfg(test)]
    pub(super) fn hazard(self, t: f64) -> f64 {
        match self {
            Self::Growth { rate, slope } => rate * (slope * t).exp(),
            Self::Knee { rate, before, after, knee } => rate * (if t > knee { after } else { before } * t).exp(),
            Self::Power { rate, power } => rate * (power * (t + SHIFT).ln()).exp(),
        }
    }

    /// The integral of the hazard from 0 to `t`; infinite if it overflows.
    pub(super) fn cumulative(self, t: f64) -> f64 {
        match self {
            Self::Growth { rate, slope } => grown(rate, slope, t),
            Self::Knee { rate, before, after, knee } if t > knee => {
                grown(rate, before, knee) + (grown(rate, after, t) - grown(rate, after, knee))
            }
            Self::Knee { rate, before, .. } => grown(rate, before, t),
            // With u = log((t + e) / e), the integral is e^q (exp(q u) - 1) / q, where q = power + 1.
            Self::Power { rate, power } => {
                rate * SHIFT.powf(power + 1.0) * grown(1.0, power + 1.0, (t / SHIFT).ln_1p())
            }
        }
    }

    /// The time at which the cumulative hazard is `target`; infinite if it stays below.
    pub(super) fn inverse(self, target: f64) -> f64 {
        match self {
            Self::Growth { rate, slope } => grown_inverse(rate, slope, target),
            Self::Knee { rate, before, after, knee } => {
                let at_knee = grown(rate, before, knee);
                if target <= at_knee {
                    grown_inverse(rate, before, target)
                } else {
                    grown_inverse(rate, after, target - at_knee + grown(rate, after, knee))
                }
            }
            Self::Power { rate, power } => {
                let scale = rate * SHIFT.powf(power + 1.0);
                SHIFT * grown_inverse(scale, power + 1.0, target).exp_m1()
            }
        }
    }
}

/// The integral of `rate` exp(`slope` u) over u from 0 to `t`.
fn grown(rate: f64, slope: f64, t: f64) -> f64 {
    if rate <= 0.0 {
        0.0
    } else if slope.abs() < f64::MIN_POSITIVE {
        rate * t
    } else {
        rate * ((slope * t).exp_m1() / slope)
    }
}

/// The `t` at which [`grown`] is `target`; infinite if there is none.
fn grown_inverse(rate: f64, slope: f64, target: f64) -> f64 {
    if target <= 0.0 {
        return 0.0;
    }
    if rate <= 0.0 {
        return f64::INFINITY;
    }
    let scaled = target / rate;
    if slope.abs() < f64::MIN_POSITIVE {
        scaled
    } else if slope * scaled <= -1.0 {
        f64::INFINITY
    } else {
        (slope * scaled).ln_1p() / slope
    }
}
