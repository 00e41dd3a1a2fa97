//! Seeds that are bytes.

use std::sync::Arc;
use tributary_decode::{BlockBuilder, InsertOptions, Target, ValuesOutcome, decode_values};
use tributary_sql::{Statement, parse};
use tributary_types::{DbId, TableDef, TableId};

/// A payload as a packet.
fn packet(sequence: u8, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_le_bytes();
    [&length[..3], &[sequence], payload].concat()
}

fn commands(choice: u8, payloads: &[&[u8]]) -> Vec<u8> {
    let packets: Vec<u8> = payloads.iter().flat_map(|payload| packet(0, payload)).collect();
    [&[choice], &packets[..]].concat()
}

/// Answers to a greeting, in the forms of well-known clients.
fn logins() -> Vec<Vec<u8>> {
    const PROOF: &[u8] =
        b"\x14\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10\x11\x12\x13\x14";
    let fixed = |capabilities: u32, collation: u8| {
        [&capabilities.to_le_bytes()[..], &(1u32 << 24).to_le_bytes(), &[collation], &[0; 23]].concat()
    };
    let attributes = b"\x2a\x03_os\x05Linux\x0c_client_name\x08libmysql\x04_pid\x04\x31\x32\x33\x34";
    let responses: Vec<Vec<u8>> = vec![
        // libmysql: database, plugin, attributes.
        [&fixed(0x01ff_a68d, 45)[..], b"root\0\0", b"db\0mysql_native_password\0", attributes].concat(),
        // mysql2 (node): another plugin first.
        [&fixed(0x00ba_a6cf, 224)[..], b"root\0\x00db\0caching_sha2_password\0"].concat(),
        // PyMySQL.
        [
            &fixed(0x003e_a285, 45)[..],
            b"alice\0",
            PROOF,
            b"\0mysql_native_password\0\x11\x0c_client_name\x03raw",
        ]
        .concat(),
        // go-sql-driver: no plugin's name at the end.
        [&fixed(0x000a_a20d, 45)[..], b"root\0\0x\0"].concat(),
        // A request for TLS, and a client before 4.1.
        fixed(0x0000_8a00, 8),
        b"\x85\x04\0\0\0old\0".to_vec(),
    ];
    responses.iter().map(|response| [&[0x85], &packet(1, response)[..]].concat()).collect()
}

/// Conversations within TLS, and clear text around its beginning.
pub fn tls() -> Vec<Vec<u8>> {
    let hello = b"\x16\x03\x01\x00\x2f\x01\x00\x00\x2b\x03\x03\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\
        \0\x00\x00\x04\x13\x01\x13\x02\x01\x00";
    let query = packet(0, b"\x03select 1");
    let login = logins().into_iter().next().map_or_else(Vec::new, |login| login[1..].to_vec());
    let mut seeds = vec![
        commands(0x05, &[b"\x03select 1", b"\x03e", b"\x0e", b"\x01"]),
        commands(0x00, &[b"\x03m", b"\x16insert into t values (?)", b"\x01"]),
        commands(0x3f, &[&[&b"\x03"[..], &[b'a'; 70_000]].concat(), b"\x03s"]),
        // Behind the request: a login and a query in clear text, a hello, a hello that is cut off, a record of another kind.
        [&[0x80], &login[..], &query].concat(),
        [&[0x82], &hello[..], &query].concat(),
        [&[0x80], &hello[..20]].concat(),
        [&[0x81], &b"\x17\x03\x03\x00\x05hello"[..]].concat(),
        [&[0x80], &b"\x15\x03\x03\x00\x02\x02\x00"[..], &query].concat(),
    ];
    // No request: the login in clear text where TLS is demanded.
    seeds.extend(logins().into_iter().map(|login| [&[0xc0], &login[1..], &query[..]].concat()));
    seeds
}

pub fn mysql() -> Vec<Vec<u8>> {
    let execute = b"\x17\x01\0\0\0\0\x01\0\0\0\x00\x01\x08\x00\xfd\x00\x0c\x00\
        \x2a\0\0\0\0\0\0\0\x03abc\x0b\xe8\x07\x05\x01\x0a\x0b\x0c\x40\xe2\x01\0";
    let again = b"\x17\x01\0\0\0\0\x01\0\0\0\x06\x00\x2b\0\0\0\0\0\0\0";
    let times = b"\x17\x01\0\0\0\0\x01\0\0\0\x00\x01\x0b\x00\x05\x00\x04\x80\
        \x08\x01\x01\0\0\0\x02\x03\x04\0\0\0\0\0\0\x04\x40\0\0\xc0\x3f";
    let mut seeds = logins();
    seeds.extend([
        commands(0x03, &[b"\x0e", b"\x03select 1", b"\x03m", b"\x03h", b"\x03e", b"\x09", b"\x01"]),
        commands(
            0x7f,
            &[b"\x16insert into t values (?,?,?)", execute, again, b"\x1a\x01\0\0\0", b"\x19\x01\0\0\0"],
        ),
        commands(
            0x07,
            &[b"\x16?,?,?", times, b"\x18\x01\0\0\0\x01\0long data", execute, b"\x1c\x01\0\0\0\x01\0\0\0"],
        ),
        commands(
            0x10,
            &[
                b"\x02db",
                b"\x02xdb",
                b"\x04t\0a%",
                b"\x1b\0\0",
                b"\x1b\x01\0",
                b"\x0d",
                b"\x1f",
                b"\x0c\x07\0\0\0",
            ],
        ),
        commands(
            0x01,
            &[b"\x11root\0\0db\0\x2d\0mysql_native_password\0\0", b"\x03s", b"\x11alice\0\x01x\0"],
        ),
        commands(0x00, &[b"", b"\x55", b"\x17\x09\0\0\0", b"\x16", b"\x03"]),
        [&commands(0x05, &[b"\x03a"])[..], b"\xff\xff\xff\0", &[0x20; 40]].concat(),
        [&commands(0x05, &[b"\x03a"])[..], b"\x02\0\0\x07\x03b"].concat(),
    ]);
    seeds
}

/// The table whose number in the targets is 0.
fn table() -> Arc<TableDef> {
    let Ok(Statement::CreateTable(create)) = parse("CREATE TABLE t (c0 INT, c1 STRING)") else {
        panic!("a legal statement")
    };
    Arc::new(create.to_def("db", DbId(1), TableId(7)).expect("a legal table"))
}

/// Packed and aligned blocks.
pub fn blocks() -> Vec<Vec<u8>> {
    let table = table();
    let target = Target::new(&table, None).expect("all columns");
    let many = vec!["(1,'x'),(NULL,'é'),(3,NULL)"; 350].join(",");
    ["(1,'a')", "(1,'a'),(NULL,'é'),(-3,NULL)", "(NULL,NULL),(NULL,NULL)", "(7,'')", &many]
        .iter()
        .flat_map(|sql| {
            let mut builder = BlockBuilder::new(&table.schema);
            let outcome = decode_values(sql.as_bytes(), &target, &InsertOptions::default(), &mut builder);
            let Ok(ValuesOutcome::Rows(decoded)) = outcome else { panic!("not rows: {sql}") };
            decoded.blocks
        })
        .map(|block| [&[0], &block.bytes()[..]].concat())
        .collect()
}

/// Bytes from which targets derive their input, always the same.
pub fn noise(count: u64, length: usize) -> Vec<Vec<u8>> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        // Small numbers often, since they choose.
        if state >> 60 < 8 { (state >> 32) as u8 % 8 } else { (state >> 32) as u8 }
    };
    (0..count).map(|_| (0..length).map(|_| next()).collect()).collect()
}
