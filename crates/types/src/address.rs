//! Addresses of the Internet Protocol as texts.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Parses an IPv4 address: four numbers up to 255, which may have leading zeros, surrounded by optional blanks.
#[must_use]
pub fn parse_ipv4(text: &str) -> Option<u32> {
    let mut address = 0_u32;
    let mut count = 0;
    for part in text.trim().split('.') {
        let is_number = (1..=3).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
        let number: u8 = part.parse().ok().filter(|_| is_number)?;
        address = address << 8 | u32::from(number);
        count += 1;
    }
    (count == 4).then_some(address)
}

/// Parses an IPv6 address, in network order; an IPv4 address becomes its IPv4-mapped IPv6 address.
#[must_use]
pub fn parse_ipv6(text: &str) -> Option<[u8; 16]> {
    match parse_ipv4(text) {
        Some(address) => Some(mapped(address)),
        None => text.trim().parse::<Ipv6Addr>().ok().map(|address| address.octets()),
    }
}

/// The IPv4-mapped IPv6 address of an IPv4 address.
#[must_use]
pub fn mapped(address: u32) -> [u8; 16] {
    Ipv4Addr::from_bits(address).to_ipv6_mapped().octets()
}

/// `192.168.0.1`
#[must_use]
pub fn show_ipv4(address: u32) -> String {
    Ipv4Addr::from_bits(address).to_string()
}

/// `2001:db8::1`, with the longest run of zeros left out; `::ffff:1.2.3.4`
#[must_use]
pub fn show_ipv6(address: [u8; 16]) -> String {
    Ipv6Addr::from_octets(address).to_string()
}

/// Whether an address is in a network such as `10.0.0.0/8`. `None` if the text is not a network.
#[must_use]
pub fn is_in_network(address: IpAddr, network: &str) -> Option<bool> {
    let (start, bits) = network.trim().split_once('/')?;
    let bits: u32 = bits.parse().ok()?;
    Some(match (address, start.parse().ok()?) {
        (IpAddr::V4(address), IpAddr::V4(start)) if bits <= 32 => {
            let kept = 32 - bits;
            address.to_bits().checked_shr(kept).unwrap_or(0) == start.to_bits().checked_shr(kept).unwrap_or(0)
        }
        (IpAddr::V6(address), IpAddr::V6(start)) if bits <= 128 => {
            let kept = 128 - bits;
            address.to_bits().checked_shr(kept).unwrap_or(0) == start.to_bits().checked_shr(kept).unwrap_or(0)
        }
        (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_shown() {
        let v4 = |text: &str| parse_ipv4(text).map(show_ipv4);
        assert_eq!(v4(" 010.0.0.001 ").as_deref(), Some("10.0.0.1"));
        assert_eq!(v4("255.255.255.255").as_deref(), Some("255.255.255.255"));
        for text in
            ["", "1.2.3", "1.2.3.4.5", "256.0.0.1", "1..2.3", "a.b.c.d", "1.2.3.-4", "1.2.3.0004", "+1.2.3.4"]
        {
            assert_eq!(v4(text), None, "{text}");
        }
        let v6 = |text: &str| parse_ipv6(text).map(show_ipv6);
        for (text, shown) in [
            ("::1", "::1"),
            ("2001:0DB8:0000:0000:0000:0000:0000:0001", "2001:db8::1"),
            ("1:0:0:2:0:0:0:3", "1:0:0:2::3"),
            ("1.2.3.4", "::ffff:1.2.3.4"),
            ("::ffff:1.2.3.4", "::ffff:1.2.3.4"),
        ] {
            assert_eq!(v6(text).as_deref(), Some(shown));
        }
        assert_eq!(v6("1:2"), None);
    }

    #[test]
    fn a_network_has_the_addresses_that_begin_like_it() {
        let within = |address: &str, network: &str| is_in_network(address.parse().unwrap(), network);
        assert_eq!(within("10.1.2.3", "10.0.0.0/8"), Some(true));
        assert_eq!(within("11.1.2.3", "10.0.0.0/8"), Some(false));
        assert_eq!(within("1.2.3.4", "0.0.0.0/0"), Some(true));
        assert_eq!(within("2001:db8::5", "2001:db8::/32"), Some(true));
        assert_eq!(within("2001:db8::5", "10.0.0.0/8"), Some(false));
        assert_eq!(within("1.2.3.4", "10.0.0.0/33"), None);
        assert_eq!(within("1.2.3.4", "10.0.0.0"), None);
    }
}
