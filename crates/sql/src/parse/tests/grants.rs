use super::{error, ok};
use crate::ast::{
    GrantStatement, RoleStatement, SetProperty, Show, ShowFilter, ShowTail, Statement, TokenStatement,
    UserName,
};
use tributary_types::ErrorCode;
use tributary_types::privilege::{GrantScope, Grantee, Grants, Right, Rights};

fn user(name: &str, host: &str) -> Grantee {
    Grantee::User { name: name.into(), host: host.into() }
}

fn grant(sql: &str) -> GrantStatement {
    match ok(sql) {
        Statement::Grant(grant) | Statement::Revoke(grant) => *grant,
        other => panic!("{sql}: {other:?}"),
    }
}

#[test]
fn privileges_are_granted_on_everything_a_database_a_table_or_a_resource() {
    let select = Rights::of(&[Right::Select]);
    let table = || GrantScope::Table { db: "d".into(), table: "t".into() };
    for (on, scope) in [
        ("*.*", GrantScope::Global),
        ("*.*.*", GrantScope::Global),
        ("internal.*.*", GrantScope::Global),
        ("d.*", GrantScope::Database("d".into())),
        ("internal.d.*", GrantScope::Database("d".into())),
        ("d.t", table()),
        ("internal.`d`.`t`", table()),
    ] {
        let statement = grant(&format!("grant select_priv on {on} to u"));
        let grants = Grants::of(scope.clone(), select);
        let expected = GrantStatement::Rights { scope, grants, grantee: user("u", "%") };
        assert_eq!(statement, expected, "{on}");
    }
    for on in ["resource s3", "resource 'S3'"] {
        let statement = grant(&format!("GRANT USAGE_PRIV ON {on} TO ROLE 'r'"));
        let scope = GrantScope::Resource("s3".into());
        let (rights, grantee) = (Rights::of(&[Right::Usage]), Grantee::Role("r".into()));
        let grants = Grants::of(scope.clone(), rights);
        let expected = GrantStatement::Rights { scope, grants, grantee };
        assert_eq!(statement, expected, "{on}");
    }
    let scope = GrantScope::Resource("%".into());
    let grants = Grants::of(scope.clone(), Rights::of(&[Right::Usage]));
    let all = GrantStatement::Rights { scope, grants, grantee: user("u", "%") };
    assert_eq!(grant("grant usage_priv on resource * to u"), all);
}

#[test]
fn privileges_are_listed_or_have_a_common_name() {
    for (list, rights) in [
        ("SELECT_PRIV, load_priv", Rights::of(&[Right::Select, Right::Load])),
        ("select, LOAD, Alter", Rights::of(&[Right::Select, Right::Load, Right::Alter])),
        ("ALL", Rights::READ_WRITE),
        ("ALL PRIVILEGES", Rights::READ_WRITE),
        ("READ_ONLY, GRANT_PRIV", Rights::of(&[Right::Select, Right::Grant])),
        ("SHOW_VIEW_PRIV", Rights::of(&[Right::ShowView])),
    ] {
        let statement = grant(&format!("revoke {list} on d.* from 'u'@'10.%'"));
        let scope = GrantScope::Database("d".into());
        let grants = Grants::of(scope.clone(), rights);
        let expected = GrantStatement::Rights { scope, grants, grantee: user("u", "10.%") };
        assert_eq!(statement, expected, "{list}");
    }
}

#[test]
fn columns_of_a_table_are_granted_beside_rights_on_the_whole() {
    let scope = GrantScope::Table { db: "d".into(), table: "t".into() };
    let column = |name: &str| GrantScope::Column { db: "d".into(), table: "t".into(), column: name.into() };
    let mut grants = Grants::of(scope.clone(), Rights::of(&[Right::Load]));
    grants.grant(column("a"), Rights::of(&[Right::Select]));
    grants.grant(column("b"), Rights::of(&[Right::Select]));
    let expected = GrantStatement::Rights { scope, grants, grantee: user("u", "%") };
    assert_eq!(grant("GRANT SELECT_PRIV(a, B), LOAD_PRIV ON d.t TO u"), expected);
    for (sql, text) in [
        (
            "GRANT SELECT_PRIV(a) ON d.* TO u",
            "columns belong to a table: GRANT SELECT_PRIV(…) ON db.table, not on d.*",
        ),
        ("GRANT LOAD_PRIV(a) ON d.t TO u", "only SELECT_PRIV can be granted on columns"),
    ] {
        let error = error(sql);
        assert!(error.message.contains(text), "{sql}: {error}");
    }
}

#[test]
fn tokens_are_made_with_a_part_of_the_rights() {
    let token = |sql: &str| match ok(sql) {
        Statement::Token(statement) => *statement,
        other => panic!("{sql}: {other:?}"),
    };
    let mut limit =
        Grants::of(GrantScope::Table { db: "d".into(), table: "t".into() }, Rights::of(&[Right::Load]));
    limit.grant(GrantScope::Database("e".into()), Rights::of(&[Right::Select]));
    let expected = TokenStatement::Create {
        name: "nightly-1".into(),
        user: Some(UserName { name: "u".into(), host: "10.%".into() }),
        limit: Some(limit),
        lifetime_s: Some(90 * 86_400),
        comment: "c".into(),
    };
    let sql = "CREATE TOKEN 'nightly-1' FOR u@'10.%' LIMITED TO LOAD ON d.t, SELECT ON e.* EXPIRES IN 90 DAY COMMENT 'c'";
    assert_eq!(token(sql), expected);
    let drop = TokenStatement::Drop { name: "t".into(), user: None, if_exists: true };
    assert_eq!(token("DROP TOKEN IF EXISTS t"), drop);
    assert!(error("CREATE TOKEN 'a b'").message.contains("invalid name of a token"));
}

#[test]
fn roles_are_made_and_granted() {
    let user = UserName { name: "u".into(), host: "h".into() };
    let expected = GrantStatement::Roles { roles: vec!["a".into(), "b".into()], user };
    assert_eq!(grant("grant 'a', b to u@h"), expected);
    assert_eq!(grant("revoke a, 'b' from 'u'@'h'"), expected);
    let (name, comment) = (|| "r".to_owned(), |text: &str| text.to_owned());
    for (sql, statement) in [
        ("create role r", RoleStatement::Create { name: name(), if_not_exists: false, comment: comment("") }),
        (
            "create role if not exists 'r' comment 'c'",
            RoleStatement::Create { name: name(), if_not_exists: true, comment: comment("c") },
        ),
        ("alter role r comment 'd'", RoleStatement::Alter { name: name(), comment: comment("d") }),
        ("drop role if exists r", RoleStatement::Drop { name: name(), if_exists: true }),
    ] {
        assert_eq!(ok(sql), Statement::Role(statement), "{sql}");
    }
    assert_eq!(ok("show roles"), Statement::Show(Box::new(Show::Roles)));
}

#[test]
fn what_cannot_be_granted_is_said() {
    for (sql, text) in [
        ("grant selects on d.* to u", "Unknown privilege type: selects"),
        ("grant select_priv on other.d.* to u", "Unknown catalog 'other'"),
        ("grant select_priv on *.t to u", "name one database"),
        ("grant a(b) to u", "has no columns"),
        ("create role '1r'", "invalid role name: '1r'"),
    ] {
        let error = error(sql);
        assert!(error.message.contains(text), "{sql}: {}", error.message);
    }
    for sql in [
        "grant load_priv(a) on d.t to u",
        "grant usage_priv on workload group 'g' to u",
        "grant 'r' to role 's'",
    ] {
        assert_eq!(error(sql).code, ErrorCode::NotSupported, "{sql}");
    }
    for sql in
        ["grant select_priv on d to u", "grant select_priv on d.* u", "grant on d.* to u", "alter role r"]
    {
        assert_eq!(error(sql).code, ErrorCode::Syntax, "{sql}");
    }
}

#[test]
fn properties_of_users_are_set_and_shown() {
    let user = UserName { name: "u".into(), host: "10.%".into() };
    let set = |sql: &str| match ok(sql) {
        Statement::SetProperty(set) => *set,
        other => panic!("{sql}: {other:?}"),
    };
    let properties = vec![("a".to_owned(), "1".to_owned()), ("b".to_owned(), "-1".to_owned())];
    for list in ["'a' = '1', 'b' = '-1'", "a = 1, `b` = -1", "\"a\"='1',b=\"-1\""] {
        let expected = SetProperty { user: None, properties: properties.clone() };
        assert_eq!(set(&format!("set property {list}")), expected, "{list}");
        let expected = SetProperty { user: Some(user.clone()), properties: properties.clone() };
        assert_eq!(set(&format!("SET PROPERTY FOR 'u'@'10.%' {list};")), expected, "{list}");
    }
    let show = |user, tail| Statement::Show(Box::new(Show::Property { user, tail }));
    assert_eq!(ok("show property"), show(None, ShowTail::default()));
    let tail = ShowTail { filter: Some(ShowFilter::Like("max%".into())), ..ShowTail::default() };
    assert_eq!(ok("show property for 'u'@'10.%' like 'max%'"), show(Some(user), tail));
    for sql in
        ["set property", "set property for u", "set property a", "set property a = ", "set property a = b"]
    {
        assert_eq!(error(sql).code, ErrorCode::Syntax, "{sql}");
    }
    assert!(
        matches!(ok("set property = 1"), Statement::Set(_)),
        "a variable of that name is none, which is found later"
    );
}
