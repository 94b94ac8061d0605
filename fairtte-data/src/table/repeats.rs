//! Names that occur more than once in a long list.
//!
//! A hash map of half a million names has a cache miss for every name. Instead, their hashes are computed and sorted in
//! parallel, and names are compared only if two hashes are equal. The seed of the hash is random for every call, so a
//! malicious file cannot make all names collide.

use std::hash::{BuildHasher as _, RandomState};

use rayon::prelude::*;

/// For every name that occurs earlier: (position of the first occurrence, this position), ordered by this position.
///
/// ```text
/// [a, b, -, a, c, a] gives [(0, 3), (0, 5)]
/// ```
pub(crate) fn repeats(names: &[Option<&str>]) -> Vec<(usize, usize)> {
    let seed = RandomState::new();
    let key = |(place, name): (usize, Option<&str>)| Some((seed.hash_one(name?), place));
    repeats_among(names, names.par_iter().copied().enumerate().filter_map(key).collect())
}

/// The same for names with their hashes.
fn repeats_among(names: &[Option<&str>], mut keys: Vec<(u64, usize)>) -> Vec<(usize, usize)> {
    keys.par_sort_unstable();
    let mut repeats = Vec::new();
    for same_hash in keys.chunk_by(|a, b| a.0 == b.0) {
        for (i, &(_, place)) in same_hash.iter().enumerate().skip(1) {
            let first = same_hash[..i].iter().find(|(_, other)| names[*other] == names[place]);
            repeats.extend(first.map(|&(_, first)| (first, place)));
        }
    }
    repeats.sort_unstable_by_key(|&(_, place)| place);
    repeats
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_repetition_is_found_with_its_first_place() {
        let names = [Some("a"), Some("b"), None, Some("a"), None, Some("c"), Some("a"), Some("b"), Some("")];
        let expected = [(0, 3), (0, 6), (1, 7)];
        assert_eq!(repeats(&names), expected);
        let collisions = (0..names.len()).filter(|&i| names[i].is_some()).map(|place| (7, place)).collect();
        assert_eq!(repeats_among(&names, collisions), expected, "names decide where hashes are the same");
        assert_eq!(repeats(&[]), []);
    }

    #[test]
    fn a_long_list_gives_what_a_map_gives() {
        let names: Vec<String> = (0..5000_u64).map(|i| format!("{}", i.wrapping_mul(i) % 3001)).collect();
        let names: Vec<Option<&str>> = names.iter().map(|name| Some(name.as_str())).collect();
        let mut first = std::collections::HashMap::new();
        let expected = names.iter().enumerate().filter_map(|(place, name)| {
            let earlier = *first.entry(*name).or_insert(place);
            (earlier < place).then_some((earlier, place))
        });
        assert_eq!(repeats(&names), expected.collect::<Vec<_>>());
    }
}
