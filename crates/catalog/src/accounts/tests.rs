use super::*;
use crate::location::CatalogLocation;
use tempfile::TempDir;
use tributary_types::PasswordHash;
use tributary_types::privilege::Right;

async fn open(dir: &TempDir) -> Catalog {
    Catalog::open(&CatalogLocation::Sqlite(dir.path().join("catalog.db"))).await.unwrap()
}

fn rights(rights: &[Right]) -> Rights {
    Rights::of(rights)
}

/// The rights of a user on exactly this.
fn held(catalog: &Catalog, user: &str, scope: &GrantScope) -> Rights {
    catalog.grants_of(user, "%").expect("the user exists").on(scope)
}

fn table(db: &str, table: &str) -> GrantScope {
    GrantScope::Table { db: db.to_owned(), table: table.to_owned() }
}

fn user(name: &str) -> Grantee {
    Grantee::User { name: name.to_owned(), host: "%".to_owned() }
}

async fn with_user(dir: &TempDir, name: &str) -> Catalog {
    let catalog = open(dir).await;
    catalog.create_user(User::new(name, "%", PasswordHash::EMPTY)).await.unwrap();
    catalog
}

#[tokio::test]
async fn a_user_has_its_own_grants_and_those_of_its_roles_also_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = with_user(&dir, "u").await;
    assert_eq!(catalog.grants_of("u", "%"), Some(Grants::default()));
    catalog.grant(&user("u"), &Grants::of(table("d", "t"), rights(&[Right::Load]))).await.unwrap();
    let readers = Grantee::Role("readers".to_owned());
    catalog
        .grant(&readers, &Grants::of(GrantScope::Database("d".to_owned()), rights(&[Right::Select])))
        .await
        .unwrap();
    catalog.grant_roles("u", "%", &["readers".to_owned()]).await.unwrap();
    let expect = |catalog: &Catalog| {
        assert_eq!(held(catalog, "u", &table("d", "t")), Rights::of(&[Right::Load]));
        assert_eq!(held(catalog, "u", &GrantScope::Database("d".to_owned())), Rights::of(&[Right::Select]));
    };
    expect(&catalog);
    catalog.close().await;

    let catalog = open(&dir).await;
    expect(&catalog);
    assert!(catalog.grants_of("u", "10.%").is_none(), "another host is another user");
    catalog.drop_role("readers").await.unwrap();
    assert_eq!(held(&catalog, "u", &GrantScope::Database("d".to_owned())), Rights::NONE);
    catalog.create_role("readers", "").await.unwrap();
    catalog.grant(&readers, &Grants::of(GrantScope::Global, rights(&[Right::Select]))).await.unwrap();
    assert_eq!(held(&catalog, "u", &GrantScope::Global), Rights::NONE, "a new role of the name is another");
}

#[tokio::test]
async fn the_first_users_have_the_roles_of_the_server() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = open(&dir).await;
    assert_eq!(held(&catalog, "root", &GrantScope::Global), Rights::of(&[Right::Node, Right::Admin]));
    assert_eq!(held(&catalog, "admin", &GrantScope::Global), Rights::of(&[Right::Admin]));
    let error = catalog.revoke_roles("root", "%", &[OPERATOR_ROLE.to_owned()]).await.unwrap_err();
    assert!(matches!(error, CatalogError::ProtectedRole { .. }), "{error}");
    for role in ["operator", "admin"] {
        let to = Grantee::Role(role.to_owned());
        let refusals = [
            catalog.grant(&to, &Grants::of(GrantScope::Global, rights(&[Right::Select]))).await,
            catalog.revoke(&to, &Grants::of(GrantScope::Global, rights(&[Right::Admin]))).await,
            catalog.drop_role(role).await,
            catalog.alter_role(role, "mine").await,
        ];
        for refusal in refusals {
            assert!(matches!(refusal, Err(CatalogError::BuiltInRole(_))), "{role}: {refusal:?}");
        }
        assert!(matches!(catalog.create_role(role, "").await, Err(CatalogError::RoleExists(_))));
    }
}

#[tokio::test]
async fn what_cannot_be_granted_or_revoked_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = with_user(&dir, "u").await;
    let u = user("u");
    let database = GrantScope::Database("d".to_owned());
    for (scope, granted) in [
        (database.clone(), rights(&[Right::Admin])),
        (table("d", "t"), rights(&[Right::Select, Right::Usage])),
        (GrantScope::Resource("s3".to_owned()), rights(&[Right::Select])),
    ] {
        let error = catalog.grant(&u, &Grants::of(scope.clone(), granted)).await.unwrap_err();
        assert!(matches!(error, CatalogError::NotGrantable { .. }), "{scope}: {error}");
    }
    catalog.grant(&u, &Grants::of(database.clone(), rights(&[Right::Select]))).await.unwrap();
    for (grantee, scope, granted) in
        [(&u, table("d", "t"), rights(&[Right::Select])), (&u, database.clone(), rights(&[Right::Load]))]
    {
        let error = catalog.revoke(grantee, &Grants::of(scope.clone(), granted)).await.unwrap_err();
        assert!(matches!(error, CatalogError::NoSuchGrant { .. }), "{scope}: {error}");
    }
    let unknown = catalog
        .revoke(&Grantee::Role("r".to_owned()), &Grants::of(database.clone(), rights(&[Right::Select])))
        .await;
    assert!(matches!(unknown, Err(CatalogError::UnknownRole(_))));
    let unknown =
        catalog.grant(&user("nobody"), &Grants::of(database.clone(), rights(&[Right::Select]))).await;
    assert!(matches!(unknown, Err(CatalogError::UnknownUser { .. })));
    let unknown = catalog.grant_roles("u", "%", &["r".to_owned()]).await;
    assert!(matches!(unknown, Err(CatalogError::UnknownRole(_))));
    assert_eq!(held(&catalog, "u", &database), Rights::of(&[Right::Select]));
    assert!(catalog.roles().is_empty());
}

#[tokio::test]
async fn grants_of_a_dropped_user_are_gone_for_the_next_of_its_name() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = with_user(&dir, "u").await;
    catalog.grant(&user("u"), &Grants::of(GrantScope::Global, rights(&[Right::Select]))).await.unwrap();
    catalog.set_password("u", "%", PasswordHash::of("secret")).await.unwrap();
    assert!(held(&catalog, "u", &GrantScope::Global).has(Right::Select), "a password changes no grant");
    catalog.drop_user("u", "%").await.unwrap();
    catalog.create_user(User::new("u", "%", PasswordHash::EMPTY)).await.unwrap();
    assert_eq!(catalog.grants_of("u", "%"), Some(Grants::default()));
}
