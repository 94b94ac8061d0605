//! Events of several causes: which number in the column of events is what.

use serde::{Deserialize, Serialize};

use crate::{DataError, SettingsOf};

/// Which numbers in the column of events are what, the table `[outcome]` of a run file; 0 is censored.
///
/// An event of a competing kind ends the observation: a subject who had it will not have the event of `cause` any more, whereas
/// a censored one still may. A number that is nowhere in this table is an error.
///
/// ```
/// use fairtte_data::cohort::{CauseOfEnd, OutcomeConfig};
///
/// let outcome: OutcomeConfig = toml::from_str("cause = 1\ncompeting = [2, 3]\ncensored = [9]")?;
/// assert_eq!(outcome.end("1"), Some(CauseOfEnd::Event));
/// assert_eq!(outcome.end("3"), Some(CauseOfEnd::Competing(3)));
/// assert_eq!(outcome.end("9.0"), Some(CauseOfEnd::Censored));
/// assert_eq!(outcome.end("4"), None);
/// # Ok::<(), toml::de::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct OutcomeConfig {
    /// Number of the event that is predicted, at least 1.
    pub cause: u32,
    /// Numbers of events of other kinds, each at least 1; at least one of them.
    pub competing: Vec<u32>,
    /// Numbers that count as censored besides 0, each at least 1, such as that of a withdrawal. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub censored: Vec<u32>,
}

/// What ended the observation of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CauseOfEnd {
    /// It was censored.
    Censored,
    /// The event that is predicted.
    Event,
    /// An event of another kind, by its number.
    Competing(u32),
}

impl OutcomeConfig {
    /// Checks that the numbers are at least 1 and that each is in one place.
    ///
    /// # Errors
    /// [`DataError::InvalidSetting`] naming the key.
    pub fn check(&self) -> Result<(), DataError> {
        let invalid =
            |field, value: String, expected| Err(DataError::setting(SettingsOf::Outcome, field, value, expected));
        if self.competing.is_empty() {
            let expected = "at least one number: events of one kind need no [outcome]";
            return invalid("competing", "[]".to_owned(), expected);
        }
        let mut seen = Vec::new();
        let all = std::iter::once(("cause", &self.cause))
            .chain(self.competing.iter().map(|code| ("competing", code)))
            .chain(self.censored.iter().map(|code| ("censored", code)));
        for (field, code) in all {
            if *code == 0 {
                return invalid(field, "0".to_owned(), "numbers of at least 1: 0 is censored");
            }
            if seen.contains(code) {
                return invalid(field, code.to_string(), "every number once in [outcome]");
            }
            seen.push(*code);
        }
        Ok(())
    }

    /// What the cell `text` says; `None` of a text that is no number in this table.
    pub fn end(&self, text: &str) -> Option<CauseOfEnd> {
        let code: u32 = text.strip_suffix(".0").unwrap_or(text).parse().ok()?;
        if code == 0 || self.censored.contains(&code) {
            Some(CauseOfEnd::Censored)
        } else if code == self.cause {
            Some(CauseOfEnd::Event)
        } else {
            self.competing.contains(&code).then_some(CauseOfEnd::Competing(code))
        }
    }

    /// What is expected of a cell: `0 or 9 (censored), 1 (the event) or 2 or 3 (competing)`.
    pub fn expected(&self) -> String {
        let censored = std::iter::once(0).chain(self.censored.iter().copied()).collect::<Vec<_>>();
        let (censored, competing) = (either(&censored), either(&self.competing));
        format!("{censored} (censored), {} (the event) or {competing} (competing)", self.cause)
    }
}

/// `1`, `1 or 2`, `1, 2 or 3`.
fn either(codes: &[u32]) -> String {
    let texts: Vec<String> = codes.iter().map(u32::to_string).collect();
    match texts.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        _ => texts.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(cause: u32, competing: &[u32], censored: &[u32]) -> OutcomeConfig {
        OutcomeConfig { cause, competing: competing.to_vec(), censored: censored.to_vec() }
    }

    #[test]
    fn a_cell_is_what_the_table_says_and_nothing_else() {
        let outcome = outcome(2, &[1, 5], &[7]);
        let found = ["0", "0.0", "2", "2.0", "1", "5", "7", "3", "-1", "1.5", "true", ""].map(|text| outcome.end(text));
        let (censored, event) = (Some(CauseOfEnd::Censored), Some(CauseOfEnd::Event));
        let [one, five] = [1, 5].map(|code| Some(CauseOfEnd::Competing(code)));
        assert_eq!(found, [censored, censored, event, event, one, five, censored, None, None, None, None, None]);
        assert_eq!(outcome.expected(), "0 or 7 (censored), 2 (the event) or 1 or 5 (competing)");
    }

    #[test]
    fn a_number_in_two_places_and_a_table_without_competing_events_are_refused() {
        let refused = |config: &OutcomeConfig| config.check().err().map(|error| error.to_string()).unwrap_or_default();
        assert_eq!(refused(&outcome(1, &[2, 3], &[4])), "");
        let cases = [
            (outcome(1, &[], &[]), "competing is [], expected at least one number"),
            (outcome(0, &[2], &[]), "cause is 0, expected numbers of at least 1"),
            (outcome(1, &[0], &[]), "competing is 0, expected numbers of at least 1"),
            (outcome(1, &[2], &[0]), "censored is 0, expected numbers of at least 1"),
            (outcome(1, &[2, 1], &[]), "competing is 1, expected every number once"),
            (outcome(1, &[2, 2], &[]), "competing is 2, expected every number once"),
            (outcome(1, &[2], &[2]), "censored is 2, expected every number once"),
        ];
        for (config, message) in cases {
            assert!(refused(&config).starts_with(message), "{config:?}: {}", refused(&config));
        }
    }
}
