//! One measurement: connections that each send their next request when the last one is answered.

use crate::Outcome;
use crate::report::Sample;
use crate::servers::Server;
use crate::usage::cpu_seconds_of;
use std::time::Duration;
use tributary_bench::BenchError;
use tributary_bench::closed_loop::{self, Connection, Limit, Watch};
use tributary_bench::own_cpu_seconds;

/// Measures a load over its connections, for `measured` after `warm_up`.
pub fn measure(
    server: &Server,
    connections: &mut [Connection],
    [warm_up, measured]: [Duration; 2],
) -> Outcome<Sample> {
    let mut meter = Meter { pid: server.pid(), begin: [0.0; 2], used: [0.0; 2] };
    let limit = Limit::Time { warm_up, measured };
    let outcome = closed_loop::run(connections, limit, &mut meter)?;
    let micros_per_row = |seconds: f64| seconds * 1e6 / outcome.rows.max(1) as f64;
    let latency = |quantile| Duration::from_nanos(outcome.latencies.value_at_quantile(quantile));
    let [server_cpu, client_cpu] = meter.used;
    Ok(Sample {
        rows_per_second: outcome.rows as f64 / outcome.seconds,
        p50: latency(0.5),
        p99: latency(0.99),
        server_micros: micros_per_row(server_cpu),
        client_micros: micros_per_row(client_cpu),
        total_rows: outcome.rows_in_all,
    })
}

/// Reads the CPU time that the server and this program use while it is measured.
struct Meter {
    pid: u32,
    begin: [f64; 2],
    used: [f64; 2],
}

impl Meter {
    fn read(&self) -> Result<[f64; 2], BenchError> {
        let server = cpu_seconds_of(self.pid).map_err(|error| BenchError::Server(error.to_string()))?;
        Ok([server, own_cpu_seconds()])
    }
}

impl Watch for Meter {
    fn measuring(&mut self) -> Result<(), BenchError> {
        self.begin = self.read()?;
        Ok(())
    }

    fn measured(&mut self) -> Result<(), BenchError> {
        let end = self.read()?;
        self.used = [0, 1].map(|which| end[which] - self.begin[which]);
        Ok(())
    }

    fn progress(&mut self, _elapsed: Duration, _rows: u64) {}
}

/// Nothing is read while the loop runs.
pub struct Unwatched;

impl Watch for Unwatched {
    fn measuring(&mut self) -> Result<(), BenchError> {
        Ok(())
    }

    fn measured(&mut self) -> Result<(), BenchError> {
        Ok(())
    }

    fn progress(&mut self, _elapsed: Duration, _rows: u64) {}
}
