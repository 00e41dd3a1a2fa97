use super::*;
use crate::testing::TestEngine;
use std::net::Ipv4Addr;
use tributary_catalog::{ReplacedPassword, UserChange};
use tributary_types::AuthPlugin;

const HOST: &str = "10.0.0.1";
const ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));

fn clear(text: &str, plugin: AuthPlugin) -> NewPassword {
    NewPassword::Clear { text: Secret::new(text), plugin: Some(plugin) }
}

/// An engine with a user of each plugin, named after it, whose password is `right`.
async fn with_users() -> TestEngine {
    let test = TestEngine::open(|_| ()).await;
    for (name, plugin) in [("native", AuthPlugin::Native), ("sha2", AuthPlugin::CachingSha2)] {
        let verifiers = test.engine.logins.verifiers(clear("right", plugin)).await.expect("it is stored");
        test.engine.catalog.create_user(User::new(name, "%", verifiers)).await.expect("a new user");
    }
    test
}

#[tokio::test]
async fn a_password_is_right_however_it_is_stored_and_remembered_until_it_changes() {
    let test = with_users().await;
    let logins = &test.engine.logins;
    let is_password = async |name: &str, text: &str| {
        logins.is_password(logins.find(name, HOST).as_deref(), &Secret::new(text)).await
    };
    for name in ["native", "sha2"] {
        let user = || logins.find(name, HOST).expect("it exists");
        for wrong in ["", "Right", "right "] {
            assert!(!is_password(name, wrong).await, "{name} {wrong}");
            assert_eq!(logins.proven(&user()), None);
        }
        assert!(is_password(name, "right").await, "{name}");
        assert_eq!(logins.proven(&user()), Some(hash_of("right")));
        assert!(is_password(name, "right").await, "from memory");
        assert!(!is_password(name, "wrong").await, "from memory");
        let other = logins.verifiers(clear("other", AuthPlugin::CachingSha2)).await.expect("it is stored");
        let password = Some(ReplacedPassword { password: other, set_at_ms: 0, history: 0 });
        let change = UserChange { password, ..UserChange::default() };
        test.engine.catalog.alter_user(name, "%", change).await.expect("it exists");
        assert_eq!(logins.proven(&user()), None, "the memory ends with the password");
        assert!(!is_password(name, "right").await);
        assert!(is_password(name, "other").await);
    }
    assert!(!is_password("nobody", "").await);
    assert!(is_password("root", "").await, "it has none yet");
}

#[tokio::test]
async fn failures_delay_the_next_login_and_then_refuse_it() {
    let test = with_users().await;
    let logins = &test.engine.logins;
    let right = Secret::new("right");
    (0..20).for_each(|_| logins.ended("native", ADDRESS, false));
    let error =
        logins.check("native", ADDRESS, &right, None).await.expect_err("not even the right one is checked");
    assert_eq!(error.code, ErrorCode::AccessDenied);
    assert!(error.message.contains("too many failed logins from this address, try again in "), "{error}");
    let elsewhere = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
    logins.check("native", elsewhere, &right, None).await.expect("nobody failed there");
}

#[tokio::test]
async fn a_user_that_requires_tls_is_refused_without_it() {
    let test = with_users().await;
    let logins = &test.engine.logins;
    let require = |require| {
        let change = UserChange { require: Some(require), ..UserChange::default() };
        test.engine.catalog.alter_user("native", "%", change)
    };
    let tls = |has_client_certificate| TlsSession {
        version: "TLSv1.3".to_owned(),
        cipher: "TLS_AES_128_GCM_SHA256".to_owned(),
        has_client_certificate,
    };
    let right = Secret::new("right");
    require(tributary_types::TlsRequirement::Ssl).await.expect("it exists");
    logins.check("native", ADDRESS, &right, None).await.expect_err("in clear text");
    logins.check("native", ADDRESS, &right, Some(&tls(false))).await.expect("encrypted");
    require(tributary_types::TlsRequirement::X509).await.expect("it exists");
    logins.check("native", ADDRESS, &right, Some(&tls(false))).await.expect_err("without a certificate");
    logins.check("native", ADDRESS, &right, Some(&tls(true))).await.expect("with one");
}
