//! Counts in sentences.

/// The count with its noun, which gets an s unless it is one: `1 event`, `2 events`.
pub(crate) fn counted(n: usize, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}

/// The form of a verb that agrees with a count: `one` of 1, otherwise `several`.
pub(crate) fn agreeing<'a>(n: usize, one: &'a str, several: &'a str) -> &'a str {
    if n == 1 { one } else { several }
}

#[cfg(test)]
mod tests {
    use super::{agreeing, counted};

    #[test]
    fn one_has_no_s() {
        assert_eq!([0, 1, 2].map(|n| counted(n, "event")), ["0 events", "1 event", "2 events"]);
        assert_eq!([0, 1, 2].map(|n| agreeing(n, "belongs", "belong")), ["belong", "belongs", "belong"]);
    }
}
