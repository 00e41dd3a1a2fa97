//! `LOAD DATA`, in MySQL's grammar with Doris's PROPERTIES.

use crate::ast::{Expr, LoadData, Statement};
use crate::cursor::Cursor;
use crate::errors::Parsed;
use crate::parse::{ddl, partition, unsupported};
use crate::visit::walk_expr_mut;
use sqlparser::ast::{Ident, VisitorMut};
use sqlparser::tokenizer::Token;
use std::ops::ControlFlow;
use tributary_types::Sealed;

pub(crate) fn load(cursor: &mut Cursor<'_>) -> Parsed<Statement> {
    if !cursor.is_nth(1, "DATA") {
        return Err(unsupported::statement("LOAD").unwrap_or_else(|| cursor.expected("DATA")));
    }
    cursor.advance();
    cursor.advance();
    // Scheduling hints.
    cursor.eat_any(&["LOW_PRIORITY", "CONCURRENT"]);
    let is_local = cursor.eat("LOCAL");
    cursor.expect("INFILE")?;
    let file = cursor.string("the name of a file in quotes")?;
    if cursor.eat("REPLACE") {
        return Err(unsupported::refuse(
            "LOAD DATA … REPLACE",
            "rows replace those with their key where a table has a UNIQUE KEY, leave it out",
        ));
    }
    let ignores_duplicates = cursor.eat("IGNORE");
    cursor.expect("INTO")?;
    cursor.expect("TABLE")?;
    let mut load = LoadData {
        is_local,
        file,
        table: cursor.name()?,
        partitions: partition::names(cursor)?,
        ignores_duplicates,
        column_separator: None,
        line_delimiter: None,
        enclose: None,
        escape: None,
        skip_lines: 0,
        columns: None,
        set: Sealed::new(Vec::new()),
        properties: Vec::new(),
    };
    charset(cursor)?;
    fields(cursor, &mut load)?;
    lines(cursor, &mut load)?;
    if cursor.eat("IGNORE") {
        load.skip_lines = cursor.number("the number of lines to ignore")?;
        if cursor.eat_any(&["LINES", "ROWS"]).is_none() {
            return Err(cursor.expected("LINES"));
        }
    }
    if *cursor.peek() == Token::LParen {
        load.columns = Some(cursor.parenthesized(|cursor| cursor.identifier("a column or a variable"))?);
    }
    if cursor.eat("SET") {
        load.set = Sealed::new(cursor.list(assignment)?);
    }
    if cursor.eat("PROPERTIES") {
        load.properties = ddl::properties(cursor)?;
    }
    bind_variables(&mut load);
    Ok(Statement::LoadData(Box::new(load)))
}

/// `CHARACTER SET utf8mb4`
fn charset(cursor: &mut Cursor<'_>) -> Parsed<()> {
    if !cursor.eat_all("CHARACTER SET") && !cursor.eat("CHARSET") {
        return Ok(());
    }
    let name = cursor.identifier_or_string("a character set")?.to_ascii_lowercase();
    match name.as_str() {
        "utf8" | "utf8mb3" | "utf8mb4" | "binary" | "ascii" => Ok(()),
        _ => {
            Err(unsupported::refuse(&format!("LOAD DATA … CHARACTER SET {name}"), "send the file as utf8mb4"))
        }
    }
}

/// `FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '"' ESCAPED BY '\\\\'`
fn fields(cursor: &mut Cursor<'_>, load: &mut LoadData) -> Parsed<()> {
    if cursor.eat_any(&["FIELDS", "COLUMNS"]).is_none() {
        return Ok(());
    }
    let mut is_bare = true;
    loop {
        if cursor.eat_all("TERMINATED BY") {
            load.column_separator = Some(cursor.string("a separator in quotes")?);
        } else if cursor.eat_all("OPTIONALLY ENCLOSED BY") || cursor.eat_all("ENCLOSED BY") {
            load.enclose = Some(cursor.string("a character in quotes")?);
        } else if cursor.eat_all("ESCAPED BY") {
            load.escape = Some(cursor.string("a character in quotes")?);
        } else if is_bare {
            return Err(cursor.expected("TERMINATED BY, ENCLOSED BY or ESCAPED BY"));
        } else {
            return Ok(());
        }
        is_bare = false;
    }
}

/// `LINES STARTING BY '' TERMINATED BY '\\n'`
fn lines(cursor: &mut Cursor<'_>, load: &mut LoadData) -> Parsed<()> {
    if !cursor.eat("LINES") {
        return Ok(());
    }
    let mut is_bare = true;
    loop {
        if cursor.eat_all("TERMINATED BY") {
            load.line_delimiter = Some(cursor.string("a delimiter in quotes")?);
        } else if cursor.eat_all("STARTING BY") {
            if !cursor.string("a text in quotes")?.is_empty() {
                return Err(unsupported::refuse("LOAD DATA … LINES STARTING BY", "leave it out"));
            }
        } else if is_bare {
            return Err(cursor.expected("TERMINATED BY"));
        } else {
            return Ok(());
        }
        is_bare = false;
    }
}

/// `column = expression`
fn assignment(cursor: &mut Cursor<'_>) -> Parsed<(String, Expr)> {
    let column = cursor.identifier("a column")?;
    cursor.expect_token(&Token::Eq)?;
    Ok((column, cursor.expr()?))
}

/// Binds the variables of the list to their names in expressions. Other variables are the session's.
fn bind_variables(load: &mut LoadData) {
    struct Bind<'a>(&'a [String]);
    impl VisitorMut for Bind<'_> {
        type Break = ();
        fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
            if let Expr::Identifier(name) = expr
                && name.quote_style.is_none()
                && name.value.starts_with('@')
                && let Some(field) = self.0.iter().find(|field| field.eq_ignore_ascii_case(&name.value))
            {
                *expr = Expr::Identifier(Ident::with_quote('`', LoadData::field_name(field)));
            }
            ControlFlow::Continue(())
        }
    }
    let fields = load.columns.clone().unwrap_or_default();
    let mut set = std::mem::replace(&mut load.set, Sealed::new(Vec::new())).into_inner();
    for (_, expr) in &mut set {
        let _ = walk_expr_mut(expr, &mut Bind(&fields));
    }
    load.set = Sealed::new(set);
}
