//! The encoding of each kind of column, its independence of rows outside the training part, and the errors.
#![expect(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

use std::fmt::Write as _;

use approx::assert_relative_eq;
use proptest::prelude::*;

use super::*;
use crate::DataError;
use crate::cohort::{Cohort, Sample};

/// A table from lines of cells; the first line holds the names. An empty cell is missing.
fn table(text: &str) -> FeatureTable {
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').map(str::trim).collect()).collect();
    let n = lines.len() - 1;
    let cell = |line: &Vec<&str>, i: usize| (!line[i].is_empty()).then(|| line[i].to_owned());
    let column = |(i, name): (usize, &&str)| FeatureColumn {
        name: (*name).to_owned(),
        cells: lines[1..].iter().map(|line| cell(line, i)).collect(),
    };
    let columns = lines[0].iter().enumerate().map(column).collect();
    let names = (0..n).map(|i| format!("s{i}").into()).collect();
    FeatureTable::new("made-up.csv", names, (0..n).map(|i| i + 2).collect(), columns).unwrap()
}

fn config(text: &str) -> FeatureConfig {
    toml::from_str(text).unwrap()
}

fn all() -> FeatureConfig {
    config("features = 'all'")
}

fn rows(n: usize) -> Vec<usize> {
    (0..n).collect()
}

/// Fits on the first `n_train` rows of `text` and encodes all of them.
fn encode(text: &str, settings: &str, n_train: usize) -> Result<(TabularFeatures, FeatureMatrix), DataError> {
    let table = table(text);
    let fitted = TabularFeatures::fit(&table, &rows(n_train), &config(settings), &[])?;
    let matrix = fitted.encode(&table)?;
    Ok((fitted, matrix))
}

fn message(text: &str, settings: &str, n_train: usize) -> String {
    encode(text, settings, n_train).unwrap_err().to_string()
}

/// Mean, scale and transformed values of scikit-learn 1.9.1, `StandardScaler().fit(x)`.
#[test]
fn numbers_are_standardised_as_by_scikit_learn_1_9_1() {
    let (fitted, matrix) = encode("age\n61.5\n47\n80.25\n33\n55\n90\n", "numeric = ['age']", 5).unwrap();
    let Encoding::Numeric { mean, standard_deviation } = fitted.columns[0].encoding else { panic!("a number") };
    assert_relative_eq!(mean, 55.35, epsilon = 1e-12);
    assert_relative_eq!(standard_deviation, 15.666_524_82, epsilon = 1e-8);
    for (row, expected) in [(0, 0.392_556_745_663_402), (3, -1.426_608_661_069_437), (5, 2.211_722_152_396_241)] {
        assert_relative_eq!(f64::from(matrix.row(row)[0]), expected, epsilon = 1e-7);
    }
    // With a missing value among the training values: mean and scale of the others.
    let (_, matrix) = encode("age\n61.5\n47\n\n33\n55\n", "numeric = ['age']", 5).unwrap();
    assert_eq!(matrix.names(), ["age", "age:missing"]);
    for (row, expected) in [(0, 1.163_900_693_260_952), (3, -1.516_597_873_036_997_8), (2, 0.0)] {
        assert_relative_eq!(f64::from(matrix.row(row)[0]), expected, epsilon = 1e-7);
    }
    assert_eq!(rows(5).iter().map(|&row| matrix.row(row)[1]).collect::<Vec<_>>(), [0.0, 0.0, 1.0, 0.0, 0.0]);
}

#[test]
fn categories_become_one_feature_each_whatever_case_and_blanks() {
    let text = "stage\nStage  II\nstage I\nSTAGE ii\nStage I\nstage i\nStage III\n\n";
    let (fitted, matrix) = encode(text, "categorical = ['stage']", 5).unwrap();
    // "Stage I" and "stage I" and "stage i" occur once each: the first in the order of the characters is shown.
    assert_eq!(matrix.names(), ["stage=Stage I", "stage=STAGE ii"]);
    let expected = [[0.0, 1.0], [1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 0.0], [0.0, 0.0]];
    for (row, expected) in expected.iter().enumerate() {
        assert_eq!(matrix.row(row), expected, "row {row}");
    }
    let told: Vec<String> = matrix.unknown().iter().map(ToString::to_string).collect();
    assert_eq!(told, ["1 sample has stage \"Stage III\", which no training sample has: all its features are 0"]);
    assert_eq!(fitted.n_features(), 2);
}

#[test]
fn unknown_categories_are_counted_by_what_is_compared() {
    let text = "race\nwhite\nblack\nAsian\nasian\nother\n";
    let (_, matrix) = encode(text, "categorical = ['race']", 2).unwrap();
    let counts: Vec<_> = matrix.unknown().iter().map(|u| (u.value.as_str(), u.n_samples)).collect();
    assert_eq!(counts, [("Asian", 2), ("other", 1)]);
    assert_eq!(matrix.row(2), [0.0, 0.0]);
}

#[test]
fn booleans_and_numbers_as_text_are_numbers_where_all_cells_are() {
    let text = "flag,code,mixed,late\ntrue,1,1,3\nFALSE,0,yes,4\nTrue,1e0,0,x\n";
    let table = table(text);
    let fitted = TabularFeatures::fit(&table, &[0, 1], &all(), &[]).unwrap();
    assert_eq!(fitted.names(), ["flag", "code", "mixed=1", "mixed=yes", "late=3", "late=4"]);
    let matrix = fitted.encode(&table).unwrap();
    assert_eq!(matrix.row(0), [1.0, 1.0, 1.0, 0.0, 1.0, 0.0]);
    assert_eq!(matrix.row(1), [-1.0, -1.0, 0.0, 1.0, 0.0, 1.0]);
    assert_eq!(matrix.row(2), [1.0, 1.0, 0.0, 0.0, 0.0, 0.0]);
    assert_eq!(matrix.unknown().len(), 2, "the kind of a column is that of the whole table, its categories are not");
}

#[test]
fn a_cell_that_is_no_number_names_sample_file_and_row() {
    let settings = "numeric = ['age']";
    for (cell, n_train) in [("sixty", 3), ("sixty", 2), ("3;5", 3), ("1 000", 2), ("inf", 3), ("-inf", 2), ("0x10", 3)]
    {
        let expected = format!(
            "age of sample \"s2\" is \"{cell}\", expected a finite number, because the column is numeric (made-up.csv, row 4)"
        );
        assert_eq!(message(&format!("age\n1\n2\n{cell}\n"), settings, n_train), expected);
    }
    let far = message("age\n0\n1e-30\n1e30\n", settings, 2);
    assert!(far.contains("is \"1e30\"") && far.contains("too far from the training values"), "{far}");
}

#[test]
fn each_policy_for_missing_values_does_what_it_says() {
    let text = "age,sex,full\n10,F,1\n,M,2\n30,,3\n,X,\n";
    let (_, matrix) = encode(text, "features = 'all'", 3).unwrap();
    assert_eq!(matrix.names(), ["age", "age:missing", "sex=F", "sex=M", "sex:missing", "full"]);
    assert_eq!(matrix.row(1)[..5], [0.0, 1.0, 0.0, 1.0, 0.0]);
    assert_eq!(matrix.row(2)[..5], [1.0, 0.0, 0.0, 0.0, 1.0]);
    // Training has no missing value in "full": the mean is used, and the sample is counted.
    assert_eq!(matrix.row(3), [0.0, 1.0, 0.0, 0.0, 0.0, 0.0]);
    let notes: Vec<String> = matrix.notes().collect();
    assert_eq!(
        notes,
        [
            "1 sample has sex \"X\", which no training sample has: all its features are 0",
            "1 sample has no full, which every training sample has: the training mean takes its place"
        ]
    );
    let (_, matrix) = encode(text, "features = 'all'\nmissing = 'mean'", 3).unwrap();
    assert_eq!(matrix.names(), ["age", "sex=F", "sex=M", "full"]);
    assert_eq!(matrix.row(2)[..3], [1.0, 0.0, 0.0]);
    let refused = message(text, "features = 'all'\nmissing = 'refuse'", 3);
    assert_eq!(
        refused,
        "age of sample \"s1\" is empty, expected a value, because missing ones are refused (made-up.csv, row 3)"
    );
    let refused = message("age\n1\n2\nNA\n", "features = 'all'\nmissing = 'refuse'", 2);
    assert!(refused.starts_with("age of sample \"s2\" is \"NA\", expected a value"), "{refused}");
}

#[test]
fn numbers_with_decimal_commas_are_no_categories() {
    let mut table = table("bmi,code\n32,A\n27;5,B\n30;1,A\n");
    for cell in table.columns[0].cells.iter_mut().flatten() {
        *cell = cell.replace(';', ",");
    }
    let refused = TabularFeatures::fit(&table, &rows(3), &all(), &[]).unwrap_err().to_string();
    assert!(
        refused.starts_with("bmi of sample \"s1\" is \"27,5\", expected a number with a decimal point"),
        "{refused}"
    );
    // Codes that look like numbers are categories if they are named.
    let fitted = TabularFeatures::fit(&table, &rows(3), &config("categorical = ['bmi']"), &[]).unwrap();
    assert_eq!(fitted.encode(&table).unwrap().names(), ["bmi=27,5", "bmi=30,1", "bmi=32"]);
}

#[test]
fn a_text_among_numbers_makes_no_categories_of_them() {
    let column = |numbers: usize, texts: &[&str]| {
        let cells = (0..numbers).map(|k| k.to_string()).chain(texts.iter().map(|text| (*text).to_owned()));
        cells.fold("x\n".to_owned(), |text, cell| text + &cell + "\n")
    };
    let refused = message(&column(20, &["?"]), "features = 'all'", 20);
    assert!(refused.contains("x of sample \"s20\" is \"?\"") && refused.contains("missing-values"), "{refused}");
    // Named as categories, as missing, or left out they are what they are called.
    let n_features = |text: &str, settings: &str| {
        encode(text, settings, text.lines().count() - 1).map(|(fitted, _)| fitted.n_features())
    };
    assert_eq!(n_features(&column(20, &["?"]), "categorical = ['x']").unwrap(), 21);
    assert_eq!(n_features(&column(20, &["?"]), "features = 'all'\nmissing-values = ['?']").unwrap(), 2);
    // Ten codes and a word are categories, and so are numbers between many texts.
    assert_eq!(n_features(&column(10, &["?"]), "features = 'all'").unwrap(), 11);
    assert!(n_features(&column(18, &["a", "b", "c"]), "features = 'all'").is_ok());
}

#[test]
fn values_that_an_outlier_makes_equal_are_refused() {
    let column = |last: &str| (0..20).fold("x\n".to_owned(), |text, k| text + &format!("0.{k:02}\n")) + last + "\n";
    let refused = message(&column("1e10"), "features = 'all'", 21);
    assert!(
        refused.contains("its 21 different training values, from 0 to 10000000000, are 2 different numbers"),
        "{refused}"
    );
    assert!(refused.contains("missing-values"), "{refused}");
    assert!(encode(&column("1e5"), "features = 'all'", 21).is_ok());
    // A large offset is no outlier.
    let years = (0..20).fold("x\n".to_owned(), |text, k| text + &format!("{}\n", 20_240_101_000_000_u64 + k));
    let (_, matrix) = encode(&years, "features = 'all'", 20).unwrap();
    assert!((1..20).all(|row| matrix.row(row)[0] > matrix.row(row - 1)[0]));
}

#[test]
fn the_texts_for_missing_are_a_setting() {
    let text = "race,age\nwhite,1\nmissing,na\nblack,2\n";
    let (_, matrix) = encode(text, "features = 'all'", 3).unwrap();
    assert_eq!(matrix.names(), ["race=black", "race=missing", "race=white", "age", "age:missing"]);
    let (_, matrix) = encode(text, "features = 'all'\nmissing-values = ['Missing', 'NA']", 3).unwrap();
    assert_eq!(matrix.names(), ["race=black", "race=white", "race:missing", "age", "age:missing"]);
    let (_, matrix) = encode(text, "features = 'all'\nmissing-values = []", 3).unwrap();
    assert!(matrix.names().contains(&"age=na".to_owned()), "without such texts, na is a category like any other");
}

#[test]
fn columns_that_say_nothing_in_training_are_left_out_with_a_note() {
    let text = "age,site,blank,there,one\n1,A,,7,x\n2,A,,,x\n3,B,5,,y\n";
    let (fitted, matrix) = encode(text, "features = 'all'", 2).unwrap();
    assert_eq!(matrix.names(), ["age", "there:missing"], "of a constant that is often missing, the presence remains");
    assert_eq!(matrix.row(2), [3.0, 1.0]);
    let told: Vec<String> = fitted.left_out.iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "column \"site\" has one value in the whole training part: it gives no feature",
            "column \"blank\" has no value in the training part: it gives no feature",
            "column \"one\" has one value in the whole training part: it gives no feature",
        ]
    );
    let nothing = message(text, "categorical = ['site', 'blank']", 2);
    assert!(nothing.starts_with("features is a choice that leaves no feature (column \"site\""), "{nothing}");
}

#[test]
fn a_sensitive_attribute_is_a_feature_only_if_named() {
    let table = table("age,sex\n1,F\n2,M\n3,F\n");
    let names = |settings: &str| TabularFeatures::fit(&table, &rows(3), &config(settings), &["sex"]).unwrap().names();
    assert_eq!(names("features = 'all'"), ["age"]);
    assert_eq!(names("features = 'all'\ncategorical = ['sex']"), ["age", "sex=F", "sex=M"]);
    assert_eq!(names("categorical = ['sex']"), ["sex=F", "sex=M"]);
    assert_eq!(names("numeric = ['age']"), ["age"]);
}

#[test]
fn outcome_and_identity_are_refused_and_unknown_names_get_the_nearest() {
    let table = table("age,sex\n1,F\n2,M\n").with_mapped(vec![("died".to_owned(), "the event")]);
    let fit = |settings: &str| TabularFeatures::fit(&table, &rows(2), &config(settings), &[]);
    let message = |settings: &str| fit(settings).unwrap_err().to_string();
    assert_eq!(
        message("numeric = ['died']"),
        "column \"died\" of made-up.csv: it holds the event and cannot be a feature"
    );
    assert_eq!(message("numeric = ['agee']"), "column \"agee\" is not in made-up.csv, nearest is \"age\"");
    assert_eq!(
        message("features = 'all'\nexclude = ['sexx']"),
        "column \"sexx\" is not in made-up.csv, nearest is \"sex\""
    );
    assert_eq!(fit("features = 'all'\nexclude = ['died', 'sex']").unwrap().names(), ["age"]);
}

#[test]
fn contradicting_settings_are_refused() {
    for (settings, expected) in [
        ("", "features is not given, expected features = \"all\", or columns"),
        ("numeric = ['a']\ncategorical = ['a']", "categorical is \"a\" again, expected each column once"),
        ("numeric = ['a']\nexclude = ['a']", "exclude is \"a\" again"),
        ("numeric = ['a', 'a']", "numeric is \"a\" again"),
        ("features = 'all'\nmax-levels = 0", "max-levels is 0"),
    ] {
        let message = message("a\n1\n2\n", settings, 2);
        assert!(message.starts_with(expected), "{settings}: {message}");
    }
    for misspelt in ["features = 'everything'", "feature = 'all'", "missing = 'median'"] {
        assert!(toml::from_str::<FeatureConfig>(misspelt).is_err(), "{misspelt}");
    }
    assert_eq!(message("a\n1\n2\n", "features = 'all'", 0), "training part has length 0, expected 1");
}

#[test]
fn two_features_of_one_name_are_refused() {
    let message = message("a=x,a\n1,x\n2,y\n", "numeric = ['a=x']\ncategorical = ['a']", 2);
    assert!(message.contains("two features named \"a=x\""), "{message}");
}

#[test]
fn too_many_categories_are_refused_if_named_and_left_out_if_not() {
    let text = "note,age\na,1\nb,2\nc,3\n";
    let refused = message(text, "categorical = ['note']\nmax-levels = 2", 3);
    let problem = "has 3 different values in the training part, more than max-levels = 2";
    assert_eq!(refused, format!("column \"note\" of made-up.csv: it {problem}"));
    let (fitted, _) = encode(text, "features = 'all'\nmax-levels = 2", 3).unwrap();
    assert_eq!(fitted.left_out[0].reason, problem);
    assert_eq!(fitted.names(), ["age"]);
}

#[test]
fn nothing_is_learnt_from_rows_outside_training() {
    let fit = |late: &str| {
        let table = table(&format!("age,sex\n1,F\n5,M\n,F\n{late}\n"));
        TabularFeatures::fit(&table, &[0, 1, 2], &config("numeric = ['age']\ncategorical = ['sex']"), &[]).unwrap()
    };
    assert_eq!(fit("9,M"), fit("-1000,unheard of"));
    assert_eq!(fit("9,M"), fit(","));
    let table = table("age\n1\n5\n9\n");
    let [once, twice] =
        [&[0, 2][..], &[2, 0, 2, 2]].map(|rows| TabularFeatures::fit(&table, rows, &all(), &[]).unwrap());
    assert_eq!(once, twice, "a row named twice counts once");
}

#[test]
fn what_was_fitted_is_saved_and_used_on_another_table() {
    let (fitted, matrix) = encode("age,sex,there\n1,F,1\n5,M,\n2.5,,\n", "features = 'all'", 3).unwrap();
    let json = serde_json::to_string(&fitted).unwrap();
    assert!(json.contains("\"standard-deviation\""), "{json}");
    let read: TabularFeatures = serde_json::from_str(&json).unwrap();
    assert_eq!(read, fitted);
    // Other columns, another order.
    let later = table("new,there,sex,age\n0,,,2.5\n0,1,f,1\n");
    let later = read.encode(&later).unwrap();
    assert_eq!((later.row(0), later.row(1)), (matrix.row(2), matrix.row(0)));
    let message = read.encode(&table("age,sx,there\n1,F,1\n")).unwrap_err().to_string();
    assert_eq!(message, "column \"sex\" is not in made-up.csv, nearest is \"sx\"");
}

#[test]
fn numbers_at_the_ends_of_their_range_stay_finite() {
    let (_, matrix) =
        encode("x,y\n1e308,1e-300\n-1e308,2e-300\n1e308,3e-300\n0,2e-300\n", "features = 'all'", 3).unwrap();
    assert!(matrix.values().iter().all(|value| value.is_finite()));
    assert_relative_eq!(matrix.row(0)[0], 0.5_f32.sqrt(), epsilon = 1e-6);
    assert_relative_eq!(matrix.row(3)[1], 0.0);
}

fn cohort(time: &[f64], event: &[bool]) -> Cohort {
    let sample = |(i, (time, event)): (usize, (&f64, &bool))| Sample {
        sample_id: format!("s{i}").into(),
        subject_id: format!("s{i}").into(),
        unit: None,
        image: std::path::PathBuf::new(),
        time: *time,
        event: *event,
        competing: None,
        source_row: i + 2,
    };
    Cohort {
        name: "made-up".to_owned(),
        time_unit: "days".to_owned(),
        source: "made-up.csv".into(),
        samples: time.iter().zip(event).enumerate().map(sample).collect(),
        attributes: Vec::new(),
        provenance: None,
        cause: None,
    }
}

#[test]
fn columns_that_give_the_outcome_away_are_named() {
    let n = 60;
    // A third is censored; times without pattern.
    let event: Vec<bool> = (0..n).map(|i| i % 3 != 0).collect();
    let time: Vec<f64> = (0..n).map(|i| ((i * 37) % 61) as f64 + 1.0).collect();
    let mut text = "copy,date,hospital,score,years,also,number,age,sex\n".to_owned();
    for i in 0..n {
        let (dead, time) = (event[i], time[i]);
        let date = if dead { format!("day {i}") } else { String::new() };
        let score = if dead { 100 + i / 4 } else { i / 4 };
        let hospital = if dead && i % 2 == 0 { "morgue" } else { "ward" };
        let (years, also) = (time / 365.25, if i % 4 == 0 { time + 500.0 } else { time });
        let (number, age) = ((i * 7) % 60 + 1000, 40.5 + ((i * 11) % 40) as f64 / 2.0);
        let sex = if i % 2 == 0 { "F" } else { "M" };
        let dead = i32::from(dead);
        writeln!(text, "{dead},{date},{hospital},{score},{years},{also},{number},{age},{sex}").unwrap();
    }
    let (table, cohort) = (table(&text), cohort(&time, &event));
    let settings = config("features = 'all'\nmax-levels = 60");
    let fitted = TabularFeatures::fit(&table, &rows(n), &settings, &[]).unwrap();
    let warnings = leak_warnings(&fitted, &table, &cohort, &rows(n)).unwrap();
    let told: Vec<String> = warnings.iter().map(ToString::to_string).collect();
    let expected = [
        "column \"copy\" reveals the event: each of its 2 values has only events or only censored samples among 60 \
         training samples",
        "column \"date\" may reveal the event: all 20 training samples without a value are censored",
        "column \"score\" may reveal the event: it orders events and censored samples with an AUC of 1.0000",
        "column \"years\" may reveal the time: its rank correlation with the time is 1.0000",
        "column \"also\" may reveal the time: 75.0 % of its training values are the time itself",
    ];
    let expected = expected.map(|line| format!("{line}; leave it out unless it is known at time 0"));
    let identity = "column \"number\" looks like an identifier: every training sample has a different whole number; leave it out \
                    unless it measures something";
    assert_eq!(told, [&expected[..], &[identity.to_owned()]].concat());
    let few = leak_warnings(&fitted, &table, &cohort, &rows(9)).unwrap();
    assert!(few.is_empty(), "no sign from nine samples: {few:?}");
}

#[test]
fn a_value_that_only_the_dead_have_is_named_once_there_are_enough() {
    for (n, is_named) in [(300, true), (60, false)] {
        let event: Vec<bool> = (0..n).map(|i| i % 3 != 0).collect();
        let mut text = "cause\n".to_owned();
        (0..n).for_each(|i| text += if i % 3 == 1 { "heart\n" } else { "unknown\n" });
        let (table, cohort) = (table(&text), cohort(&vec![1.0; n], &event));
        let fitted = TabularFeatures::fit(&table, &rows(n), &all(), &[]).unwrap();
        let warnings = leak_warnings(&fitted, &table, &cohort, &rows(n)).unwrap();
        assert_eq!(warnings.len(), usize::from(is_named), "{warnings:?}");
        for warning in warnings {
            let expected = LeakSign::ImpliesEvent { value: Some("heart".to_owned()), event: true, n_samples: 100 };
            assert_eq!(warning.sign, expected);
        }
    }
}

#[test]
fn a_rare_value_of_one_outcome_is_no_sign() {
    // The oldest 40 of 1000 all die, as in tables without leakage.
    let event: Vec<bool> = (0..1000).map(|i| i < 40 || i % 2 == 0).collect();
    let mut text = "age\n".to_owned();
    (0..1000).for_each(|i| writeln!(text, "{}", if i < 40 { 90 } else { 50 + i % 29 }).unwrap());
    let (table, cohort) = (table(&text), cohort(&vec![1.0; 1000], &event));
    let fitted = TabularFeatures::fit(&table, &rows(1000), &all(), &[]).unwrap();
    assert_eq!(leak_warnings(&fitted, &table, &cohort, &rows(1000)).unwrap(), []);
}

#[test]
fn tables_are_brought_into_the_order_of_a_cohort() {
    let table = table("age\n10\n20\n30\n");
    let mut cohort = cohort(&[1.0, 2.0], &[true, false]);
    cohort.samples[0].sample_id = "s2".into();
    let aligned = table.aligned(&cohort).unwrap();
    assert_eq!(aligned.columns()[0].cells, [Some("30".to_owned()), Some("20".to_owned())]);
    cohort.samples[1].sample_id = "s9".into();
    let message = table.aligned(&cohort).unwrap_err().to_string();
    assert_eq!(message, "sample \"s9\" has no row of features");
    let twice = table.select(&[0, 1, 1, 2]);
    cohort.samples[1].sample_id = "s1".into();
    let message = twice.aligned(&cohort).unwrap_err().to_string();
    assert_eq!(message, "sample \"s1\" has more than one row of features, expected one");
}

proptest! {
    /// Shuffled rows give the same features, bit for bit; standardised training values have mean 0 and variance 1.
    #[test]
    fn the_order_of_the_rows_changes_nothing(cells in prop::collection::vec((-1e6_f64..1e6, 0_u8..6), 3..40), turn in 0_usize..40) {
        let line = |(number, category): &(f64, u8)| match category {
            0 => format!(",c{}\n", if *number > 0.0 { 1 } else { 2 }),
            1 => format!("{number},\n"),
            _ => format!("{number},C{category}\n"),
        };
        let text: String = cells.iter().map(line).collect();
        let table = table(&format!("x,c\n{text}"));
        let n = table.n();
        let mut order = rows(n);
        order.rotate_left(turn % n);
        let fitted = TabularFeatures::fit(&table, &rows(n), &config("numeric = ['x']\ncategorical = ['c']"), &[]);
        prop_assume!(fitted.is_ok());
        let fitted = fitted.unwrap();
        let turned = table.select(&order);
        prop_assert_eq!(&TabularFeatures::fit(&turned, &rows(n), &config("numeric = ['x']\ncategorical = ['c']"), &[]).unwrap(), &fitted);
        let (matrix, turned) = (fitted.encode(&table).unwrap(), fitted.encode(&turned).unwrap());
        for (row, &from) in order.iter().enumerate() {
            prop_assert_eq!(turned.row(row), matrix.row(from));
        }
        if matrix.names()[0] == "x" {
            let present: Vec<f64> = rows(n).iter().filter(|&&row| table.columns()[0].cells[row].is_some())
                .map(|&row| f64::from(matrix.row(row)[0])).collect();
            let mean = present.iter().sum::<f64>() / present.len() as f64;
            let variance = present.iter().map(|x| x * x).sum::<f64>() / present.len() as f64;
            prop_assert!(mean.abs() < 1e-4 && (variance - 1.0).abs() < 1e-4, "mean {mean}, variance {variance}");
        }
    }
}
