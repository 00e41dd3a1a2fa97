//! Connections that send, each its next request when the last one is answered, until the time is over.

use crate::Outcome;
use crate::client::Client;
use crate::load::Load;
use crate::peer::Peer;
use crate::report::Sample;
use crate::servers::{Server, cpu_of, own_cpu};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Barrier;

/// Measures a load on an empty table. Every connection has sent one request before the time begins.
pub async fn measure(peer: Peer, server: &Server, load: &Load, duration: Duration) -> Outcome<Sample> {
    let mut clients = Vec::with_capacity(load.connections);
    for index in 0..load.connections {
        clients.push(Client::connect(peer, server, load, index).await?);
    }
    let warm = Arc::new(Barrier::new(load.connections + 1));
    let go = Arc::new(Barrier::new(load.connections + 1));
    let tasks: Vec<_> = clients
        .into_iter()
        .map(|client| tokio::spawn(send_for(client, Arc::clone(&warm), Arc::clone(&go), duration)))
        .collect();
    warm.wait().await;
    let (server_cpu, client_cpu) = (cpu_of(server.pid())?, own_cpu()?);
    let began = Instant::now();
    go.wait().await;
    let mut latencies = Vec::new();
    for task in tasks {
        latencies.extend(task.await??);
    }
    let elapsed = began.elapsed();
    let requests = latencies.len() as u64;
    let micros_per_row = |cpu: Duration| cpu.as_secs_f64() * 1e6 / (requests * load.rows).max(1) as f64;
    latencies.sort_unstable();
    Ok(Sample {
        rows_per_second: (requests * load.rows) as f64 / elapsed.as_secs_f64(),
        p50: percentile(&latencies, 50),
        p99: percentile(&latencies, 99),
        server_micros: micros_per_row(cpu_of(server.pid())?.saturating_sub(server_cpu)),
        client_micros: micros_per_row(own_cpu()?.saturating_sub(client_cpu)),
        total_rows: (requests + load.connections as u64) * load.rows,
    })
}

/// The times that requests took. An error of the first request is told after the barriers, so that
/// nobody waits for ever.
async fn send_for(
    mut client: Client,
    warm: Arc<Barrier>,
    go: Arc<Barrier>,
    duration: Duration,
) -> Outcome<Vec<Duration>> {
    let first = client.send().await;
    warm.wait().await;
    go.wait().await;
    first?;
    let end = Instant::now() + duration;
    let mut latencies = Vec::new();
    loop {
        let began = Instant::now();
        if began >= end {
            return Ok(latencies);
        }
        client.send().await?;
        latencies.push(began.elapsed());
    }
}

fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    let index = (sorted.len() * percent).div_ceil(100).max(1) - 1;
    sorted.get(index).copied().unwrap_or_default()
}
