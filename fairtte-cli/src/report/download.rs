//! The numbers of a page as a table that is embedded in it, so that the page alone is enough.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;

/// What is written as %XX in an address.
const ADDRESS: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A table for download.
#[derive(Serialize)]
pub(super) struct Download<'a> {
    /// That of the file beside the page.
    name: &'a str,
    /// The table as a `data:` address.
    address: String,
}

impl<'a> Download<'a> {
    /// The table with this text (CSV).
    pub(super) fn new(name: &'a str, text: &str) -> Self {
        Self { name, address: format!("data:text/csv;charset=utf-8,{}", utf8_percent_encode(text, ADDRESS)) }
    }
}
