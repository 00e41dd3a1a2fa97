//! The client's identity and capabilities.

/// `LONG_PASSWORD`, `LOCAL_FILES`, `PROTOCOL_41`, `TRANSACTIONS`, `SECURE_CONNECTION`, `PLUGIN_AUTH`. The client itself sends no
/// files: for `LOAD DATA LOCAL`, take the socket.
const CAPABILITIES: u32 = 0x1 | 0x80 | 0x200 | 0x2000 | 0x8000 | 0x8_0000;
const CONNECT_WITH_DB: u32 = 0x8;
const PAYLOAD_BYTES_MAX: u32 = 1 << 30;
const UTF8MB4: u8 = 45;

/// The answer of a user without a password to a greeting.
pub(crate) fn of_user(user: &str, database: Option<&str>) -> Vec<u8> {
    let with_database = if database.is_some() { CONNECT_WITH_DB } else { 0 };
    let mut payload = (CAPABILITIES | with_database).to_le_bytes().to_vec();
    payload.extend(PAYLOAD_BYTES_MAX.to_le_bytes());
    payload.push(UTF8MB4);
    payload.extend([0; 23]);
    payload.extend(user.as_bytes());
    payload.push(0);
    payload.push(0); // the password's length
    if let Some(database) = database {
        payload.extend(database.as_bytes());
        payload.push(0);
    }
    payload.extend(b"mysql_native_password\0");
    payload
}
