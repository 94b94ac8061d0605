//! Arguments of `evaluate --predictions` that say what the columns and values of a table mean.

use clap::Args;
use fairtte_data::AttributeConfig;
use fairtte_data::cohort::Threshold;
use serde::Serialize;

/// What the columns and values of a table mean; the page may be named too.
#[derive(Args, Debug, Default, Serialize)]
#[command(next_help_heading = "Own columns")]
pub struct OwnTable {
    /// Column of the samples, instead of `sample` or `sample_id`
    #[arg(long, value_name = "COLUMN", requires = "predictions", conflicts_with_all = ["cohort", "run"])]
    pub sample: Option<String>,
    /// Column of the subjects, instead of `subject` or `subject_id`
    #[arg(long, value_name = "COLUMN", requires = "predictions", conflicts_with_all = ["cohort", "run"])]
    pub subject: Option<String>,
    /// Column of the observed times, instead of `time`; also of --train, if it is there
    #[arg(long, value_name = "COLUMN", requires = "predictions", conflicts_with_all = ["cohort", "run"])]
    pub time: Option<String>,
    /// Column of the events, instead of `event`; also of --train, if it is there
    #[arg(long, value_name = "COLUMN", requires = "predictions", conflicts_with_all = ["cohort", "run"])]
    pub event: Option<String>,
    /// Value of an event, for example `dead`; every other value is censored
    #[arg(long, value_name = "VALUE", requires = "predictions", conflicts_with_all = ["cohort", "run"])]
    pub event_value: Option<String>,
    /// Values of the --attributes that mean a missing one, for example `unknown,n/a`, in any case
    #[arg(long, value_name = "LIST", value_delimiter = ',', requires = "attributes", conflicts_with_all = ["cohort", "run"])]
    pub missing: Vec<String>,
    /// Unit of the times, shown on the page, for example `days`
    #[arg(long, value_name = "TEXT", requires = "predictions", conflicts_with = "run")]
    pub time_unit: Option<String>,
    /// Title of the page
    #[arg(long, value_name = "TEXT", requires = "predictions", conflicts_with = "run")]
    pub title: Option<String>,
}

/// One entry of `--attributes`, or a further threshold of the entry before it.
pub(super) fn attribute(text: &str) -> Result<AttributeConfig, String> {
    let config = AttributeConfig::new;
    let named = |name: &str| if name.is_empty() { Err("expected the name of a column".to_owned()) } else { Ok(()) };
    if let Some((name, reference)) = text.split_once('=') {
        named(name)?;
        if reference.is_empty() {
            return Err(format!("expected a value after the =, as in {name}=White"));
        }
        return Ok(AttributeConfig { reference: Some(reference.to_owned()), ..config(name) });
    }
    if let Some((name, cut)) = text.rsplit_once(':') {
        named(name)?;
        let threshold = if cut == "median" { Some(Threshold::Median) } else { finite(cut).map(Threshold::Value) };
        let wrong = || format!("expected a number or median after the colon, as in {name}:60");
        return Ok(AttributeConfig { threshold: Some(threshold.ok_or_else(wrong)?), ..config(name) });
    }
    named(text)?;
    Ok(config(text))
}

/// The attributes of a list that was split at its commas: a number directly after thresholds is one more of them
/// (`age:40,60,75`).
///
/// # Errors
/// A sentence on thresholds that do not ascend.
pub(crate) fn join_thresholds(pieces: &[AttributeConfig]) -> Result<Vec<AttributeConfig>, String> {
    let mut joined: Vec<AttributeConfig> = Vec::new();
    for piece in pieces {
        let is_plain = *piece == AttributeConfig::new(&piece.name);
        let number = finite(&piece.name).filter(|_| is_plain);
        let Some((before, number)) = joined.last_mut().zip(number) else {
            joined.push(piece.clone());
            continue;
        };
        let mut cuts = match &before.threshold {
            Some(Threshold::Value(cut)) => vec![*cut],
            Some(Threshold::Values(cuts)) => cuts.clone(),
            Some(Threshold::Median) => {
                return Err(format!("\"{number}\" follows {}:median, expected one of the two", before.name));
            }
            None => {
                joined.push(piece.clone());
                continue;
            }
        };
        cuts.push(number);
        let wrong = || format!("thresholds of \"{}\" are {cuts:?}, expected ascending numbers", before.name);
        before.threshold = Some(Threshold::at(cuts.clone()).ok_or_else(wrong)?);
    }
    Ok(joined)
}

fn finite(text: &str) -> Option<f64> {
    text.parse().ok().filter(|value: &f64| value.is_finite())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
mod tests {
    use super::*;

    fn joined(list: &str) -> Result<Vec<(String, Option<Threshold>)>, String> {
        let pieces: Vec<AttributeConfig> = list.split(',').map(|piece| attribute(piece).unwrap()).collect();
        Ok(join_thresholds(&pieces)?.into_iter().map(|config| (config.name, config.threshold)).collect())
    }

    #[test]
    fn a_number_after_a_threshold_is_one_more_and_elsewhere_a_column() {
        let cuts = |cuts: &[f64]| Threshold::at(cuts.to_vec());
        let found = joined("sex,age:40,60,75.5,site,7,x:1").unwrap();
        let expected =
            [("sex", None), ("age", cuts(&[40.0, 60.0, 75.5])), ("site", None), ("7", None), ("x", cuts(&[1.0]))];
        assert_eq!(found, expected.map(|(name, threshold)| (name.to_owned(), threshold)));
        assert_eq!(joined("race=1,2").unwrap()[1].0, "2", "a value is no threshold");
    }

    #[test]
    fn thresholds_that_do_not_ascend_are_refused() {
        assert_eq!(
            joined("age:60,40").unwrap_err(),
            "thresholds of \"age\" are [60.0, 40.0], expected ascending numbers"
        );
        assert_eq!(joined("age:median,40").unwrap_err(), "\"40\" follows age:median, expected one of the two");
    }
}
