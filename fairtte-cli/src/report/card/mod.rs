//! The model card of a run in Markdown, with the sections of Mitchell et al. (2019), "Model Cards for Model Reporting",
//! doi:10.1145/3287560.3287596.
//!
//! Numbers come from the files of the run. What a program cannot know comes from [`About`] or is shown as not stated.

mod about;
mod analyses;
mod data;
#[cfg(test)]
mod tests;

use fairtte_data::Part;
use fairtte_metrics::EvaluationReport;
use fairtte_records::Warning;

pub(crate) use self::about::About;
pub(crate) use self::data::{ClassCount, Who};
use super::FlowRow;
use super::classes::{ClassNumbers, bins};
use super::format::short;
use super::rows;
use super::tables::markdown::escape;
use super::verdict::percent_of;
use super::words::{small_sample, small_sample_of_class, statements};

/// Everything that the card shows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Card<'a> {
    /// Name of the run.
    pub(crate) name: &'a str,
    /// What its owner says.
    pub(crate) about: &'a About,
    /// Name and value of what was trained and how.
    pub(crate) model: &'a [(&'static str, String)],
    /// Name and value of where the samples, labels and inputs come from.
    pub(crate) data: &'a [(&'static str, String)],
    /// How the groups were made, single attributes first.
    pub(crate) attributes: &'a [Attribute],
    /// How the samples were divided into parts.
    pub(crate) split: &'a str,
    /// From the rows read to the samples.
    pub(crate) flow: &'a [FlowRow],
    /// Who is in each part: all samples, then every group.
    pub(crate) parts: &'a [(Part, Who)],
    /// The distribution shift of the training part, if there is one.
    pub(crate) shift: Option<&'a str>,
    /// The evaluation of the test part.
    pub(crate) evaluation: &'a EvaluationReport,
    /// Where a class is predicted: what only a class has.
    pub(crate) class: Option<CardClass<'a>>,
    /// The unit of all times; may be empty.
    pub(crate) time_unit: &'a str,
    /// Remarks on samples outside the times of the curves.
    pub(crate) coverage: &'a [String],
    /// Warnings of training and evaluation.
    pub(crate) warnings: &'a [Warning],
    /// Evaluations on other data.
    pub(crate) externals: &'a [External],
}

/// The evaluation of a class.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CardClass<'a> {
    pub(crate) numbers: ClassNumbers<'a>,
    /// Where the threshold comes from, in a sentence.
    pub(crate) threshold: &'a str,
}

/// How the groups of an attribute were made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Attribute {
    pub(crate) name: String,
    pub(crate) levels: Vec<String>,
    /// In words, for example `cut at 60`.
    pub(crate) made: String,
    /// Samples of the cohort in none of the groups.
    pub(crate) n_missing: usize,
    pub(crate) is_intersection: bool,
}

/// An evaluation on other data.
#[derive(Clone, Debug)]
pub(crate) struct External {
    pub(crate) name: String,
    /// The part that was evaluated; `all` without a split.
    pub(crate) part: String,
    pub(crate) report: EvaluationReport,
    /// One sentence each.
    pub(crate) warnings: Vec<String>,
    /// How the files show that it is of this model; `None` where only the caller says so.
    pub(crate) shown_by: Option<String>,
}

impl Card<'_> {
    /// The card as Markdown.
    pub(crate) fn markdown(&self) -> String {
        let sections = [
            self.head(),
            self.model_details(),
            self.intended_use(),
            self.factors(),
            self.metrics(),
            self.evaluation_data(),
            self.training_data(),
            self.analyses(),
            self.ethics(),
            self.caveats(),
        ];
        sections.join("\n")
    }

    fn head(&self) -> String {
        let missing = self.about.missing();
        let mut text = format!("# Model card: {}\n\n", escape(self.name));
        text.extend([format!(
            "A card after Mitchell et al. (2019), \"Model Cards for Model Reporting\", doi:10.1145/3287560.3287596, written \
             by fairtte {} from the files of a training run. What a program cannot know was written by the owner of the \
             model, or is marked {}.\n",
            env!("CARGO_PKG_VERSION"),
            about::NOT_STATED
        )]);
        if !missing.is_empty() {
            let keys: Vec<String> = missing.iter().map(|key| format!("`{key}`")).collect();
            text.extend([format!(
                "\nNot stated ({} of {}): {}.\n",
                missing.len(),
                self.about.entries().len(),
                keys.join(", ")
            )]);
        }
        text
    }

    fn model_details(&self) -> String {
        let said = |key| one_line(&self.about.say(key));
        let owned = [
            ("person or organisation", said("owner")),
            ("contact", said("contact")),
            ("licence", said("licence")),
            ("citation", said("citation")),
        ];
        // What the owner says is Markdown already.
        let owned: Vec<String> = owned.iter().map(|(name, text)| format!("- **{name}**: {text}\n")).collect();
        format!("## Model details\n\n{}{}", owned.concat(), facts(self.model))
    }

    fn intended_use(&self) -> String {
        let said = [
            ("Primary intended uses", "intended-use"),
            ("Primary intended users", "intended-users"),
            ("Out-of-scope uses", "out-of-scope-use"),
        ];
        format!("## Intended use\n\n{}", self.paragraphs(&said))
    }

    fn factors(&self) -> String {
        let relevant = self.paragraphs(&[("Relevant factors", "relevant-factors")]);
        let mut text = format!("## Factors\n\n{relevant}\n**Evaluated factors.** ");
        if self.attributes.is_empty() {
            return text + "None: no attribute was given, so nothing is known about differences between groups.\n";
        }
        text += "The groups by which the model was evaluated:\n\n";
        for attribute in self.attributes {
            let levels: Vec<String> = attribute.levels.iter().map(|level| escape(level)).collect();
            let (name, made) = (escape(&attribute.name), escape(&attribute.made));
            text.extend([format!("- **{name}** ({made}): {}", levels.join(", "))]);
            if attribute.n_missing > 0 {
                text.extend([format!("; samples in none of them: {}", attribute.n_missing)]);
            }
            text += ".\n";
        }
        text + "\nDevices, sites and other circumstances of the images are evaluated only if they are among these.\n"
    }

    fn metrics(&self) -> String {
        let report = self.evaluation;
        let mut text = "## Metrics\n\n".to_owned();
        for metric in report.metrics.iter().filter(|metric| rows::same_as(report, metric).is_none()) {
            let convention = metric.convention.trim_end_matches('.');
            text.extend([format!(
                "- **{}** ({}): {}.\n",
                escape(&metric.label),
                rows::direction(metric),
                escape(convention)
            )]);
        }
        let settings = &report.settings;
        let mut choices = self.choices();
        choices.push(("intervals", rows::bootstrap(settings)));
        if settings.min_events > 0 {
            let counted = if self.class.is_some() { "samples of the rarer class" } else { "events" };
            let few = format!(
                "groups with at least {} {counted}; the others are shown and not compared",
                settings.min_events
            );
            choices.push(("compared", few));
        }
        if !settings.thresholds.is_empty() {
            let shares: Vec<String> = settings.thresholds.iter().map(|share| percent_of(*share)).collect();
            choices.push(("decision thresholds", format!("predicted risks of {}", shares.join(", "))));
        }
        text + "\nHow they were computed:\n\n" + &facts(&choices)
    }

    /// What the values depend on, apart from their intervals.
    fn choices(&self) -> Vec<(&'static str, String)> {
        let report = self.evaluation;
        let weights = ("weights for censoring", "from the training part".to_owned());
        let Some(class) = &self.class else {
            return vec![
                ("curves read", report.reading.clone()),
                ("evaluation times", rows::window(report, self.time_unit)),
                ("horizon", horizon(report, self.time_unit)),
                weights,
            ];
        };
        let mut choices =
            vec![("threshold", class.threshold.to_owned()), ("bins of ECE", bins(&class.numbers.report.class))];
        if let Some(found) = class.numbers.horizon {
            choices.push(("class", format!("an event by {}", rows::with_unit(found.horizon, self.time_unit))));
            choices.push(weights);
        }
        choices
    }

    fn ethics(&self) -> String {
        let said = [
            ("Sensitive data", "sensitive-data"),
            ("Human life", "human-life"),
            ("Mitigations", "mitigations"),
            ("Risks and harms", "risks-and-harms"),
            ("Fraught uses", "fraught-uses"),
        ];
        format!("## Ethical considerations\n\n{}", self.paragraphs(&said))
    }

    fn caveats(&self) -> String {
        let mut text = format!("## Caveats and recommendations\n\n{}", self.paragraphs(&[("Of the owner", "caveats")]));
        text += "\n**Found by the program.**\n\n";
        let mut found: Vec<String> = self.warnings.iter().map(|warning| format!("Warning: {}", warning.text)).collect();
        for external in self.externals {
            found.extend(external.warnings.iter().map(|warning| format!("Warning of {}: {warning}", external.name)));
        }
        found.extend(match self.class {
            Some(_) => {
                small_sample_of_class(self.evaluation, "(Vergouwe et al. 2005, doi:10.1016/j.jclinepi.2004.06.017)")
            }
            None => small_sample(self.evaluation, "(Collins, Ogundimu & Altman 2016, doi:10.1002/sim.6787)"),
        });
        let wanted = ["Small groups", "Not computed", "About gaps"];
        let said = statements(self.evaluation).into_iter().filter(|said| wanted.contains(&said.topic.as_str()));
        found.extend(said.flat_map(|said| {
            let topic = said.topic;
            said.lines.into_iter().map(move |line| format!("{topic}: {line}"))
        }));
        found.extend(self.coverage.iter().cloned());
        if self.externals.is_empty() {
            found.push(
                "The model was validated on a part of the data that it was trained on. How it does in other hospitals, with \
                 other devices or in other years is not known from this card."
                    .to_owned(),
            );
        }
        let said: Vec<&str> =
            self.externals.iter().filter(|of| of.shown_by.is_none()).map(|of| of.name.as_str()).collect();
        if !said.is_empty() {
            found.push(format!(
                "That the external evaluations are those of this model was said when the card was written; their files do \
                 not show it: {}.",
                said.join(", ")
            ));
        }
        text + &list(&found)
    }

    /// Paragraphs with a title and what the owner says.
    fn paragraphs(&self, said: &[(&str, &str)]) -> String {
        said.iter().map(|(title, key)| format!("**{title}.** {}\n", self.about.say(key))).collect::<Vec<_>>().join("\n")
    }
}

/// The time of the risks, or why there is none.
fn horizon(report: &EvaluationReport, time_unit: &str) -> String {
    let undefined = || report.horizon_undefined.clone().map_or_else(|| "none".to_owned(), |why| format!("none: {why}"));
    report.horizon.map_or_else(undefined, |time| format!("{} {time_unit}", short(time)).trim_end().to_owned())
}

/// Names and values as a list.
fn facts(facts: &[(&str, String)]) -> String {
    facts.iter().map(|(name, text)| format!("- **{name}**: {}\n", escape(text))).collect::<Vec<_>>().concat()
}

fn list(sentences: &[String]) -> String {
    sentences.iter().map(|sentence| format!("- {}\n", escape(sentence))).collect::<Vec<_>>().concat()
}

/// A text of several lines in one, so that it stays in its place of a list.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
