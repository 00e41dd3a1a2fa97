//! Rows as texts. Control characters are escaped where a person reads them, because a value could steer the terminal.

use super::parquet;
use clap::ValueEnum;
use std::io::{self, Write};
use tributary_client::{ColumnKind, Row, Rows};
use unicode_width::UnicodeWidthStr;

/// A form of rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// A table with lines around it
    #[default]
    Table,
    /// CSV with a line of names; NULL is an empty field without quotes
    Csv,
    /// One JSON object a line
    Json,
    /// One field a line
    Vertical,
    /// A Parquet file with the columns' types, of one statement and with --out
    Parquet,
}

/// Writes rows in a form.
pub(crate) fn write(out: &mut (impl Write + Send), rows: &Rows, form: Form) -> io::Result<()> {
    match form {
        Form::Table => table(out, rows),
        Form::Csv => csv(out, rows),
        Form::Json => json(out, rows),
        Form::Vertical => vertical(out, rows),
        Form::Parquet => parquet::write(out, rows),
    }
}

fn printable(text: &str) -> String {
    text.chars()
        .flat_map(|sign| if sign.is_control() { sign.escape_default().collect() } else { vec![sign] })
        .collect()
}

fn cell(value: Option<&String>) -> String {
    value.map_or_else(|| "NULL".to_owned(), |text| printable(text))
}

fn is_number(kind: ColumnKind) -> bool {
    matches!(kind.code, 0..=5 | 8 | 9 | 13 | 246)
}

fn table(out: &mut impl Write, rows: &Rows) -> io::Result<()> {
    let names: Vec<_> = rows.columns.iter().map(|name| printable(name)).collect();
    let cells: Vec<Vec<_>> =
        rows.rows.iter().map(|row| row.iter().map(|value| cell(value.as_ref())).collect()).collect();
    let mut widths: Vec<_> = names.iter().map(|name| name.width()).collect();
    for row in &cells {
        for (width, text) in widths.iter_mut().zip(row) {
            *width = (*width).max(text.width());
        }
    }
    let border: String =
        widths.iter().map(|width| format!("+{}", "-".repeat(width + 2))).collect::<String>() + "+";
    writeln!(out, "{border}")?;
    line(out, &names, &widths, |_| false)?;
    writeln!(out, "{border}")?;
    for row in &cells {
        line(out, row, &widths, |column| rows.kinds.get(column).copied().is_some_and(is_number))?;
    }
    if cells.is_empty() { Ok(()) } else { writeln!(out, "{border}") }
}

fn line(
    out: &mut impl Write,
    cells: &[String],
    widths: &[usize],
    is_right: impl Fn(usize) -> bool,
) -> io::Result<()> {
    for (column, (text, width)) in cells.iter().zip(widths).enumerate() {
        let blanks = " ".repeat(width - text.width());
        match is_right(column) {
            true => write!(out, "| {blanks}{text} ")?,
            false => write!(out, "| {text}{blanks} ")?,
        }
    }
    writeln!(out, "|")
}

fn csv(out: &mut impl Write, rows: &Rows) -> io::Result<()> {
    let field = |text: &str| {
        let is_plain = !text.is_empty() && !text.contains([',', '"', '\n', '\r']);
        if is_plain { text.to_owned() } else { format!("\"{}\"", text.replace('"', "\"\"")) }
    };
    let names: Vec<_> = rows.columns.iter().map(|name| field(name)).collect();
    writeln!(out, "{}", names.join(","))?;
    for row in &rows.rows {
        let fields: Vec<_> =
            row.iter().map(|value| value.as_deref().map(field).unwrap_or_default()).collect();
        writeln!(out, "{}", fields.join(","))?;
    }
    Ok(())
}

fn json(out: &mut impl Write, rows: &Rows) -> io::Result<()> {
    let names: Vec<_> =
        rows.columns.iter().map(|name| serde_json::Value::from(name.as_str()).to_string()).collect();
    for row in &rows.rows {
        let fields = fields(row, &rows.kinds);
        let pairs: Vec<_> = names.iter().zip(fields).map(|(name, value)| format!("{name}:{value}")).collect();
        writeln!(out, "{{{}}}", pairs.join(","))?;
    }
    Ok(())
}

/// Values as JSON. A number keeps all its digits.
fn fields(row: &Row, kinds: &[ColumnKind]) -> Vec<String> {
    let value = |(value, kind): (&Option<String>, &ColumnKind)| match value {
        None => "null".to_owned(),
        Some(text) if is_number(*kind) && serde_json::from_str::<serde_json::Number>(text).is_ok() => {
            text.clone()
        }
        Some(text) => serde_json::Value::from(text.as_str()).to_string(),
    };
    row.iter().zip(kinds).map(value).collect()
}

fn vertical(out: &mut impl Write, rows: &Rows) -> io::Result<()> {
    let width = rows.columns.iter().map(|name| name.width()).max().unwrap_or_default();
    for (number, row) in rows.rows.iter().enumerate() {
        writeln!(out, "*************************** {}. row ***************************", number + 1)?;
        for (name, value) in rows.columns.iter().zip(row) {
            writeln!(
                out,
                "{}{}: {}",
                " ".repeat(width - name.width()),
                printable(name),
                cell(value.as_ref())
            )?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(form: Form) -> String {
        let kind = |code| ColumnKind { code, ..ColumnKind::default() };
        let text = |text: &str| Some(text.to_owned());
        let rows = Rows {
            columns: vec!["id".to_owned(), "name".to_owned()],
            kinds: vec![kind(8), kind(253)],
            rows: vec![
                vec![text("12345678901234567890"), text("a,\"b\"\n\x1b日")],
                vec![None, None],
                vec![text("1"), text("")],
            ],
        };
        let mut out = Vec::new();
        write(&mut out, &rows, form).expect("written");
        String::from_utf8(out).expect("UTF-8")
    }

    #[test]
    fn rows_have_four_forms() {
        assert_eq!(shown(Form::Csv), "id,name\n12345678901234567890,\"a,\"\"b\"\"\n\x1b日\"\n,\n1,\"\"\n");
        let json = "{\"id\":12345678901234567890,\"name\":\"a,\\\"b\\\"\\n\\u001b日\"}\n{\"id\":null,\"name\":null}\n{\"id\":1,\"name\":\"\"}\n";
        assert_eq!(shown(Form::Json), json);
        let table = shown(Form::Table);
        let lines: Vec<_> = table.lines().collect();
        assert_eq!(lines[3], "| 12345678901234567890 | a,\"b\"\\n\\u{1b}日 |");
        assert_eq!(lines[5], "|                    1 |                 |");
        assert!(lines.iter().all(|line| line.width() == lines[0].width()), "{table}");
        assert!(
            shown(Form::Vertical)
                .contains("*** 2. row ***************************\n  id: NULL\nname: NULL\n")
        );
    }
}
