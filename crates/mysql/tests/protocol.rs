//! The protocol as seen by a client that speaks it byte by byte.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

#[allow(dead_code, reason = "other tests use the rest")]
mod client;
mod fake;

use client::{Client, DEPRECATE_EOF, Login, err_code, frame, is_err, is_ok};
use fake::{start, start_with};
use std::time::Duration;
use tributary_mysql::{CapabilityFlags, ServeOptions};
use tributary_types::Live;

const QUERY: u8 = 3;
const PREPARE: u8 = 0x16;
const EXECUTE: u8 = 0x17;
const LONG_DATA: u8 = 0x18;
const CLOSE: u8 = 0x19;

/// `COM_STMT_EXECUTE` with one BIGINT parameter.
fn execute(id: u32, value: i64) -> Vec<u8> {
    let mut packet = vec![EXECUTE];
    packet.extend_from_slice(&id.to_le_bytes());
    packet.extend_from_slice(&[0, 1, 0, 0, 0, 0, 1, 8, 0]);
    packet.extend_from_slice(&value.to_le_bytes());
    packet
}

#[tokio::test]
async fn many_statements_in_one_segment_all_run_in_order_each_with_its_answer() {
    let server = start().await;
    let mut client = server.connect().await;
    let id = client.prepare("insert ?").await;
    let mut segment = Vec::new();
    for value in 0..500 {
        segment.extend(frame(&execute(id, value), 0));
        segment.extend(frame(format!("\x03affect {value}").as_bytes(), 0));
    }
    client.send_raw(&segment).await;
    for value in 0..500_u64 {
        assert_eq!(client.read_ok().await.affected_rows, value, "answer to execution {value}");
        assert_eq!(client.read_ok().await.affected_rows, value, "answer to statement {value}");
    }
    let calls = server.fake.calls();
    let executed: Vec<_> = calls.iter().filter(|call| call.starts_with("execute")).collect();
    assert_eq!(executed.len(), 500);
    for (value, call) in executed.iter().enumerate() {
        assert_eq!(**call, format!("execute {id} [Int({value})]"));
    }
}

#[tokio::test]
async fn statements_that_arrive_byte_by_byte_run_like_any_others() {
    let server = start().await;
    let mut client = server.connect().await;
    let mut bytes = frame(b"\x03affect 1", 0);
    bytes.extend(frame(b"\x0e", 0));
    bytes.extend(frame(b"\x03affect 2", 0));
    for byte in bytes {
        client.send_raw(&[byte]).await;
        tokio::task::yield_now().await;
    }
    assert_eq!(client.read_ok().await.affected_rows, 1);
    assert_eq!(client.read_ok().await.affected_rows, 0);
    assert_eq!(client.read_ok().await.affected_rows, 2);
}

#[tokio::test]
async fn an_answer_does_not_wait_for_a_later_statement_that_waits() {
    let server = start().await;
    let mut client = server.connect().await;
    let mut segment = frame(b"\x03affect 1", 0);
    segment.extend(frame(b"\x03wait", 0));
    segment.extend(frame(b"\x03affect 3", 0));
    client.send_raw(&segment).await;
    assert_eq!(client.read_ok().await.affected_rows, 1);
    server.fake.go_on();
    assert_eq!(client.read_ok().await.affected_rows, 2);
    assert_eq!(client.read_ok().await.affected_rows, 3);
}

#[tokio::test]
async fn the_right_password_opens_a_session_that_knows_its_client() {
    let server = start().await;
    let login = Login { user: "alice", password: "secret", database: Some("db1"), ..Login::default() };
    let mut client = Client::connect(server.address, login).await.unwrap();
    client.query_ok("affect 1").await;
    let opened = &server.fake.calls()[0];
    assert_eq!(opened, "open alice Some(\"db1\") [(\"_client_name\", \"raw\")]");
}

#[tokio::test]
async fn a_wrong_password_and_an_unknown_user_are_refused_with_the_same_words() {
    let server = start().await;
    for (user, password, using) in
        [("alice", "wrong", "YES"), ("alice", "", "NO"), ("nobody", "x", "YES"), ("root", "x", "YES")]
    {
        let refused = Client::connect(server.address, Login { user, password, ..Login::default() }).await;
        let error = refused.err().unwrap();
        assert_eq!(err_code(&error), 1045);
        let text = String::from_utf8_lossy(&error[3..]);
        assert_eq!(
            text,
            format!("#28000Access denied for user '{user}'@'127.0.0.1' (using password: {using})")
        );
    }
    assert!(server.fake.calls().is_empty());
}

#[tokio::test]
async fn a_client_with_another_plugin_is_asked_to_switch_to_the_native_one() {
    let server = start().await;
    for (user, password, right) in [("alice", "secret", true), ("alice", "wrong", false), ("root", "", true)]
    {
        let login = Login { user, password, plugin: "caching_sha2_password", ..Login::default() };
        assert_eq!(Client::connect(server.address, login).await.is_ok(), right, "{user} {password}");
    }
}

#[tokio::test]
async fn a_session_that_cannot_be_opened_is_refused_in_its_own_words() {
    let server = start().await;
    let login = Login { database: Some("missing"), ..Login::default() };
    let error = Client::connect(server.address, login).await.err().unwrap();
    assert_eq!(err_code(&error), 1049);
}

#[tokio::test]
async fn a_client_that_wants_tls_or_is_too_old_gets_a_clear_error() {
    let server = start().await;
    let mut tls = [0_u8; 32];
    let asked = CapabilityFlags::CLIENT_SSL | CapabilityFlags::CLIENT_PROTOCOL_41;
    tls[..4].copy_from_slice(&asked.bits().to_le_bytes());
    let too_old = *b"\x05\x00\x00\x00\x01root\0";
    for (response, code) in [(&tls[..], 1043), (&too_old[..], 1251), (&b"\xff\xff"[..], 1043)] {
        let mut client = Client::greeted(server.address).await;
        client.send_raw(&frame(response, 1)).await;
        let (_, error) = client.read().await.unwrap();
        assert_eq!(err_code(&error), code);
        assert!(client.read().await.is_none());
    }
}

#[tokio::test]
async fn a_malformed_packet_is_an_error_and_the_connection_stays_open() {
    let server = start().await;
    let mut client = server.connect().await;
    let id = client.prepare("insert ?").await;
    let cut_execute = execute(id, 1);
    let malformed: [&[u8]; 6] =
        [b"", b"\x17", b"\x17\x01\0\0\0\0", &cut_execute[..10], &cut_execute[..11], b"\x1b\x05\0"];
    for packet in malformed {
        client.send(packet).await;
        let (sequence, error) = client.read().await.unwrap();
        assert_eq!((sequence, err_code(&error)), (1, 1835), "{packet:?}");
    }
    client.send(&cut_execute).await;
    assert!(is_ok(&client.read().await.unwrap().1));
}

#[tokio::test]
async fn values_cut_off_are_told_by_the_session() {
    let server = start().await;
    let mut client = server.connect().await;
    let id = client.prepare("insert ?").await;
    let whole = execute(id, 1);
    client.send(&whole[..whole.len() - 1]).await;
    assert_eq!(err_code(&client.read().await.unwrap().1), 1835);
    client.query_ok("affect 1").await;
}

#[tokio::test]
async fn unknown_commands_are_refused_and_the_connection_goes_on() {
    let server = start().await;
    let mut client = server.connect().await;
    for code in [0_u8, 5, 6, 0x0b, 0x12, 0x1d, 0x20, 0x77, 0xfa, 0xff] {
        client.send(&[code]).await;
        assert_eq!(err_code(&client.read().await.unwrap().1), 1047, "command {code}");
    }
    // COM_REFRESH, with its flags.
    client.send(&[7, 1]).await;
    assert_eq!(client.read().await.unwrap().1[0], 0, "an OK packet");
    client.query_ok("affect 1").await;
}

#[tokio::test]
async fn random_packets_neither_stop_the_server_nor_break_the_framing() {
    let server = start().await;
    let mut client = server.connect().await;
    client.prepare("insert ?").await;
    let mut seed = 42_u64;
    let mut random = move |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % below
    };
    // Commands that may end the connection or ask back (QUIT, CHANGE_USER) have their own tests.
    let commands = [0_u8, 2, 4, 9, 14, 22, 23, 23, 23, 23, 24, 26, 27, 28, 30, 200];
    for _ in 0..3_000 {
        let mut packet = vec![commands[random(commands.len())]];
        if random(2) == 0 {
            packet.extend_from_slice(&[1, 0, 0, 0]);
        }
        packet.extend((0..random(30)).map(|_| random(256) as u8));
        client.send(&packet).await;
        client.send(b"\x03affect 7777").await;
        while !matches!(client.read().await.unwrap().1[..], [0, 0xfc, 0x61, 0x1e, ..]) {}
    }
    assert!(server.connect().await.ping().await);
}

#[tokio::test]
async fn random_handshakes_do_not_stop_the_server() {
    let server = start().await;
    let mut seed = 4_u64;
    let mut random = move || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as u8
    };
    for _ in 0..200 {
        let mut client = Client::greeted(server.address).await;
        let mut response: Vec<u8> = (0..random()).map(|_| random()).collect();
        if let Some(byte) = response.get_mut(1) {
            *byte |= 0x82;
        }
        client.send_raw(&frame(&response, 1)).await;
        client.finish_sending().await;
        while client.read().await.is_some() {}
    }
    assert!(server.connect().await.ping().await);
}

#[tokio::test]
async fn a_statement_and_a_value_of_forty_megabytes_pass_in_several_packets() {
    let server = start().await;
    let mut client = server.connect().await;
    let sql = format!("length {}", "x".repeat(40 << 20));
    client.send(&[&[QUERY], sql.as_bytes()].concat()).await;
    assert_eq!(client.read_ok().await.affected_rows, sql.len() as u64);
    let rows = client.query("repeat 41943040").await;
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].len(), 9 + (40 << 20));
    assert!(rows[0][9..].iter().all(|byte| *byte == b'x'));
    client.query_ok("affect 1").await;
}

#[tokio::test]
async fn a_packet_over_max_allowed_packet_is_reported_once_sent_and_ends_the_connection() {
    let options = ServeOptions { max_allowed_packet: 1 << 20, ..ServeOptions::default() };
    let server = start_with(options).await;
    for (length, answer) in [((1 << 20) + 1, 1), (40 << 20, 3)] {
        let mut client = server.connect().await;
        client.send_raw(&frame(&vec![b'x'; length], 0)).await;
        let (sequence, error) = client.read().await.unwrap();
        assert_eq!((sequence, err_code(&error)), (answer, 1153));
        assert!(client.read().await.is_none());
    }
}

#[tokio::test]
async fn packets_out_of_order_are_reported_and_end_the_connection() {
    let server = start().await;
    let mut client = server.connect().await;
    client.send_raw(&frame(b"\x0e", 2)).await;
    let (sequence, error) = client.read().await.unwrap();
    assert_eq!((sequence, err_code(&error)), (3, 1156));
    assert!(client.read().await.is_none());
}

#[tokio::test]
async fn a_panic_is_an_error_for_its_connection_and_harms_no_other() {
    let server = start().await;
    let (mut bystander, mut client) = (server.connect().await, server.connect().await);
    client.send(b"\x03panic").await;
    let (_, error) = client.read().await.unwrap();
    assert_eq!(err_code(&error), 1105);
    assert!(String::from_utf8_lossy(&error).contains("as asked"));
    assert!(client.read().await.is_none());
    server.fake.until("close").await;
    bystander.query_ok("affect 1").await;
}

#[tokio::test]
async fn the_info_text_of_an_ok_is_length_encoded() {
    let server = start().await;
    let mut client = server.connect().await;
    client.send(b"\x03info").await;
    let (_, payload) = client.read().await.unwrap();
    let info = b"{'label':'group_commit_1', 'status':'PREPARE', 'txnId':'7'}";
    assert_eq!(payload[..7], [0, 3, 0, 2, 0, 1, 0]);
    assert_eq!(payload[7] as usize, info.len());
    assert_eq!(&payload[8..], info);
}

#[tokio::test]
async fn rows_are_ended_in_the_way_the_client_understands() {
    let server = start().await;
    let mut older = server.connect().await;
    assert_eq!(older.raw_result("three").await.len(), 1 + 1 + 1 + 3 + 1);
    let login = Login { extra: DEPRECATE_EOF, ..Login::default() };
    let mut newer = Client::connect(server.address, login).await.unwrap();
    let packets = newer.raw_result("three").await;
    assert_eq!(packets.len(), 1 + 1 + 3 + 1);
    assert_eq!(packets[5], [0xfe, 0, 0, 2, 0, 0, 0]);
}

#[tokio::test]
async fn several_results_of_one_text_are_chained_and_the_last_has_the_sessions_status() {
    let server = start().await;
    let mut client = server.connect().await;
    client.send(b"\x03two").await;
    let first = client.read_ok().await;
    assert_eq!((first.affected_rows, first.status), (1, 2 | 8));
    let second = client.read_ok().await;
    assert_eq!((second.affected_rows, second.status), (2, 2));
    client.send(b"\x03begin").await;
    assert_eq!(client.read_ok().await.status, 2 | 1);
    client.send(b"\x03one and error").await;
    assert_eq!(client.read_ok().await.status, 2 | 1 | 8);
    assert!(is_err(&client.read().await.unwrap().1));
    client.query_ok("affect 1").await;
}

#[tokio::test]
async fn an_error_amid_rows_ends_them() {
    let server = start().await;
    let mut client = server.connect().await;
    client.send(b"\x03half").await;
    let mut packets = Vec::new();
    loop {
        let (sequence, packet) = client.read().await.unwrap();
        assert_eq!(usize::from(sequence), packets.len() + 1);
        packets.push(packet);
        if is_err(&packets[packets.len() - 1]) {
            break;
        }
    }
    assert_eq!(packets.len(), 1 + 1 + 1 + 3 + 1);
    client.query_ok("affect 1").await;
}

#[tokio::test]
async fn a_statement_without_an_answer_is_an_error_not_a_success() {
    let server = start().await;
    let mut client = server.connect().await;
    client.send(b"\x03nothing").await;
    assert_eq!(err_code(&client.read().await.unwrap().1), 1105);
    client.query_ok("affect 1").await;
}

#[tokio::test]
async fn a_prepared_statement_keeps_its_types_and_its_rows_are_binary() {
    let server = start().await;
    let mut client = server.connect().await;
    let id = client.prepare("insert ?").await;
    client.send(&execute(id, 5)).await;
    assert_eq!(client.read_ok().await.affected_rows, 5);
    let mut again = vec![EXECUTE];
    again.extend_from_slice(&id.to_le_bytes());
    again.extend_from_slice(&[0, 1, 0, 0, 0, 0, 0]);
    again.extend_from_slice(&6_i64.to_le_bytes());
    client.send(&again).await;
    assert_eq!(client.read_ok().await.affected_rows, 6);
    let select = client.prepare("select").await;
    client.send(&[&[EXECUTE][..], &select.to_le_bytes(), &[1, 1, 0, 0, 0]].concat()).await;
    let packets = client.read_result().await;
    assert_eq!(packets[3], [0, 0, 1, 0, 0, 0]);
    assert_eq!(packets[5], [0, 0, 3, 0, 0, 0]);
}

#[tokio::test]
async fn long_data_becomes_a_parameter_and_has_no_answer() {
    let server = start().await;
    let mut client = server.connect().await;
    let id = client.prepare("insert ?").await;
    for piece in ["abc", "def"] {
        client.send(&[&[LONG_DATA][..], &id.to_le_bytes(), &[0, 0], piece.as_bytes()].concat()).await;
    }
    client.send(&[&[EXECUTE][..], &id.to_le_bytes(), &[0, 1, 0, 0, 0, 0, 1, 252, 0]].concat()).await;
    client.read_ok().await;
    let calls = server.fake.calls();
    assert_eq!(calls.last().unwrap(), &format!("execute {id} [Bytes([97, 98, 99, 100, 101, 102])]"));
}

#[tokio::test]
async fn a_closed_statement_is_forgotten_without_an_answer() {
    let server = start().await;
    let mut client = server.connect().await;
    let id = client.prepare("insert ?").await;
    client.send(&[&[CLOSE][..], &id.to_le_bytes()].concat()).await;
    client.send(&execute(id, 1)).await;
    let (_, error) = client.read().await.unwrap();
    assert_eq!(err_code(&error), 1243);
    assert_eq!(server.fake.calls().last().unwrap(), &format!("close_statement {id}"));
    assert_ne!(client.prepare("insert ?").await, id);
}

#[tokio::test]
async fn statements_can_be_reset_but_not_fetched_from() {
    let server = start().await;
    let mut client = server.connect().await;
    let id = client.prepare("insert ?").await.to_le_bytes();
    client.send(&[&[0x1a][..], &id].concat()).await;
    client.read_ok().await;
    client.send(&[&[0x1c][..], &id, &[1, 0, 0, 0]].concat()).await;
    assert_eq!(err_code(&client.read().await.unwrap().1), 1421);
}

#[tokio::test]
async fn no_more_statements_are_prepared_than_the_limit() {
    let server = start_with(ServeOptions { max_prepared_statements: 1, ..ServeOptions::default() }).await;
    let mut client = server.connect().await;
    client.prepare("insert ?").await;
    client.send(&[&[PREPARE][..], b"insert ?"].concat()).await;
    assert_eq!(err_code(&client.read().await.unwrap().1), 1461);
}

#[tokio::test]
async fn the_small_commands_are_answered() {
    let server = start().await;
    let mut client = server.connect().await;
    assert!(client.ping().await);
    client.send(b"\x02db2").await;
    client.read_ok().await;
    client.send(b"\x02missing").await;
    assert_eq!(err_code(&client.read().await.unwrap().1), 1049);
    client.send(b"\x09").await;
    assert!(client.read().await.unwrap().1.starts_with(b"Uptime"));
    client.send(b"\x1b\x01\0").await;
    assert_eq!(client.read().await.unwrap().1[0], 0xfe);
    client.send(b"\x03multi").await;
    assert_eq!(client.read_ok().await.affected_rows, 0);
    client.send(b"\x1b\0\0").await;
    client.read().await.unwrap();
    client.send(b"\x03multi").await;
    assert_eq!(client.read_ok().await.affected_rows, 1);
    client.send(b"\x0d").await;
    assert_eq!(client.read().await.unwrap().1[0], 0xfe);
    client.send(b"\x04t\0%").await;
    assert_eq!(client.read_columns().await, 1);
    client.send(b"\x0c\x63\0\0\0").await;
    assert_eq!(err_code(&client.read().await.unwrap().1), 1094);
    let id = client.prepare("insert ?").await;
    client.send(b"\x1f").await;
    client.read_ok().await;
    client.send(&execute(id, 1)).await;
    assert_eq!(err_code(&client.read().await.unwrap().1), 1243);
    client.send(b"\x01").await;
    assert!(client.read().await.is_none());
    server.fake.until("close").await;
}

#[tokio::test]
async fn a_user_is_changed_with_the_new_users_password_only() {
    let server = start().await;
    let mut client = server.connect().await;
    assert!(is_ok(&client.change_user("alice", "secret").await));
    assert!(server.fake.calls().iter().any(|call| call == "change_user alice None"));
    client.query_ok("affect 1").await;
    let refused = client.change_user("alice", "wrong").await;
    assert_eq!(err_code(&refused), 1045);
    assert!(client.read().await.is_none());
}

#[tokio::test]
async fn one_client_too_many_is_refused_with_the_reason_and_an_operator_gets_in() {
    let server = start_with(ServeOptions { max_connections: Live::new(1), ..ServeOptions::default() }).await;
    let _first = server.connect().await;
    let alice = Login { user: "alice", password: "secret", ..Login::default() };
    let refused = Client::connect(server.address, alice).await.map(drop).unwrap_err();
    assert_eq!(err_code(&refused), 1040);
    assert!(refused.ends_with(b"Too many connections"));
    // `root` is one.
    let _operator = server.connect().await;
    let mut third = Client::raw(server.address).await;
    let (sequence, error) = third.read().await.unwrap();
    assert_eq!((sequence, err_code(&error)), (0, 1040), "it needs no login to be refused");
    assert_eq!(&error[3..], b"Too many connections");
}

#[tokio::test]
async fn silent_clients_take_no_place_of_a_session_and_make_room_for_others() {
    let options = ServeOptions { max_connections: Live::new(2), max_logins: 3, ..ServeOptions::default() };
    let server = start_with(options).await;
    let mut silent = Vec::new();
    for _ in 0..10 {
        let mut client = Client::raw(server.address).await;
        client.read().await.expect("a greeting");
        silent.push(client);
    }
    let _first = server.connect().await;
    let _second = server.connect().await;
    // The oldest were closed.
    assert!(silent[0].read().await.is_none());
}

#[tokio::test]
async fn when_the_server_stops_the_running_statement_is_answered_and_nothing_after_it_runs() {
    let mut server = start().await;
    let (mut busy, mut idle) = (server.connect().await, server.connect().await);
    let mut segment = frame(b"\x03wait", 0);
    segment.extend(frame(b"\x03affect 9", 0));
    busy.send_raw(&segment).await;
    server.fake.until("query wait").await;
    server.shutdown.cancel();
    let (sequence, error) = idle.read().await.unwrap();
    assert_eq!((sequence, err_code(&error)), (1, 1053));
    assert!(idle.read().await.is_none());
    server.fake.go_on();
    assert_eq!(busy.read_ok().await.affected_rows, 2);
    assert_eq!(err_code(&busy.read().await.unwrap().1), 1053);
    assert!(busy.read().await.is_none());
    server.stopped().await;
    let calls = server.fake.calls();
    assert!(!calls.iter().any(|call| call == "query affect 9"), "{calls:?}");
    assert_eq!(calls.iter().filter(|call| *call == "close").count(), 2);
}

#[tokio::test]
async fn a_statement_that_never_ends_is_cut_off_after_the_grace() {
    let options = ServeOptions { shutdown_grace: Duration::from_millis(20), ..ServeOptions::default() };
    let mut server = start_with(options).await;
    let mut client = server.connect().await;
    client.send(b"\x03wait").await;
    server.fake.until("query wait").await;
    server.shutdown.cancel();
    server.stopped().await;
    assert!(client.read().await.is_none());
}

#[tokio::test]
async fn a_killed_connection_ends_even_if_it_is_idle() {
    let server = start().await;
    let (mut victim, mut killer) = (server.connect().await, server.connect().await);
    killer.send(&[&[0x0c][..], &victim.id.to_le_bytes()].concat()).await;
    killer.read_ok().await;
    assert_eq!(err_code(&victim.read().await.unwrap().1), 1317);
    assert!(victim.read().await.is_none());
}

#[tokio::test]
async fn an_idle_client_is_closed_after_the_timeout() {
    let server =
        start_with(ServeOptions { idle_timeout: Duration::from_millis(20), ..ServeOptions::default() }).await;
    let mut client = server.connect().await;
    assert!(client.read().await.is_none());
    server.fake.until("close").await;
}

#[tokio::test]
async fn a_command_that_stops_half_way_ends_its_connection_after_the_timeout() {
    let options = ServeOptions { stall_timeout: Duration::from_millis(30), ..ServeOptions::default() };
    let server = start_with(options).await;
    let mut client = server.connect().await;
    client.send_raw(&[100, 0, 0, 0, 3, b's']).await;
    assert!(client.read().await.is_none());
    server.fake.until("close").await;
}

#[tokio::test]
async fn large_commands_wait_for_one_another_when_memory_is_short_and_small_ones_do_not() {
    let size = 8 << 20;
    let options = ServeOptions { packet_memory_bytes: size, ..ServeOptions::default() };
    let server = start_with(options).await;
    let (mut first, mut second) = (server.connect().await, server.connect().await);
    let whole = frame(&[&b"\x03insert "[..], &vec![b'x'; size - 100]].concat(), 0);
    let (begin, end) = whole.split_at(whole.len() / 2);
    first.send_raw(begin).await;
    let waiting = {
        let whole = whole.clone();
        tokio::spawn(async move {
            second.send_raw(&whole).await;
            second.read().await
        })
    };
    // A third client is served while the second one waits unread.
    assert!(server.connect().await.ping().await);
    assert!(!waiting.is_finished());
    first.send_raw(end).await;
    assert!(first.read().await.is_some());
    assert!(waiting.await.unwrap().is_some());
}

#[tokio::test]
async fn a_client_that_does_not_log_in_is_closed_after_the_timeout() {
    let options = ServeOptions { handshake_timeout: Duration::from_millis(20), ..ServeOptions::default() };
    let server = start_with(options).await;
    let mut client = Client::greeted(server.address).await;
    assert!(client.read().await.is_none());
}

#[tokio::test]
async fn a_client_that_takes_no_rows_stops_its_statement() {
    let server =
        start_with(ServeOptions { write_timeout: Duration::from_millis(50), ..ServeOptions::default() })
            .await;
    let mut client = server.connect().await;
    client.send(b"\x03endless").await;
    server.fake.until("endless ended 1317").await;
    server.fake.until("close").await;
}

#[tokio::test]
async fn a_client_that_went_away_has_its_session_closed() {
    let server = start().await;
    let client = server.connect().await;
    drop(client);
    server.fake.until("close").await;
}

#[tokio::test]
async fn a_statement_that_drops_a_write_half_way_ends_its_connection() {
    let server = start().await;
    let mut client = server.connect().await;
    client.send(b"\x03drop").await;
    server.fake.go_on();
    server.fake.until("close").await;
}
