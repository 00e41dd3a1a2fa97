//! Writes the initial inputs `fuzz/corpus/*/seed-*`: statements, loads and packets as clients send them. Run it again after the
//! format of a target's input has changed: `cargo run -p tributary-fuzz-targets --example seeds`.

mod packets;
mod texts;

use std::fs;
use std::io;
use std::path::Path;

fn main() -> io::Result<()> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let seeds: [(&str, Vec<Vec<u8>>); 13] = [
        ("values", texts::values()),
        ("csv", texts::csv()),
        ("json", texts::json()),
        ("headers", texts::headers()),
        ("columns", texts::columns()),
        ("ddl", texts::ddl()),
        ("accounts", texts::accounts()),
        ("mysql", packets::mysql()),
        ("tls", packets::tls()),
        ("block", packets::blocks()),
        ("params", packets::noise(8, 400)),
        ("wal_bytes", packets::noise(12, 300)),
        ("wal_damage", packets::noise(12, 200)),
    ];
    for (target, inputs) in seeds {
        let dir = corpus.join(target);
        fs::create_dir_all(&dir)?;
        for (number, input) in inputs.iter().enumerate() {
            fs::write(dir.join(format!("seed-{number:02}")), input)?;
        }
    }
    Ok(())
}
