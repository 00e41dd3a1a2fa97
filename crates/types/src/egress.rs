//! The addresses that statements may make the server connect to.
//!
//! A statement that names a server (a file of `HTTP()`, a store of `S3()`, a broker of Kafka) must not reach services that only
//! this machine can reach: services that listen on loopback, and the metadata of a cloud, which hands out credentials.
//!
//! Not its business: resolving names, and addresses in the server's own settings.

use crate::address::is_in_network;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Addresses of metadata services of clouds that are not link-local.
const METADATA: [IpAddr; 3] = [
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
];
/// Prefix of IPv6 addresses that a translator maps to the IPv4 address at their end.
const TRANSLATED: [u16; 6] = [0x64, 0xff9b, 0, 0, 0, 0];

/// The networks that statements may reach.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Egress {
    /// Networks with whether they are permitted; the first that contains an address decides.
    rules: Vec<(bool, String)>,
}

/// An address that may not be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forbidden {
    pub address: IpAddr,
    why: &'static str,
}

impl fmt::Display for Forbidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { address, why } = self;
        let bits = if address.is_ipv4() { 32 } else { 128 };
        write!(
            f,
            "statements may not reach the address {address}, which {why}; the setting `egress` can allow it: `egress={address}/{bits}`"
        )
    }
}

impl std::error::Error for Forbidden {}

impl Egress {
    /// Reads networks separated by `;`, like `127.0.0.0/8;::1/128`. `!` before one forbids it.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let parts = text.split(';').map(str::trim).filter(|part| !part.is_empty());
        let rule = |part: &str| {
            let (is_allowed, network) = part.strip_prefix('!').map_or((true, part), |rest| (false, rest));
            let network = network.trim();
            let start = network.split_once('/')?.0.parse().ok()?;
            is_in_network(start, network)?;
            Some((is_allowed, network.to_owned()))
        };
        Some(Self { rules: parts.map(rule).collect::<Option<_>>()? })
    }

    /// # Errors
    /// If the address is forbidden.
    pub fn check(&self, address: IpAddr) -> Result<(), Forbidden> {
        let meant = meant(address);
        let of_rule = self.rules.iter().find(|(_, network)| {
            [address, meant].iter().any(|one| is_in_network(*one, network) == Some(true))
        });
        match of_rule {
            Some((true, _)) => Ok(()),
            Some((false, _)) => Err(Forbidden { address, why: "a setting forbids" }),
            None => reserved(meant).map_or(Ok(()), |why| Err(Forbidden { address, why })),
        }
    }

    /// Checks a host that is an address; a name is checked when it is resolved.
    ///
    /// # Errors
    /// The errors of [`Egress::check`].
    pub fn check_host(&self, host: &str) -> Result<(), Forbidden> {
        let text = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
        text.parse().map_or(Ok(()), |address| self.check(address))
    }
}

/// The IPv4 address embedded in an IPv6 address, or the address itself.
fn meant(address: IpAddr) -> IpAddr {
    let IpAddr::V6(v6) = address else { return address };
    let segments = v6.segments();
    if segments[..6] == TRANSLATED {
        let [.., a, b, c, d] = v6.octets();
        return IpAddr::V4(Ipv4Addr::new(a, b, c, d));
    }
    address.to_canonical()
}

/// The reason why an address is forbidden, if no rule names it.
fn reserved(address: IpAddr) -> Option<&'static str> {
    if METADATA.contains(&address) {
        return Some("is of a cloud's metadata service");
    }
    let (loopback, link_local, nothing) = match address {
        IpAddr::V4(v4) => (
            v4.is_loopback() || v4.octets()[0] == 0,
            v4.is_link_local(),
            v4.is_broadcast() || v4.is_multicast(),
        ),
        IpAddr::V6(v6) => {
            (v6.is_loopback() || v6.is_unspecified(), v6.is_unicast_link_local(), v6.is_multicast())
        }
    };
    if loopback {
        Some("is of this machine itself (loopback)")
    } else if link_local {
        Some("is link-local, as the metadata services of clouds are")
    } else {
        nothing.then_some("is of no single machine")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn may(egress: &str, address: &str) -> bool {
        let egress = Egress::parse(egress).expect("legal rules");
        let checked = egress.check(address.parse().expect("an address"));
        assert_eq!(checked.is_ok(), egress.check_host(address).is_ok(), "{address}");
        checked.is_ok()
    }

    #[test]
    fn this_machine_and_its_link_are_out_of_reach_however_they_are_written() {
        for address in [
            "127.0.0.1",
            "127.9.9.9",
            "0.0.0.0",
            "0.1.2.3",
            "169.254.169.254",
            "100.100.100.200",
            "168.63.129.16",
            "255.255.255.255",
            "224.0.0.1",
            "::1",
            "::",
            "fe80::1",
            "fd00:ec2::254",
            "ff02::1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b::7f00:1",
        ] {
            assert!(!may("", address), "{address}");
        }
        for address in ["10.0.0.1", "192.168.1.1", "8.8.8.8", "fd00::1", "2001:db8::1", "64:ff9b::808:808"] {
            assert!(may("", address), "{address}");
        }
    }

    #[test]
    fn the_first_rule_that_names_an_address_decides() {
        assert!(may("127.0.0.0/8;::1/128", "127.0.0.1") && may("127.0.0.0/8", "::ffff:127.0.0.1"));
        assert!(!may("127.0.0.1/32", "127.0.0.2") && !may("127.0.0.0/8", "::1"));
        assert!(!may("!10.0.0.0/8", "10.1.2.3") && may(" 10.1.0.0/16 ; !10.0.0.0/8", "10.1.2.3"));
        assert!(!may("0.0.0.0/0", "::1") && may("0.0.0.0/0; ::/0", "169.254.169.254"));
    }

    #[test]
    fn what_is_no_network_is_refused() {
        for wrong in ["localhost", "127.0.0.1", "127.0.0.0/33", "10.0.0.0/8,::1/128", "!", "!x/8"] {
            assert_eq!(Egress::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_refusal_says_what_to_do() {
        let refused = Egress::default().check_host("[::1]").unwrap_err().to_string();
        assert!(
            refused.contains("::1, which is of this machine") && refused.contains("egress=::1/128"),
            "{refused}"
        );
        assert_eq!(Egress::default().check_host("localhost"), Ok(()), "it is no address yet");
    }
}
