//! Leaving a site out: the subjects of the site.
//!
//! Every subject with a sample of the site is in the test part with all of its samples, including those of other sites,
//! so that no training sample is of the site or of one of its subjects. Such a subject is in the test part of each of
//! its sites in a sweep; their number is reported. A subject without any site could be of the site left out, which is
//! an error. Sites are compared by exact match.

use std::collections::{BTreeMap, BTreeSet};

use fairtte_metrics::SubjectId;

use crate::DataError;
use crate::cohort::{AttributeColumn, Cohort};
use crate::nearest::nearest;

use super::config::LeaveSiteOut;

/// The subjects in the test part when a site is left out.
pub(super) struct SubjectsAtSite<'a> {
    /// Subjects with a sample of the site.
    pub(super) at_site: BTreeSet<&'a SubjectId>,
    /// Number of them with a sample of another site as well.
    n_elsewhere: usize,
}

impl SubjectsAtSite<'_> {
    /// Note for the user.
    pub(super) fn notes(&self, LeaveSiteOut { site, leave_out }: &LeaveSiteOut) -> Option<String> {
        (self.n_elsewhere > 0).then(|| {
            let n = self.n_elsewhere;
            let of = self.at_site.len();
            format!("subjects with {site} \"{leave_out}\" that also have samples of other sites: {n} of {of}; those samples are in the test part too")
        })
    }
}

/// The column `name` of the cohort.
///
/// # Errors
/// [`DataError::UnknownAttribute`] with the nearest name.
pub(super) fn column<'a>(cohort: &'a Cohort, name: &str) -> Result<&'a AttributeColumn, DataError> {
    cohort.attributes.iter().find(|column| column.name == name).ok_or_else(|| DataError::UnknownAttribute {
        attribute: name.to_owned(),
        data: format!("cohort \"{}\"", cohort.name),
        nearest: nearest(name, cohort.attributes.iter().map(|column| column.name.as_str())),
    })
}

/// Finds the subjects of the site to leave out.
///
/// # Errors
/// [`DataError::UnknownAttribute`], [`DataError::UnknownSite`] if no sample is of the site, [`DataError::MissingSite`]
/// if a subject has no site at all.
pub(super) fn subjects_at<'a>(cohort: &'a Cohort, left_out: &LeaveSiteOut) -> Result<SubjectsAtSite<'a>, DataError> {
    let column = column(cohort, &left_out.site)?;
    let mut sites: BTreeMap<&SubjectId, BTreeSet<&str>> = BTreeMap::new();
    for (sample, site) in cohort.samples.iter().zip(&column.values) {
        sites.entry(&sample.subject_id).or_default().extend(site.as_deref());
    }
    let without: Vec<&&SubjectId> = sites.iter().filter(|(_, sites)| sites.is_empty()).map(|(s, _)| s).collect();
    if let Some(subject) = without.first() {
        let (column, subject) = (left_out.site.clone(), subject.to_string());
        return Err(DataError::MissingSite { column, subject, n_subjects: without.len() });
    }
    let wanted = left_out.leave_out.as_str();
    let here: Vec<_> = sites.iter().filter(|(_, sites)| sites.contains(wanted)).collect();
    if here.is_empty() {
        return Err(DataError::UnknownSite {
            column: left_out.site.clone(),
            site: wanted.to_owned(),
            nearest: nearest(wanted, sites.values().flatten().copied()),
        });
    }
    let n_elsewhere = here.iter().filter(|(_, sites)| sites.len() > 1).count();
    Ok(SubjectsAtSite { at_site: here.into_iter().map(|(subject, _)| *subject).collect(), n_elsewhere })
}
