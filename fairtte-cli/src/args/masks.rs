//! Arguments of `evaluate-masks`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use fairtte_data::AttributeConfig;
use fairtte_metrics::evaluation::MaskMetric;
use fairtte_metrics::masks::{Hausdorff, MaskClass};
use serde::Serialize;

use super::exports::Exports;
use super::own_table;
use super::scores::reference;

/// Arguments of `evaluate-masks`.
#[derive(Args, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
#[command(after_help = EXAMPLES)]
pub struct EvaluateMasks {
    /// Table (CSV or Parquet) with the columns `sample`, `truth` and `predicted`: the files of both masks, from the folder of the
    /// table; the --attributes, and `subject` if a person has more than one sample
    #[arg(long, value_name = "FILE")]
    pub table: PathBuf,
    /// Classes with the values of their pixels: `disc=1+2,cup=2`. Without it every value but 0 is a class
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = class)]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<MaskClass>,
    /// Metrics of every class; all of them if not given, cup-to-disc-error where --cup is given
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_enum)]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<MaskMetricName>,
    /// Attributes to compare by, columns of the table: `sex` (every value is a group), `age:60` or `age:median` (a number cut in
    /// two), `age:40,60,75` (in several), `race=White` (one value against all others)
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = own_table::attribute)]
    pub attributes: Vec<AttributeConfig>,
    /// Compare by every pair of attributes too
    #[arg(long)]
    pub intersections: bool,
    /// Folder for `evaluation.json`, `evaluation.csv`, `samples.csv` and `report.html`, or a name ending in .html: then the page
    /// is that file, and the others are next to it
    #[arg(short, long, value_name = "PATH")]
    pub output: PathBuf,
    /// Distance of neighbouring pixels along every axis: rows, columns of pictures; x, y, z of volumes. Without it 1 of pictures,
    /// and that in the header of volumes. With it the matrices of volumes are not compared
    #[arg(long, value_name = "LIST", value_delimiter = ',', allow_negative_numbers = true)]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub spacing: Vec<f64>,
    /// Unit of --spacing, shown on the page, for example `mm`
    #[arg(long, value_name = "TEXT", requires = "spacing")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// Distance up to which a pixel of a surface is right, for NSD, in the unit of the spacing
    #[arg(long, value_name = "DISTANCE", default_value_t = 1.0, allow_negative_numbers = true)]
    pub tolerance: f64,
    /// Which number is called HD95
    #[arg(long, value_enum, default_value_t)]
    pub hausdorff: HausdorffName,
    /// Class of the optic cup: adds the error of the vertical cup-to-disc ratio, of pictures
    #[arg(long, value_name = "CLASS", requires = "disc")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cup: Option<String>,
    /// Class of the optic disc, which contains the cup
    #[arg(long, value_name = "CLASS", requires = "cup")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disc: Option<String>,
    /// Samples with a value that a group needs to be compared; smaller groups stay visible
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub min_samples: usize,
    /// Level to compare the other groups of an attribute with, each minus it, in place of every two groups
    #[arg(long, value_name = "ATTRIBUTE=LEVEL", value_parser = reference)]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reference: Vec<(String, String)>,
    /// Change a setting of the intervals, for example `--set replicates=200` or `--set level=0.9`
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Threads; 0 = one per core
    #[arg(long, default_value_t = 0)]
    pub threads: usize,
    /// Show what would be evaluated and stop
    #[arg(long)]
    pub dry_run: bool,
    /// Results as JSON on standard output
    #[arg(long)]
    pub json: bool,
    /// What the columns of the table mean
    #[command(flatten)]
    pub own: OwnMasks,
    /// What is written as files too
    #[command(flatten)]
    #[serde(flatten)]
    pub exports: Exports,
}

/// What the columns of a table of masks mean; the page may be named too.
#[derive(Args, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
#[command(next_help_heading = "Own columns")]
pub struct OwnMasks {
    /// Column of the samples, instead of `sample` or `sample_id`
    #[arg(long, value_name = "COLUMN")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sample: Option<String>,
    /// Column of the subjects, instead of `subject` or `subject_id`
    #[arg(long, value_name = "COLUMN")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// Column of the true masks, instead of `truth`
    #[arg(long, value_name = "COLUMN")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truth: Option<String>,
    /// Column of the predicted masks, instead of `predicted`
    #[arg(long, value_name = "COLUMN")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub predicted: Option<String>,
    /// Values of the --attributes that mean a missing one, for example `unknown,n/a`, in any case
    #[arg(long, value_name = "LIST", value_delimiter = ',', requires = "attributes")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// Title of the page
    #[arg(long, value_name = "TEXT")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}

/// The metrics by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MaskMetricName {
    /// 2 |A and B| / (|A| + |B|)
    Dice,
    /// |A and B| / |A or B|
    Iou,
    /// 95th percentile of the distances of the surfaces
    Hd95,
    /// Mean distance of the surfaces
    Asd,
    /// Share of the surfaces within the tolerance of each other
    Nsd,
    /// Error of the vertical cup-to-disc ratio
    CupToDiscError,
}

impl MaskMetricName {
    /// The metric.
    pub(crate) fn metric(self) -> MaskMetric {
        match self {
            Self::Dice => MaskMetric::Dice,
            Self::Iou => MaskMetric::Iou,
            Self::Hd95 => MaskMetric::Hd95,
            Self::Asd => MaskMetric::Asd,
            Self::Nsd => MaskMetric::Nsd,
            Self::CupToDiscError => MaskMetric::CupToDisc,
        }
    }
}

/// The conventions of HD95 by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum HausdorffName {
    /// The percentile of the distances of both surfaces together, as in medpy
    #[default]
    Medpy,
    /// The larger of the percentiles of the two surfaces, as in MONAI
    Monai,
}

impl HausdorffName {
    /// The convention.
    pub(crate) fn convention(self) -> Hausdorff {
        match self {
            Self::Medpy => Hausdorff::Medpy,
            Self::Monai => Hausdorff::Monai,
        }
    }
}

/// One entry of `--classes`.
fn class(text: &str) -> Result<MaskClass, String> {
    let (name, values) = text.split_once('=').unwrap_or((text, text));
    let (name, wrong) = (name.trim(), || format!("\"{text}\" is no class, expected NAME=VALUE or NAME=VALUE+VALUE"));
    if name.is_empty() {
        return Err(wrong());
    }
    let value = |value: &str| value.trim().parse::<i32>().map_err(|_| wrong());
    let values = values.split('+').map(value).collect::<Result<Vec<_>, _>>()?;
    Ok(MaskClass { name: name.to_owned(), values })
}

const EXAMPLES: &str = "\
Examples:
  optic disc and cup, by race and sex
    fairtte evaluate-masks --table pairs.csv --classes disc=1+2,cup=2 --cup cup --disc disc --attributes race,sex --output disc.html
  volumes in millimetres, with HD95 as MONAI computes it and NSD at 2 mm
    fairtte evaluate-masks --table pairs.csv --hausdorff monai --tolerance 2 --attributes age:60 --output lesions.html
  pictures of 0.5 x 0.25 mm per pixel, Dice and HD95 alone
    fairtte evaluate-masks --table pairs.csv --spacing 0.5,0.25 --unit mm --metrics dice,hd95 --output scores";

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
mod tests {
    use super::*;

    #[test]
    fn a_class_is_a_name_with_values_or_a_value_alone() {
        let of = |text: &str| class(text).map(|class| (class.name, class.values));
        assert_eq!(of("disc=1+2").unwrap(), ("disc".to_owned(), vec![1, 2]));
        assert_eq!(of("cup = -2").unwrap(), ("cup".to_owned(), vec![-2]));
        assert_eq!(of("7").unwrap(), ("7".to_owned(), vec![7]));
        for wrong in ["cup", "=1", "cup=", "cup=1+x", "cup=1.5", ""] {
            assert!(of(wrong).unwrap_err().contains("expected NAME=VALUE"), "{wrong}");
        }
    }
}
