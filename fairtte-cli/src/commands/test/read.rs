//! Values of methods in settings from a table, long (one value per row) or wide (one column per method).

use std::path::Path;

use fairtte_data::DataError;
use fairtte_data::table::Table;

use crate::CliError;
use crate::args::TestColumns;
use crate::method_tests::Observation;

/// The values of a table with their places.
#[derive(Debug)]
pub(super) struct Values {
    pub(super) observations: Vec<Observation>,
    /// Row (from 0) and column of every observation.
    cells: Vec<(usize, String)>,
    pub(super) notes: Vec<String>,
    table: Table,
}

impl Values {
    /// File, row and column of an observation.
    pub(super) fn place(&self, index: usize) -> String {
        let (row, column) = &self.cells[index];
        format!("{}, column \"{column}\"", self.table.place(*row))
    }

    /// `row 3`.
    pub(super) fn row(&self, index: usize) -> String {
        format!("row {}", self.table.row(self.cells[index].0))
    }
}

/// Reads a table.
///
/// # Errors
/// [`CliError::Data`] if it cannot be read, lacks a column or has no row; [`CliError::Cell`] for an empty cell and for one that
/// is no number; [`CliError::Config`] if two options name one column, or two columns may be that of the trials.
pub(super) fn read(path: &Path, columns: &TestColumns) -> Result<Values, CliError> {
    let table = Table::read(path)?;
    if table.n_rows() == 0 {
        let detail = "it has no row below its header".to_owned();
        return Err(DataError::InvalidTable { path: path.to_owned(), detail }.into());
    }
    let names = Names::of(&table, columns)?;
    let settings = required(&table, &names.setting, "--setting")?;
    let metrics = names.metric.as_ref().map(|name| required(&table, name, "--metric")).transpose()?;
    let trials = names.trial.as_ref().map(|name| required(&table, name, "--trial")).transpose()?;
    let of_row = |row: usize, otherwise: &str| Observation {
        metric: metrics.as_ref().map_or_else(|| otherwise.to_owned(), |metrics| metrics[row].clone()),
        setting: settings[row].clone(),
        method: String::new(),
        trial: trials.as_ref().map(|trials| trials[row].clone()),
        value: 0.0,
    };
    let (mut observations, mut cells) = (Vec::new(), Vec::new());
    match &names.values {
        InColumns::Long { method, value } => {
            let methods = required(&table, method, "--method")?;
            for (row, cell) in
                table.numbers(value).map_err(|error| with_help(error, "--value"))?.into_iter().enumerate()
            {
                let number = number(&table, (row, value), cell, LONG)?;
                observations.push(Observation { method: methods[row].clone(), value: number, ..of_row(row, value) });
                cells.push((row, value.clone()));
            }
        }
        InColumns::Wide { methods } => {
            let columns: Vec<_> = methods.iter().map(|method| table.numbers(method)).collect::<Result<_, _>>()?;
            for row in 0..table.n_rows() {
                for (method, column) in methods.iter().zip(&columns) {
                    // The only way in which such a table can say that a method has no value.
                    if column[row].as_ref().is_err_and(String::is_empty) {
                        continue;
                    }
                    let number = number(&table, (row, method), column[row].clone(), WIDE)?;
                    observations.push(Observation { method: method.clone(), value: number, ..of_row(row, "value") });
                    cells.push((row, method.clone()));
                }
            }
        }
    }
    Ok(Values { observations, cells, notes: names.notes(&table), table })
}

const LONG: &str = "leave out the row of a method without a value: its setting is then not ranked, and counted";
const WIDE: &str = "every column but those of settings, metrics and trials is a method; leave the cell of a method without a \
                    value empty";

fn number(table: &Table, (row, column): (usize, &str), cell: Result<f64, String>, help: &str) -> Result<f64, CliError> {
    let refused = |text: &str| CliError::Cell {
        problem: format!("{column} is {text}, expected a finite number"),
        place: table.place(row).to_string(),
        help: Some(help.to_owned()),
    };
    match cell {
        Ok(number) if number.is_finite() => Ok(number),
        Ok(number) => Err(refused(&number.to_string())),
        Err(text) if text.is_empty() => Err(refused("missing")),
        Err(text) => Err(refused(&format!("\"{text}\""))),
    }
}

/// A column without empty cells.
fn required(table: &Table, column: &str, option: &str) -> Result<Vec<String>, CliError> {
    let cell = |(row, cell): (usize, Option<String>)| {
        cell.ok_or_else(|| CliError::Cell {
            problem: format!("{column} is missing, expected a name"),
            place: table.place(row).to_string(),
            help: None,
        })
    };
    let cells = table.text(column).map_err(|error| with_help(error, option))?;
    cells.into_iter().enumerate().map(cell).collect()
}

/// The error with the option that names another column.
fn with_help(error: DataError, option: &str) -> CliError {
    match error {
        missing @ DataError::MissingColumn { .. } => {
            let wide =
                if ["--method", "--value"].contains(&option) { ", or --wide if every method has a column" } else { "" };
            CliError::Curves { source: Box::new(missing), help: format!("{option} COLUMN names it{wide}") }
        }
        other => other.into(),
    }
}

/// Names of the columns that are read.
struct Names {
    setting: String,
    metric: Option<String>,
    trial: Option<String>,
    values: InColumns,
}

enum InColumns {
    Long { method: String, value: String },
    Wide { methods: Vec<String> },
}

impl Names {
    fn of(table: &Table, columns: &TestColumns) -> Result<Self, CliError> {
        let or = |named: &Option<String>, usual: &str| named.clone().unwrap_or_else(|| usual.to_owned());
        let setting = or(&columns.setting, "setting");
        let (method, value) = (or(&columns.method, "method"), or(&columns.value, "value"));
        let named = [Some(&setting), columns.metric.as_ref(), columns.trial.as_ref()];
        let long = (!columns.wide).then_some([&method, &value]);
        let taken: Vec<&String> = named.into_iter().flatten().chain(long.into_iter().flatten()).collect();
        if let Some(twice) = taken.iter().enumerate().find(|(place, name)| taken[..*place].contains(name)) {
            let message = format!("the column \"{}\" has two meanings, expected one", twice.1);
            return Err(CliError::setting("test", message, None));
        }
        let free = |name: &&str| table.has(name) && !taken.iter().any(|other| other == name);
        let metric = columns.metric.clone().or_else(|| Some("metric").filter(free).map(str::to_owned));
        let usual: Vec<&str> = ["trial", "repeat"].into_iter().filter(|name| free(name)).collect();
        let trial = match (&columns.trial, &usual[..]) {
            (Some(named), _) => Some(named.clone()),
            (None, [one, other]) => {
                let message = format!("the table has the columns {one} and {other}, expected one of them to be named");
                return Err(CliError::setting("--trial", message, None));
            }
            (None, usual) => usual.first().map(|name| (*name).to_owned()),
        };
        let is_other = |name: &&str| {
            let read = [Some(&setting), metric.as_ref(), trial.as_ref()];
            !name.is_empty() && !read.into_iter().flatten().any(|column| column == name)
        };
        let values = if columns.wide {
            InColumns::Wide { methods: table.names().into_iter().filter(is_other).map(str::to_owned).collect() }
        } else {
            InColumns::Long { method, value }
        };
        Ok(Self { setting, metric, trial, values })
    }

    /// Says which columns are not read: one of them may tell trials or metrics apart.
    fn notes(&self, table: &Table) -> Vec<String> {
        let InColumns::Long { method, value } = &self.values else { return Vec::new() };
        let read = [Some(&self.setting), Some(method), Some(value), self.metric.as_ref(), self.trial.as_ref()];
        let is_read = |name: &str| read.into_iter().flatten().any(|column| column == name);
        let others: Vec<&str> = table.names().into_iter().filter(|name| !name.is_empty() && !is_read(name)).collect();
        if others.is_empty() { Vec::new() } else { vec![format!("Columns that are not read: {}.", others.join(", "))] }
    }
}
