//! How a body is packed: the property `compress_type`.

use super::FormatError;

/// The ways of packing that are undone, as `compress_type` calls them.
const NAMES: &str = "gz, bz2, deflate, zstd, lz4, lz4_block, snappy_block";

/// How a body is packed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    #[default]
    None,
    Gzip,
    /// Deflate with zlib's header and checksum, as Doris and HTTP mean it.
    Deflate,
    Bzip2,
    Zstd,
    Lz4Frame,
    /// Blocks as Hadoop's codec for LZ4 writes them.
    Lz4Block,
    /// Blocks as Hadoop's codec for Snappy writes them.
    SnappyBlock,
}

impl Compression {
    /// How a file of that name is packed, as its ending says it.
    #[must_use]
    pub fn of_name(name: &str) -> Self {
        let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
        match ending.to_ascii_lowercase().as_str() {
            "gz" | "gzip" => Self::Gzip,
            "deflate" => Self::Deflate,
            "bz2" => Self::Bzip2,
            "zst" | "zstd" => Self::Zstd,
            "lz4" => Self::Lz4Frame,
            "snappy" => Self::SnappyBlock,
            _ => Self::None,
        }
    }

    /// Its name in texts.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "plain",
            Self::Gzip => "gzip",
            Self::Deflate => "deflate",
            Self::Bzip2 => "bzip2",
            Self::Zstd => "zstd",
            Self::Lz4Frame => "lz4",
            Self::Lz4Block => "lz4_block",
            Self::SnappyBlock => "snappy_block",
        }
    }

    /// The unit of bodies with this compression.
    #[must_use]
    pub const fn unit(self) -> &'static str {
        match self {
            Self::None => "bytes",
            Self::Gzip => "gzip members",
            Self::Deflate => "zlib streams",
            Self::Bzip2 => "bzip2 streams",
            Self::Zstd => "zstd frames with windows of at most 8 MiB",
            Self::Lz4Frame => "LZ4 frames",
            Self::Lz4Block => "blocks as Hadoop's codec for LZ4 writes them",
            Self::SnappyBlock => "blocks as Hadoop's codec for Snappy writes them",
        }
    }
}

/// Reads `compress_type` of a load whose `format` is called `format`.
pub(super) fn parse(text: &str, format: &str) -> Result<Compression, FormatError> {
    Ok(match text.to_ascii_lowercase().as_str() {
        "gz" | "gzip" => Compression::Gzip,
        "deflate" => Compression::Deflate,
        "bz2" | "bzip2" => Compression::Bzip2,
        "zstd" | "zst" => Compression::Zstd,
        "lz4" | "lz4frame" => Compression::Lz4Frame,
        "lz4_block" => Compression::Lz4Block,
        "snappy_block" => Compression::SnappyBlock,
        "lzo" | "lzop" => {
            return Err(FormatError::NotSupported(format!(
                "compress_type={text} is not supported, since no library that is kept up reads it; use one of {NAMES}"
            )));
        }
        _ => {
            return Err(FormatError::Unknown(format!(
                "unknown data format, format={format}, compress_type={text}"
            )));
        }
    })
}
