//! Tables with various separators, line ends and compression, Parquet, and damaged tables.

use std::path::Path;

use fairtte_data::cohort::{Label, Unlabelled};
use fairtte_data::table::{ColumnValues, Table, write_csv, write_parquet};
use fairtte_data::{Adapter as _, DataError, Generic, GenericConfig};

use crate::make::write_maybe_gzipped;

const TEXT: &str = "image,subject_id,time,event\na.png,1,2.5,1\nb.png,2,3,0\n";

fn write(folder: &Path, name: &str, text: &str) -> std::path::PathBuf {
    let path = folder.join(name);
    write_maybe_gzipped(&path, text.as_bytes());
    path
}

#[test]
fn the_same_rows_are_read_from_every_format() {
    let folder = tempfile::tempdir().unwrap();
    let column = |name: &str, cells: [&str; 2]| (name.to_owned(), ColumnValues::text(cells));
    let parquet = folder.path().join("p.parquet");
    let columns = vec![
        column("image", ["a.png", "b.png"]),
        ("subject_id".to_owned(), ColumnValues::Integer(vec![1, 2])),
        ("time".to_owned(), ColumnValues::Number(vec![2.5, 3.0])),
        ("event".to_owned(), ColumnValues::Integer(vec![1, 0])),
    ];
    write_parquet(&parquet, columns, &[]).unwrap();
    let paths = [
        write(folder.path(), "plain.csv", TEXT),
        write(folder.path(), "no_last_newline.csv", TEXT.trim_end()),
        write(folder.path(), "windows.csv", &TEXT.replace('\n', "\r\n")),
        write(folder.path(), "byte_order_mark.csv", &format!("\u{feff}{TEXT}")),
        write(folder.path(), "quoted.csv", &TEXT.replace("a.png", "\"a.png\"").replace("time", "\"time\"")),
        write(folder.path(), "spaces.csv", &TEXT.replace("2.5", " 2.5 ")),
        write(folder.path(), "zipped.csv.gz", TEXT),
        write(folder.path(), "TABS.TSV", &TEXT.replace(',', "\t")),
        parquet,
    ];
    for path in paths {
        let Unlabelled { manifest, rule, .. } = Generic::new(GenericConfig::new(&path)).read().unwrap();
        let cells: Vec<_> = manifest
            .rows
            .iter()
            .map(|row| (row.image.clone().unwrap(), row.subject_id.clone().unwrap().to_string()))
            .collect();
        let expected = ["a.png", "b.png"].map(|name| folder.path().join(name));
        assert_eq!(cells, expected.into_iter().zip(["1".to_owned(), "2".to_owned()]).collect::<Vec<_>>(), "{path:?}");
        let labels = [0, 1].map(|index| rule.label(&manifest, index).unwrap());
        let expected = [(2.5, true), (3.0, false)].map(|(time, event)| Label::Kept { time, event });
        assert_eq!(labels, expected, "{path:?}");
        let first_row = if path.ends_with("p.parquet") { 1 } else { 2 };
        assert_eq!(manifest.rows[0].source_row, first_row);
    }
}

#[test]
fn what_is_no_table_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let message = |name: &str, text: &str| Table::read(&write(folder.path(), name, text)).unwrap_err().to_string();
    assert!(message("cohort.xlsx", "").contains("cohort.xlsx") && message("cohort.xlsx", "").contains(".parquet"));
    assert!(message("empty.csv", "").contains("empty.csv cannot be read as a table"));
    assert!(message("wide.csv", "a,b\n1,2,3\n").contains("wide.csv cannot be read as a table"));
    assert!(message("text.parquet", "PAR1 no").contains("text.parquet cannot be read as a table"));
    assert_eq!(
        message("twice.csv", "time,event,time\n1,0,2\n"),
        format!(
            "column \"time\" appears more than once in {}, expected each name once",
            folder.path().join("twice.csv").display()
        )
    );
    let missing = Table::read(&folder.path().join("nowhere.csv")).unwrap_err();
    assert!(matches!(missing, DataError::Read { .. }) && missing.to_string().contains("nowhere.csv"));
}

#[test]
fn a_short_row_is_refused_and_empty_cells_are_missing() {
    let folder = tempfile::tempdir().unwrap();
    let message = Table::read(&write(folder.path(), "cut.csv", "a,b,c\n1,2,3\n4\n")).unwrap_err().to_string();
    let expected = "cut.csv cannot be read as a table: line 3 has 1 cell, expected 3 as in the first line";
    assert!(message.contains(expected), "{message}");
    let table = Table::read(&write(folder.path(), "whole.csv", "a,b,c\n1,2,3\n4,,\n,,\n")).unwrap();
    let cell = |text: &str| Some(text.to_owned());
    assert_eq!(table.text("a").unwrap(), [cell("1"), cell("4"), None]);
    assert_eq!(table.text("c").unwrap(), [cell("3"), None, None]);
    assert_eq!(table.row(1), 3);
}

#[test]
fn numbers_keep_every_bit_and_text_that_is_none_is_returned() {
    let folder = tempfile::tempdir().unwrap();
    let values = vec![0.1 + 0.2, f64::MIN_POSITIVE, 1e300, -0.0];
    for name in ["n.parquet", "n.csv"] {
        let path = folder.path().join(name);
        let columns = vec![("x".to_owned(), ColumnValues::Number(values.clone()))];
        let written = if name == "n.csv" { write_csv(&path, columns) } else { write_parquet(&path, columns, &[]) };
        written.unwrap();
        let read: Vec<u64> =
            Table::read(&path).unwrap().numbers("x").unwrap().into_iter().map(|v| v.unwrap().to_bits()).collect();
        assert_eq!(read, values.iter().map(|v| v.to_bits()).collect::<Vec<_>>(), "{name}");
    }
    let table = Table::read(&write(folder.path(), "mixed.csv", "x,y\n1,1\ntwo,1\n,1\n")).unwrap();
    assert_eq!(table.numbers("x").unwrap(), [Ok(1.0), Err("two".to_owned()), Err(String::new())]);
}

#[test]
#[cfg(unix)]
fn an_unwritable_folder_is_named_and_left_as_it_was() {
    // A folder below a file cannot be written by any user, not even by root.
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), "file", "x");
    let columns = vec![("x".to_owned(), ColumnValues::Number(vec![1.0]))];
    let message = write_parquet(&file.join("p.parquet"), columns, &[]).unwrap_err().to_string();
    assert!(message.starts_with("cannot write ") && message.contains("p.parquet"), "{message}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}
