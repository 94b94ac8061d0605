//! How many columns a split of a tree may choose from.

use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// How many columns are drawn for a split, of p.
///
/// In a file: a number of columns, or one of the words `"sqrt"`, `"sqrt-rounded-up"` and `"all"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ColumnsPerSplit {
    /// The square root of p, rounded down, at least 1: `"sqrt"`.
    #[default]
    Sqrt,
    /// The square root of p, rounded up: `"sqrt-rounded-up"`.
    SqrtRoundedUp,
    /// All: `"all"`.
    All,
    /// This many, at least 1; all if there are fewer.
    Count(usize),
}

/// The words, with what they say.
const WORDS: [(&str, ColumnsPerSplit); 3] = [
    ("sqrt", ColumnsPerSplit::Sqrt),
    ("sqrt-rounded-up", ColumnsPerSplit::SqrtRoundedUp),
    ("all", ColumnsPerSplit::All),
];

impl ColumnsPerSplit {
    /// Columns per split of `p`, in 1 to p.
    pub(crate) fn of(self, p: usize) -> usize {
        let floor = p.isqrt();
        match self {
            Self::Sqrt => floor.max(1),
            Self::SqrtRoundedUp => floor + usize::from(floor * floor < p),
            Self::All => p,
            Self::Count(n) => n.min(p),
        }
    }
}

impl Serialize for ColumnsPerSplit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match (self, WORDS.iter().find(|(_, rule)| rule == self)) {
            (Self::Count(n), _) => serializer.serialize_u64(*n as u64),
            (_, Some((word, _))) => serializer.serialize_str(word),
            (_, None) => Err(serde::ser::Error::custom("a rule without a word")),
        }
    }
}

impl<'de> Deserialize<'de> for ColumnsPerSplit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for ColumnsPerSplit {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ColumnsPerSplit".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let words = WORDS.map(|(word, _)| word);
        schemars::json_schema!({ "anyOf": [{ "type": "integer", "minimum": 1 }, { "type": "string", "enum": words }] })
    }
}

struct Reader;

impl Visitor<'_> for Reader {
    type Value = ColumnsPerSplit;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "a number of columns, \"sqrt\", \"sqrt-rounded-up\" or \"all\"")
    }

    fn visit_u64<E: Error>(self, n: u64) -> Result<ColumnsPerSplit, E> {
        let count = usize::try_from(n).map_err(|_| E::invalid_value(Unexpected::Unsigned(n), &self))?;
        Ok(ColumnsPerSplit::Count(count))
    }

    fn visit_i64<E: Error>(self, n: i64) -> Result<ColumnsPerSplit, E> {
        let count = usize::try_from(n).map_err(|_| E::invalid_value(Unexpected::Signed(n), &self))?;
        Ok(ColumnsPerSplit::Count(count))
    }

    fn visit_str<E: Error>(self, word: &str) -> Result<ColumnsPerSplit, E> {
        let known = WORDS.iter().find(|(known, _)| *known == word);
        known.map(|(_, rule)| *rule).ok_or_else(|| E::invalid_value(Unexpected::Str(word), &self))
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a failed test may panic")]

    use super::*;

    #[test]
    fn roots_are_rounded_as_they_say_and_nothing_leaves_one_to_p() {
        let of = |rule: ColumnsPerSplit| [1, 2, 3, 4, 5, 8, 9, 10].map(|p| rule.of(p));
        assert_eq!(of(ColumnsPerSplit::Sqrt), [1, 1, 1, 2, 2, 2, 3, 3]);
        assert_eq!(of(ColumnsPerSplit::SqrtRoundedUp), [1, 2, 2, 2, 3, 3, 3, 4]);
        assert_eq!(of(ColumnsPerSplit::All), [1, 2, 3, 4, 5, 8, 9, 10]);
        assert_eq!(of(ColumnsPerSplit::Count(4)), [1, 2, 3, 4, 4, 4, 4, 4]);
    }

    #[test]
    fn a_rule_is_written_as_a_word_or_a_number_and_read_again() {
        let all = [
            (ColumnsPerSplit::Sqrt, "\"sqrt\""),
            (ColumnsPerSplit::SqrtRoundedUp, "\"sqrt-rounded-up\""),
            (ColumnsPerSplit::All, "\"all\""),
            (ColumnsPerSplit::Count(3), "3"),
        ];
        for (rule, text) in all {
            assert_eq!(serde_json::to_string(&rule).unwrap(), text);
            assert_eq!(serde_json::from_str::<ColumnsPerSplit>(text).unwrap(), rule);
        }
        for (text, found) in [("\"log2\"", "string \"log2\""), ("-1", "integer `-1`")] {
            let error = serde_json::from_str::<ColumnsPerSplit>(text).unwrap_err().to_string();
            let expected = "a number of columns, \"sqrt\", \"sqrt-rounded-up\" or \"all\"";
            assert!(error.contains(found) && error.contains(expected), "{error}");
        }
    }
}
