//! The web console's files, as a browser fetches them.
//!
//! `web` has the sources, `dist` the build, which is committed: a build of the server needs no Node. All of them are public, and none
//! has anything of a server: what the pages show, they read by SQL as the user who has logged in.
//!
//! Not here: requests and their answers.

use flate2::Compression;
use flate2::write::GzEncoder;
use std::hash::Hasher;
use std::io::Write;
use std::sync::LazyLock;
use twox_hash::XxHash64;

/// The policy under which the pages run: no inline scripts or styles, no other hosts, no frames around them.
pub const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src \
                                           'self'; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
                                           require-trusted-types-for 'script'";

/// A file of the console.
#[derive(Debug)]
pub struct Asset {
    pub name: &'static str,
    pub content_type: &'static str,
    pub bytes: &'static [u8],
    /// The same, packed.
    pub gzip: Vec<u8>,
    /// Changes with the contents; with its quotes.
    pub etag: String,
}

const SCRIPT: &str = "text/javascript; charset=utf-8";

const FILES: [(&str, &str, &[u8]); 13] = [
    ("index.html", "text/html; charset=utf-8", include_bytes!("../dist/index.html")),
    ("app.css", "text/css; charset=utf-8", include_bytes!("../dist/app.css")),
    ("icon.svg", "image/svg+xml", include_bytes!("../dist/icon.svg")),
    ("admin.js", SCRIPT, include_bytes!("../dist/admin.js")),
    ("app.js", SCRIPT, include_bytes!("../dist/app.js")),
    ("base.js", SCRIPT, include_bytes!("../dist/base.js")),
    ("chart.js", SCRIPT, include_bytes!("../dist/chart.js")),
    ("editor.js", SCRIPT, include_bytes!("../dist/editor.js")),
    ("import.js", SCRIPT, include_bytes!("../dist/import.js")),
    ("overview.js", SCRIPT, include_bytes!("../dist/overview.js")),
    ("plot.js", SCRIPT, include_bytes!("../dist/plot.js")),
    ("sql.js", SCRIPT, include_bytes!("../dist/sql.js")),
    ("tables.js", SCRIPT, include_bytes!("../dist/tables.js")),
];

/// Packed once, when somebody asks for the first one.
static ASSETS: LazyLock<Vec<Asset>> = LazyLock::new(|| {
    let asset = |&(name, content_type, bytes): &(&'static str, &'static str, &'static [u8])| {
        let mut hasher = XxHash64::with_seed(0);
        hasher.write(bytes);
        Asset {
            name,
            content_type,
            bytes,
            gzip: packed(bytes),
            etag: format!("\"{:016x}\"", hasher.finish()),
        }
    };
    FILES.iter().map(asset).collect()
});

fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    // A vector takes everything.
    let written = encoder.write_all(bytes).and_then(|()| encoder.finish());
    written.unwrap_or_default()
}

/// The file of this name; an empty one is the page. `None` if there is none.
#[must_use]
pub fn asset(name: &str) -> Option<&'static Asset> {
    let name = if name.is_empty() { "index.html" } else { name };
    ASSETS.iter().find(|asset| asset.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn every_file_of_the_build_is_served_and_the_page_names_no_other() {
        let dist = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/dist")).expect("the build");
        let mut built: Vec<_> =
            dist.map(|file| file.expect("a file").file_name().into_string().expect("a name")).collect();
        let mut served: Vec<_> = FILES.iter().map(|(name, ..)| (*name).to_owned()).collect();
        built.sort();
        served.sort();
        assert_eq!(built, served);
        let page = str::from_utf8(asset("").expect("the page").bytes).expect("UTF-8");
        let names = page.split(['"', '\'']).filter_map(|part| part.strip_prefix("./"));
        let named: Vec<_> = names.filter(|name| !name.is_empty()).collect();
        assert!(named.contains(&"app.js") && named.contains(&"app.css"), "{named:?}");
        assert!(named.iter().all(|name| asset(name).is_some()), "{named:?}");
        assert!(!page.contains("<style") && !page.contains("onload="), "{page}");
        assert!(asset("../Cargo.toml").is_none() && asset("nothing.js").is_none());
    }

    #[test]
    fn packed_files_are_the_same_and_small() {
        for asset in ASSETS.iter() {
            let mut unpacked = Vec::new();
            flate2::read::GzDecoder::new(&asset.gzip[..]).read_to_end(&mut unpacked).expect("gzip");
            assert!(unpacked == asset.bytes, "{}", asset.name);
        }
        let size = |name: &str| asset(name).expect("a file").gzip.len();
        let sum = |names: &[&str]| -> usize { names.iter().map(|name| size(name)).sum() };
        let frame = sum(&["index.html", "app.js", "base.js", "app.css", "icon.svg"]);
        let first_view = frame + sum(&["overview.js", "chart.js"]);
        assert!(first_view <= 60 * 1024, "{first_view}");
        let sql_page = frame + sum(&["sql.js", "editor.js", "chart.js", "plot.js"]);
        assert!(sql_page <= 180 * 1024, "{sql_page}");
    }
}
