//! Typical tables, damaged ones, and arbitrary bytes.

use std::io::Write as _;

use super::*;

const RACE: [WantedColumn; 3] = [required(&["subject_id"]), required(&["race", "ethnicity"]), optional(&["dod"])];

fn read(name: &str, text: &str) -> Result<Vec<Vec<Option<String>>>, DataError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    if name.contains(".gz") {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text.as_bytes()).unwrap();
        std::fs::write(&path, encoder.finish().unwrap()).unwrap();
    } else {
        std::fs::write(&path, text).unwrap();
    }
    let columns = Columns::read(&path, &RACE)?;
    let cell = |position, index| columns.cell(position, index).map(str::to_owned);
    Ok((0..columns.n_rows()).map(|index| (0..3).map(|position| cell(position, index)).collect()).collect())
}

#[test]
fn columns_are_found_by_either_name_in_any_case_order_and_packing() {
    let text = "other,Ethnicity,SUBJECT_ID\n1,\"WHITE, OTHER\",007\nx, ,8\n";
    let expected = vec![
        vec![Some("007".to_owned()), Some("WHITE, OTHER".to_owned()), None],
        vec![Some("8".to_owned()), None, None],
    ];
    for (name, text) in [
        ("plain.csv", text.to_owned()),
        ("zipped.csv.gz", text.to_owned()),
        ("windows.csv", text.replace('\n', "\r\n")),
        ("windows.csv.gz", text.replace('\n', "\r\n")),
        ("mac.csv", text.replace('\n', "\r")),
        ("mac.csv.gz", text.trim_end().replace('\n', "\r")),
        ("doubled.csv", text.replace('\n', "\r\r\n")),
        ("marked.csv", format!("\u{feff}{text}")),
        ("unended.csv", text.trim_end().to_owned()),
        ("misnamed.csv.gz.csv", text.to_owned()),
        ("quoted and marked.csv", format!("\u{feff}\"other\"{}", &text["other".len()..])),
        ("quoted.csv", text.replace("Ethnicity", "\"Ethnicity\"").replace("SUBJECT_ID", "\"SUBJECT_ID\"")),
    ] {
        assert_eq!(read(name, &text).unwrap(), expected, "{name}");
    }
}

#[test]
fn a_missing_column_is_named_with_all_its_names() {
    let error = read("a.csv", "subject_id,rase\n1,WHITE\n").unwrap_err().to_string();
    assert!(error.starts_with("column \"race\" or \"ethnicity\" is not in ") && error.ends_with("\"rase\""), "{error}");
    let error = read("a.csv", "subject_id,race,race\n1,WHITE,x\n").unwrap_err().to_string();
    assert!(error.starts_with("column \"race\" appears more than once"), "{error}");
}

#[test]
fn an_empty_damaged_or_absent_file_is_an_error_that_names_it() {
    for (name, text, why) in [
        ("empty.csv", "", "it is empty"),
        ("empty.csv.gz", "", "it is empty"),
        ("blank.csv", "\n1,2\n", "the first line holds no names of columns"),
        ("cut.csv", "subject_id,race,dod\n1,2,\n3,\"4\n", "a quote opened in row 3 is never closed"),
        ("cut.csv", "subject_id,race,dod\n1,2,\n \n3,4", "row 4 has 2 cells, expected 3 as in the header"),
        ("cut.csv.gz", "note,subject_id,race\n1,2,3\n3\n4,5,6\n", "row 3 has 1 cell, expected 3 as in the header"),
        ("wide.csv", "subject_id,race\n1,2\n1,2,3\n", "row 3 has more cells than the 2 of the header"),
        ("open.csv", "subject_id,race\n1,\"2\n3,4\n", "a quote opened in row 2 is never closed"),
        ("open.csv", "subject_id,\"race", "a quote opened in row 1 is never closed"),
    ] {
        let error = read(name, text).unwrap_err().to_string();
        assert!(error.ends_with(&format!("{name} cannot be read as a table: {why}")), "{error}");
    }
    let error = Columns::read(Path::new("/nowhere/patients.csv"), &RACE).unwrap_err().to_string();
    assert!(error.starts_with("cannot read /nowhere/patients.csv"), "{error}");
}

#[test]
fn quotes_blank_lines_and_empty_cells_too_many_are_read() {
    let text = "subject_id,race,dod\n1,\"a \"\"b\"\", c\nd\",x\n2,,\n\n3,e\"f,,,\n\"4\" ,\"\",";
    let cell = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let row = |cells: [&str; 3]| cells.map(cell).to_vec();
    let expected = vec![
        row(["1", "a \"b\", c\nd", "x"]),
        row(["2", "", ""]),
        row(["", "", ""]),
        row(["3", "e\"f", ""]),
        row(["4", "", ""]),
    ];
    assert_eq!(read("a.csv", text).unwrap(), expected);
}

#[test]
fn lines_that_end_as_on_an_old_mac_are_counted_as_they_stand() {
    let rows = |text: &str| read("mac.csv", text).unwrap();
    let row = |cells: [&str; 2]| vec![Some(cells[0].to_owned()), Some(cells[1].to_owned()), None];
    let blank = vec![None; 3];
    let text = "subject_id,race\r\r\r1,\"a\rb\"\r\r2,c\r";
    assert_eq!(rows(text), [blank.clone(), blank.clone(), row(["1", "a\rb"]), blank, row(["2", "c"])]);
    assert_eq!(rows("subject_id,race\r"), Vec::<Vec<Option<String>>>::new());
    let error = read("mac.csv", "subject_id,race\r1,2\r1,2,3\r").unwrap_err().to_string();
    assert!(error.ends_with("row 3 has more cells than the 2 of the header"), "{error}");
    // A return inside a line of a table with other line ends is part of its cell.
    assert_eq!(rows("subject_id,race\n1,a\rb\n"), [row(["1", "a\rb"])]);
}

#[test]
fn text_that_is_no_utf_8_is_named_by_row_and_only_where_it_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("latin.csv");
    std::fs::write(&path, b"subject_id,note,race\n1,\xe9,a\n2,b,\xe9t\xe9\n").unwrap();
    assert_eq!(Columns::read(&path, &[required(&["subject_id"])]).unwrap().n_rows(), 2);
    let error = Columns::read(&path, &RACE).unwrap_err().to_string();
    assert!(error.ends_with("race in row 3 is no UTF-8 text"), "{error}");
}

#[test]
fn a_gzipped_file_that_ends_early_or_is_damaged_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cut.csv.gz");
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(b"subject_id,race\n1,WHITE\n").unwrap();
    let bytes = encoder.finish().unwrap();
    for cut in 2..bytes.len() {
        std::fs::write(&path, &bytes[..cut]).unwrap();
        let error = Columns::read(&path, &RACE).unwrap_err().to_string();
        assert!(error.contains("cut.csv.gz"), "{cut}: {error}");
    }
    let mut wrong = bytes.clone();
    wrong[bytes.len() - 6] ^= 1;
    std::fs::write(&path, wrong).unwrap();
    assert!(Columns::read(&path, &RACE).is_err(), "the checksum is verified");
    std::fs::write(&path, [bytes.clone(), bytes].concat()).unwrap();
    assert_eq!(Columns::read(&path, &RACE).unwrap().n_rows(), 3, "two members are one file, including the header");
}

proptest::proptest! {
    #[test]
    fn any_bytes_in_any_pieces_give_the_same_cells_and_never_a_panic(
        bytes in proptest::collection::vec(proptest::sample::select(b"a,\"\n\r \xc3".to_vec()), 0..60),
        cut in 0_usize..60,
    ) {
        let path = Path::new("any.csv");
        let wanted = [optional(&["a"]), optional(&["aa"])];
        let all = |pieces: &[&[u8]]| {
            let mut splitter = Splitter::new(path, &wanted);
            for piece in pieces {
                splitter.take(piece).map_err(|error| error.to_string())?;
            }
            let columns = splitter.finish().map_err(|error| error.to_string())?;
            let cell = |position, index| columns.cell(position, index).map(str::to_owned);
            Ok::<_, String>((0..columns.n_rows()).map(|i| [cell(0, i), cell(1, i)]).collect::<Vec<_>>())
        };
        let (first, second) = bytes.split_at(cut.min(bytes.len()));
        proptest::prop_assert_eq!(all(&[&bytes]), all(&[first, second]));
    }
}
