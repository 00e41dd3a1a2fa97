//! Packed bodies: each way of packing, of CSV and of JSON, by Stream Load and HTTP Stream.

use crate::support::{Curl, Database, Server};
use std::path::PathBuf;

const SHORT_INTERVAL: &str = "\"group_commit_interval_ms\" = \"300\"";

fn finished(mut encoder: impl std::io::Write, data: &[u8]) {
    encoder.write_all(data).unwrap();
    encoder.flush().unwrap();
}

/// `data` packed as `compress_type` calls it.
fn packed(kind: &str, data: &[u8]) -> Vec<u8> {
    let hadoop = |part: Vec<u8>| {
        let lengths = [data.len() as u32, part.len() as u32].map(u32::to_be_bytes).concat();
        [lengths, part].concat()
    };
    match kind {
        "deflate" => {
            let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
            finished(&mut encoder, data);
            encoder.finish().unwrap()
        }
        "gz" => {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            finished(&mut encoder, data);
            encoder.finish().unwrap()
        }
        "bz2" => {
            let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
            finished(&mut encoder, data);
            encoder.finish().unwrap()
        }
        "zstd" => zstd::stream::encode_all(data, 3).unwrap(),
        "lz4" => {
            let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
            finished(&mut encoder, data);
            encoder.finish().unwrap()
        }
        "lz4_block" => hadoop(lz4_flex::block::compress(data)),
        "snappy_block" => hadoop(snap::raw::Encoder::new().compress_vec(data).unwrap()),
        other => panic!("{other}"),
    }
}

fn file(server: &Server, db: &Database, name: &str, bytes: &[u8]) -> PathBuf {
    let path = server.scratch().join(format!("{}.{name}", db.name));
    std::fs::write(&path, bytes).expect("the file is written");
    path
}

const KINDS: [&str; 7] = ["gz", "deflate", "bz2", "zstd", "lz4", "lz4_block", "snappy_block"];

#[test]
fn bodies_are_unpacked_whatever_their_format() {
    let server = Server::shared();
    let csv: String = (0..5000).map(|row| format!("{row},name{row},{}\n", row * 2)).collect();
    let json: String = (0..5000).map(|row| format!("{{\"id\":{row},\"score\":{}}}\n", row * 2)).collect();
    for kind in KINDS {
        let mut db = server.database().with_dt(SHORT_INTERVAL);
        let packed_csv = packed(kind, csv.as_bytes());
        let path = file(&server, &db, kind, &packed_csv);
        let load = Curl::stream_load(&server, &db.name, "dt").header("column_separator: ,");
        let reply = load.header(&format!("compress_type: {kind}")).file(&path).load().success();
        assert_eq!(
            (reply.rows(), reply.get("LoadBytes")),
            ([5000, 5000, 0, 0], packed_csv.len().to_string())
        );
        let path = file(&server, &db, kind, &packed(kind, json.as_bytes()));
        let load = Curl::stream_load(&server, &db.name, "dt").header("format: json");
        let load = load.header(&format!("compress_type: {kind}")).header("group_commit: sync_mode");
        let reply = load.file(&path).load().success();
        assert_eq!(
            (reply.rows(), reply.get("GroupCommit")),
            ([5000, 5000, 0, 0], "true".to_owned()),
            "{kind}"
        );
        let sql = format!(
            "sql: insert into {}.dt select c1, c2, c3 + 1 from http_stream('format' = 'csv', 'column_separator' = ',', \
             'compress_type' = '{kind}')",
            db.name
        );
        let path = file(&server, &db, kind, &packed_csv);
        let url = format!("http://127.0.0.1:{}/api/_http_stream", server.http_port());
        Curl::put(&url).header(&sql).file(&path).load().success();
        let sums = db.client.rows("SELECT COUNT(*), SUM(id), SUM(score) FROM dt");
        let (ids, scores) = (4999 * 5000 / 2, 4999 * 5000);
        assert_eq!(sums, [format!("15000|{}|{}", 3 * ids, 3 * scores + 5000)], "{kind}");
    }
}

#[test]
fn a_body_that_is_not_packed_as_it_says_loads_nothing_and_names_the_codec() {
    let server = Server::shared();
    let mut db = server.database().with_dt(SHORT_INTERVAL);
    let rows: String = (0..5000).map(|row| format!("{row},name{row},1\n")).collect();
    for (kind, name) in
        KINDS.iter().zip(["gzip", "deflate", "bzip2", "zstd", "lz4", "lz4_block", "snappy_block"])
    {
        let whole = packed(kind, rows.as_bytes());
        let cut = file(&server, &db, "cut", &whole[..whole.len() - 1]);
        let plain = file(&server, &db, "plain", rows.as_bytes());
        for body in [cut, plain] {
            let load = Curl::stream_load(&server, &db.name, "dt").header("column_separator: ,");
            let reply = load.header(&format!("compress_type: {kind}")).file(&body).load();
            let message = reply.failure();
            assert!(
                message.starts_with(&format!("[DATA_QUALITY_ERROR]broken {name} body after ")),
                "{message}"
            );
        }
    }
    db.client.ok("SYNC");
    assert_eq!(db.client.value("SELECT COUNT(*) FROM dt"), "0");
}
