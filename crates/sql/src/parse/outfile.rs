//! `SELECT … INTO OUTFILE`.

use crate::ast::{SelectQuery, Statement};
use crate::cursor::Cursor;
use crate::errors::Parsed;
use crate::parse::{ddl, unsupported};
use sqlparser::ast::SetExpr;
use sqlparser::tokenizer::Token;

/// A query whose rows go to files.
#[derive(Clone, Debug, PartialEq)]
pub struct Outfile {
    pub query: SelectQuery,
    /// The prefix of the files' names, with its scheme.
    pub path: String,
    /// `None`: CSV.
    pub format: Option<String>,
    /// With keys in them.
    pub properties: HiddenProperties,
}

/// Properties whose `Debug` output contains the names only.
#[derive(Clone, PartialEq, Eq)]
pub struct HiddenProperties(pub Vec<(String, String)>);

impl std::fmt::Debug for HiddenProperties {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

/// The query, or the query and where its rows go.
pub(crate) fn query_or_outfile(cursor: &mut Cursor<'_>, mut query: SelectQuery) -> Parsed<Statement> {
    if let Some(variables) = into_variables(cursor, &mut query)? {
        return Ok(Statement::SelectInto { query, variables });
    }
    let is_last = cursor.eat_all("INTO OUTFILE");
    if !is_last && !takes_name(&mut query) {
        return Ok(Statement::Query(query));
    }
    let before = &cursor.sql()[..cursor.offset()];
    let path = cursor.string("what the files' names begin with, in quotes")?;
    if cursor.eat_all("CHARACTER SET") {
        let name = cursor.identifier_or_string("a character set")?;
        if !["binary", "utf8", "utf8mb3", "utf8mb4"].contains(&name.to_ascii_lowercase().as_str()) {
            let what = format!("SELECT … INTO OUTFILE … CHARACTER SET {name}");
            return Err(unsupported::refuse(&what, "files are UTF-8: leave it out"));
        }
    }
    if !is_last && cursor.is("FROM") {
        let query = around(cursor, before)?;
        return Ok(Statement::Outfile(Box::new(Outfile {
            query,
            path,
            format: None,
            properties: HiddenProperties(Vec::new()),
        })));
    }
    let format = match cursor.eat("FORMAT") {
        true => {
            cursor.expect("AS")?;
            Some(cursor.identifier_or_string("a format")?)
        }
        false => None,
    };
    if cursor.is_any(&["FIELDS", "COLUMNS", "LINES"]) {
        return Err(unsupported::refuse(
            "SELECT … INTO OUTFILE … FIELDS",
            "use PROPERTIES (\"column_separator\" = \",\")",
        ));
    }
    let properties = if cursor.eat("PROPERTIES") { ddl::properties(cursor)? } else { Vec::new() };
    let properties = HiddenProperties(properties);
    Ok(Statement::Outfile(Box::new(Outfile { query, path, format, properties })))
}

/// The query of `SELECT a INTO OUTFILE 'x' FROM t`, as dumps write it, whose FROM is next: that of the text `before` INTO OUTFILE and
/// of the rest.
fn around(cursor: &mut Cursor<'_>, before: &str) -> Parsed<SelectQuery> {
    let end = |text: &str, word: &str| {
        let text = text.trim_end();
        let at = text.len().checked_sub(word.len())?;
        let is_word = text.get(at..)?.eq_ignore_ascii_case(word);
        is_word.then_some(at)
    };
    let into = end(before, "OUTFILE").and_then(|at| end(&before[..at], "INTO"));
    let Some(into) = into else {
        return Err(unsupported::refuse("a comment within INTO OUTFILE", "leave it out"));
    };
    let text = format!("{}{}", &before[..into], &cursor.sql()[cursor.offset()..]);
    while !cursor.at_end() {
        cursor.advance();
    }
    crate::parse_query(&text)
}

/// `INTO @x, …` at the end, or between the columns and FROM, whose first name the grammar of queries has taken.
fn into_variables(cursor: &mut Cursor<'_>, query: &mut SelectQuery) -> Parsed<Option<Vec<String>>> {
    let variable = |name: &str| name.strip_prefix('@').map(str::to_lowercase);
    let mut variables = Vec::new();
    if let SetExpr::Select(select) = query.ast.body.as_mut()
        && let Some(into) = &select.into
        && let Some(name) = variable(&into.name.to_string())
    {
        variables.push(name);
        select.into = None;
        // The statement ends here, or further names follow.
        if !cursor.eat_token(&Token::Comma) {
            return Ok(Some(variables));
        }
    } else if cursor.is("INTO")
        && matches!(cursor.peek_nth(1), Token::Word(word) if word.value.starts_with('@'))
    {
        cursor.advance();
    } else {
        return Ok(None);
    }
    loop {
        let name = cursor.word().and_then(variable);
        variables.push(name.ok_or_else(|| cursor.expected("a user variable"))?);
        cursor.advance();
        if !cursor.eat_token(&Token::Comma) {
            return Ok(Some(variables));
        }
    }
}

/// `SELECT 1 INTO OUTFILE`: without FROM in the last SELECT, the grammar of queries consumes INTO and a name, which is removed
/// again.
fn takes_name(query: &mut SelectQuery) -> bool {
    let mut last = query.ast.body.as_mut();
    while let SetExpr::SetOperation { right, .. } = last {
        last = right.as_mut();
    }
    let SetExpr::Select(select) = last else { return false };
    let is_outfile =
        select.into.as_ref().is_some_and(|into| into.name.to_string().eq_ignore_ascii_case("OUTFILE"));
    if is_outfile {
        select.into = None;
    }
    is_outfile
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    #[test]
    fn a_query_may_end_with_where_its_rows_go() {
        for query in [
            "SELECT 1",
            "SELECT a FROM t",
            "SELECT a FROM t x WHERE a > 1 ORDER BY a LIMIT 3",
            "(SELECT 1) UNION ALL (SELECT 2)",
            "SELECT a FROM t UNION ALL SELECT 1",
            "SELECT a FROM s3(\"uri\" = \"x\")",
        ] {
            let sql = format!(
                "{query} INTO OUTFILE \"s3://b/p_\" FORMAT AS csv PROPERTIES (\"s3.secret_key\" = \"hush\")"
            );
            let Statement::Outfile(outfile) = parse(&sql).expect(&sql) else { panic!("{sql}") };
            assert_eq!((outfile.path.as_str(), outfile.format.as_deref()), ("s3://b/p_", Some("csv")));
            let plain = crate::parse_query(query).expect(query);
            assert_eq!(outfile.query.ast.to_string(), plain.ast.to_string());
            assert!(!format!("{:?}", outfile.properties).contains("hush"));
        }
        let refused =
            parse("SELECT 1 FROM t INTO OUTFILE 'x' FIELDS TERMINATED BY ','").unwrap_err().to_string();
        assert!(refused.contains("FIELDS is not supported yet: use PROPERTIES"), "{refused}");
        assert!(parse("SELECT a INTO x FROM t").is_ok(), "as before: the planner refuses it");
        let dumped = "SELECT /*!40001 SQL_NO_CACHE */ * INTO OUTFILE 'file:///d/t.txt' /*!50138 CHARACTER SET binary */ FROM `t` \
                      WHERE a > 'x';";
        let Statement::Outfile(outfile) = parse(dumped).expect(dumped) else { panic!("{dumped}") };
        assert_eq!(outfile.path, "file:///d/t.txt");
        assert_eq!(outfile.query.ast.to_string(), "SELECT SQL_NO_CACHE * FROM `t` WHERE a > 'x'");
        let refused = parse("SELECT a INTO OUTFILE 'x' CHARACTER SET latin1 FROM t").unwrap_err().to_string();
        assert!(refused.contains("files are UTF-8"), "{refused}");
    }
}
