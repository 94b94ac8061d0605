//! What only people can say of a model: the file that `fairtte card --about` reads.

use serde::{Deserialize, Serialize};

/// Statements of the owner of a model for its card, in Markdown; every key may be absent. After sections 4.1 to 4.9 of
/// Mitchell et al. (2019).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub(crate) struct About {
    /// Person or organisation that answers for the model.
    pub(crate) owner: Option<String>,
    /// Where questions and comments go.
    pub(crate) contact: Option<String>,
    /// Licence of the model.
    pub(crate) licence: Option<String>,
    /// How the model is cited, or the publication with more about it.
    pub(crate) citation: Option<String>,
    /// What the model was made for.
    pub(crate) intended_use: Option<String>,
    /// Who is meant to use it.
    pub(crate) intended_users: Option<String>,
    /// What it must not be used for.
    pub(crate) out_of_scope_use: Option<String>,
    /// Groups of people, devices and circumstances for which it may work differently, also those without data.
    pub(crate) relevant_factors: Option<String>,
    /// Why it is evaluated on these data.
    pub(crate) evaluation_data: Option<String>,
    /// Where the training data come from, and with whose consent.
    pub(crate) training_data: Option<String>,
    /// Whether the data are sensitive, and how they are protected.
    pub(crate) sensitive_data: Option<String>,
    /// Whether the model informs decisions that matter to life or health.
    pub(crate) human_life: Option<String>,
    /// What was done against risks.
    pub(crate) mitigations: Option<String>,
    /// Who may be harmed, how likely and how much.
    pub(crate) risks_and_harms: Option<String>,
    /// Known uses that are especially fraught.
    pub(crate) fraught_uses: Option<String>,
    /// What else users should know, and what should be done next.
    pub(crate) caveats: Option<String>,
}

impl About {
    /// Every key with its statement, in the order of the card; a statement without a letter counts as absent.
    pub(crate) fn entries(&self) -> [(&'static str, Option<&str>); 16] {
        let entries = [
            ("owner", &self.owner),
            ("contact", &self.contact),
            ("licence", &self.licence),
            ("citation", &self.citation),
            ("intended-use", &self.intended_use),
            ("intended-users", &self.intended_users),
            ("out-of-scope-use", &self.out_of_scope_use),
            ("relevant-factors", &self.relevant_factors),
            ("evaluation-data", &self.evaluation_data),
            ("training-data", &self.training_data),
            ("sensitive-data", &self.sensitive_data),
            ("human-life", &self.human_life),
            ("mitigations", &self.mitigations),
            ("risks-and-harms", &self.risks_and_harms),
            ("fraught-uses", &self.fraught_uses),
            ("caveats", &self.caveats),
        ];
        entries.map(|(key, text)| (key, text.as_deref().map(str::trim).filter(|text| !text.is_empty())))
    }

    /// The keys without a statement.
    pub(crate) fn missing(&self) -> Vec<&'static str> {
        self.entries().into_iter().filter(|(_, text)| text.is_none()).map(|(key, _)| key).collect()
    }

    /// The statement of a key, which is shown as it is, or the words that there is none.
    pub(super) fn say(&self, key: &str) -> String {
        let text = self.entries().into_iter().find(|(name, _)| *name == key).and_then(|(_, text)| text);
        text.map_or_else(|| NOT_STATED.to_owned(), str::to_owned)
    }
}

/// What the card says where no text was given.
pub(super) const NOT_STATED: &str = "*not stated*";

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed test may panic")]
mod tests {
    use super::*;

    #[test]
    fn every_key_of_the_file_is_an_entry() {
        let keys: Vec<String> = toml::Table::try_from(full()).unwrap().keys().cloned().collect();
        let mut entries: Vec<&str> = About::default().missing();
        entries.sort_unstable();
        assert_eq!(entries, keys);
        assert!(full().missing().is_empty());
        for (key, text) in full().entries() {
            assert_eq!(text, Some(format!("on {key}").as_str()), "an entry has the text of another key");
        }
    }

    fn full() -> About {
        let keys = About::default().missing().into_iter();
        let lines: Vec<String> = keys.map(|key| format!("{key} = \" on {key}\\n\"\n")).collect();
        toml::from_str(&lines.concat()).unwrap()
    }

    #[test]
    fn blanks_are_no_statement() {
        let about = About { owner: Some(" \n".to_owned()), contact: Some(" a@b\n".to_owned()), ..About::default() };
        assert!(about.missing().contains(&"owner") && !about.missing().contains(&"contact"));
        assert_eq!((about.say("owner"), about.say("contact")), (NOT_STATED.to_owned(), "a@b".to_owned()));
    }
}
