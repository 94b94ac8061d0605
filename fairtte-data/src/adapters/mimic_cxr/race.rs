//! Race of a person from the races recorded at admissions, and its assignment to the two groups of the paper.
//!
//! A race is informative unless it is empty, `?`, `UNKNOWN`, `UNABLE TO OBTAIN` or declined. `WHITE` and every
//! `WHITE - ..` is White, everything else informative is Non-White; `PORTUGUESE` is an option.

use super::config::{MimicCxrConfig, RaceChoice, UnknownRace};

/// The level of the reference group.
pub(super) const WHITE: &str = "White";
/// The level of all other people.
pub(super) const NON_WHITE: &str = "Non-White";
/// Both levels, in the order of their groups.
pub(super) const LEVELS: [&str; 2] = [NON_WHITE, WHITE];

/// Whether `race` says anything about the person.
pub(super) fn is_informative(race: &str) -> bool {
    let race = race.trim().to_ascii_uppercase();
    let says_nothing = race.is_empty()
        || race == "?"
        || race.starts_with("UNKNOWN")
        || race.starts_with("UNABLE TO OBTAIN")
        || race.contains("DECLINED TO ANSWER");
    !says_nothing
}

/// The race that is used among those of a person's admissions, given in their order; `None` without an admission.
///
/// If none is informative, it is the first (or last) non-empty one, even if only `?`.
pub(super) fn choose<'a>(races: &[&'a str], choice: RaceChoice) -> Option<&'a str> {
    let informative: Vec<&str> = races.iter().copied().filter(|race| is_informative(race)).collect();
    if informative.is_empty() {
        let written = |race: &&&'a str| !race.is_empty();
        let chosen = match choice {
            RaceChoice::First | RaceChoice::Mode => races.iter().find(written),
            RaceChoice::Last => races.iter().rfind(written),
        };
        return chosen.or(races.first()).copied();
    }
    let count = |race: &str| informative.iter().filter(|other| **other == race).count();
    match choice {
        RaceChoice::First => informative.first().copied(),
        RaceChoice::Last => informative.last().copied(),
        // `max_by_key` returns the last of equal ones; the first is wanted.
        RaceChoice::Mode => informative.iter().rev().copied().max_by_key(|race| count(race)),
    }
}

/// The interpretation of a chosen race.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Meaning {
    /// White or Non-White; `None` if the person belongs to neither.
    pub(super) level: Option<&'static str>,
    /// Whether the race is not known.
    pub(super) is_unknown: bool,
    /// Whether the options leave the person out.
    pub(super) is_dropped: bool,
}

/// The interpretation of `race` under the options; `None` is a person without admission.
pub(super) fn meaning(race: Option<&str>, config: &MimicCxrConfig) -> Meaning {
    let unknown = |rule: UnknownRace| Meaning {
        level: (rule == UnknownRace::NonWhite).then_some(NON_WHITE),
        is_unknown: true,
        is_dropped: rule == UnknownRace::Drop,
    };
    let Some(race) = race else { return unknown(config.without_admission()) };
    if !is_informative(race) {
        return unknown(config.unknown_race);
    }
    let race = race.trim().to_ascii_uppercase();
    let is_white = race.starts_with("WHITE") || (config.portuguese_white && race == "PORTUGUESE");
    Meaning { level: Some(if is_white { WHITE } else { NON_WHITE }), is_unknown: false, is_dropped: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_last_or_most_frequent_informative_race_counts() {
        let races = ["UNKNOWN", "ASIAN", "WHITE", "OTHER", "WHITE", "OTHER", "PATIENT DECLINED TO ANSWER"];
        assert_eq!(choose(&races, RaceChoice::First), Some("ASIAN"));
        assert_eq!(choose(&races, RaceChoice::Last), Some("OTHER"));
        assert_eq!(choose(&races, RaceChoice::Mode), Some("WHITE"), "as frequent as OTHER, and earlier");
        assert_eq!(choose(&["", "?", "UNKNOWN"], RaceChoice::First), Some("?"));
        assert_eq!(choose(&["?", "UNKNOWN", ""], RaceChoice::Last), Some("UNKNOWN"));
        assert_eq!(choose(&["", ""], RaceChoice::Last), Some(""));
        assert_eq!(choose(&[], RaceChoice::Mode), None);
    }

    #[test]
    fn white_is_a_prefix_and_portuguese_an_option() {
        let level = |race: &str, config: &MimicCxrConfig| meaning(Some(race), config).level;
        let config = MimicCxrConfig::default();
        for race in ["WHITE", "WHITE - RUSSIAN", "White - Brazilian"] {
            assert_eq!(level(race, &config), Some(WHITE), "{race}");
        }
        for race in ["PORTUGUESE", "HISPANIC OR LATINO", "UNKNOWN", "", "?", "UNABLE TO OBTAIN", "OTHER"] {
            assert_eq!(level(race, &config), Some(NON_WHITE), "{race}");
        }
        let config = MimicCxrConfig { portuguese_white: true, ..config };
        assert_eq!(level("PORTUGUESE", &config), Some(WHITE));
    }

    #[test]
    fn who_has_no_known_race_is_counted_left_without_group_or_dropped() {
        let config = MimicCxrConfig { unknown_race: UnknownRace::Drop, ..MimicCxrConfig::default() };
        assert!(meaning(Some("PATIENT DECLINED TO ANSWER"), &config).is_dropped);
        assert!(meaning(None, &config).is_dropped, "no other rule is set for people without admission");
        let config = MimicCxrConfig { race_without_admission: Some(UnknownRace::Missing), ..config };
        assert_eq!(meaning(None, &config), Meaning { level: None, is_unknown: true, is_dropped: false });
        assert!(!meaning(Some("ASIAN"), &config).is_unknown);
    }
}
