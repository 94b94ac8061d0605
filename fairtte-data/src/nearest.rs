//! The existing name that a missing one probably means: by its spelling, or because both are usual names of one thing.

/// Similarity from which spelling alone decides: a letter too many, or another case.
const SAME_SPELLING: f64 = 0.95;
/// Similarity below which a suggestion would be absurd: `race` and `grade` have 0.78, `FF` and `F` 0.85.
const LEAST_SIMILAR: f64 = 0.8;

/// The usual names of one thing in tables of survival data: lower case, without signs between words, best first.
const SYNONYMS: [&[&str]; 8] = [
    &[
        "time",
        "duration",
        "timetoevent",
        "ostime",
        "osdays",
        "osmonths",
        "osyears",
        "survivaltime",
        "survtime",
        "survivaldays",
        "survivalmonths",
        "survivalyears",
        "eventtime",
        "futime",
        "followuptime",
        "followup",
        "followupdays",
        "daystoevent",
        "daystolastfollowup",
        "tte",
        "os",
        "t",
    ],
    &[
        "event",
        "status",
        "eventobserved",
        "observed",
        "death",
        "dead",
        "died",
        "deceased",
        "osevent",
        "osstatus",
        "vitalstatus",
        "fustat",
        "delta",
        "e",
    ],
    &[
        "probability",
        "prob",
        "proba",
        "yprob",
        "yproba",
        "predprob",
        "predictedprobability",
        "phat",
        "ypred",
        "prediction",
        "pred",
        "score",
        "p",
    ],
    &["label", "y", "ytrue", "class", "target", "truth", "groundtruth", "outcome", "diagnosis", "dx"],
    &["sample", "sampleid", "image", "imageid", "imagename", "filename", "file", "id", "patientid", "studyid"],
    &[
        "subject",
        "subjectid",
        "patient",
        "patientid",
        "person",
        "personid",
        "participant",
        "participantid",
        "pid",
        "ptid",
    ],
    &["sex", "gender"],
    &["race", "ethnicity"],
];

/// The candidate that `name` probably means: one that is spelt almost the same, or is another usual name of the same
/// thing (`os_days` for `time`), or is spelt similarly. `None` if no candidate is near.
///
/// Spelling is compared by Jaro-Winkler similarity without regard to case, which is too low for one letter in a short name
/// (`sx`) and for abbreviations (`F`); ties go to the first candidate.
pub(crate) fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let candidates: Vec<&str> = candidates.into_iter().collect();
    let wanted = name.to_lowercase();
    let mut best: Option<(f64, &str)> = None;
    for &candidate in &candidates {
        let candidate_lower = candidate.to_lowercase();
        let is_one_letter_off = wanted.chars().count().min(candidate_lower.chars().count()) > 1
            && strsim::osa_distance(&wanted, &candidate_lower) == 1;
        let is_abbreviation = !candidate_lower.is_empty() && wanted.starts_with(&candidate_lower);
        let least = if is_one_letter_off || is_abbreviation { LEAST_SIMILAR } else { 0.0 };
        let similarity = strsim::jaro_winkler(&wanted, &candidate_lower).max(least);
        if similarity >= LEAST_SIMILAR && best.is_none_or(|(highest, _)| similarity > highest) {
            best = Some((similarity, candidate));
        }
    }
    let by_spelling = |least: f64| best.filter(|(similarity, _)| *similarity >= least).map(|(_, candidate)| candidate);
    by_spelling(SAME_SPELLING)
        .or_else(|| synonym(name, &candidates))
        .or_else(|| by_spelling(LEAST_SIMILAR))
        .map(str::to_owned)
}

/// The first candidate, in the order of [`SYNONYMS`], that is another usual name of what `name` means.
pub(crate) fn synonym<'a>(name: &str, candidates: &[&'a str]) -> Option<&'a str> {
    let plain = |name: &str| -> String {
        name.chars().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase).collect()
    };
    let wanted = plain(name);
    let names = SYNONYMS.iter().find(|names| names.contains(&wanted.as_str()))?;
    names.iter().find_map(|synonym| candidates.iter().find(|candidate| plain(candidate) == *synonym).copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(name: &str, candidates: &[&str]) -> Option<String> {
        nearest(name, candidates.iter().copied())
    }

    #[test]
    fn the_usual_names_of_survival_data_are_known() {
        for (name, column) in [
            ("time", "os_days"),
            ("time", "OS.time"),
            ("time", "futime"),
            ("time", "T"),
            ("event", "fustat"),
            ("event", "OS_event"),
            ("event", "E"),
            ("sample", "image_id"),
            ("sample", "patient_id"),
            ("subject", "PID"),
            ("subject_id", "patient"),
            ("sex", "Gender"),
        ] {
            assert_eq!(found(name, &["age", "grade", column]).as_deref(), Some(column), "{name}");
        }
        assert_eq!(found("time", &["t", "os_time"]).as_deref(), Some("os_time"), "a letter may be anything");
        assert_eq!(found("event", &["event_time", "status"]).as_deref(), Some("status"));
    }

    #[test]
    fn a_misspelt_name_wins_over_a_synonym_and_an_absurd_one_is_not_suggested() {
        assert_eq!(found("time", &["duration", "times"]).as_deref(), Some("times"));
        assert_eq!(found("time", &["tiem", "event"]).as_deref(), Some("tiem"));
        assert_eq!(found("Female", &["M", "F"]).as_deref(), Some("F"));
        assert_eq!(found("sx", &["age", "sex"]).as_deref(), Some("sex"));
        assert_eq!(found("sex", &["SEX", "gender"]).as_deref(), Some("SEX"));
        for (name, candidates) in [
            ("time", &["grade", "centre"][..]),
            ("race", &["grade"]),
            ("X", &["F", "M"]),
            ("event", &[]),
            ("dead", &["0"]),
        ] {
            assert_eq!(found(name, candidates), None, "{name}");
        }
    }
}
