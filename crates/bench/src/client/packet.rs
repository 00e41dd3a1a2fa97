//! The few MySQL packets that a load needs.

/// The most bytes of one packet.
const PACKET_BYTES_MAX: usize = (1 << 24) - 1;
const COM_QUERY: u8 = 3;
const COM_STMT_PREPARE: u8 = 0x16;
const COM_STMT_EXECUTE: u8 = 0x17;

/// A parameter of an execution.
#[derive(Clone, Debug)]
pub enum Field {
    Int(u32),
    Decimal(String),
    Text(String),
    Date { year: u16, month: u8, day: u8 },
}

impl Field {
    fn type_code(&self) -> u8 {
        match self {
            Self::Int(_) => 3,
            Self::Decimal(_) => 246,
            Self::Text(_) => 253,
            Self::Date { .. } => 10,
        }
    }

    fn push(&self, out: &mut Vec<u8>) {
        match self {
            Self::Int(value) => out.extend(value.to_le_bytes()),
            Self::Decimal(text) | Self::Text(text) => {
                assert!(text.len() < 251, "the generated texts are short");
                out.push(text.len() as u8);
                out.extend(text.as_bytes());
            }
            Self::Date { year, month, day } => {
                out.push(4);
                out.extend(year.to_le_bytes());
                out.extend([*month, *day]);
            }
        }
    }
}

/// A payload in as many packets as it needs, the first with the given sequence number.
#[must_use]
pub fn framed(payload: &[u8], mut sequence: u8) -> Vec<u8> {
    let mut out = Vec::with_capacity(payload.len() + 8);
    let mut rest = payload;
    loop {
        let (now, later) = rest.split_at(rest.len().min(PACKET_BYTES_MAX));
        out.extend(&(now.len() as u32).to_le_bytes()[..3]);
        out.push(sequence);
        out.extend(now);
        if now.len() < PACKET_BYTES_MAX {
            return out;
        }
        sequence = sequence.wrapping_add(1);
        rest = later;
    }
}

/// A statement as text, and how many bytes stand before it.
///
/// # Panics
/// A statement of 16 MiB or more: its rows' places would be broken by a second packet's head.
#[must_use]
pub fn query(sql: &[u8]) -> (Vec<u8>, usize) {
    assert!(sql.len() + 1 < PACKET_BYTES_MAX, "a statement of the benchmarks fits one packet");
    (framed(&[&[COM_QUERY], sql].concat(), 0), 5)
}

/// A request to prepare a statement.
#[must_use]
pub fn prepare(sql: &str) -> Vec<u8> {
    framed(&[&[COM_STMT_PREPARE], sql.as_bytes()].concat(), 0)
}

/// An execution, and where each parameter's value begins.
///
/// # Panics
/// See [`query`].
#[must_use]
pub fn execute(statement: u32, fields: &[Field], with_types: bool) -> (Vec<u8>, Vec<usize>) {
    let mut payload = vec![COM_STMT_EXECUTE];
    payload.extend(statement.to_le_bytes());
    payload.push(0);
    payload.extend(1_u32.to_le_bytes());
    payload.resize(payload.len() + fields.len().div_ceil(8), 0);
    payload.push(u8::from(with_types));
    if with_types {
        fields.iter().for_each(|field| payload.extend([field.type_code(), 0]));
    }
    let mut places = Vec::with_capacity(fields.len());
    for field in fields {
        // Behind the packet's head.
        places.push(payload.len() + 4);
        field.push(&mut payload);
    }
    assert!(payload.len() < PACKET_BYTES_MAX, "an execution of the benchmarks fits one packet");
    (framed(&payload, 0), places)
}

/// The first whole packet of some bytes: its sequence number and payload.
#[must_use]
pub fn first(bytes: &[u8]) -> Option<(u8, &[u8])> {
    let head = bytes.first_chunk::<4>()?;
    let length = u32::from_le_bytes([head[0], head[1], head[2], 0]) as usize;
    Some((head[3], bytes.get(4..4 + length)?))
}

/// A number of MySQL's variable length, and the bytes behind it.
#[must_use]
pub fn length(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (&first, rest) = bytes.split_first()?;
    let wide = match first {
        0xfc => 2,
        0xfd => 3,
        0xfe => 8,
        _ => return Some((first.into(), rest)),
    };
    let (number, rest) = rest.split_at_checked(wide)?;
    let mut padded = [0; 8];
    padded[..wide].copy_from_slice(number);
    Some((u64::from_le_bytes(padded), rest))
}

/// What an error packet says.
#[must_use]
pub fn error_text(payload: &[u8]) -> String {
    let number = payload.get(1..3).map_or(0, |bytes| u16::from_le_bytes([bytes[0], bytes[1]]));
    format!("ERROR {number}: {}", String::from_utf8_lossy(payload.get(9..).unwrap_or_default()))
}
