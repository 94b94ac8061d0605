//! Parquet tables.
#![no_main]

use fairtte_data::table::Table;
use libfuzzer_sys::fuzz_target;

// The reader takes a file; that of one process is written again for every input.
fuzz_target!(|bytes: &[u8]| {
    let path = std::env::temp_dir().join(format!("fairtte-fuzz-{}.parquet", std::process::id()));
    std::fs::write(&path, bytes).expect("a temporary file can be written");
    let Ok(table) = Table::read(&path) else { return };
    for column in table.names() {
        // A column of a type that has no text is refused by name.
        let Ok(cells) = table.text(column) else { continue };
        assert_eq!(cells.len(), table.n_rows());
        assert!(cells.iter().flatten().all(|cell| !cell.is_empty() && cell.trim() == cell));
    }
});
