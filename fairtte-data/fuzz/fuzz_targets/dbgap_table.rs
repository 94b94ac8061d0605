//! dbGaP text tables.
#![no_main]

use std::path::Path;

use fairtte_data::adapters::areds::DbgapTable;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(table) = DbgapTable::parse(Path::new("table.txt"), bytes) else { return };
    let mut line_before = 0;
    for row in table.rows() {
        assert!(row.line > line_before, "rows come in the order of their lines");
        line_before = row.line;
        for column in 0..table.names().len() {
            assert!(row.cell(column).is_none_or(|cell| !cell.is_empty() && cell == cell.trim()));
        }
        assert_eq!(row.cell(table.names().len()), None, "a cell beyond the header has no name");
    }
    for name in table.names().iter().filter(|name| !name.is_empty()) {
        let column = table.column(name).expect("a column of the header is found");
        assert!(table.names()[column].eq_ignore_ascii_case(name));
    }
});
