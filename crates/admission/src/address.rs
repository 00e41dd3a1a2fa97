//! The addresses of clients, as limits count them.

use std::net::{IpAddr, Ipv6Addr};

/// The bits of an IPv6 address that name its network; a host chooses the others as it likes.
const NETWORK_MASK: u128 = !0 << 64;

/// The address of clients that count as one: an IPv4 address, whether or not it is mapped to IPv6, or an IPv6 network (/64).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address(IpAddr);

impl From<IpAddr> for Address {
    fn from(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V4(address) => address.into(),
            IpAddr::V6(address) => Ipv6Addr::from(u128::from(address) & NETWORK_MASK).into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_a_network_of_ipv6_are_one_address_and_mapped_addresses_are_those_of_ipv4() {
        let of = |text: &str| Address::from(text.parse::<IpAddr>().expect("an address"));
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:1"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:10.0.0.1"), of("10.0.0.1"));
        assert_ne!(of("10.0.0.1"), of("10.0.0.2"));
    }
}
