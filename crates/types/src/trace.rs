//! Places in traces that clients bring along.
//!
//! Not here: what is traced, and where traces go.

/// The span of a client that has caused a request, as the header `traceparent` of W3C's Trace Context names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceParent {
    pub trace: u128,
    pub span: u64,
    /// Whether the client records its trace.
    pub is_sampled: bool,
}

impl TraceParent {
    /// Reads `00-<trace id>-<span id>-<flags>` with lower-case hexadecimal digits. Later versions may have more parts. `None`: it is no
    /// such text, and begins a trace of its own, as the specification has it.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.trim().splitn(5, '-');
        let version = hexadecimal(parts.next()?, 2)?;
        let trace = hexadecimal(parts.next()?, 32)?;
        let span = u64::try_from(hexadecimal(parts.next()?, 16)?).ok()?;
        let flags = hexadecimal(parts.next()?, 2)?;
        let has_more = parts.next().is_some();
        let is_known = version != 0xff && !(version == 0 && has_more);
        (is_known && trace != 0 && span != 0).then_some(Self { trace, span, is_sampled: flags & 1 == 1 })
    }

    /// Finds the parent in a comment of a statement, as SQL commenters add it: `/*traceparent='00-…-01'*/`. Only the statement's
    /// beginning and end are searched, where they put it.
    #[must_use]
    pub fn of_statement(text: &str) -> Option<Self> {
        const KEY: &str = "traceparent='";
        const SEARCHED: usize = 1024;
        let bytes = text.as_bytes();
        let end = bytes.get(bytes.len().saturating_sub(SEARCHED)..)?;
        let beginning = &bytes[..bytes.len().min(SEARCHED)];
        [end, beginning].into_iter().find_map(|part| {
            let at = part.windows(KEY.len()).rposition(|window| window == KEY.as_bytes())?;
            let value = &part[at + KEY.len()..];
            let value = &value[..value.iter().position(|&byte| byte == b'\'')?];
            Self::parse(str::from_utf8(value).ok()?)
        })
    }
}

fn hexadecimal(text: &str, digits: usize) -> Option<u128> {
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    (text.len() == digits && text.bytes().all(is_digit))
        .then(|| u128::from_str_radix(text, 16).ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn a_header_is_read_as_the_specification_has_it() {
        let parent = TraceParent::parse(TEXT).unwrap();
        assert_eq!(parent.trace, 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736);
        assert_eq!(parent.span, 0x00f0_67aa_0ba9_02b7);
        assert!(parent.is_sampled);
        let not_sampled = TEXT.replace("-01", "-02");
        assert!(!TraceParent::parse(&not_sampled).unwrap().is_sampled);
        let later = TEXT.replacen("00", "cc", 1) + "-what-comes-later";
        assert_eq!(TraceParent::parse(&later).unwrap(), parent);
        for bad in [
            "",
            "00",
            &TEXT.to_uppercase(),
            &format!("{TEXT}-more"),
            &TEXT.replacen("00", "ff", 1),
            &TEXT.replace("00f067aa0ba902b7", "0000000000000000"),
            &TEXT.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32)),
            &TEXT.replace("4bf9", "4b+9"),
            &TEXT.replace('-', "–"),
        ] {
            assert_eq!(TraceParent::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_comment_is_found_at_either_end_of_a_statement() {
        let rows = "(1, 'ü'), ".repeat(5_000);
        let comment = format!("/*action='x',traceparent='{TEXT}'*/");
        let expected = TraceParent::parse(TEXT);
        assert_eq!(TraceParent::of_statement(&format!("SELECT 1 {comment}")), expected);
        assert_eq!(TraceParent::of_statement(&format!("{comment} INSERT INTO t VALUES {rows}")), expected);
        assert_eq!(TraceParent::of_statement(&format!("INSERT INTO t VALUES {rows} {comment}")), expected);
        for without in ["", "SELECT 1", "SELECT 1 /*traceparent='00-12'*/", "/*traceparent='"] {
            assert_eq!(TraceParent::of_statement(without), None, "{without}");
        }
    }
}
