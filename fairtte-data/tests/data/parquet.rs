//! Parquet files that are damaged or of types that are not read: one sentence that names the file, never a panic.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fairtte_data::table::{ColumnValues, Table, write_parquet};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

/// Longest time of the search for bytes that panic.
const MOST_TIME: Duration = Duration::from_secs(20);

fn valid(folder: &Path) -> Vec<u8> {
    let path = folder.join("valid.parquet");
    let columns = vec![
        ("sample".to_owned(), ColumnValues::text(["a", "b", "c"])),
        ("event".to_owned(), ColumnValues::OptionalInteger(vec![Some(1), None, Some(0)])),
        ("0.5".to_owned(), ColumnValues::Number(vec![0.75, 0.5, 0.25])),
    ];
    write_parquet(&path, columns, &[("key", "value".to_owned())]).unwrap();
    std::fs::read(path).unwrap()
}

/// Reads every cell of `bytes`; an error is one line that names the file.
fn read(path: &Path, bytes: &[u8]) -> Result<usize, String> {
    std::fs::write(path, bytes).unwrap();
    let cells = || {
        let table = Table::read(path)?;
        for name in table.names() {
            table.text(name)?;
            table.numbers(name)?;
        }
        Ok(table.n_rows())
    };
    let result: Result<usize, fairtte_data::DataError> = cells();
    result.map_err(|error| error.to_string())
}

#[test]
fn damaged_bytes_are_an_error_and_never_a_panic() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = valid(folder.path());
    let path = folder.path().join("damaged.parquet");
    assert_eq!(read(&path, &bytes), Ok(3));
    let checked = |bytes: &[u8]| {
        if let Err(message) = read(&path, bytes) {
            assert!(message.contains("damaged.parquet"), "{message}");
        }
    };
    for length in 0..bytes.len() {
        checked(&bytes[..length]);
    }
    let begun = Instant::now();
    let changes = prop::collection::vec((0..bytes.len(), any::<u8>()), 1..4);
    // Most changes are in the footer, which describes the rest.
    let footer = prop::collection::vec((bytes.len() / 2..bytes.len(), any::<u8>()), 1..4);
    let mut runner = TestRunner::new(Config { cases: 1000, failure_persistence: None, ..Config::default() });
    let searched = runner.run(&prop_oneof![changes, footer], |changes| {
        if begun.elapsed() < MOST_TIME {
            let mut bytes = bytes.clone();
            for (at, byte) in changes {
                bytes[at] = byte;
            }
            checked(&bytes);
        }
        Ok(())
    });
    searched.unwrap();
}

/// Written by pyarrow 26.0.1: columns sample, time, event, and 0 and 1 of float16.
#[test]
fn a_type_that_is_not_read_is_named_with_its_column() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tables/float16.parquet");
    let message = Table::read(&path).unwrap_err().to_string();
    let expected = "float16.parquet cannot be read as a table: column \"0\" has the type Float16, expected text, true or \
                    false, whole numbers of 8 to 64 bits, or numbers of 32 or 64 bits";
    assert!(message.ends_with(expected), "{message}");
}

#[test]
fn other_bytes_named_parquet_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    for bytes in [&b""[..], b"PAR1", b"PAR1PAR1", b"sample,time\na,1\n", &[0; 4096], b"PAR1\xff\xff\xff\xffPAR1"] {
        let message = read(&path, bytes).unwrap_err();
        assert!(message.contains("t.parquet cannot be read as a table: ") && message.lines().count() == 1, "{message}");
    }
}
