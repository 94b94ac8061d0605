//! From any bytes to calls of every public function, with what must hold of all of their results.

mod bias;
mod calibration;
mod check;
mod evaluation;
mod input;
mod rank;
mod resampling;
mod scores;
mod statistics;

use input::Input;

/// The number of families of functions, one of which the first byte chooses.
pub const N_FAMILIES: u8 = 8;

/// Panics if a function returns an invalid result for the input that `bytes` describe.
pub fn try_everything(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    match input.byte() % N_FAMILIES {
        0 => rank::try_all(&mut input),
        1 => scores::try_all(&mut input),
        2 => calibration::try_all(&mut input),
        3 => evaluation::try_all(&mut input),
        4 => evaluation::try_groups(&mut input),
        5 => bias::try_all(&mut input),
        6 => resampling::try_all(&mut input),
        _ => statistics::try_all(&mut input),
    }
}
