//! A table in LaTeX with the rules of `booktabs`.

use super::{Line, Table, letter, marked_up, marks};

pub(super) fn render(table: &Table) -> String {
    let (footnotes, notes) = table.footnotes();
    let row = |cells: Vec<String>| format!("{} \\\\\n", cells.join(" & "));
    let n_columns = table.header.len();
    let columns = format!("l{}", "r".repeat(n_columns.saturating_sub(1)));
    let mut text = format!(
        "% \\usepackage{{booktabs}}\n\\begin{{table}}\n\\centering\n\\small\n\\caption{{{}}}\n\\label{{tab:{}}}\n\
         \\begin{{tabular}}{{{columns}}}\n\\toprule\n",
        escape(&table.caption),
        // A name has letters, digits, hyphens and underscores only, which a label may contain.
        table.name
    );
    text += &row(table.header.iter().map(|name| escape(name)).collect());
    text += "\\midrule\n";
    for line in &table.lines {
        match line {
            Line::Heading(name) => {
                text.extend([format!(
                    "\\addlinespace\n\\multicolumn{{{n_columns}}}{{l}}{{\\textbf{{{}}}}} \\\\\n",
                    escape(name)
                )]);
            }
            Line::Cells { cells, indented, remarks } => {
                let mut cells: Vec<String> = cells.iter().map(|cell| escape(cell)).collect();
                if let Some(name) = cells.first_mut() {
                    let (indent, marks) = (if *indented { "\\quad " } else { "" }, marks(remarks, &footnotes));
                    let marks = if marks.is_empty() { marks } else { format!("\\textsuperscript{{{marks}}}") };
                    *name = format!("{indent}{name}{marks}");
                }
                text += &row(cells);
            }
            Line::Note(_) => {}
        }
    }
    text += "\\bottomrule\n\\end{tabular}\n";
    let lettered = footnotes.iter().enumerate();
    let lettered = lettered.map(|(k, text)| format!("\\textsuperscript{{{}}} {}", letter(k), escape(text)));
    let below: Vec<String> = lettered.chain(notes.into_iter().map(escape)).collect();
    if !below.is_empty() {
        text.extend([format!(
            "\n\\smallskip\n\\begin{{minipage}}{{\\linewidth}}\n\\footnotesize\n{}\n\\end{{minipage}}\n",
            below.join("\\\\\n")
        )]);
    }
    text + "\\end{table}\n"
}

/// Text as it is, whatever it contains; a minus before a number becomes a real one.
fn escape(text: &str) -> String {
    let escaped = |c: char, text: &mut String| match c {
        '\\' => text.push_str("\\textbackslash{}"),
        '~' => text.push_str("\\textasciitilde{}"),
        '^' => text.push_str("\\textasciicircum{}"),
        '<' => text.push_str("\\textless{}"),
        '>' => text.push_str("\\textgreater{}"),
        '|' => text.push_str("\\textbar{}"),
        // After the end of a row, LaTeX would read them as arguments of it.
        '[' | ']' | '*' => text.extend(['{', c, '}']),
        '{' | '}' | '$' | '&' | '#' | '_' | '%' => text.extend(['\\', c]),
        // Two hyphens would become a dash.
        '-' if text.ends_with('-') => text.push_str("{}-"),
        digit if digit.is_ascii_digit() && is_sign(text) => {
            text.pop();
            text.push_str("$-$");
            text.push(digit);
        }
        other => text.push(other),
    };
    marked_up(text, escaped, "\\textsuperscript{td}")
}

/// Whether the text ends in a hyphen that begins a word.
fn is_sign(text: &str) -> bool {
    text.strip_suffix('-').is_some_and(|before| before.is_empty() || before.ends_with([' ', '(']))
}
