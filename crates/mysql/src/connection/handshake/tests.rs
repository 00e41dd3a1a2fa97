use super::*;
use mysql_common::io::ParseBuf;
use mysql_common::packets::{AuthPlugin, HandshakePacket, HandshakeResponse};
use mysql_common::proto::{MyDeserialize, MySerialize};
use std::collections::HashMap;
use tributary_types::AuthPlugin::{CachingSha2, Native};

#[test]
fn a_client_reads_the_greeting() {
    let nonce = fresh_nonce();
    let mut bytes = Vec::new();
    let greeting = Greeting { version: "5.7.99", id: 77, nonce: &nonce, offers_tls: false, plugin: Native };
    greeting.write(&mut bytes);
    let seen = HandshakePacket::deserialize((), &mut ParseBuf(&bytes)).unwrap();
    assert_eq!(seen.server_version_str(), "5.7.99");
    assert_eq!(seen.connection_id(), 77);
    assert_eq!(seen.nonce(), nonce);
    assert_eq!(seen.capabilities(), SERVER_CAPABILITIES);
    assert_eq!(seen.auth_plugin(), Some(AuthPlugin::MysqlNativePassword));
    assert!(!seen.capabilities().contains(CapabilityFlags::CLIENT_SSL));
    bytes.clear();
    Greeting { offers_tls: true, plugin: CachingSha2, ..greeting }.write(&mut bytes);
    let seen = HandshakePacket::deserialize((), &mut ParseBuf(&bytes)).unwrap();
    assert_eq!(seen.auth_plugin(), Some(AuthPlugin::CachingSha2Password));
    assert!(seen.capabilities().contains(CapabilityFlags::CLIENT_SSL));
}

fn response(capabilities: CapabilityFlags) -> Vec<u8> {
    let attributes = HashMap::from([(String::from("_client_name"), String::from("test"))]);
    let response = HandshakeResponse::new(
        Some(&b"proof"[..]),
        (5, 7, 99),
        Some(&b"root"[..]),
        Some(&b"db"[..]),
        Some(AuthPlugin::MysqlNativePassword),
        capabilities | CapabilityFlags::CLIENT_PROTOCOL_41,
        Some(attributes),
        1 << 24,
    );
    let mut bytes = Vec::new();
    response.serialize(&mut bytes);
    bytes
}

#[test]
fn what_a_client_says_of_itself_is_read_in_each_of_its_forms() {
    let lenenc = CapabilityFlags::CLIENT_PLUGIN_AUTH_LENENC_CLIENT_DATA;
    for form in [lenenc, CapabilityFlags::CLIENT_SECURE_CONNECTION, CapabilityFlags::empty()] {
        let Greeted::Credentials(capabilities, credentials) = parse_greeted(&response(form)).unwrap() else {
            panic!("{form:?}")
        };
        assert!(capabilities.contains(CapabilityFlags::CLIENT_PROTOCOL_41 | form));
        assert_eq!(credentials.user, "root");
        assert_eq!(credentials.auth_response, b"proof");
        assert_eq!(credentials.database.as_deref(), Some("db"));
        assert_eq!(credentials.plugin.as_deref(), Some(Native.name()));
        assert_eq!(credentials.attributes, [(String::from("_client_name"), String::from("test"))]);
    }
}

#[test]
fn capabilities_that_were_not_offered_are_not_taken() {
    let asked = CapabilityFlags::CLIENT_ZSTD_COMPRESSION_ALGORITHM | CapabilityFlags::CLIENT_SESSION_TRACK;
    let Greeted::Credentials(capabilities, _) = parse_greeted(&response(asked)).unwrap() else { panic!() };
    assert!(!capabilities.intersects(asked));
}

#[test]
fn a_request_for_tls_and_a_client_before_4_1_are_recognised() {
    let mut tls = [0_u8; TLS_REQUEST_BYTES];
    let asked = CapabilityFlags::CLIENT_SSL | CapabilityFlags::CLIENT_PROTOCOL_41;
    tls[..4].copy_from_slice(&asked.bits().to_le_bytes());
    assert_eq!(parse_greeted(&tls), Ok(Greeted::TlsRequest));
    assert_eq!(parse_greeted(b"\x05\x00\x00\x00\x01root\0"), Ok(Greeted::TooOld));
}

#[test]
fn a_response_that_is_cut_off_anywhere_never_panics() {
    let whole = response(CapabilityFlags::CLIENT_SECURE_CONNECTION);
    for length in 0..whole.len() {
        let _ = parse_greeted(&whole[..length]);
        let _ = parse_change_user(&whole[length..], SERVER_CAPABILITIES);
    }
}

#[test]
fn a_change_of_user_is_read() {
    let payload = b"bob\0\x03abcdb\0\x2d\0mysql_native_password\0\x04\x01k\x01v";
    let credentials = parse_change_user(payload, SERVER_CAPABILITIES).unwrap();
    assert_eq!(credentials.user, "bob");
    assert_eq!(credentials.auth_response, b"abc");
    assert_eq!(credentials.database.as_deref(), Some("db"));
    assert_eq!(credentials.collation, 45);
    assert_eq!(credentials.attributes, [(String::from("k"), String::from("v"))]);
}
