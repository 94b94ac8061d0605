//! The settings of a run as they are written, for what is looked up by its name: builds without training do not know the
//! types of all tables.

use toml::{Table, Value};

use super::RunFile;

/// All settings of a run file as a table.
pub(crate) struct Written(Table);

impl RunFile {
    /// The settings as they are written; empty if one has no form in TOML, which [`to_toml`](Self::to_toml) reports.
    pub(crate) fn written(&self) -> Written {
        Written(self.table().unwrap_or_default())
    }
}

impl Written {
    /// The value of a key by its path, as text: `word("model.backbone")`; empty if the run file does not have it.
    pub(crate) fn word(&self, path: &str) -> String {
        let (table, key) = path.rsplit_once('.').unwrap_or(("", path));
        self.table(table).and_then(|table| table.get(key)).map_or_else(String::new, |value| match value {
            Value::String(text) => text.clone(),
            value => value.to_string(),
        })
    }

    /// A table by its path.
    fn table(&self, path: &str) -> Option<&Table> {
        path.split('.').filter(|name| !name.is_empty()).try_fold(&self.0, |table, name| table.get(name)?.as_table())
    }

    /// The variant that a table chooses, and its settings: `choice("head")`.
    fn chosen(&self, table: &str) -> Option<(&String, &Value)> {
        self.table(table)?.iter().next()
    }

    /// The name of the variant that a table chooses; empty if there is none.
    pub(crate) fn choice(&self, table: &str) -> String {
        self.chosen(table).map_or_else(String::new, |(name, _)| name.clone())
    }

    /// As [`choice`](Self::choice), with the settings of the variant: `sam (adaptive = false, rho = 0.05)`.
    pub(crate) fn choice_with_settings(&self, table: &str) -> String {
        let Some((name, settings)) = self.chosen(table) else { return String::new() };
        let settings = settings.as_table().map(ToString::to_string).unwrap_or_default();
        let settings: Vec<&str> = settings.lines().collect();
        if settings.is_empty() { name.clone() } else { format!("{name} ({})", settings.join(", ")) }
    }

    /// `text` of a library, in which names of settings stand in backquotes, with their keys: `` `gamma` `` becomes
    /// `strategy.febs.gamma` if `strategy.febs` is the first of `tables` that has it. Other text in backquotes stays.
    #[cfg(feature = "train")]
    pub(crate) fn with_keys(&self, text: &str, tables: &[&str]) -> String {
        let key = |name: &str| {
            let table = tables.iter().find(|path| self.table(path).is_some_and(|table| table.contains_key(name)))?;
            Some(format!("{table}.{name}"))
        };
        if text.matches('`').count() % 2 == 1 {
            return text.to_owned();
        }
        // Every second part is between two backquotes.
        let parts = text.split('`').enumerate().map(|(place, part)| match place % 2 {
            0 => part.to_owned(),
            _ => key(part).unwrap_or_else(|| format!("`{part}`")),
        });
        parts.collect()
    }

    /// The values of a table, as `flip = "none", rotation = 0.0`; empty if there are none.
    pub(crate) fn settings(&self, table: &str) -> String {
        let settings = self.table(table).map(ToString::to_string).unwrap_or_default();
        settings.lines().collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(feature = "train")]
    #[test]
    fn names_of_settings_become_keys_of_the_first_table_that_has_them() {
        let text = "seed = 7\n[strategy.sam]\nrho = 0.5\n[training]\nepochs = 2\nrho = 1.0\n";
        let written = Written(text.parse().expect("valid TOML"));
        let said =
            written.with_keys("`rho`: raise `epochs`, not `seed` or rho.", &["strategy.sam", "training", "none"]);
        assert_eq!(said, "strategy.sam.rho: raise training.epochs, not `seed` or rho.");
    }

    #[test]
    fn keys_are_found_by_their_path_and_choices_by_their_table() {
        let text = "seed = 7\n[model]\nbackbone = \"mlp\"\n[head.pmf]\n[strategy.sam]\nrho = 0.5\nsteps = 2\n";
        let written = Written(text.parse().expect("valid TOML"));
        assert_eq!(["seed", "model.backbone"].map(|path| written.word(path)), ["7", "mlp"]);
        assert_eq!(["model.width", "none.width", "seed.width", ""].map(|path| written.word(path)), [""; 4]);
        assert_eq!(["head", "strategy", "none", "seed"].map(|table| written.choice(table)), ["pmf", "sam", "", ""]);
        let with_settings = ["head", "strategy", "none"].map(|table| written.choice_with_settings(table));
        assert_eq!(with_settings, ["pmf", "sam (rho = 0.5, steps = 2)", ""]);
        assert_eq!(
            ["strategy.sam", "model", "head.pmf", "none"].map(|table| written.settings(table)),
            ["rho = 0.5, steps = 2", "backbone = \"mlp\"", "", ""]
        );
    }
}
