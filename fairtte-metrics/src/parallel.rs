//! Maps on the threads of the current pool.
//!
//! The adaptors of `rayon` are compiled again for every closure that they are called with. Where a call of the closure
//! takes microseconds or more, one loop over a range that calls it through a pointer does the same and is compiled once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

/// The values of the items, in their order for any number of threads.
pub(crate) fn map<I: Send, T: Send>(items: impl IntoIterator<Item = I>, value: impl Fn(I) -> T + Sync) -> Vec<T> {
    let unfinished = |item| Mutex::new((Some(item), None));
    let places: Vec<Mutex<(Option<I>, Option<T>)>> = items.into_iter().map(unfinished).collect();
    for_each(places.len(), &|place| {
        // Only this call locks the place.
        let (item, found) = &mut *places[place].lock().unwrap_or_else(PoisonError::into_inner);
        *found = item.take().map(&value);
    });
    let found = |place: Mutex<(_, Option<T>)>| place.into_inner().unwrap_or_else(PoisonError::into_inner).1;
    places.into_iter().map(|place| found(place).expect("every place has its value")).collect()
}

/// The values of the items, or the first error among those found; after an error no other value is begun.
pub(crate) fn try_map<I: Send, T: Send, E: Send>(
    items: impl IntoIterator<Item = I>,
    value: impl Fn(I) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    let failed = AtomicBool::new(false);
    let found = map(items, |item| {
        let found = (!failed.load(Ordering::Relaxed)).then(|| value(item));
        if matches!(found, Some(Err(_))) {
            failed.store(true, Ordering::Relaxed);
        }
        found
    });
    found.into_iter().flatten().collect()
}

fn for_each(n: usize, work: &(dyn Fn(usize) + Sync)) {
    (0..n).into_par_iter().for_each(work);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_in_the_order_of_the_range_for_any_number_of_threads() {
        for threads in [1, 3] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let squares = pool.install(|| map(0..100, |i| i * i));
            assert_eq!(squares, (0..100).map(|i| i * i).collect::<Vec<_>>());
            assert_eq!(pool.install(|| try_map(0..100, |i| Ok::<_, ()>(i + 1))), Ok((1..=100).collect()));
        }
        assert!(map(0..0, |i| i).is_empty());
    }

    #[test]
    fn an_error_is_returned_and_ends_the_map() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        let begun = Mutex::new(vec![]);
        let even = |i: usize| {
            begun.lock().unwrap().push(i);
            if i == 7 { Err(i) } else { Ok(i) }
        };
        assert_eq!(pool.install(|| try_map(0..1000, even)), Err(7));
        assert!(begun.lock().unwrap().iter().all(|i| *i <= 7), "{begun:?}");
        // The last place as well as the first, and every place.
        assert_eq!(try_map(0..9, |i| if i == 8 { Err("last") } else { Ok(i) }), Err("last"));
        assert!(try_map(0..9, Err::<usize, _>).is_err());
    }
}
