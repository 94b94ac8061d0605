//! Curves that are not survival as a whole: risk, percent, cumulative hazards. A repair would turn them into nonsense.

use std::fmt;

use fairtte_metrics::SURVIVAL_TOLERANCE;
use ndarray::{ArrayView1, ArrayView2};

/// What curves are that are not survival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LooksLike {
    /// 1 - S(t): most rows rise, within \[0, 1\].
    Risk,
    /// 100 S(t): most rows fall, and most begin above 1 and nowhere exceed 100.
    Percent,
    /// -ln S(t), or 100 (1 - S(t)): most rows rise, some above 1.
    Hazard,
}

impl LooksLike {
    /// How survival is computed from a value.
    pub fn remedy(self) -> &'static str {
        match self {
            Self::Risk => "write 1 - value",
            Self::Percent => "divide by 100",
            Self::Hazard => "write exp(-value) or 1 - value / 100",
        }
    }

    /// What `values`, one row per curve, look like, with the number of rows that show it; `None` for survival, and for
    /// values of which most rows are neither.
    pub(crate) fn of(values: &ArrayView2<'_, f64>) -> Option<(Self, usize)> {
        let (lowest, highest) =
            values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(*v), h.max(*v)));
        if lowest < -SURVIVAL_TOLERANCE {
            return None;
        }
        let n_of =
            |shows: &dyn Fn(&ArrayView1<'_, f64>) -> bool| values.rows().into_iter().filter(|row| shows(row)).count();
        let is_most = |n_rows: &usize| 2 * n_rows > values.nrows();
        let is_above_one = highest > 1.0 + SURVIVAL_TOLERANCE;
        // A curve that starts near 1 is survival with errors.
        let is_survival = 0.9..=1.0 + SURVIVAL_TOLERANCE;
        let rises = |row: &ArrayView1<'_, f64>| !is_survival.contains(&row[0]) && trend(row) == Trend::Rises;
        if let Some(n_rows) = Some(n_of(&rises)).filter(is_most) {
            return Some((if is_above_one { Self::Hazard } else { Self::Risk }, n_rows));
        }
        let is_percent = |row: &ArrayView1<'_, f64>| row[0] > 1.0 + SURVIVAL_TOLERANCE && trend(row) == Trend::Falls;
        let begins_high = values.column(0).iter().any(|value| *value > 50.0);
        let n_rows = n_of(&is_percent);
        let is_in_range = highest <= 100.0 * (1.0 + SURVIVAL_TOLERANCE);
        (is_above_one && begins_high && is_in_range && is_most(&n_rows)).then_some((Self::Percent, n_rows))
    }
}

impl fmt::Display for LooksLike {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Risk => "risk (cumulative incidence)",
            Self::Percent => "percent",
            Self::Hazard => "cumulative hazards or risk in percent",
        })
    }
}

#[derive(PartialEq)]
enum Trend {
    Rises,
    Falls,
    Neither,
}

/// Whether a row rises or falls as a whole: at most a tenth of its change goes the other way.
fn trend(row: &ArrayView1<'_, f64>) -> Trend {
    let (mut up, mut down) = (0.0, 0.0);
    for (before, after) in row.iter().zip(row.iter().skip(1)) {
        let change = after - before;
        *(if change > 0.0 { &mut up } else { &mut down }) += change.abs();
    }
    match up - down {
        change if change > SURVIVAL_TOLERANCE && down <= 0.1 * up => Trend::Rises,
        change if change < -SURVIVAL_TOLERANCE && up <= 0.1 * down => Trend::Falls,
        _ => Trend::Neither,
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
mod tests {
    use crate::predictions::Rising;
    use crate::predictions::curve_columns::tests::read;

    #[test]
    fn risk_percent_and_hazards_are_recognised_under_every_rule() {
        for (rows, expected) in [
            ("0,0.1,0.3\n0,0.2,0.2\n1,0.9,0.8\n", "risk (cumulative incidence) (2 of 3 rows): write 1 - value"),
            // Estimated with noise: the fall is a tenth of the rise.
            ("0.1,0.4,0.38\n0,0.5,0.9\n", "risk (cumulative incidence) (2 of 2 rows): write 1 - value"),
            ("100,90.5,81\n100,50,0.4\n1,0.9,0.8\n", "percent (2 of 3 rows): divide by 100"),
            (
                "0,0.4,1.2\n0,0.1,0.3\n",
                "cumulative hazards or risk in percent (2 of 2 rows): write exp(-value) or 1 - value / 100",
            ),
            (
                "1.5,40,90\n3,4,5\n",
                "cumulative hazards or risk in percent (2 of 2 rows): write exp(-value) or 1 - value / 100",
            ),
        ] {
            for rising in [Rising::Refuse, Rising::RunningMinimum, Rising::RunningMinimumOfAll] {
                let message = read(&format!("0,1,2\n{rows}"), rising).unwrap_err();
                assert_eq!(message, format!("the curves of curves.csv look like {expected}"));
            }
        }
        // Half of the rows are not most; a curve of one time has no direction; 101 % does not exist.
        assert!(read("0,1\n0.1,0.2\n1,0.9\n", Rising::Refuse).unwrap_err().contains("rises from 0.1"));
        assert!(read("1\n0.2\n0.9\n", Rising::Refuse).is_ok());
        assert!(read("0,1\n101,90\n100,9\n", Rising::Refuse).unwrap_err().contains("expected a probability"));
        assert!(read("0,1\n1,1\n1,1\n", Rising::Refuse).is_ok());
    }
}
