//! The headers by which a repeated load is known: `Idempotency-Key`, or `channel` with `channel_offset` and `channel_next_offset`.

use super::{HeaderError, Headers};
use tributary_types::{ChannelOffset, LoadKey, LoadName};

const KEY: &str = "idempotency-key";
const CHANNEL: &str = "channel";
const OFFSET: &str = "channel_offset";
const NEXT_OFFSET: &str = "channel_next_offset";

/// The name that the headers give to a load.
///
/// # Errors
/// A key, a channel or an offset that is illegal, headers that do not go together.
pub(super) fn of(headers: Headers<'_>) -> Result<Option<LoadName>, HeaderError> {
    let (key, channel) = (headers.text(KEY)?, headers.text(CHANNEL)?);
    let (offset, next) = (number(headers, OFFSET)?, number(headers, NEXT_OFFSET)?);
    let name = match (key, channel, offset) {
        (None, None, None) if next.is_none() => return Ok(None),
        (Some(key), None, None) if next.is_none() => LoadName::Key(LoadKey::new(key)?),
        (None, Some(channel), Some(offset)) => {
            LoadName::Channel(ChannelOffset::new(LoadKey::new(channel)?, offset, next)?)
        }
        (Some(_), Some(_), _) => {
            return Err(HeaderError::invalid(
                "headers Idempotency-Key and channel are both given: a load is known by one of them, leave the other out",
            ));
        }
        (None, Some(_), None) => {
            return Err(HeaderError::invalid(
                "header channel without channel_offset: give the offset at which the load begins, 0 in a new channel",
            ));
        }
        _ => {
            return Err(HeaderError::invalid(
                "headers channel_offset and channel_next_offset belong to a channel: give the header channel, or leave them out",
            ));
        }
    };
    for (header, is_given) in
        [("label", headers.text("label")?.is_some()), ("two_phase_commit", headers.two_phase_commit())]
    {
        if is_given {
            return Err(HeaderError::invalid(name.beside(&format!("header {header}"))));
        }
    }
    Ok(Some(name))
}

fn number(headers: Headers<'_>, header: &str) -> Result<Option<u64>, HeaderError> {
    let Some(text) = headers.text(header)? else { return Ok(None) };
    let number = text.parse().map_err(|_| {
        HeaderError::invalid(format!(
            "header {header} is a whole number of at most {}, and not {text}",
            u64::MAX
        ))
    });
    number.map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::HeaderMap;
    use hyper::header::{HeaderName, HeaderValue};

    fn named(given: &[(&'static str, &str)]) -> Result<Option<LoadName>, String> {
        let header = |(name, value): &(&'static str, &str)| {
            (HeaderName::from_static(name), HeaderValue::from_str(value).expect("visible"))
        };
        let headers: HeaderMap = given.iter().map(header).collect();
        of(Headers(&headers)).map_err(|error| error.text)
    }

    #[test]
    fn a_load_is_known_by_its_key_or_by_its_place_in_a_channel() {
        assert_eq!(named(&[("label", "a")]), Ok(None));
        let key = LoadKey::new("k 1").expect("legal");
        assert_eq!(named(&[("idempotency-key", "\"k 1\"")]), Ok(Some(LoadName::Key(key.clone()))));
        let at = ChannelOffset { channel: key, offset: 5, next: 9 };
        let given = [("channel", "k 1"), ("channel_offset", "5"), ("channel_next_offset", "9")];
        assert_eq!(named(&given), Ok(Some(LoadName::Channel(at))));
    }

    #[test]
    fn headers_that_do_not_go_together_are_refused_by_name() {
        for (given, word) in [
            (&[("idempotency-key", "k"), ("channel", "c")][..], "both given"),
            (&[("channel", "c")], "without channel_offset"),
            (&[("channel_offset", "1")], "belong to a channel"),
            (&[("idempotency-key", "k"), ("channel_next_offset", "1")], "belong to a channel"),
            (
                &[("idempotency-key", "k"), ("label", "l")],
                "header label can't be given together with idempotency key [k]",
            ),
            (&[("idempotency-key", "k"), ("two_phase_commit", "true")], "two_phase_commit can't be given"),
            (
                &[("channel", "c"), ("channel_offset", "-1")],
                "whole number of at most 18446744073709551615, and not -1",
            ),
            (
                &[("channel", "c"), ("channel_offset", "3"), ("channel_next_offset", "3")],
                "ends above its offset",
            ),
        ] {
            let error = named(given).expect_err(word);
            assert!(error.contains(word), "{error}");
        }
    }
}
