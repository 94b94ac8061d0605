//! Columns of survival curves: the grid of times in their names, the probabilities in their cells.
//!
//! A name is a time written as a plain number (`0`, `0.5`, `13`); the times ascend from left to right. A cell is S(t),
//! the probability of no event up to that time. Values may leave \[0, 1\] or rise along a row by up to
//! [`SURVIVAL_TOLERANCE`]: as models that compute in `f32` may do. Such noise is removed (values are clamped and each
//! row becomes its running minimum) and counted. A larger rise is an error, or is removed by the same running minimum
//! with [`Rising::RunningMinimum`], within limits. A value further outside \[0, 1\] is always an error, because its intended
//! value is unknown. Curves that are not survival as a whole
//! ([`LooksLike`]) are always an error too.

use std::path::Path;

use fairtte_metrics::{SURVIVAL_TOLERANCE, SampleId};
use ndarray::Array2;

use crate::DataError;
use crate::predictions::looks_like::LooksLike;
use crate::predictions::repairs::{CurveRepairs, MOST_REPAIRED, REPAIR_LIMIT, Rising};
use crate::table::Table;
use crate::table::decimal::{DECIMAL_POINT, has_decimal_comma, time_of};

/// What the cells of curves are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Curves {
    /// S(t), with the treatment of curves that rise.
    Survival(Rising),
    /// F(t) of one of several causes; kept is 1 - F(t).
    Incidence,
}

/// A column whose name is not a number but contains one, as other programs write times: `X0.5`, `t_0.5`, `S(0.5)`.
pub(crate) fn look_alike(names: &[&str]) -> Option<(String, String)> {
    names.iter().find_map(|name| {
        let number = name.trim_matches(|letter: char| !letter.is_ascii_digit());
        let is_time = time_of(number).is_some_and(f64::is_finite);
        is_time.then(|| ((*name).to_owned(), number.to_owned()))
    })
}

/// Checks that the times of the columns `names` ascend; `names` and `grid` describe the same columns.
///
/// # Errors
/// [`DataError::InvalidGrid`] for a time that is not finite and >= 0, [`DataError::RepeatedTime`],
/// [`DataError::UnsortedGrid`]; without any column [`DataError::NoGrid`].
pub(crate) fn check_grid(path: &Path, names: &[String], grid: &[f64]) -> Result<(), DataError> {
    if grid.is_empty() {
        return Err(DataError::NoGrid { path: path.to_owned(), look_alike: None });
    }
    if let Some(i) = grid.iter().position(|time| !(time.is_finite() && *time >= 0.0)) {
        let problem = "its name is no finite number >= 0";
        return Err(DataError::InvalidGrid { column: names[i].clone(), path: path.to_owned(), problem });
    }
    let mut by_time: Vec<usize> = (0..grid.len()).collect();
    by_time.sort_by(|&a, &b| grid[a].total_cmp(&grid[b])); // stable: equal times stay in the order of the file
    if let Some(pair) = by_time.windows(2).find(|pair| grid[pair[0]] >= grid[pair[1]]) {
        let (first, second) = (names[pair[0]].clone(), names[pair[1]].clone());
        return Err(DataError::RepeatedTime { first, second, time: grid[pair[0]], path: path.to_owned() });
    }
    if let Some(i) = grid.windows(2).position(|pair| pair[0] > pair[1]) {
        let (before, column) = (names[i].clone(), names[i + 1].clone());
        return Err(DataError::UnsortedGrid { before, column, path: path.to_owned() });
    }
    Ok(())
}

/// Refuses a name that is a time with a decimal comma.
pub(crate) fn refuse_decimal_comma<'a>(path: &Path, names: impl IntoIterator<Item = &'a str>) -> Result<(), DataError> {
    match names.into_iter().find(|name| has_decimal_comma(name)) {
        Some(name) => {
            let problem = "its name is a number with a decimal comma, not a point";
            Err(DataError::InvalidGrid { column: name.to_owned(), path: path.to_owned(), problem })
        }
        None => Ok(()),
    }
}

/// Reads the columns `names` of `table`, with the times `grid`, as curves of `samples`, `[n_samples, n_times]`, that
/// lie in \[0, 1\] and never rise.
///
/// # Errors
/// [`DataError::InvalidSurvival`] and [`DataError::RisingSurvival`], naming sample, column, value and row;
/// [`DataError::InvalidCell`] for a decimal comma; [`DataError::NotSurvival`]; [`DataError::TooManyRepairs`].
pub(crate) fn read_survival(
    table: &Table,
    samples: &[SampleId],
    names: &[String],
    grid: &[f64],
    curves: Curves,
) -> Result<(Array2<f64>, CurveRepairs), DataError> {
    let values = read_values(table, samples, names)?;
    let (n, path) = (values.nrows(), table.path());
    let (mut survival, rising) = match curves {
        Curves::Incidence => (without_cause(table, samples, names, grid, &values)?, Rising::RunningMinimumOfAll),
        Curves::Survival(rising) => match LooksLike::of(&values.view()) {
            Some((looks_like, n_rows)) => {
                return Err(DataError::NotSurvival { path: path.to_owned(), looks_like, n_rows, n });
            }
            None => (values, rising),
        },
    };
    let range = -SURVIVAL_TOLERANCE..=1.0 + SURVIVAL_TOLERANCE;
    for (time, column) in names.iter().zip(survival.columns()) {
        if let Some(row) = column.iter().position(|value| !range.contains(value)) {
            return Err(invalid_survival(table, samples, row, time, column[row].to_string()));
        }
    }
    let mut repairs = CurveRepairs::default();
    let mut n_large = 0;
    for (row, mut curve) in survival.rows_mut().into_iter().enumerate() {
        let (mut lowest, mut lowest_at) = (1.0_f64, 0);
        let before = repairs.n_cells;
        for (column, value) in curve.iter_mut().enumerate() {
            if rising == Rising::Refuse && *value > lowest + SURVIVAL_TOLERANCE {
                return Err(DataError::RisingSurvival {
                    sample: samples[row].to_string(),
                    before: lowest,
                    time_before: grid[lowest_at],
                    value: *value,
                    time: grid[column],
                    place: table.place(row),
                });
            }
            // Not `max`: it would keep a negative zero.
            let kept = if *value <= 0.0 { 0.0 } else { lowest.min(*value) };
            let change = (kept - *value).abs();
            if change > 0.0 {
                repairs.n_cells += 1;
                repairs.largest_change = repairs.largest_change.max(change);
            }
            n_large += usize::from(change > REPAIR_LIMIT);
            if *value <= kept {
                lowest_at = column;
            }
            (lowest, *value) = (kept, kept);
        }
        repairs.n_rows += usize::from(repairs.n_cells > before);
    }
    if rising == Rising::RunningMinimum && 100 * n_large > MOST_REPAIRED * survival.len() {
        let path = path.to_owned();
        return Err(DataError::TooManyRepairs { path, n_cells: n_large, n: survival.len() });
    }
    Ok((survival, repairs))
}

/// 1 - F(t) of `values` F(t), after the check that they are a cumulative incidence.
fn without_cause(
    table: &Table,
    samples: &[SampleId],
    names: &[String],
    grid: &[f64],
    values: &Array2<f64>,
) -> Result<Array2<f64>, DataError> {
    let (n, path) = (values.nrows(), table.path());
    // Survival is to its complement what risk is to survival.
    let complement = values.mapv(|value| 1.0 - value);
    if let Some((LooksLike::Risk, n_rows)) = LooksLike::of(&complement.view()) {
        return Err(DataError::NotIncidence { path: path.to_owned(), n_rows, n });
    }
    if values.column(0).iter().all(|value| *value > 0.5) && grid[0] <= 0.0 {
        return Err(DataError::NotIncidence { path: path.to_owned(), n_rows: n, n });
    }
    for (row, curve) in values.rows().into_iter().enumerate() {
        let (mut highest, mut highest_at) = (0.0_f64, 0);
        for (column, value) in curve.iter().copied().enumerate() {
            let (sample, place) = (samples[row].to_string(), table.place(row));
            if !(-SURVIVAL_TOLERANCE..=1.0 + SURVIVAL_TOLERANCE).contains(&value) {
                return Err(DataError::InvalidIncidence { sample, time: names[column].clone(), value, place });
            }
            if value < highest - SURVIVAL_TOLERANCE {
                let (before, time_before, time) = (highest, grid[highest_at], grid[column]);
                return Err(DataError::FallingIncidence { sample, before, time_before, value, time, place });
            }
            if value > highest {
                (highest, highest_at) = (value, column);
            }
        }
    }
    Ok(complement)
}

/// The cells of the columns `names`, `[n_samples, n_times]`, finite numbers.
fn read_values(table: &Table, samples: &[SampleId], names: &[String]) -> Result<Array2<f64>, DataError> {
    let mut values = Array2::zeros((samples.len(), names.len()));
    for (column, name) in names.iter().enumerate() {
        for (row, cell) in table.numbers(name)?.into_iter().enumerate() {
            values[[row, column]] = match cell {
                Ok(value) if value.is_finite() => value,
                Err(text) if has_decimal_comma(&text) => {
                    return Err(DataError::InvalidCell {
                        column: format!("survival at time {name}"),
                        sample: samples[row].to_string(),
                        value: text,
                        expected: DECIMAL_POINT,
                        place: table.place(row),
                    });
                }
                other => {
                    let text = other.map_or_else(|text| text, |value| value.to_string());
                    return Err(invalid_survival(table, samples, row, name, text));
                }
            };
        }
    }
    Ok(values)
}

fn invalid_survival(table: &Table, samples: &[SampleId], row: usize, time: &str, text: String) -> DataError {
    DataError::InvalidSurvival {
        sample: samples[row].to_string(),
        time: time.to_owned(),
        value: if text.is_empty() { "empty".to_owned() } else { text },
        place: Some(table.place(row)),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
pub(crate) mod tests {
    use ndarray::array;

    use super::*;

    pub(crate) fn read(text: &str, rising: Rising) -> Result<(Array2<f64>, CurveRepairs), String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("curves.csv");
        std::fs::write(&path, text).unwrap();
        let table = Table::read(&path).unwrap();
        let samples: Vec<SampleId> = (0..table.n_rows()).map(|row| SampleId::new(format!("s{row}"))).collect();
        let names: Vec<String> = table.names().into_iter().map(str::to_owned).collect();
        let shown = format!("{}/", folder.path().display());
        let grid: Vec<f64> = names.iter().map(|name| time_of(name).unwrap()).collect();
        read_survival(&table, &samples, &names, &grid, Curves::Survival(rising))
            .map_err(|error| error.to_string().replace(&shown, ""))
    }

    #[test]
    fn a_rise_is_refused_or_becomes_the_running_minimum_and_is_counted() {
        let text = "0,1,2,3\n1,0.5,0.75,0.25\n1,0.5,0.25,0\n0.5,0.5,0.625,1\n";
        let expected = "survival of sample \"s0\" rises from 0.5 at time 1 to 0.75 at time 2, expected a curve that \
                        never rises (curves.csv, row 2)";
        assert_eq!(read(text, Rising::Refuse).unwrap_err(), expected);
        let expected = "the running minimum would change 2 of 12 cells of survival in curves.csv by more than 0.01, \
                        expected at most 5 %";
        let slightly = text.replace("0.625", "0.505");
        assert_eq!(read(&slightly, Rising::RunningMinimum).unwrap_err(), expected);
        let (survival, repairs) = read(text, Rising::RunningMinimumOfAll).unwrap();
        assert_eq!(survival, array![[1.0, 0.5, 0.5, 0.25], [1.0, 0.5, 0.25, 0.0], [0.5, 0.5, 0.5, 0.5]]);
        assert_eq!(repairs, CurveRepairs { n_rows: 2, n_cells: 3, largest_change: 0.5 });
    }

    #[test]
    fn noise_is_removed_and_counted_under_either_rule() {
        let text = "0,1,2\n1.0000005,0.5,0.5000005\n1,0,-0.0000005\n1,1,1\n";
        for rising in [Rising::Refuse, Rising::RunningMinimum] {
            let (survival, repairs) = read(text, rising).unwrap();
            assert_eq!(survival, array![[1.0, 0.5, 0.5], [1.0, 0.0, 0.0], [1.0, 1.0, 1.0]]);
            assert!(survival[[1, 2]].is_sign_positive());
            assert_eq!((repairs.n_rows, repairs.n_cells, repairs.is_noise()), (2, 3, true));
            assert!(repairs.largest_change > 4e-7, "{repairs:?}");
        }
    }

    #[test]
    fn a_value_outside_0_and_1_is_refused_under_either_rule() {
        for rising in [Rising::Refuse, Rising::RunningMinimum] {
            for value in ["1.01", "-0.01", "NaN", "inf", "NA", ""] {
                let shown = if value.is_empty() { "empty" } else { value };
                let expected = format!(
                    "survival of sample \"s1\" at time 0.5 is {shown}, expected a probability in [0, 1] (curves.csv, row 3)"
                );
                assert_eq!(read(&format!("0,0.5\n1,1\n1,{value}\n"), rising).unwrap_err(), expected);
            }
        }
    }

    #[test]
    fn a_repair_of_one_cell_in_twenty_is_small_and_of_more_is_not() {
        let calm = "1,0.9,0.8,0.7,0.6\n".repeat(3);
        let with = |row: &str| read(&format!("0,1,2,3,4\n{calm}{row}"), Rising::RunningMinimum).map(|(_, r)| r.n_cells);
        assert_eq!(with("1,0.5,0.52,0.5,0.5\n").unwrap(), 1);
        assert_eq!(with("1,0.5,0.505,0.509,0.52\n").unwrap(), 3, "small changes do not count");
        assert!(with("1,0.5,0.52,0.52,0.5\n").unwrap_err().contains("2 of 20 cells"));
    }

    #[test]
    fn a_decimal_comma_is_named_in_a_cell_and_in_a_name() {
        let message = read("0,1\n1,\"0,5\"\n", Rising::Refuse).unwrap_err();
        let expected = "survival at time 1 of sample \"s0\" is 0,5, expected a number with a decimal point, not a comma \
                        (curves.csv, row 2)";
        assert_eq!(message, expected);
        let message = refuse_decimal_comma(Path::new("c.csv"), ["0", "0,5"]).unwrap_err().to_string();
        assert!(message.starts_with("column \"0,5\" of c.csv: its name is a number with a decimal comma, not a point"));
        assert!(refuse_decimal_comma(Path::new("c.csv"), ["0.5", "1,2,3", "a,5"]).is_ok());
    }

    #[test]
    fn the_grid_is_checked_column_by_column() {
        let message = |names: &[&str]| {
            let grid: Vec<f64> = names.iter().map(|name| time_of(name).unwrap()).collect();
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            check_grid(Path::new("c.csv"), &names, &grid).unwrap_err().to_string()
        };
        assert_eq!(
            message(&["0", "2", "1"]),
            "column \"1\" of c.csv comes after column \"2\", expected the grid times in ascending order"
        );
        assert_eq!(
            message(&["0.5", "1", "0.50"]),
            "columns \"0.5\" and \"0.50\" of c.csv both name the time 0.5, expected each grid time once"
        );
        assert!(message(&["-1", "1"]).starts_with("column \"-1\" of c.csv: its name is no finite number >= 0"));
        assert!(message(&["0", "inf"]).starts_with("column \"inf\" of c.csv"));
        assert!(message(&[]).starts_with("no column of c.csv is named by a time"));
    }

    #[test]
    fn names_that_hold_a_time_are_recognised_to_say_how_they_should_be() {
        for name in ["X0.5", "t_0.5", "S(0.5)", "time 0.5"] {
            assert_eq!(look_alike(&["note", name]), Some((name.to_owned(), "0.5".to_owned())));
        }
        assert_eq!(look_alike(&["note", "1 of 2", ""]), None);
    }
}
