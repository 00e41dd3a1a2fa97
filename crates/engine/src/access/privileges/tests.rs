use super::*;
use crate::access::Resource;
use tributary_catalog::{CatalogLocation, User};
use tributary_types::PasswordHash;
use tributary_types::privilege::Grantee;

const TABLE: Object<'_> = Object::Table { db: "d", table: "t" };
const OTHER: Object<'_> = Object::Table { db: "d", table: "u" };
const FOREIGN: Object<'_> = Object::Table { db: "e", table: "t" };
const S3: Object<'_> = Object::Resource(Resource::S3);
const ALL: [Privilege; 12] = [
    Privilege::Connect,
    Privilege::Select,
    Privilege::Load,
    Privilege::Create,
    Privilege::Alter,
    Privilege::Drop,
    Privilege::Show,
    Privilege::ShowView,
    Privilege::Usage,
    Privilege::Grant,
    Privilege::Admin,
    Privilege::Node,
];

fn table() -> GrantScope {
    GrantScope::Table { db: "d".into(), table: "t".into() }
}

fn held(scope: GrantScope, rights: &[Right]) -> Held {
    let mut grants = Grants::default();
    grants.grant(scope, Rights::of(rights));
    Held::of(&grants)
}

/// The privileges that somebody has on an object.
fn allowed(held: &Held, object: Object<'_>) -> Vec<Privilege> {
    ALL.into_iter().filter(|privilege| held.allows("u", *privilege, object)).collect()
}

#[test]
fn a_right_on_a_table_is_good_there_and_nowhere_else() {
    for (right, privileges) in [
        (Right::Select, vec![Privilege::Connect, Privilege::Select, Privilege::Show]),
        (Right::Load, vec![Privilege::Connect, Privilege::Load, Privilege::Show]),
        (Right::Create, vec![Privilege::Connect, Privilege::Create, Privilege::Show, Privilege::ShowView]),
        (Right::Alter, vec![Privilege::Connect, Privilege::Alter, Privilege::Show, Privilege::ShowView]),
        (Right::Drop, vec![Privilege::Connect, Privilege::Drop, Privilege::Show, Privilege::ShowView]),
        (Right::ShowView, vec![Privilege::Connect, Privilege::Show, Privilege::ShowView]),
        (Right::Grant, vec![Privilege::Grant]),
    ] {
        let held = held(table(), &[right]);
        assert_eq!(allowed(&held, TABLE), privileges, "{right:?}");
        assert_eq!(allowed(&held, OTHER), [], "{right:?}");
        assert_eq!(allowed(&held, FOREIGN), [], "{right:?}");
        assert_eq!(allowed(&held, Object::Server), [Privilege::Connect], "{right:?}");
        let sees_database = right != Right::Grant;
        let of_database = if sees_database { vec![Privilege::Connect, Privilege::Show] } else { Vec::new() };
        assert_eq!(allowed(&held, Object::Database("d")), of_database, "{right:?}");
        assert_eq!(allowed(&held, Object::Database("e")), [], "{right:?}");
    }
}

#[test]
fn a_right_on_a_database_is_good_for_its_tables() {
    let held = held(GrantScope::Database("d".into()), &[Right::Load]);
    let expected = [Privilege::Connect, Privilege::Load, Privilege::Show];
    for object in [TABLE, OTHER, Object::Database("d")] {
        assert_eq!(allowed(&held, object), expected, "{object:?}");
    }
    assert_eq!(allowed(&held, FOREIGN), []);
}

#[test]
fn a_right_on_a_resource_leads_out_by_this_way_only() {
    let of_one = held(GrantScope::Resource("s3".into()), &[Right::Usage]);
    assert_eq!(allowed(&of_one, S3), [Privilege::Usage]);
    assert_eq!(allowed(&of_one, Object::Resource(Resource::Http)), []);
    assert_eq!(allowed(&of_one, TABLE), []);
    let of_all = held(GrantScope::Resource("%".into()), &[Right::Usage]);
    for resource in Resource::ALL {
        assert_eq!(allowed(&of_all, Object::Resource(resource)), [Privilege::Usage], "{resource:?}");
    }
}

#[test]
fn administrators_may_everything_but_nodes_and_operators_those_too() {
    let admin = held(GrantScope::Global, &[Right::Admin]);
    let operator = held(GrantScope::Global, &[Right::Node]);
    for object in [TABLE, S3, Object::Server, Object::User("root"), Object::Connection(1)] {
        assert_eq!(allowed(&admin, object), ALL[..ALL.len() - 1], "{object:?}");
        assert_eq!(allowed(&operator, object), ALL, "{object:?}");
    }
}

#[test]
fn who_has_nothing_has_a_session_and_its_own_name_and_may_read_tables_of_the_system() {
    let held = Held::default();
    assert_eq!(allowed(&held, Object::Server), [Privilege::Connect]);
    for object in [TABLE, S3, Object::Database("d"), Object::Connection(1), Object::User("v")] {
        assert_eq!(allowed(&held, object), [], "{object:?}");
    }
    assert_eq!(allowed(&held, Object::User("u")), [Privilege::Show]);
    let of_system = Object::Table { db: "information_schema", table: "tables" };
    assert_eq!(allowed(&held, of_system), [Privilege::Connect, Privilege::Select, Privilege::Show]);
}

#[tokio::test]
async fn a_change_of_rights_counts_at_once_and_a_dropped_user_may_nothing() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let location = CatalogLocation::Sqlite(dir.path().join("catalog.db"));
    let catalog = Arc::new(Catalog::open(&location).await.expect("a new catalog"));
    catalog.create_user(User::new("u", "10.%", PasswordHash::EMPTY)).await.expect("a new user");
    let privileges = Privileges::new(Arc::clone(&catalog));
    let from = |account: &str| Principal::new("u", "10.0.0.1", 0).of_account(account);
    let check = |account: &str| privileges.check(&from(account), Privilege::Load, TABLE);
    let refused = check("10.%").expect_err("nothing is granted");
    assert_eq!(refused.message, "LOAD command denied to user 'u'@'10.0.0.1' for table 'd: t'");
    let to = Grantee::User { name: "u".into(), host: "10.%".into() };
    let granted = Rights::of(&[Right::Load]);
    catalog.grant(&to, &Grants::of(table(), granted)).await.expect("granted");
    check("10.%").expect("granted");
    check("%").expect_err("that is another user");
    catalog.revoke(&to, &Grants::of(table(), granted)).await.expect("revoked");
    check("10.%").expect_err("revoked");
    catalog.drop_user("u", "10.%").await.expect("dropped");
    let dropped = check("10.%").expect_err("dropped");
    assert_eq!(dropped.code, ErrorCode::AccessDenied, "{dropped:?}");
}
