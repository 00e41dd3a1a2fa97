//! `tributary torture`: runs this program as a server, kills it, and counts.

use clap::Args;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use tributary_torture::{Options, TortureError, run};

/// A promise was broken.
const VIOLATED: u8 = 1;
/// Nothing could be tested here.
const IMPOSSIBLE: u8 = 2;

const WRITERS: u16 = 12;
/// Most of these wait for an answer at any moment.
const WRITERS_WITH_KEYS: u16 = 64;

/// Kills a real server at random moments and counts every acknowledged row
#[derive(Args)]
pub struct TortureArgs {
    /// How long rounds are begun, like 90s, 30m or 2h
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration)]
    duration: Duration,
    /// Decides loads, kills and settings; without it a random one is taken and printed
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// An empty directory for the data; without it a temporary one, removed if all is well
    #[arg(long, value_name = "DIR")]
    storage_root_path: Option<PathBuf>,
    /// Concurrent writers; 12 (or 16 with --keyed) write in each way once [default: 12, or 64 with --keyed]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    writers: Option<u16>,
    /// Require TLS, give each kind of writer a user of its own, and change rights meanwhile (needs openssl)
    #[arg(long, conflicts_with_all = ["full_disk", "keyed"])]
    secure: bool,
    /// Send loads with idempotency keys and channels through a proxy that cuts connections, and count each once
    #[arg(long, conflicts_with = "full_disk")]
    keyed: bool,
    /// End after that many acknowledged loads instead of after --duration
    #[arg(long, value_name = "N", requires = "keyed", value_parser = clap::value_parser!(u64).range(1..))]
    loads: Option<u64>,
    /// Spread that many kills over the run, instead of random ones
    #[arg(long, value_name = "N", requires = "keyed")]
    kills: Option<u64>,
    /// Look for one in that many loads with their receipts, from other connections
    #[arg(long, value_name = "N", requires = "keyed", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    look_for_one_in: u32,
    /// The server's program, if it is not this one
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Put the data on a small file system that fills up and is freed again (needs root)
    #[arg(long)]
    full_disk: bool,
    /// Memory in MiB that a server may have resident: by default its limits for queries and rows, and 1 GiB for everything else
    #[arg(long, value_name = "MIB", default_value_t = 2048 + 192 + 1024)]
    memory_max: u64,
    /// Print the report as one JSON document; progress is written to standard error
    #[arg(long)]
    json: bool,
    /// A setting of the server, like `flush_age_ms=100`; may be given more than once
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = pair)]
    settings: Vec<(String, String)>,
}

impl TortureArgs {
    /// Runs and prints.
    pub fn run(self) -> ExitCode {
        let seed = self.seed.unwrap_or_else(|| std::process::id().into());
        let is_temporary = self.storage_root_path.is_none();
        let directory = self.storage_root_path.unwrap_or_else(|| {
            std::env::temp_dir().join(format!("tributary-torture-{}", std::process::id()))
        });
        let program = match self.program.map_or_else(std::env::current_exe, Ok) {
            Ok(program) => program,
            Err(error) => return fail(&format!("the path of this program is not known: {error}"), VIOLATED),
        };
        let options = Options {
            program,
            directory: directory.clone(),
            duration: self.duration,
            seed,
            writers: self.writers.unwrap_or(if self.keyed { WRITERS_WITH_KEYS } else { WRITERS }).into(),
            full_disk: self.full_disk,
            secure: self.secure,
            keyed: self.keyed,
            loads: self.loads,
            kills: self.kills,
            looked_for_one_in: self.look_for_one_in,
            settings: self.settings,
            memory_max_bytes: self.memory_max << 20,
            sabotage: None,
        };
        let progress = |line: &str| if self.json { eprintln!("{line}") } else { println!("{line}") };
        progress(&format!("seed {seed}, data in {}", directory.display()));
        match run(&options, &progress) {
            Ok(report) => {
                if self.json {
                    println!("{}", report.json());
                } else {
                    print!("{report}");
                }
                if !report.is_good() {
                    eprintln!("data and server.log are kept in {}", directory.display());
                    return VIOLATED.into();
                }
                if is_temporary && let Err(error) = std::fs::remove_dir_all(&directory) {
                    eprintln!("cannot remove {}: {error}", directory.display());
                }
                ExitCode::SUCCESS
            }
            Err(TortureError::Impossible(why)) => fail(&why, IMPOSSIBLE),
            Err(error) => {
                fail(&format!("{error}\ndata and server.log are kept in {}", directory.display()), VIOLATED)
            }
        }
    }
}

fn fail(why: &str, code: u8) -> ExitCode {
    eprintln!("tributary: {why}");
    code.into()
}

fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is no time like 90s, 30m or 2h");
    let (number, seconds) = match text.char_indices().last().ok_or_else(wrong)? {
        (at, 's') => (&text[..at], 1),
        (at, 'm') => (&text[..at], 60),
        (at, 'h') => (&text[..at], 3600),
        _ => (text, 1),
    };
    let number: u64 = number.parse().map_err(|_| wrong())?;
    number.checked_mul(seconds).map(Duration::from_secs).ok_or_else(wrong)
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or_else(|| format!("`{text}` is not NAME=VALUE"))?;
    Ok((name.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_seconds_minutes_or_hours() {
        assert_eq!(duration("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("30m"), Ok(Duration::from_secs(1800)));
        assert_eq!(duration("2h"), Ok(Duration::from_secs(7200)));
        assert_eq!(duration("5"), Ok(Duration::from_secs(5)));
        assert_eq!(duration("soon"), Err("`soon` is no time like 90s, 30m or 2h".to_owned()));
        assert!(duration("").is_err());
        assert!(duration("99999999999999999999h").is_err());
    }
}
