//! `ADMIN …`.

use crate::ast::{Show, Statement};
use crate::cursor::Cursor;
use crate::errors::Parsed;
use crate::parse::{HiddenProperties, ddl, show, unsupported};

/// `ADMIN SHOW FRONTEND CONFIG`, `ADMIN SET FRONTEND CONFIG ("name" = "value", …)`. All nodes are this one, and settings are its own,
/// whether Doris has them in its front end or its back end.
pub(crate) fn admin(cursor: &mut Cursor<'_>) -> Parsed<Statement> {
    if cursor.eat_all("ADMIN SHOW FRONTEND CONFIG") {
        let show = Show::FrontendConfig { filter: show::filter(cursor)? };
        return Ok(Statement::Show(Box::new(show)));
    }
    let forms = ["FRONTEND CONFIG", "ALL FRONTENDS CONFIG", "BACKEND CONFIG", "ALL BACKENDS CONFIG"];
    if !forms.into_iter().any(|form| cursor.eat_all(&format!("ADMIN SET {form}"))) {
        return Err(unsupported::refuse(
            "this ADMIN statement",
            "there are ADMIN SHOW FRONTEND CONFIG and ADMIN SET FRONTEND CONFIG (\"name\" = \"value\")",
        ));
    }
    let properties = ddl::properties(cursor)?;
    // Doris's old form for all front ends.
    cursor.eat("ALL");
    Ok(Statement::SetConfig(HiddenProperties(properties)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    #[test]
    fn settings_are_set_by_all_of_doris_forms() {
        for sql in [
            "ADMIN SET FRONTEND CONFIG (\"flush_age_ms\" = \"7\", 'persist' = 'true')",
            "admin set all frontends config (flush_age_ms = 7, persist = true)",
            "ADMIN SET FRONTEND CONFIG ('flush_age_ms' = '7', 'persist' = 'true') ALL",
            "ADMIN SET BACKEND CONFIG ('flush_age_ms' = '7', 'persist' = 'true')",
            "ADMIN SET ALL BACKENDS CONFIG ('flush_age_ms' = '7', 'persist' = 'true');",
        ] {
            let Statement::SetConfig(HiddenProperties(given)) = parse(sql).expect(sql) else {
                panic!("{sql}")
            };
            let given: Vec<_> = given.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            assert_eq!(given, [("flush_age_ms", "7"), ("persist", "true")], "{sql}");
        }
    }

    #[test]
    fn other_statements_of_administrators_name_the_ones_there_are() {
        for sql in ["ADMIN SET REPLICA STATUS", "ADMIN CHECK TABLET (1)", "ADMIN SET FRONTEND"] {
            let error = parse(sql).expect_err(sql).to_string();
            assert!(error.contains("ADMIN SET FRONTEND CONFIG (\"name\" = \"value\")"), "{error}");
        }
        parse("ADMIN SET FRONTEND CONFIG").expect_err("no setting");
        parse("ADMIN SET FRONTEND CONFIG ()").expect_err("no setting");
    }
}
