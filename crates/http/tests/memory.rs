//! Memory cost of a body. Runs alone in its process, which it measures.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]
#![cfg(target_os = "linux")]

#[path = "protocol/client.rs"]
#[allow(dead_code)]
mod client;
#[path = "protocol/fake.rs"]
#[allow(dead_code)]
mod fake;

use client::{Client, ROOT};
use fake::start;

/// The peak of this process's memory, in bytes.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

#[tokio::test]
async fn a_big_body_to_a_slow_load_needs_little_memory() {
    const BODY_BYTES: u64 = 512 * 1024 * 1024;
    let mut running = start().await;
    let before = peak_memory();
    let mut client = Client::connect(running.address).await;
    let load = tokio::spawn(async move {
        let length = format!("Content-Length: {BODY_BYTES}");
        client.head("PUT /api/db/gated/_stream_load", &[ROOT, &length]).await;
        let piece = vec![b'x'; 1024 * 1024];
        for _ in 0..BODY_BYTES / piece.len() as u64 {
            client.send(&piece).await;
        }
        client.answer().await
    });
    running.fake.gate.add_permits(1);
    let seen = running.seen.recv().await.unwrap();
    assert_eq!(load.await.unwrap().json()["LoadBytes"], BODY_BYTES);
    assert_eq!(seen.total, BODY_BYTES);
    assert!(seen.largest_chunk <= 512 * 1024, "{}", seen.largest_chunk);
    let grown = peak_memory() - before;
    assert!(grown < 64 * 1024 * 1024, "memory grew by {grown} bytes");
}
