//! CSV and TSV tables, plain and gzipped.
#![no_main]

use std::path::Path;

use fairtte_data::table::Table;
use libfuzzer_sys::fuzz_target;

const NAMES: [&str; 4] = ["t.csv", "t.tsv", "t.csv.gz", "t.tsv.gz"];

fuzz_target!(|bytes: &[u8]| {
    let Some((first, bytes)) = bytes.split_first() else { return };
    let name = Path::new(NAMES[usize::from(*first) % NAMES.len()]);
    let Ok(table) = Table::parse(name, bytes.to_vec()) else { return };
    for column in table.names() {
        let cells = table.text(column).expect("a column of the header is found");
        assert_eq!(cells.len(), table.n_rows());
        assert!(cells.iter().flatten().all(|cell| !cell.is_empty() && cell.trim() == cell));
        assert_eq!(table.numbers(column).expect("the same column").len(), table.n_rows());
    }
});
